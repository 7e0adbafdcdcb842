"""Readers of labelled items: the transfer tasks of SentEval as it serves them, all in one shape.

Texts are split at blanks and joined by one, as SentEval stores tokens and its encoders join them again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sembench.core.errors import SembenchError, unknown
from sembench.data.readers.text import file_lines, file_path, headed_rows
from sembench.registry.models import Dataset

# Coarse classes of TREC in SentEval's order.
TREC_CLASSES = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")


@dataclass(frozen=True)
class Labelled:
    """Sentences, or tuples of sentences, with a class.

    Attributes:
        split: which part of the data set.
        columns: one list of sentences, or two of equal length where an item is a pair.
        labels: (items,), classes 0, 1, ...
    """

    split: str
    columns: tuple[list[str], ...]
    labels: NDArray[np.int64] = field(repr=False)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def sentences(self) -> list[str]:
        """All sentences, column after column, duplicates kept."""
        return [sentence for column in self.columns for sentence in column]

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Yield the texts and the label of each item as text."""
        for *texts, label in zip(*self.columns, self.labels, strict=True):
            yield *texts, f"{float(label):.6f}"

    def senteval_order(self) -> NDArray[np.int64]:
        """Return the items by the lengths of their sentences in words, then by label, else as they are, (items,).

        SentEval sorts to pad less; the folds depend on the order of the rows, so it belongs to the protocol.
        """
        lengths = [[len(text.split()) for text in column] for column in self.columns]
        order = sorted(range(len(self)), key=lambda row: (*(column[row] for column in lengths), self.labels[row]))
        return np.array(order, dtype=np.int64)

    def take(self, order: NDArray[np.int64]) -> Labelled:
        """Return the items with the numbers ``order`` (items,), in that order."""
        columns = tuple([column[row] for row in order] for column in self.columns)
        return Labelled(self.split, columns, self.labels[order])


Items = Iterator[tuple[tuple[str, ...], int]]


def read_labelled(dataset: Dataset, folder: Path, split: str) -> Labelled:
    """Read one split of a data set whose files lie in ``folder``.

    Splits: ``train`` and ``test`` of mrpc and trec, ``all`` of subj, which has no official split.

    Raises:
        SembenchError: the data set holds no labelled items or no such split; a file is missing, empty or cut, or a
            label is unknown.
    """
    if dataset.reader not in _READERS:
        raise SembenchError(f"the data set '{dataset.title}' holds no labelled items (reader: {dataset.reader})")
    splits, read = _READERS[dataset.reader]
    if split not in splits:
        raise unknown("split", split, splits, f"the data set '{dataset.title}'")
    items = list(read(dataset, folder, split))
    if not items:
        raise SembenchError(f"{folder}: the split '{split}' holds no item; fetch the data set again")
    columns = tuple(map(list, zip(*(texts for texts, _ in items), strict=True)))
    return Labelled(split, columns, np.array([label for _, label in items], dtype=np.int64))


def _joined(text: str) -> str:
    return " ".join(text.split())


def _read_mrpc(dataset: Dataset, folder: Path, split: str) -> Items:
    """Microsoft Research Paraphrase Corpus: label 1 marks a paraphrase; quotation marks are text."""
    path = file_path(dataset, folder, f"msr_paraphrase_{split}.txt")
    for row, cells in headed_rows(path, ("Quality", "#1 String", "#2 String")):
        label, first, second = map(_joined, cells)
        if label not in ("0", "1"):
            raise SembenchError(f"{path}, line {row}: the label '{label}' is neither 0 nor 1; fetch it again")
        if not first or not second:
            raise SembenchError(f"{path}, line {row}: a sentence is empty; fetch it again")
        yield (first, second), int(label)


def _read_trec(dataset: Dataset, folder: Path, split: str) -> Items:
    """TREC questions, ``COARSE:fine text`` in Latin-1; the coarse class counts."""
    path = file_path(dataset, folder, {"train": "train_5500.label", "test": "TREC_10.label"}[split])
    for row, line in enumerate(file_lines(path, "latin-1"), start=1):
        coarse, colon, rest = line.strip().partition(":")
        text = _joined(rest.partition(" ")[2])
        if coarse not in TREC_CLASSES or not colon or not text:
            raise SembenchError(f"{path}, line {row}: '{line[:40]}' is no 'CLASS:kind question'; fetch it again")
        yield (text,), TREC_CLASSES.index(coarse)


def _read_subj(dataset: Dataset, folder: Path, _split: str) -> Items:
    """Subjectivity: plots of films (objective, label 1, as SentEval has it) and reviews (0), in Latin-1."""
    for name, label in (("subj.objective", 1), ("subj.subjective", 0)):
        path = file_path(dataset, folder, name)
        for row, line in enumerate(file_lines(path, "latin-1"), start=1):
            text = _joined(line)
            if not text:
                raise SembenchError(f"{path}, line {row} is empty; fetch it again")
            yield (text,), label


_READERS: dict[str | None, tuple[tuple[str, ...], Callable[[Dataset, Path, str], Items]]] = {
    "mrpc": (("train", "test"), _read_mrpc),
    "trec": (("train", "test"), _read_trec),
    "subj": (("all",), _read_subj),
}
