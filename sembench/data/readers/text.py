"""Text files of data sets: which file, its lines, and the cells of its tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from sembench.core.errors import SembenchError
from sembench.registry.models import Dataset


def file_path(dataset: Dataset, folder: Path, ending: str) -> Path:
    """Return the path of a data set's file whose name is ``ending`` or ends with a full stop and ``ending``.

    Raises:
        SembenchError: the data set has no such file, or it is missing in ``folder``.
    """
    for file in dataset.files:
        if file.name == ending or file.name.endswith(f".{ending}"):
            path = folder / file.name
            if not path.is_file():
                raise SembenchError(f"{path} is missing; run: snakemake fetch")
            return path
    names = ", ".join(file.name for file in dataset.files)
    raise SembenchError(f"the data set '{dataset.title}' has no file '{ending}'; it has {names}")


def file_lines(path: Path, encoding: str = "utf-8-sig") -> list[str]:
    """Return the lines of a text file. Only line feeds end a line: some texts hold other Unicode separators.

    Raises:
        SembenchError: the file is not in this encoding, or holds nothing.
    """
    try:
        text = path.read_bytes().decode(encoding)
    except UnicodeDecodeError as error:
        raise SembenchError(f"{path} is not UTF-8 ({error.reason} at byte {error.start}); fetch it again") from None
    if not text.strip():
        raise SembenchError(f"{path} is empty; delete it and fetch it again")
    return [line.rstrip("\r") for line in text.removesuffix("\n").split("\n")]


def tab_cells(path: Path, row: int, line: str, needed: int) -> list[str]:
    """Return the tab-separated cells of a line.

    Raises:
        SembenchError: there are fewer than ``needed``.
    """
    cells = line.split("\t")
    if len(cells) < needed:
        raise SembenchError(f"{path}, line {row}: {len(cells)} tab-separated columns where {needed} are needed")
    return cells


def headed_rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of each line of a table below its header, and the line's cells of the named columns.

    Raises:
        SembenchError: the header lacks a column, or a line is cut.
    """
    header, *lines = file_lines(path)
    names = header.split("\t")
    if absent := [name for name in columns if name not in names]:
        raise SembenchError(f"{path}, line 1: the column '{absent[0]}' is missing; fetch it again")
    places = [names.index(name) for name in columns]
    for row, line in enumerate(lines, start=2):
        cells = tab_cells(path, row, line, max(places) + 1)
        yield row, [cells[place] for place in places]
