"""The engine: one encoder, any number of scores, each unique sentence encoded once under all read-outs that are needed.

A read-out is ``<base>`` or ``<base>.<transform>``: what the encoder gives, or that under a transform which is fitted
on other vectors of the same encoder and base.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sembench.core.errors import SembenchError
from sembench.core.plugin import Chosen
from sembench.encoders.transforms.base import State, Transform
from sembench.evaluation import protocol
from sembench.results.records import Measured

Vectors = NDArray[np.float32]


class Encoder(Protocol):
    """What the engine asks of an encoder."""

    def encode(self, sentences: Sequence[str], readouts: Sequence[str]) -> dict[str, Vectors]:
        """Return for each read-out an array (sentences, width) float32."""


@dataclass(frozen=True)
class Fitting:
    """A transform as a read-out uses it.

    Attributes:
        chosen: the transform with its parameters.
        sentences: gives what it is fitted on, repeats allowed; None: the unique sentences of each scored task.
        seed: of the fit.
    """

    chosen: Chosen[Any]
    sentences: Callable[[], Iterable[str]] | None = None
    seed: int = 0


class FitStore(Protocol):
    """Keeps what was fitted on given sentences, by read-out. Fits on a task's own sentences are not kept."""

    def load(self, readout: str) -> State | None:
        """Return a kept fit, or None."""

    def save(self, readout: str, state: State) -> None:
        """Keep a fit."""


@dataclass
class MemoryFits:
    """Fits that last as long as the process."""

    states: dict[str, State] = field(default_factory=dict)

    def load(self, readout: str) -> State | None:
        """Return a kept fit, or None."""
        return self.states.get(readout)

    def save(self, readout: str, state: State) -> None:
        """Keep a fit."""
        self.states[readout] = state


@dataclass(frozen=True)
class Request:
    """One score that is asked for.

    Attributes:
        readout: ``<base>`` or ``<base>.<transform>``.
        suite: as the registry calls it.
        task: as the registry calls it.
        protocol: with its data read. Requests may share one.
        fitting: the transform, for a read-out that has one.
    """

    readout: str
    suite: str
    task: str
    protocol: protocol.Protocol[Any]
    fitting: Fitting | None = None

    def __post_init__(self) -> None:
        if ("." in self.readout) != (self.fitting is not None):
            raise ValueError(f"read-out '{self.readout}' must have a transform exactly where its name has one")

    @property
    def base(self) -> str:
        """The read-out of the encoder."""
        return self.readout.partition(".")[0]


@dataclass(frozen=True)
class Scored:
    """What a request gives: records without the labels of the run, and a prediction for each item."""

    request: Request
    records: list[Measured]
    predictions: pd.DataFrame


class Embedded:
    """Vectors of unique sentences under several read-outs, addressed by the sentence.

    Attributes:
        vectors: for each read-out (unique sentences, width).
    """

    def __init__(self, encoder: Encoder, sentences: Iterable[str], readouts: Sequence[str]) -> None:
        """Encode the unique sentences.

        Raises:
            SembenchError: a vector is not finite.
        """
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

    def __contains__(self, sentence: str) -> bool:
        return sentence in self._row

    def rows(self, sentences: Iterable[str]) -> NDArray[np.int64]:
        """Return the row of each sentence, (n,)."""
        return np.fromiter((self._row[sentence] for sentence in sentences), dtype=np.int64)

    def of(self, readout: str, sentences: Iterable[str]) -> Vectors:
        """Return the vectors of sentences, (n, width)."""
        return self.vectors[readout][self.rows(sentences)]


