"""Tables of sentence pairs with TABs between the cells: Quora's questions and ParaNMT."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from pathlib import Path

from sembench.core.errors import SembenchError
from sembench.data.pairs import Pair
from sembench.data.readers.lines import numbered_lines

QUESTIONS = ("question1", "question2", "is_duplicate")

_HINT = "fetch the file again, or change 'quoted' if cells are in quotation marks"


def read_questions(path: Path, quoted: bool) -> Iterator[tuple[Pair, bool]]:
    """Yield pairs of questions, and whether people judged them duplicates.

    Args:
        path: a table whose header has the columns ``QUESTIONS``, as GLUE has it: id, qid1, qid2 and these.
        quoted: a cell in quotation marks may hold TABs and line breaks and doubles its quotation marks, as in Quora's
            own file; in GLUE's, quotation marks are text.

    Raises:
        SembenchError: a column is missing, a line has more or fewer cells than the header, is not UTF-8, or has
            another label than 0 and 1.
    """
    rows = _quoted(path) if quoted else _plain(path)
    _, header = next(rows, (1, []))
    if absent := [name for name in QUESTIONS if name not in header]:
        raise SembenchError(f"{path}, line 1: the header has no column '{absent[0]}'; take a split that has labels")
    places = [header.index(name) for name in QUESTIONS]
    for number, cells in rows:
        if len(cells) != len(header):
            found = f"{len(cells)} cells separated by TABs where the header has {len(header)}"
            raise SembenchError(f"{path}, line {number}: {found}; {_HINT}")
        first, second, label = (cells[place].strip() for place in places)
        if label not in ("0", "1"):
            raise SembenchError(f"{path}, line {number}: is_duplicate is '{label[:40]}' and must be 0 or 1; {_HINT}")
        yield Pair(first, second), label == "1"


def read_scored(path: Path) -> Iterator[Pair]:
    """Yield the pairs of a table of two sentences and, in all lines or in none, a score.

    Raises:
        SembenchError: a line has another number of cells than the first, the third is no number, or it is not UTF-8.
    """
    width = 0
    for number, cells in _plain(path):
        width = width or len(cells)
        if width not in (2, 3) or len(cells) != width:
            wanted = "2 or 3 are needed" if number == 1 else f"line 1 has {width}"
            raise SembenchError(f"{path}, line {number}: {len(cells)} cells separated by TABs where {wanted}")
        if width == 3 and not _is_number(cells[2]):
            raise SembenchError(f"{path}, line {number}: the score '{cells[2].strip()[:40]}' is not a number")
        yield Pair(cells[0].strip(), cells[1].strip())


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _plain(path: Path) -> Iterator[tuple[int, list[str]]]:
    for number, line in numbered_lines(path):
        yield number, line.rstrip("\r\n").split("\t")


def _quoted(path: Path) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader((line for _, line in numbered_lines(path)), delimiter="\t", strict=True)
    try:
        for cells in reader:
            yield reader.line_num, cells
    except csv.Error as error:
        raise SembenchError(f"{path}, line {reader.line_num} cannot be read ({error}); fetch it again") from None
