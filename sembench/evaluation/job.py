"""Scoring planned encoders, and any encoder that somebody names: data and model checked, scores sealed one by one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.numpy import load_file, save_file

from sembench.core.artifact import Artifact, alone, opened, seal
from sembench.core.errors import SembenchError, unknown
from sembench.core.files import atomic_path
from sembench.data.build import make_dataset
from sembench.data.frames import read_examples
from sembench.encoders.backbones import make_backbone
from sembench.encoders.devices import pick_device
from sembench.encoders.folder import Encoder, load_encoder
from sembench.encoders.transformer import read_entry, set_precision
from sembench.encoders.transforms.base import State
from sembench.evaluation.engine import FitStore, Fitting, MemoryFits, Request, score
from sembench.evaluation.protocol import Protocol, Source
from sembench.plan import Plan, Run, ScoreKey
from sembench.registry.entries import split_readout, transform_of
from sembench.results.records import Record, labelled
from sembench.results.store import write_scores
from sembench.sources import fetch_planned

Say = Callable[[str], None]
PRECISIONS = ("fp32", "bf16", "auto")


# ------------------------------------------------------------------------------------------------- planned encoders


def score_run(plan: Plan, run: Run, keys: Sequence[ScoreKey], threads: int = 0) -> None:
    """Score a run on whatever of ``keys`` is not there yet; every score is sealed as soon as it is known.

    Raises:
        SembenchError: the model or the data of a task were changed, or a score is undefined.
    """
    missing = plan.unscored(keys)
    if not missing:
        return
    if threads:
        torch.set_num_threads(threads)
    encoder = load_encoder(opened(plan.root, run.artifact))
    precision = set_precision(encoder, plan.scale.score_precision)
    labels = {"device": pick_device().type, "precision": precision}
    by_place = {(key.readout, key.suite, key.task): plan.score(key) for key in missing}
    try:
        for found in score(encoder, list(_requests(plan, missing)), _Fits(plan, missing)):
            request = found.request
            artifact = by_place[request.readout, request.suite, request.task]
            records = labelled(found.records, run.id, run.variant, run.seed, **labels)
            write_scores(plan.root, artifact, records, found.predictions, labels)
    except SembenchError as error:
        raise SembenchError(f"run {run.id}: {error}") from None


def _requests(plan: Plan, keys: Iterable[ScoreKey]) -> Iterator[Request]:
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


# ------------------------------------------------------------------------------------------------- named encoders


@dataclass(frozen=True)
class _Named:
    name: str
    folder: Path
    variant: str
    seed: int = 0


def score_named(
    plan: Plan, model: str, suites: Sequence[str], readouts: Sequence[str] | None, precision: str, say: Say
) -> list[Record]:
    """Return score records of an encoder under suites; nothing is kept.

    Args:
        plan: the scale that decides which sources may be used.
        model: a model folder, or the name of a backbone, a run, or a variant.
        suites: names of suites; tasks whose data cannot be had are left out and said so.
        readouts: read-outs; the encoder's own if none.
        precision: ``fp32``, ``bf16`` or ``auto``.
        say: receives one-line messages about progress.

    Raises:
        SembenchError: an unknown name, or nothing to score on.
    """
    if precision not in PRECISIONS:
        raise unknown("precision", precision, PRECISIONS, "what scoring offers")
    places = [place for suite in dict.fromkeys(suites) for place in _available(plan, suite, say)]
    named = _folder(plan, model, say)
    encoder = load_encoder(named.folder)
    used = set_precision(encoder, precision)
    chosen = list(readouts or [_own_readout(named, say)])
    for readout in chosen:
        _check_readout(plan, encoder, readout, named.name)
    for data in dict.fromkeys([plan.task(*place).data for place in places] + _fitted_on(plan, chosen)):
        ensure(plan, plan.data(data), say)
    keys = [ScoreKey(named.name, readout, suite, task) for readout in chosen for suite, task in places]
    say(f"scoring {named.name} on {', '.join(dict.fromkeys(suites))} under {', '.join(chosen)}")
    found = [record for each in score(encoder, list(_requests(plan, keys)), MemoryFits()) for record in each.records]
    return labelled(found, named.name, named.variant, named.seed, pick_device().type, used)


def _own_readout(named: _Named, say: Say) -> str:
    """Return the read-out that a model folder is made for, and say why where it is not one of this project's."""
    entry = read_entry(named.folder)
    readout = str(entry.get("readout", "mean"))
    if why := entry.get("why"):
        say(f"{named.name} is read out by {readout}: {why}")
    return readout


def _check_readout(plan: Plan, encoder: Encoder, readout: str, name: str) -> None:
    base, transform = split_readout(readout)
    if base not in encoder.readouts:
        raise unknown("read-out", base, encoder.readouts, f"what {name} offers")
    if transform and transform not in plan.registry.transforms:
        raise unknown("transform", transform, plan.registry.transforms, "registry/transforms.yaml")


def _fitted_on(plan: Plan, readouts: Iterable[str]) -> list[str]:
    names = [name for readout in readouts if (name := split_readout(readout)[1])]
    return [plan.used(on) for name in names if (on := plan.registry.transforms[name].fitted_on) != "task"]


def _available(plan: Plan, suite: str, say: Say) -> list[tuple[str, str]]:
    """Return the tasks of a suite whose data can be had."""
    if suite not in plan.suites:
        raise unknown("suite", suite, plan.suites, "registry/suites.yaml")
    missing = {name: plan.data_missing(task.data) for name, task in plan.suites[suite].items()}
    for name, reason in missing.items():
        if reason:
            say(f"task {name} is left out: {reason}")
    kept = [(suite, name) for name, reason in missing.items() if not reason]
    if not kept:
        raise SembenchError(f"no task of suite '{suite}' can be scored: {next(iter(missing.values()))}")
    return kept


def _folder(plan: Plan, model: str, say: Say) -> _Named:
    """Return the name and the model folder of what the user named; a backbone is fetched and built if need be."""
    if Path(model).is_dir():
        return _Named(Path(model).resolve().name, Path(model), Path(model).resolve().name)
    if model in plan.registry.backbones:
        name = plan.used(model)
        if reason := plan.backbone_missing(name):
            raise SembenchError(f"backbone '{name}' cannot be built at scale {plan.name}: {reason}")
        ensure(plan, plan.backbone(name), say)
        return _Named(name, opened(plan.root, plan.backbone(name)), name)
    if model in plan.registry.variants:
        run = plan.runs_of(model)[0]
        if len(plan.runs_of(model)) > 1:
            say(f"{model} has {len(plan.runs_of(model))} runs, one a seed; scoring {run.id}")
    elif "." in model and model.partition(".")[0] in plan.registry.variants:
        run = plan.run(model)
    else:
        known = [*plan.registry.backbones, *plan.registry.variants]
        raise unknown("model", model, known, "the registry, and no folder of that name exists")
    if not run.trained:
        if reason := plan.missing(run.variant):
            raise SembenchError(f"'{model}' cannot be had at scale {plan.name}: {reason}")
        ensure(plan, run.artifact, say)
    elif not (plan.root / run.artifact.record).is_file():
        made = f"snakemake {run.artifact.record} --cores 2 --config scale={plan.name}"
        raise SembenchError(f"run '{run.id}' is not trained yet; train it with: {made}")
    return _Named(run.id, opened(plan.root, run.artifact), run.variant, run.seed)


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