def score(encoder: Encoder, requests: Sequence[Request], fits: FitStore | None = None) -> Iterator[Scored]:
    """Score an encoder, request by request.

    All requested protocols' sentences are encoded together first, each once under all base read-outs. Then transforms
    whose fit on given sentences is not kept yet are fitted; only sentences that are new are encoded for that.

    Args:
        encoder: the encoder, its precision set.
        requests: what is asked for.
        fits: where fits on given sentences are kept; none: nowhere.

    Yields:
        The scores of each request, in their order. ``seconds`` is the time of the encoding, which all share.

    Raises:
        SembenchError: a vector is not finite, a transform cannot be fitted, or a score is undefined.
    """
    if not requests:
        return
    fits = fits or MemoryFits()
    bases = list(dict.fromkeys(request.base for request in requests))
    protocols = list(dict.fromkeys(request.protocol for request in requests))
    start = time.perf_counter()
    embedded = Embedded(encoder, (sentence for each in protocols for sentence in each.sentences), bases)
    seconds = round(time.perf_counter() - start, 2)
    states = _fitted(encoder, requests, fits, embedded)
    for request in requests:
        vectors = _vectors(request, embedded, states.get(request.readout))
        try:
            scores, predictions = request.protocol.score(vectors)
        except SembenchError as error:
            raise SembenchError(
                f"suite {request.suite}, task {request.task}, read-out {request.readout}: {error}"
            ) from None
        records = [_record(request, each, seconds) for each in scores]
        yield Scored(request, records, pd.DataFrame(predictions))


def _record(request: Request, found: protocol.Score, seconds: float) -> Measured:
    return {
        "readout": request.readout,
        "suite": request.suite,
        "task": request.task,
        "split": found.split,
        "subset": found.subset,
        "aggregation": found.aggregation,
        "metric": found.metric,
        "value": found.value,
        "n": found.n,
        "sample_hash": found.sample_hash,
        "protocol": request.protocol.version,
        "seconds": seconds,
    }


# -------------------------------------------------------------------------------------------------- transforms


def _fitted(encoder: Encoder, requests: Sequence[Request], fits: FitStore, embedded: Embedded) -> dict[str, State]:
    """Return the fits of all read-outs whose transform is fitted on given sentences."""
    wanted = {r.readout: r for r in requests if r.fitting and r.fitting.sentences}
    states = {name: state for name in wanted if (state := fits.load(name)) is not None}
    missing = [request for name, request in wanted.items() if name not in states]
    # Transforms that read the same sentences share one pass over them.
    for source in dict.fromkeys(request.fitting.sentences for request in missing if request.fitting):
        group = [request for request in missing if request.fitting and request.fitting.sentences is source]
        for name, state in _fit_on(encoder, group, source, embedded):
            fits.save(name, state)
            states[name] = state
    return states


def _fit_on(
    encoder: Encoder, requests: Sequence[Request], source: Callable[[], Iterable[str]] | None, embedded: Embedded
) -> Iterator[tuple[str, State]]:
    """Yield the fit of each request's read-out on the same sentences."""
    unique = list(dict.fromkeys(source() if source else ()))
    if not unique:
        raise SembenchError(f"read-out '{requests[0].readout}': there is no sentence to fit its transform on")
    fresh = [sentence for sentence in unique if sentence not in embedded]
    bases = list(dict.fromkeys(request.base for request in requests))
    more = Embedded(encoder, fresh, bases) if fresh else embedded
    is_fresh = np.array([sentence not in embedded for sentence in unique])
    known = [sentence for sentence in unique if sentence in embedded]
    for request in requests:
        # In the order of the unique sentences, whatever else is scored beside.
        width = embedded.vectors[request.base].shape[1]
        vectors = np.empty((len(unique), width), dtype=np.float32)
        vectors[~is_fresh] = embedded.of(request.base, known)
        if fresh:
            vectors[is_fresh] = more.vectors[request.base]
        yield request.readout, _fit(request, vectors)


def _fit(request: Request, vectors: Vectors) -> State:
    assert request.fitting
    chosen = request.fitting.chosen
    try:
        state: State = chosen.plugin.fit(chosen.config, vectors, request.fitting.seed)
    except SembenchError as error:
        where = f"read-out '{request.readout}'" + ("" if request.fitting.sentences else f", task '{request.task}'")
        raise SembenchError(f"{where}: {error}") from None
    return state


def _vectors(request: Request, embedded: Embedded, state: State | None) -> protocol.VectorsOf:
    """Return the function that gives a protocol its vectors."""
    if request.fitting is None:
        return functools.partial(embedded.of, request.base)
    unique = list(dict.fromkeys(request.protocol.sentences))
    plain = embedded.of(request.base, unique)
    if state is None:
        state = _fit(request, plain)
    plugin: type[Transform[Any]] = request.fitting.chosen.plugin
    transformed = plugin.apply(request.fitting.chosen.config, plain, state)
    row = {sentence: place for place, sentence in enumerate(unique)}
    return lambda sentences: transformed[[row[sentence] for sentence in sentences]]
