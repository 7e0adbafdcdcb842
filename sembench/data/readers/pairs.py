"""Readers of scored sentence pairs: STS12-16, the STS Benchmark and SICK as they are distributed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sembench.core.errors import SembenchError, shortened
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
        SembenchError: the data set holds no pairs; a file is missing, empty or cut, a column is missing, a gold score
            is no number of the data set's scale, or a sentence has no letter.
    """
    if dataset.reader not in _READERS:
        raise SembenchError(f"the data set '{dataset.title}' holds no sentence pairs (reader: {dataset.reader})")
    triples = list(_READERS[dataset.reader](dataset, folder, subset))
    if not triples:
        raise SembenchError(f"{folder}: the subset '{subset}' holds no scored pair; fetch the data set again")
    first, second, gold = zip(*triples, strict=True)
    return Pairs(subset, list(first), list(second), np.array(gold, dtype=np.float64))


Triples = Iterator[tuple[str, str, float]]


# As the files have it: Python would also take "1_000", "1e3", "nan" and digits of other scripts.
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_LETTER = re.compile(r"[^\W\d_]")


def _gold(path: Path, row: int, text: str, lowest: int) -> float:
    value = float(text) if _NUMBER.fullmatch(text) else -1.0
    if not lowest <= value <= _HIGHEST:
        raise SembenchError(
            f"{path}, line {row}: the gold score '{shortened(text)}' is not a number from {lowest} to {_HIGHEST}; "
            "fetch the file again, or see whether a column is missing or too many"
        )
    return value


_HIGHEST = 5


def _sentence(path: Path, row: int, text: str) -> str:
    # A number or a blank in a sentence's place is another column.
    if not _LETTER.search(text):
        raise SembenchError(
            f"{path}, line {row}: the sentence '{shortened(text)}' has no letter; fetch the file again, or see whether "
            "a column is missing or too many"
        )
    return text.strip()


def _read_sts(dataset: Dataset, folder: Path, subset: str) -> Triples:
    """STS12-16: a file of pairs, one of gold scores (0 to 5); a pair with no score was never annotated: skipped."""
    inputs = file_path(dataset, folder, f"input.{subset}.txt")
    golds = file_path(dataset, folder, f"gs.{subset}.txt")
    texts, scores = file_lines(inputs), file_lines(golds)
    if len(texts) != len(scores):
        raise SembenchError(f"{inputs} has {len(texts)} lines but {golds} has {len(scores)}; fetch both again")
    for row, (text, score) in enumerate(zip(texts, scores, strict=True), start=1):
        if score.strip():
            cells = tab_cells(inputs, row, text, 2)
            first, second = (_sentence(inputs, row, cell) for cell in cells[:2])
            yield first, second, _gold(golds, row, score.strip(), 0)


def _read_stsb(dataset: Dataset, folder: Path, subset: str) -> Triples:
    """STS Benchmark: genre, file, year, id, score (0 to 5), sentence 1, sentence 2, and sometimes more."""
    path = file_path(dataset, folder, f"sts-{subset}.csv")
    for row, line in enumerate(file_lines(path), start=1):
        cells = tab_cells(path, row, line, 7)
        gold = _gold(path, row, cells[4].strip(), 0)
        yield _sentence(path, row, cells[5]), _sentence(path, row, cells[6]), gold


def _read_sick(dataset: Dataset, folder: Path, subset: str) -> Triples:
    """SICK: a header names the columns; scores are 1 to 5."""
    path = file_path(dataset, folder, f"SICK_{subset}.txt")
    for row, cells in headed_rows(path, ("sentence_A", "sentence_B", "relatedness_score")):
        first, second = (_sentence(path, row, cell) for cell in cells[:2])
        yield first, second, _gold(path, row, cells[2].strip(), 1)


_READERS: dict[str | None, Callable[[Dataset, Path, str], Triples]] = {
    "sts": _read_sts,
    "stsb": _read_stsb,
    "sick": _read_sick,
}
