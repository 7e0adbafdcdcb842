"""The file ``nli_for_simcse.csv``: a sentence, one that it entails and one that contradicts it, a row a triplet.

SimCSE reads the file through pandas, for which a cell such as ``NA`` or ``null`` is empty, and puts a single blank into
empty cells. A few of the 275,601 rows are therefore trained on without one of their sentences.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from sembench.core.errors import SembenchError
from sembench.data.readers.lines import numbered_lines
from sembench.data.triplets import Triplet

HEADER = ["sent0", "sent1", "hard_neg"]
# Cells that pandas takes for missing unless it is asked not to (pandas.read_csv, argument na_values).
MISSING = frozenset(
    {"", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA"}
    | {"NULL", "NaN", "None", "n/a", "nan", "null"}
)


def read_triplets(path: Path) -> Iterator[Triplet]:
    """Yield the rows as they are in the file, white space included.

    Raises:
        SembenchError: wrong header, a row with more or fewer than three cells, a cell with a line break (what an
            unbalanced quotation mark leads to), or a line that is not UTF-8.
    """
    reader = csv.reader(line for _, line in numbered_lines(path))
    try:
        _check_header(path, next(reader, []))
        for cells in reader:
            yield _checked(f"{path}, line {reader.line_num}", cells)
    except csv.Error as error:
        raise SembenchError(f"{path}, line {reader.line_num} cannot be read ({error}); fetch it again") from None


def _check_header(path: Path, names: list[str]) -> None:
    if names != HEADER:
        hint = "; the cells must be separated by commas" if any("\t" in name for name in names) else ""
        raise SembenchError(f"{path}, line 1: the header must be {','.join(HEADER)}, not {','.join(names)[:60]}{hint}")


def _checked(where: str, cells: list[str]) -> Triplet:
    if len(cells) != len(HEADER):
        raise SembenchError(f"{where}: {len(cells)} cells where 3 are needed; put a sentence with commas into quotes")
    if any("\n" in cell or "\r" in cell for cell in cells):
        raise SembenchError(f"{where}: a sentence goes over several lines; balance the quotation marks of the row")
    return Triplet(*cells)
