"""Readers of scored sentence pairs: STS12-16, the STS Benchmark and SICK as they are distributed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sembench.core.errors import SembenchError
from sembench.data.readers.text import file_lines, file_path, headed_rows, tab_cells
from sembench.registry.models import Dataset


@dataclass(frozen=True)
class Pairs:
    """Sentence pairs with a gold similarity, in file order.

    Attributes:
        subset: which part of the data set.
        first: first sentences.
        second: second sentences, as many.
        gold: similarity of each pair as people judge it, (pairs,), on the data set's own scale.
    """

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

    def rows(self) -> Iterator[tuple[str, str, str]]:
        """Yield texts and gold score of each pair as text."""
        for first, second, gold in zip(self.first, self.second, self.gold, strict=True):
            yield first, second, f"{gold:.6f}"


def read_pairs(dataset: Dataset, folder: Path, subset: str) -> Pairs:
    """Read one subset of a data set whose files lie in ``folder``.

    Raises:
        SembenchError: the data set holds no pairs; a file is missing, empty or cut, a column is missing, or a gold
            score is not a finite number.
    """
    if dataset.reader not in _READERS:
        raise SembenchError(f"the data set '{dataset.title}' holds no sentence pairs (reader: {dataset.reader})")
    triples = list(_READERS[dataset.reader](dataset, folder, subset))
    if not triples:
        raise SembenchError(f"{folder}: the subset '{subset}' holds no scored pair; fetch the data set again")
    first, second, gold = zip(*triples, strict=True)
    return Pairs(subset, list(first), list(second), np.array(gold, dtype=np.float64))


Triples = Iterator[tuple[str, str, float]]


def _number(path: Path, row: int, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise SembenchError(f"{path}, line {row}: the gold score '{text}' is not a finite number; fetch the file again")
    return value


def _read_sts(dataset: Dataset, folder: Path, subset: str) -> Triples:
    """STS12-16: a file of pairs and one of gold scores; a pair with an empty score was never annotated: skipped."""
    inputs = file_path(dataset, folder, f"input.{subset}.txt")
    golds = file_path(dataset, folder, f"gs.{subset}.txt")
    texts, scores = file_lines(inputs), file_lines(golds)
    if len(texts) != len(scores):
        raise SembenchError(f"{inputs} has {len(texts)} lines but {golds} has {len(scores)}; fetch both again")
    for row, (text, score) in enumerate(zip(texts, scores, strict=True), start=1):
        if score.strip():
            cells = tab_cells(inputs, row, text, 2)
            yield cells[0].strip(), cells[1].strip(), _number(golds, row, score.strip())


def _read_stsb(dataset: Dataset, folder: Path, subset: str) -> Triples:
    """STS Benchmark: genre, file, year, id, score, sentence 1, sentence 2, and sometimes more."""
    path = file_path(dataset, folder, f"sts-{subset}.csv")
    for row, line in enumerate(file_lines(path), start=1):
        cells = tab_cells(path, row, line, 7)
        yield cells[5].strip(), cells[6].strip(), _number(path, row, cells[4])


def _read_sick(dataset: Dataset, folder: Path, subset: str) -> Triples:
    """SICK: a header names the columns."""
    path = file_path(dataset, folder, f"SICK_{subset}.txt")
    for row, cells in headed_rows(path, ("sentence_A", "sentence_B", "relatedness_score")):
        first, second, score = (cell.strip() for cell in cells)
        yield first, second, _number(path, row, score)


_READERS: dict[str | None, Callable[[Dataset, Path, str], Triples]] = {
    "sts": _read_sts,
    "stsb": _read_stsb,
    "sick": _read_sick,
}
