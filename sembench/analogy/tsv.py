"""Rows of TSV files that people write or save from a spreadsheet."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from sembench.core.errors import SembenchError


def tsv_rows(path: Path, columns: Sequence[str]) -> list[tuple[int, list[str]]]:
    """Return number and cells of each line below the header; a line without text is no row.

    Quotation marks are text, but for cells that a spreadsheet wrote: in quotes as a whole, and doubled within.

    Args:
        path: UTF-8, with a header.
        columns: the header.

    Raises:
        SembenchError: no such file, not UTF-8, or another header.
    """
    if not path.is_file():
        raise SembenchError(f"{path} does not exist; give the path of a TSV with the columns {' '.join(columns)}")
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.reader(stream, delimiter="\t", quoting=csv.QUOTE_NONE)
            header = next(reader, [])
            rows = [(reader.line_num, [_unquoted(cell) for cell in row]) for row in reader if "".join(row).strip()]
    except UnicodeDecodeError as error:
        raise SembenchError(f"{path} is not UTF-8 (byte {error.start}); save it as UTF-8") from None
    except csv.Error as error:
        raise SembenchError(f"{path} is not a TSV ({error}); save it with one row a line") from None
    if header != list(columns):
        raise SembenchError(f"{path}, line 1: the header must be {' '.join(columns)}, separated by TABs")
    return rows


def _unquoted(cell: str) -> str:
    inner = cell[1:-1]
    quoted = len(cell) > 2 and cell[0] == cell[-1] == '"' and '""' in inner and '"' not in inner.replace('""', "")
    return inner.replace('""', '"') if quoted else cell
