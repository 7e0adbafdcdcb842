"""Readers of sentence-pair data: the files of STS12-16, the STS Benchmark and SICK as they are distributed."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sembench.core.errors import SembenchError
from sembench.registry.models import Dataset

Lines = list[list[str]]


@dataclass(frozen=True)
class Pairs:
    """Sentence pairs with a gold similarity, in file order."""

    subset: str
    first: list[str]
    second: list[str]
    gold: NDArray[np.float64] = field(repr=False)

    def __len__(self) -> int:
        return len(self.first)

    @property
    def sentences(self) -> list[str]:
        """All sentences, first ones then second ones, duplicates kept."""
        return self.first + self.second


def sample_hash(parts: Sequence[Pairs]) -> str:
    """Return 12 hex digits over the evaluated texts and gold scores: two cells are comparable only if equal."""
    digest = hashlib.sha256()
    for pairs in parts:
        for first, second, gold in zip(pairs.first, pairs.second, pairs.gold, strict=True):
            digest.update(f"{first}\t{second}\t{gold:.6f}\n".encode())
    return digest.hexdigest()[:12]


def read_pairs(dataset: Dataset, folder: Path, subset: str) -> Pairs:
    """Read one subset of a data set whose files lie in ``folder``.

    Raises:
        SembenchError: a file is missing, empty or cut, a column is missing, a gold score is no finite number.
    """
    if dataset.reader not in _READERS:
        raise SembenchError(f"the data set '{dataset.title}' holds no sentence pairs (reader: {dataset.reader})")
    pairs = _READERS[dataset.reader](dataset, folder, subset)
    if not len(pairs):
        raise SembenchError(f"{folder}: the subset '{subset}' holds no scored pair; fetch the data set again")
    return pairs


def file_path(dataset: Dataset, folder: Path, ending: str) -> tuple[Path, bool]:
    """Return the file whose name ends so, and whether it has a header."""
    for file in dataset.files:
        if file.name == ending or file.name.endswith(f".{ending}"):
            path = folder / file.name
            if not path.is_file():
                raise SembenchError(f"{path} is missing; run: snakemake fetch")
            return path, file.header
    names = ", ".join(file.name for file in dataset.files)
    raise SembenchError(f"the data set '{dataset.title}' has no file '{ending}'; it has {names}")


def file_lines(path: Path) -> list[str]:
    """Return the lines of a UTF-8 file. Only line feeds end a line: some texts hold other Unicode separators."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SembenchError(f"{path} is not UTF-8 ({error.reason} at byte {error.start}); fetch it again") from None
    if not text.strip():
        raise SembenchError(f"{path} is empty; delete it and fetch it again")
    return [line.rstrip("\r") for line in text.removesuffix("\n").split("\n")]


def _number(path: Path, row: int, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise SembenchError(f"{path}, line {row}: the gold score '{text}' is no finite number; mend or fetch it again")
    return value


def tab_columns(path: Path, row: int, line: str, needed: int) -> list[str]:
    """Return the tab-separated cells of a line, at least ``needed`` of them."""
    cells = line.split("\t")
    if len(cells) < needed:
        raise SembenchError(f"{path}, line {row}: {len(cells)} tab-separated columns where {needed} are needed")
    return cells


def _build(subset: str, triples: list[tuple[str, str, float]]) -> Pairs:
    return Pairs(
        subset, [t[0] for t in triples], [t[1] for t in triples], np.array([t[2] for t in triples], dtype=np.float64)
    )


def _read_sts(dataset: Dataset, folder: Path, subset: str) -> Pairs:
    """STS12-16: a file of pairs and one of gold scores; a pair with an empty score was never annotated: skipped."""
    inputs, _ = file_path(dataset, folder, f"input.{subset}.txt")
    golds, _ = file_path(dataset, folder, f"gs.{subset}.txt")
    texts, scores = file_lines(inputs), file_lines(golds)
    if len(texts) != len(scores):
        raise SembenchError(f"{inputs} has {len(texts)} lines but {golds} has {len(scores)}; fetch both again")
    triples = []
    for row, (text, score) in enumerate(zip(texts, scores, strict=True), start=1):
        if score.strip():
            cells = tab_columns(inputs, row, text, 2)
            triples.append((cells[0].strip(), cells[1].strip(), _number(golds, row, score.strip())))
    return _build(subset, triples)


def _read_stsb(dataset: Dataset, folder: Path, subset: str) -> Pairs:
    """STS Benchmark: genre, file, year, id, score, sentence 1, sentence 2, and sometimes more."""
    path, _ = file_path(dataset, folder, f"sts-{subset}.csv")
    triples = []
    for row, line in enumerate(file_lines(path), start=1):
        cells = tab_columns(path, row, line, 7)
        triples.append((cells[5].strip(), cells[6].strip(), _number(path, row, cells[4])))
    return _build(subset, triples)


def _read_sick(dataset: Dataset, folder: Path, subset: str) -> Pairs:
    """SICK: a header names the columns."""
    path, _ = file_path(dataset, folder, f"SICK_{subset}.txt")
    header, *lines = file_lines(path)
    names = header.split("\t")
    try:
        places = [names.index(name) for name in ("sentence_A", "sentence_B", "relatedness_score")]
    except ValueError as error:
        raise SembenchError(
            f"{path}, line 1: the column {str(error).split(' ')[0]} is missing; fetch it again"
        ) from None
    triples = []
    for row, line in enumerate(lines, start=2):
        cells = tab_columns(path, row, line, max(places) + 1)
        first, second, score = (cells[place].strip() for place in places)
        triples.append((first, second, _number(path, row, score)))
    return _build(subset, triples)


_READERS: dict[str | None, Callable[[Dataset, Path, str], Pairs]] = {
    "sts": _read_sts,
    "stsb": _read_stsb,
    "sick": _read_sick,
}
