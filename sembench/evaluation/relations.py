"""The suites beside STS as parts of a scoring job: SRSD with analogy choice, and transfer tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from sembench.analogy.dictionary import OPEN_COLUMNS
from sembench.analogy.rules import load_rules
from sembench.core.errors import SembenchError
from sembench.core.schema import parse
from sembench.encoders.devices import pick_device
from sembench.evaluation.pairs import Pairs
from sembench.evaluation.score import Embedded, Part, Record
from sembench.evaluation.srsd import (
    SENTENCES,
    SrsdOptions,
    analogy_choice_records,
    make_items,
    make_questions,
    question_sentences,
    srsd_records,
)
from sembench.evaluation.transfer import TASKS, Settings, transfer_records
from sembench.registry.load import DERIVED
from sembench.registry.models import Dataset, Suite, Task
from sembench.results.records import read_frame


@dataclass(frozen=True)
class SrsdPart:
    """Items drawn from DSBATS-open: the same relation or not?"""

    protocol: int
    readouts: Sequence[str]
    items: pd.DataFrame
    options: SrsdOptions

    @property
    def sentences(self) -> Iterable[str]:
        """All sentences of the items."""
        return (sentence for column in SENTENCES for sentence in self.items[column])

    def records(self, embedded: Embedded, readout: str) -> tuple[list[Record], list[Record]]:
        """Return accuracies with intervals under both splits."""
        return srsd_records(self.items, lambda sentences: embedded.of(readout, sentences), self.options)


@dataclass(frozen=True)
class ChoicePart:
    """Questions drawn from DSBATS-open: which of four pairs stands in the asked relation?"""

    protocol: int
    readouts: Sequence[str]
    questions: pd.DataFrame
    options: SrsdOptions

    @property
    def sentences(self) -> Iterable[str]:
        """All sentences of the questions."""
        return question_sentences(self.questions)

    def records(self, embedded: Embedded, readout: str) -> tuple[list[Record], list[Record]]:
        """Return accuracies with intervals for both relation vectors."""
        return analogy_choice_records(self.questions, lambda sentences: embedded.of(readout, sentences), self.options)


def read_srsd(_key: str, suite: Suite, name: str, task: Task, _dataset: Dataset | None, folder: Path) -> list[Part]:
    """Read DSBATS-open and draw the task's items or questions; the options are the suite's."""
    frame = read_frame(folder / DERIVED[task.dataset], [*OPEN_COLUMNS, "fold"])
    rules, options = load_rules(), parse(SrsdOptions, suite.options, f"registry/suites.yaml, task '{name}', options")
    if name == "analogy_choice":
        return [ChoicePart(suite.protocol, suite.readouts, make_questions(frame, rules, options), options)]
    return [SrsdPart(suite.protocol, suite.readouts, make_items(frame, rules, options), options)]


@dataclass(frozen=True)
class TransferPart:
    """A task of SentEval's transfer protocol: frozen vectors, a linear classifier."""

    task: str
    protocol: int
    readouts: Sequence[str]
    train: Pairs
    test: Pairs
    settings: Settings

    @property
    def sentences(self) -> Iterable[str]:
        """All sentences of both splits."""
        return [*self.train.sentences, *self.test.sentences]

    def records(self, embedded: Embedded, readout: str) -> tuple[list[Record], list[Record]]:
        """Return accuracy and F1 on the test split, and the cross-validated accuracy."""
        return transfer_records(
            self.task,
            self.train,
            self.test,
            lambda sentences: embedded.of(readout, sentences),
            self.settings,
            pick_device().type,
        )


def read_transfer(_key: str, suite: Suite, name: str, _task: Task, dataset: Dataset | None, folder: Path) -> list[Part]:
    """Read both splits of a transfer task."""
    if dataset is None or name not in TASKS:
        raise SembenchError(f"registry/suites.yaml: '{name}' is no transfer task; known: {', '.join(TASKS)}")
    read = TASKS[name].read
    train, test = (read(dataset, folder, split) for split in ("train", "test"))
    settings = replace(Settings(), **suite.options)
    return [TransferPart(name, suite.protocol, suite.readouts, train, test, settings)]
