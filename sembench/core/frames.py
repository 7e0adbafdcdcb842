"""Frames on disk: read with a check of their columns, written so that no reader sees half of one."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sembench.core.errors import SembenchError
from sembench.core.files import atomic_path
from sembench.core.lazy import pd

if TYPE_CHECKING:
    from pandas import DataFrame

_ROWS_AT_ONCE = 50_000


def read_frame(path: Path, columns: Iterable[str] = ()) -> DataFrame:
    """Read a table of the workflow, parquet or csv.

    Raises:
        SembenchError: it cannot be read or lacks one of ``columns``.
    """
    try:
        frame = pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise SembenchError(f"{path} cannot be read ({type(error).__name__}); delete it and run again") from None
    if lacking := [column for column in columns if column not in frame.columns]:
        raise SembenchError(f"{path} lacks the column '{lacking[0]}'; delete it and run again")
    return frame


def write_parquet(frame: DataFrame, path: Path) -> None:
    """Write a frame without its index atomically as parquet, creating the folder."""
    with atomic_path(path) as temporary:
        frame.to_parquet(temporary, index=False)


def write_table(frame: DataFrame, path: Path) -> None:
    """Write a frame without its index atomically as text: csv, or with TABs where the name ends in ``.tsv``."""
    with atomic_path(path) as temporary:
        frame.to_csv(temporary, sep="\t" if path.suffix == ".tsv" else ",", index=False)


def write_rows(rows: Iterable[Sequence[str]], path: Path, columns: Sequence[str], *, empty: bool = False) -> int:
    """Write rows of text atomically as parquet, in pieces: there may be more of them than memory should hold.

    Args:
        rows: of any number.
        path: the parquet file.
        columns: their names.
        empty: whether to write a file without a row where there is none.

    Returns:
        The number of rows. With none, and not ``empty``, no file is written, and one that was there before stays.
    """
    import pyarrow as pa
    from pyarrow import parquet

    schema = pa.schema([(column, pa.string()) for column in columns])
    waiting, written = iter(rows), 0
    if not (piece := list(itertools.islice(waiting, _ROWS_AT_ONCE))) and not empty:
        return 0
    with atomic_path(path) as temporary, parquet.ParquetWriter(temporary, schema) as writer:
        while piece:
            writer.write_table(pa.table(dict(zip(columns, zip(*piece, strict=True), strict=True)), schema=schema))
            written += len(piece)
            piece = list(itertools.islice(waiting, _ROWS_AT_ONCE))
    return written


def iter_rows(path: Path) -> Iterator[tuple[str, ...]]:
    """Yield the rows that ``write_rows`` wrote, in pieces."""
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        for piece in file.iter_batches(_ROWS_AT_ONCE):
            yield from zip(*(column.to_pylist() for column in piece.columns), strict=True)
