"""Scoring an encoder: unique sentences are encoded once for all suites of a job, then every protocol reads them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sembench.core.errors import SembenchError
from sembench.encoders.folder import Encoder
from sembench.evaluation.geometry import alignment, uniformity
from sembench.evaluation.pairs import Pairs, read_pairs, sample_hash
from sembench.evaluation.sts import METRICS, aggregate, correlation, cosine
from sembench.registry.models import Dataset, Suite, Task

Vectors = NDArray[np.float32]
Record = dict[str, Any]
FolderOf = Callable[[str], Path]


class Embedded:
    """Vectors of unique sentences under several read-outs, addressed by the sentence."""

    def __init__(self, encoder: Encoder, sentences: Iterable[str], readouts: Sequence[str]) -> None:
        unique = list(dict.fromkeys(sentences))
        self._row = {sentence: row for row, sentence in enumerate(unique)}
        self.vectors = encoder.encode(unique, readouts)
        for name, found in self.vectors.items():
            if not np.isfinite(found).all():
                bad = unique[int(np.flatnonzero(~np.isfinite(found).all(axis=1))[0])]
                raise SembenchError(
                    f"the encoder gives a vector that is not finite under read-out '{name}' for the sentence "
                    f"'{bad[:60]}'; the weights are damaged, or its precision is too low (use fp32)"
                )

    def rows(self, sentences: Iterable[str]) -> NDArray[np.int64]:
        """Return the row of each sentence."""
        return np.fromiter((self._row[sentence] for sentence in sentences), dtype=np.int64)

    def of(self, readout: str, sentences: Iterable[str]) -> Vectors:
        """Return the vectors of sentences, (n, width)."""
        return self.vectors[readout][self.rows(sentences)]


class Part(Protocol):
    """One task of a suite with its data read: which sentences it needs, and what it makes of their vectors."""

    @property
    def protocol(self) -> int:
        """Version of the suite's protocol."""

    @property
    def readouts(self) -> Sequence[str]:
        """Read-outs that are scored; none: all that an encoder offers."""

    @property
    def sentences(self) -> Iterable[str]:
        """All sentences, duplicates kept."""

    def records(self, embedded: Embedded, readout: str) -> tuple[list[Record], list[Record]]:
        """Return score records and predictions under one read-out."""


@dataclass(frozen=True)
class PairsPart:
    """One split of a sentence-pair task: its subsets' pairs."""

    suite: str
    task: str
    split: str
    protocol: int
    readouts: Sequence[str]
    pairs: list[Pairs]

    @property
    def sentences(self) -> Iterable[str]:
        """All sentences, duplicates kept."""
        return (sentence for pairs in self.pairs for sentence in pairs.sentences)

    @property
    def labels(self) -> Record:
        """What all records of the split share."""
        return {"suite": self.suite, "task": self.task, "split": self.split, "sample_hash": sample_hash(self.pairs)}


@dataclass(frozen=True)
class StsPart(PairsPart):
    """Semantic textual similarity: every aggregation and every subset, Spearman and Pearson."""

    def records(self, embedded: Embedded, readout: str) -> tuple[list[Record], list[Record]]:
        """Return correlations, and for each pair its cosine beside the gold score."""
        cosines = [cosine(embedded.of(readout, p.first), embedded.of(readout, p.second)) for p in self.pairs]
        try:
            found = [record for metric in METRICS for record in self._correlations(metric, cosines)]
        except SembenchError as error:
            raise SembenchError(f"task {self.task}, split {self.split}: {error}") from None
        return [{**self.labels, **record} for record in found], self._predictions(cosines)

    def _correlations(self, metric: str, cosines: Sequence[NDArray[np.float64]]) -> list[Record]:
        golds = [pairs.gold for pairs in self.pairs]
        total = sum(len(pairs) for pairs in self.pairs)
        whole = [
            {"subset": "", "aggregation": name, "metric": metric, "value": value, "n": total}
            for name, value in aggregate(metric, cosines, golds).items()
        ]
        parts = zip(self.pairs, cosines, strict=True)
        return whole + [
            {
                **{"subset": pairs.subset, "aggregation": "subset", "metric": metric},
                **{"value": correlation(metric, values, pairs.gold), "n": len(pairs)},
            }
            for pairs, values in parts
        ]

    def _predictions(self, cosines: Sequence[NDArray[np.float64]]) -> list[Record]:
        kept = {"suite": self.suite, "task": self.task, "split": self.split}
        return [
            {**kept, "subset": pairs.subset, "index": index, "cosine": float(value), "gold": float(gold)}
            for pairs, values in zip(self.pairs, cosines, strict=True)
            for index, (value, gold) in enumerate(zip(values, pairs.gold, strict=True))
        ]


