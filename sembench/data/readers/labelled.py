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
from sembench.data.readers.text import file_lines, file_path, headed_rows, tab_cells
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
Read = Callable[[Dataset, Path, str], Items]


def read_labelled(dataset: Dataset, folder: Path, split: str) -> Labelled:
    """Read one split of a data set whose files lie in ``folder``.

    Splits: ``train`` and ``test`` of mrpc and trec, ``dev`` besides of sst; ``all`` of mr, cr, subj and mpqa, which
    have no official split.

    Raises:
        SembenchError: the data set holds no labelled items or no such split; a file is missing, empty or cut, a label
            is unknown, or all are the same.
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
    labels = np.array([label for _, label in items], dtype=np.int64)
    if labels.min() == labels.max():
        raise SembenchError(
            f"{folder}: all {len(items)} items of the split '{split}' have the same class; fetch it again"
        )
    return Labelled(split, columns, labels)


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


def _read_sst(dataset: Dataset, folder: Path, split: str) -> Items:
    """Stanford Sentiment Treebank: ``text<tab>label`` in UTF-8, label 1 positive; the training file has phrases too."""
    path = file_path(dataset, folder, f"sentiment-{split}")
    for row, line in enumerate(file_lines(path), start=1):
        cells = tab_cells(path, row, line, 2)
        text, label = _joined(cells[0]), cells[-1].strip()
        if label not in ("0", "1") or len(cells) > 2 or not text:
            raise SembenchError(f"{path}, line {row}: '{line[:40]}' is no 'text<tab>0' or '1'; fetch it again")
        yield (text,), int(label)


def _two_files(positive: str, negative: str, *, blanks: bool = False) -> Read:
    """Return the reader of a file for each of two classes, in Latin-1, the positive ones (label 1) first.

    Args:
        positive: name of the file of class 1.
        negative: of class 0.
        blanks: whether the files as published hold empty lines. SentEval counts these as items without a word.
    """

    def read(dataset: Dataset, folder: Path, _split: str) -> Items:
        for name, label in ((positive, 1), (negative, 0)):
            path = file_path(dataset, folder, name)
            for row, line in enumerate(file_lines(path, "latin-1"), start=1):
                text = _joined(line)
                if not (text or blanks):
                    raise SembenchError(f"{path}, line {row} is empty; fetch it again")
                yield (text,), label

    return read


_READERS: dict[str | None, tuple[tuple[str, ...], Read]] = {
    "mrpc": (("train", "test"), _read_mrpc),
    "trec": (("train", "test"), _read_trec),
    "sst": (("train", "dev", "test"), _read_sst),
    "mr": (("all",), _two_files("rt-polarity.pos", "rt-polarity.neg")),
    "cr": (("all",), _two_files("custrev.pos", "custrev.neg", blanks=True)),
    # Objective sentences are class 1, as SentEval has it.
    "subj": (("all",), _two_files("subj.objective", "subj.subjective")),
    "mpqa": (("all",), _two_files("mpqa.pos", "mpqa.neg", blanks=True)),
}
