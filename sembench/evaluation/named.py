"""Scoring an encoder that somebody names: a model folder, a backbone, a run or a variant. Nothing is kept.

Whatever can be wrong in the question itself is found by registry and disk alone, before a heavy library loads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sembench.core.artifact import Artifact, opened
from sembench.core.errors import SembenchError, unknown
from sembench.plan import Plan, Run, ScoreKey
from sembench.registry.entries import converter_of, split_readout

if TYPE_CHECKING:
    from sembench.results.records import Record

Say = Callable[[str], None]
PRECISIONS = ("fp32", "bf16", "auto")


@dataclass(frozen=True)
class _Named:
    """An encoder under the name that its scores carry.

    Attributes:
        name: of the encoder.
        variant: what it is one of.
        made: what it is at this scale, if the registry knows it.
        folder: its model folder, if the registry does not.
        offers: its base read-outs, as far as they are known before it is loaded.
        seed: of its training.
    """

    name: str
    variant: str
    made: Artifact | None = None
    folder: Path = Path()
    offers: tuple[str, ...] = ()
    seed: int = 0


def score_named(
    plan: Plan, model: str, suites: Sequence[str], readouts: Sequence[str] | None, precision: str, say: Say
) -> list[Record]:
    """Return score records of an encoder under suites.

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
    check_suites(plan, suites)
    named = _named(plan, model, say)
    for readout in readouts or ():
        _check_readout(plan, readout, named)
    places = [place for suite in dict.fromkeys(suites) for place in available(plan, suite, say)]
    return _scored(plan, named, places, readouts, precision, say)


def _scored(
    plan: Plan,
    named: _Named,
    places: Sequence[tuple[str, str]],
    readouts: Sequence[str] | None,
    precision: str,
    say: Say,
) -> list[Record]:
    from sembench.encoders.devices import pick_device
    from sembench.encoders.folder import load_encoder
    from sembench.encoders.transformer import read_entry, set_precision
    from sembench.evaluation.engine import MemoryFits, score
    from sembench.evaluation.job import ensure, requests
    from sembench.results.records import labelled

    if named.made:
        ensure(plan, named.made, say)
    folder = opened(plan.root, named.made) if named.made else named.folder
    encoder = load_encoder(folder)
    entry = read_entry(folder)
    chosen = list(dict.fromkeys(readouts or [str(entry.get("readout", "mean"))]))
    for readout in chosen:
        _check_readout(plan, readout, named, encoder.readouts)
    if not readouts and (why := entry.get("why")):
        say(f"{named.name} is read out by {chosen[0]}: {why}")
    for note in encoder.notes:
        say(f"{named.name}: {note}")
    for data in dict.fromkeys([plan.task(*place).data for place in places] + _fitted_on(plan, chosen)):
        ensure(plan, plan.data(data), say)
    used = set_precision(encoder, precision)
    keys = [ScoreKey(named.name, readout, suite, task) for readout in chosen for suite, task in places]
    say(f"scoring {named.name} on {', '.join(dict.fromkeys(suite for suite, _ in places))} under {', '.join(chosen)}")
    found = [record for each in score(encoder, list(requests(plan, keys)), MemoryFits()) for record in each.records]
    return labelled(found, named.name, named.variant, named.seed, pick_device().type, used)


def _check_readout(plan: Plan, readout: str, named: _Named, offers: tuple[str, ...] = ()) -> None:
    """Compare a read-out with what the encoder offers, or where that is not known yet with what any could offer."""
    base, dot, transform = readout.partition(".")
    offered = offers or named.offers
    if base not in (offered or plan.registry.readouts):
        known = offered or plan.registry.readouts
        raise unknown("read-out", base, known, f"what {named.name} offers" if offered else "registry/readouts.yaml")
    if dot and transform not in plan.registry.transforms:
        raise unknown("transform", transform, plan.registry.transforms, "registry/transforms.yaml")


def _fitted_on(plan: Plan, readouts: Iterable[str]) -> list[str]:
    names = [name for readout in readouts if (name := split_readout(readout)[1])]
    return [plan.used(on) for name in names if (on := plan.registry.transforms[name].fitted_on) != "task"]


def check_suites(plan: Plan, suites: Iterable[str]) -> None:
    """Raise for a suite that is not in the registry.

    Raises:
        SembenchError: naming it and the nearest known one.
    """
    for suite in suites:
        if suite not in plan.suites:
            raise unknown("suite", suite, plan.suites, "registry/suites.yaml")


def available(plan: Plan, suite: str, say: Say) -> list[tuple[str, str]]:
    """Return suite and name of the tasks whose data can be had; the others are said.

    Raises:
        SembenchError: there are none.
    """
    missing = {name: plan.data_missing(task.data) for name, task in plan.suites[suite].items()}
    for name, reason in missing.items():
        if reason:
            say(f"task {name} is left out: {reason}")
    kept = [(suite, name) for name, reason in missing.items() if not reason]
    if not kept:
        raise SembenchError(f"no task of suite '{suite}' can be scored: {next(iter(missing.values()))}")
    return kept


# --------------------------------------------------------------------------------------------- what the user named


def _named(plan: Plan, model: str, say: Say) -> _Named:
    if Path(model).is_dir():
        name = Path(model).resolve().name
        return _Named(name, name, folder=Path(model))
    if model in plan.registry.backbones:
        return _backbone(plan, plan.used(model))
    if model in plan.registry.variants:
        runs = plan.runs_of(model)
        if len(runs) > 1:
            say(f"{model} has {len(runs)} runs, one a seed; scoring {runs[0].id}")
        return _run(plan, model, runs[0])
    if "." in model and model.partition(".")[0] in plan.registry.variants:
        return _run(plan, model, plan.run(model))
    known = [*plan.registry.backbones, *plan.registry.variants]
    raise unknown("model", model, known, "the registry, and no folder of that name exists")


def _backbone(plan: Plan, name: str) -> _Named:
    if reason := plan.backbone_missing(name):
        raise SembenchError(f"backbone '{name}' cannot be built at scale {plan.name}: {reason}")
    converter = converter_of(name, plan.registry.backbones[name])
    return _Named(name, name, plan.backbone(name), offers=tuple(converter.plugin.offers(converter.config)))


def _run(plan: Plan, model: str, run: Run) -> _Named:
    check_made(plan, model, run)
    return _Named(run.id, run.variant, run.artifact, offers=plan.offered(run.variant), seed=run.seed)


def check_made(plan: Plan, name: str, run: Run) -> None:
    """Raise for a run that cannot be scored: not trained yet, or of an encoder that cannot be had at this scale.

    Args:
        plan: of the scale.
        name: as the user called it.
        run: what it is.

    Raises:
        SembenchError: it cannot be scored.
    """
    if run.trained and not (plan.root / run.artifact.record).is_file():
        made = f"snakemake {run.artifact.record} --cores 2 --config scale={plan.name}"
        raise SembenchError(f"run '{run.id}' is not trained yet; train it with: {made}")
    if not run.trained and (reason := plan.missing(run.variant)):
        raise SembenchError(f"'{name}' cannot be had at scale {plan.name}: {reason}")
