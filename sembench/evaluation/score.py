"""Scoring an encoder: unique sentences are encoded once for all suites of a job, then every protocol reads them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sembench.encoders.folder import Encoder
from sembench.errors import SembenchError
from sembench.evaluation.geometry import alignment, uniformity
from sembench.evaluation.pairs import Pairs, read_pairs, sample_hash
from sembench.evaluation.sts import METRICS, aggregate, correlation, cosine
from sembench.registry.models import Dataset, Suite

Vectors = NDArray[np.float32]
Record = dict[str, Any]


@dataclass(frozen=True)
class Part:
    """One split of one task: its subsets' pairs."""

    suite: str
    kind: str
    task: str
    split: str
    protocol: int
    positives_above: float
    pairs: list[Pairs]

    @property
    def sentences(self) -> Iterable[str]:
        """All sentences, duplicates kept."""
        return (sentence for pairs in self.pairs for sentence in pairs.sentences)


@dataclass(frozen=True)
class Scored:
    """Score records, and for each scored pair its cosine beside the gold score."""

    records: list[Record]
    predictions: list[Record]


def read_parts(
    suites: Mapping[str, Suite], datasets: Mapping[str, Dataset], folder_of: Callable[[str], Path]
) -> list[Part]:
    """Read the data of suites; ``folder_of`` tells where the files of a data set lie."""
    return [
        Part(
            suite=key,
            kind=suite.kind,
            task=name,
            split=split,
            protocol=suite.protocol,
            positives_above=suite.positives_above,
            pairs=[read_pairs(datasets[task.dataset], folder_of(task.dataset), subset) for subset in subsets],
        )
        for key, suite in suites.items()
        for name, task in suite.tasks.items()
        for split, subsets in task.splits.items()
    ]


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


def score(encoder: Encoder, parts: Sequence[Part], readouts: Sequence[str] | None = None) -> Scored:
    """Score an encoder on the given parts under the given read-outs (all it offers if none are named).

    Returns:
        Records with the fields suite, task, subset, split, aggregation, metric, readout, value, n, sample_hash,
        protocol and seconds, and predictions with the cosine of every pair.
    """
    names = list(readouts or encoder.readouts)
    start = time.perf_counter()
    embedded = Embedded(encoder, (sentence for part in parts for sentence in part.sentences), names)
    seconds = round(time.perf_counter() - start, 2)
    scored = Scored([], [])
    for part in parts:
        common = {
            "suite": part.suite,
            "task": part.task,
            "split": part.split,
            "sample_hash": sample_hash(part.pairs),
            "protocol": part.protocol,
            "seconds": seconds,
        }
        for readout in names:
            labelled = {**common, "readout": readout}
            if part.kind == "sts":
                cosines = [cosine(embedded.of(readout, p.first), embedded.of(readout, p.second)) for p in part.pairs]
                scored.records.extend({**labelled, **record} for record in sts_records(part, cosines))
                scored.predictions.extend(_predictions(labelled, part, cosines))
            else:
                scored.records.extend({**labelled, **record} for record in geometry_records(part, embedded, readout))
    return scored


def sts_records(part: Part, cosines: Sequence[NDArray[np.float64]]) -> list[Record]:
    """Return the records of one split: every aggregation and every subset, Spearman and Pearson."""
    golds = [pairs.gold for pairs in part.pairs]
    total = sum(len(pairs) for pairs in part.pairs)
    found: list[Record] = []
    for metric in METRICS:
        try:
            whole = aggregate(metric, cosines, golds)
            parts = [correlation(metric, p, g) for p, g in zip(cosines, golds, strict=True)]
        except SembenchError as error:
            raise SembenchError(f"task {part.task}, split {part.split}: {error}") from None
        found += [
            {"subset": "", "aggregation": name, "metric": metric, "value": value, "n": total}
            for name, value in whole.items()
        ]
        found += [
            {"subset": pairs.subset, "aggregation": "subset", "metric": metric, "value": value, "n": len(pairs)}
            for pairs, value in zip(part.pairs, parts, strict=True)
        ]
    return found


def geometry_records(part: Part, embedded: Embedded, readout: str) -> list[Record]:
    """Return alignment over the positive pairs and uniformity over all sentences of a split's subsets."""
    positive = [
        (first, second)
        for pairs in part.pairs
        for first, second, gold in zip(pairs.first, pairs.second, pairs.gold, strict=True)
        if gold > part.positives_above
    ]
    if not positive:
        raise SembenchError(f"task {part.task}: no pair is scored above {part.positives_above}; alignment is undefined")
    rows, counts = np.unique(embedded.rows(part.sentences), return_counts=True)
    aligned = alignment(embedded.of(readout, (p[0] for p in positive)), embedded.of(readout, (p[1] for p in positive)))
    uniform = uniformity(embedded.vectors[readout][rows], counts)
    subset = "+".join(pairs.subset for pairs in part.pairs)
    return [
        {"subset": subset, "aggregation": "all", "metric": "alignment", "value": aligned, "n": len(positive)},
        {"subset": subset, "aggregation": "all", "metric": "uniformity", "value": uniform, "n": int(counts.sum())},
    ]


def _predictions(labels: Record, part: Part, cosines: Sequence[NDArray[np.float64]]) -> list[Record]:
    kept = {name: labels[name] for name in ("readout", "suite", "task", "split")}
    return [
        {**kept, "subset": pairs.subset, "index": index, "cosine": float(value), "gold": float(gold)}
        for pairs, values in zip(part.pairs, cosines, strict=True)
        for index, (value, gold) in enumerate(zip(values, pairs.gold, strict=True))
    ]
