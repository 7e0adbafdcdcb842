"""Scoring planned encoders: data and model checked, scores sealed one by one; and making what a score needs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from safetensors.numpy import load_file, save_file

from sembench.core.artifact import Artifact, alone, opened, seal
from sembench.core.errors import SembenchError
from sembench.core.files import atomic_path
from sembench.core.locks import locked
from sembench.data.build import make_dataset
from sembench.data.frames import read_examples
from sembench.encoders.backbones import make_backbone
from sembench.encoders.devices import pick_device, use_threads
from sembench.encoders.folder import load_encoder
from sembench.encoders.transformer import set_precision
from sembench.encoders.transforms.base import State
from sembench.evaluation.engine import FitStore, Fitting, Request, score
from sembench.evaluation.protocol import Protocol, Source
from sembench.plan import Plan, Run, ScoreKey
from sembench.registry.entries import split_readout, transform_of
from sembench.results.records import labelled
from sembench.results.store import write_scores
from sembench.sources import fetch_planned

Say = Callable[[str], None]


# ------------------------------------------------------------------------------------------------- planned encoders


def score_run(plan: Plan, run: Run, keys: Sequence[ScoreKey]) -> None:
    """Score a run on whatever of ``keys`` is not there yet; every score is sealed as soon as it is known.

    One process at a time: a job that outlives its workflow is waited for, and what it sealed is not scored again.

    Raises:
        SembenchError: the model or the data of a task were changed, or a score is undefined.
    """
    if not plan.unscored(keys):
        return
    with locked(plan.root / plan.layout.base / "scores" / f".{run.id}.lock", f"scoring of {run.id}"):
        if missing := plan.unscored(keys):
            _score(plan, run, missing)


def _score(plan: Plan, run: Run, missing: Sequence[ScoreKey]) -> None:
    use_threads(plan.scale.threads)
    encoder = load_encoder(opened(plan.root, run.artifact))
    precision = set_precision(encoder, plan.scale.score_precision)
    labels = {"device": pick_device().type, "precision": precision}
    by_place = {(key.readout, key.suite, key.task): plan.score(key) for key in missing}
    try:
        for found in score(encoder, list(requests(plan, missing)), _Fits(plan, missing)):
            request = found.request
            artifact = by_place[request.readout, request.suite, request.task]
            records = labelled(found.records, run.id, run.variant, run.seed, **labels)
            write_scores(plan.root, artifact, records, found.predictions, labels)
    except SembenchError as error:
        raise SembenchError(f"run {run.id}: {error}") from None


def requests(plan: Plan, keys: Iterable[ScoreKey]) -> Iterator[Request]:
    """Yield requests; those on one task share its protocol, so that its data are read once."""
    protocols: dict[tuple[str, str], Protocol[Any]] = {}
    for key in keys:
        place = key.suite, key.task
        if place not in protocols:
            protocols[place] = open_protocol(plan, *place)
        yield Request(key.readout, key.suite, key.task, protocols[place], fitting(plan, key.readout))


def open_protocol(plan: Plan, suite: str, task: str) -> Protocol[Any]:
    """Return the protocol of a task with its data read.

    Raises:
        SembenchError: an unknown task, or its data are missing, changed or broken.
    """
    entry = plan.task(suite, task)
    folder = opened(plan.root, plan.data(entry.data))
    made = plan.registry.made.get(entry.data)
    source = Source(
        folder,
        None if made else plan.entry(entry.data),
        plan.maker(entry.data).plugin.examples if made else "",
        plan.root,
    )
    protocol: Protocol[Any] = entry.protocol.plugin(entry.protocol.config, source)
    return protocol


@functools.cache
def fitting(plan: Plan, readout: str) -> Fitting | None:
    """Return the transform of a read-out with the sentences that it is fitted on; None where it has none."""
    _, name = split_readout(readout)
    if name is None:
        return None
    entry = plan.registry.transforms[name]
    return Fitting(transform_of(name, entry), None if entry.fitted_on == "task" else _sentences(plan, entry.fitted_on))


@functools.cache
def _sentences(plan: Plan, data: str) -> Callable[[], list[str]]:
    """Return a reader of a data set's sentences, the same object for the same set, so that it is read once."""
    name = plan.used(data)
    maker = plan.maker(name).plugin

    def read() -> list[str]:
        path = opened(plan.root, plan.made(name)) / maker.examples
        return [str(text) for text in read_examples(path, ["sentence"])["sentence"]]

    return read


class _Fits(FitStore):
    """Fits on data sets, kept as artefacts; a fit on a task's own sentences has a key, but is made anew each time."""

    def __init__(self, plan: Plan, keys: Iterable[ScoreKey]) -> None:
        self.plan = plan
        self.artifacts = {
            key.readout: plan.fit(key)
            for key in keys
            if (name := split_readout(key.readout)[1]) and plan.registry.transforms[name].fitted_on != "task"
        }

    def load(self, readout: str) -> State | None:
        artifact = self.artifacts[readout]
        if not (self.plan.root / artifact.record).is_file():
            return None
        return dict(load_file(opened(self.plan.root, artifact) / artifact.files[0]))

    def save(self, readout: str, state: State) -> None:
        artifact = self.artifacts[readout]
        with alone(self.plan.root, artifact) as is_open:
            if is_open:
                with atomic_path(self.plan.root / artifact.folder / artifact.files[0]) as temporary:
                    save_file(dict(state), temporary)
                seal(self.plan.root, artifact)


# ------------------------------------------------------------------------------------------- what is not there yet


def ensure(plan: Plan, artifact: Artifact, say: Say) -> None:
    """Fetch, make or build an artefact, and what it is made from, unless it is there.

    Raises:
        SembenchError: it cannot be had at the plan's scale.
    """
    if (plan.root / artifact.record).is_file():
        return
    for each in artifact.inputs:
        ensure(plan, each, say)
    if artifact.kind == "dataset":
        fetch_planned(plan, artifact.name, say)
    elif artifact.kind == "made":
        say(f"making {artifact.name}")
        make_dataset(plan, artifact.name, say)
    else:
        say(f"building the model folder of {artifact.name}")
        make_backbone(plan, artifact.name)


def ensure_scored(plan: Plan, keys: Iterable[ScoreKey], say: Say) -> None:
    """Score runs on what they are not scored on yet, as the workflow would, and keep it; nothing is trained.

    Raises:
        SembenchError: something that it needs cannot be had, or a score is undefined.
    """
    missing: dict[str, list[ScoreKey]] = {}
    for key in plan.unscored(keys):
        missing.setdefault(key.run, []).append(key)
    for run, own in missing.items():
        for each in (artifact for key in own for artifact in plan.score(key).inputs):
            # A fit is made by the scoring itself.
            for needed in each.inputs if each.kind == "fit" else (each,):
                ensure(plan, needed, say)
        say(f"scoring {run} on {', '.join(dict.fromkeys(key.task for key in own))}")
        score_run(plan, plan.run(run), own)