@dataclass(frozen=True)
class GeometryPart(PairsPart):
    """Alignment over the positive pairs and uniformity over all sentences of the subsets together."""

    positives_above: float

    def records(self, embedded: Embedded, readout: str) -> tuple[list[Record], list[Record]]:
        """Return the two metrics; there is nothing to predict."""
        chosen = [(p, np.flatnonzero(p.gold > self.positives_above)) for p in self.pairs]
        first = [p.first[i] for p, rows in chosen for i in rows]
        second = [p.second[i] for p, rows in chosen for i in rows]
        if not first:
            raise SembenchError(
                f"task {self.task}: no pair is scored above {self.positives_above}; alignment is undefined"
            )
        rows, counts = np.unique(embedded.rows(self.sentences), return_counts=True)
        aligned = alignment(embedded.of(readout, first), embedded.of(readout, second))
        uniform = uniformity(embedded.vectors[readout][rows], counts)
        common = {**self.labels, "subset": "", "aggregation": "all"}
        return [
            {**common, "metric": "alignment", "value": aligned, "n": len(first)},
            {**common, "metric": "uniformity", "value": uniform, "n": int(counts.sum())},
        ], []


# ------------------------------------------------------------------------------------------------------ reading

Reader = Callable[[str, Suite, str, Task, Dataset | None, Path], list[Part]]


def _read_sts(key: str, suite: Suite, name: str, task: Task, dataset: Dataset | None, folder: Path) -> list[Part]:
    return [StsPart(**found) for found in _splits(key, suite, name, task, dataset, folder)]


def _read_geometry(key: str, suite: Suite, name: str, task: Task, dataset: Dataset | None, folder: Path) -> list[Part]:
    above = suite.positives_above
    return [GeometryPart(positives_above=above, **found) for found in _splits(key, suite, name, task, dataset, folder)]


def _splits(
    key: str, suite: Suite, name: str, task: Task, dataset: Dataset | None, folder: Path
) -> Iterable[dict[str, Any]]:
    if dataset is None:
        raise SembenchError(f"registry/suites.yaml: task '{name}' needs a data set of sentence pairs")
    for split, subsets in task.splits.items():
        pairs = [read_pairs(dataset, folder, subset) for subset in subsets]
        yield {
            **{"suite": key, "task": name, "split": split, "pairs": pairs},
            **{"protocol": suite.protocol, "readouts": suite.readouts},
        }


def read_parts(suites: Mapping[str, Suite], datasets: Mapping[str, Dataset], folder_of: FolderOf) -> list[Part]:
    """Read the data of suites.

    Args:
        suites: by name, cut to the tasks that can be scored.
        datasets: the registry's.
        folder_of: tells where the files of a data set lie; the folder of the analogy data sets for those made here.
    """
    # Suites that need more than pairs bring their own readers; imported here, they may import this module.
    from sembench.evaluation.relations import read_srsd, read_transfer

    readers: dict[str, Reader] = {
        "sts": _read_sts,
        "geometry": _read_geometry,
        "srsd": read_srsd,
        "transfer": read_transfer,
    }
    return [
        part
        for key, suite in suites.items()
        for name, task in suite.tasks.items()
        for part in readers[suite.kind](key, suite, name, task, datasets.get(task.dataset), folder_of(task.dataset))
    ]


# ------------------------------------------------------------------------------------------------------ scoring


@dataclass(frozen=True)
class Scored:
    """Score records, and predictions for each scored item."""

    records: list[Record]
    predictions: list[Record]


def score(encoder: Encoder, parts: Sequence[Part], readouts: Sequence[str] | None = None) -> Scored:
    """Score an encoder on the given parts under the given read-outs.

    Without ``readouts``, every part is scored under all read-outs that its suite names and the encoder offers.

    Returns:
        Records with the fields suite, task, subset, split, aggregation, metric, readout, value, n, sample_hash,
        protocol and seconds (of the encoding), and predictions.
    """
    asked = {id(part): list(readouts or _offered(encoder, part)) for part in parts}
    names = list(dict.fromkeys(name for wanted in asked.values() for name in wanted))
    start = time.perf_counter()
    embedded = Embedded(encoder, (sentence for part in parts for sentence in part.sentences), names)
    seconds = round(time.perf_counter() - start, 2)
    scored = Scored([], [])
    for part in parts:
        for readout in asked[id(part)]:
            records, predictions = part.records(embedded, readout)
            common = {"readout": readout, "protocol": part.protocol, "seconds": seconds}
            scored.records.extend({**record, **common} for record in records)
            scored.predictions.extend({**prediction, "readout": readout} for prediction in predictions)
    return scored


def _offered(encoder: Encoder, part: Part) -> list[str]:
    return [name for name in encoder.readouts if not part.readouts or name in part.readouts]
