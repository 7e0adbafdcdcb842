"""Scoring an encoder named on the command line: find or make its folder, fetch what the suites need, score."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sembench.core.errors import SembenchError, unknown
from sembench.registry import Plan, RunSpec
from sembench.registry.layout import DATA, backbone, dataset_folder
from sembench.registry.load import DERIVED
from sembench.registry.models import Suite
from sembench.results.records import labelled
from sembench.sources import Site, fetch_dataset

Say = Callable[[str], None]


def score_model(
    plan: Plan, model: str, suites: Sequence[str], readouts: Sequence[str] | None, precision: str, say: Say
) -> list[dict[str, Any]]:
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
    if precision not in ("fp32", "bf16", "auto"):
        raise unknown("precision", precision, ["fp32", "bf16", "auto"], "what scoring offers")
    name, folder = _folder(plan, model, say)
    chosen = {key: _available(plan, key, say) for key in dict.fromkeys(suites)}
    for key in sorted({task.dataset for suite in chosen.values() for task in suite.tasks.values()}):
        _have(plan, key, say)
    # Heavy imports wait until all names are known: a misspelled one must be answered at once.
    from sembench.encoders.devices import pick_device
    from sembench.encoders.folder import load_encoder
    from sembench.encoders.transformer import read_entry, set_precision
    from sembench.evaluation.score import read_parts, score

    made = plan.root / plan.layout.analogy("")
    parts = read_parts(
        chosen, plan.registry.datasets, lambda key: made if key in DERIVED else plan.root / dataset_folder(key)
    )
    encoder = load_encoder(folder)
    used = set_precision(encoder, precision)
    own = str(read_entry(folder).get("readout", "mean"))
    say(f"scoring {name} on {', '.join(chosen)}: {len({s for part in parts for s in part.sentences})} sentences")
    scored = score(encoder, parts, readouts or [own])
    labels = {"stage": plan.registry.stages["score"].version, "device": pick_device().type, "precision": used}
    return labelled(scored.records, name, labels)


def _available(plan: Plan, key: str, say: Say) -> Suite:
    """Return a suite cut to the tasks whose data can be had."""
    if key not in plan.suites:
        raise unknown("suite", key, plan.suites, "registry/suites.yaml")
    missing = {name: reason for name, reason in plan.tasks(key).items() if reason}
    for name, reason in missing.items():
        say(f"task {name} is left out: {reason}")
    kept = {name: task for name, task in plan.suites[key].tasks.items() if name not in missing}
    if not kept:
        raise SembenchError(f"no task of suite '{key}' can be scored: {next(iter(missing.values()))}")
    return plan.suites[key].model_copy(update={"tasks": kept})


def _folder(plan: Plan, model: str, say: Say) -> tuple[str, Path]:
    """Return the name and the model folder of what the user named; a backbone is fetched and built if need be."""
    path = Path(model)
    if path.is_dir():
        return path.resolve().name, path
    if model in plan.registry.backbones:
        return model, _built(plan, model, say)
    if model in plan.registry.variants or model in plan.all_runs:
        spec = plan.all_runs.get(model) or plan.specs_of(model)[0]
        return spec.id, _of_run(plan, spec, say)
    known = [*plan.registry.backbones, *plan.registry.variants]
    raise unknown("model", model, known, "the registry, nor a folder")


def _of_run(plan: Plan, spec: RunSpec, say: Say) -> Path:
    if not spec.trained:
        return _built(plan, spec.backbone.key, say)
    folder = plan.root / plan.layout.run(spec.id)
    if not (folder / "run.json").is_file():
        made = f"snakemake {plan.layout.run(spec.id)}/run.json --cores 2 --config scale={plan.name}"
        raise SembenchError(f"run '{spec.id}' is not trained yet at scale {plan.name}; train it with: {made}")
    return folder


def _built(plan: Plan, key: str, say: Say) -> Path:
    folder = plan.root / backbone(key)
    if not (folder / "encoder.json").is_file():
        entry = plan.backbone(key)
        if reason := plan.backbone_missing(key):
            raise SembenchError(f"backbone '{key}' cannot be built at scale {plan.name}: {reason}")
        if entry.dataset:
            _fetch(plan, plan.dataset_key(entry.dataset), say)
        source = plan.root / dataset_folder(plan.dataset_key(entry.dataset)) if entry.dataset else None
        from sembench.encoders.backbones import build_backbone

        say(f"building the model folder of {entry.title}")
        build_backbone(key, entry, source, folder)
    return folder


def _have(plan: Plan, key: str, say: Say) -> None:
    """Fetch a data set, or make sure that one made by the workflow is there."""
    if key not in DERIVED:
        _fetch(plan, key, say)
    elif not (plan.root / plan.layout.analogy(DERIVED[key])).is_file():
        made = f"snakemake {plan.layout.analogy(DERIVED[key])} --cores 2 --config scale={plan.name}"
        raise SembenchError(f"data set '{key}' is not made yet at scale {plan.name}; make it with: {made}")


def _fetch(plan: Plan, key: str, say: Say) -> None:
    site = Site(root=plan.root, data=plan.root / DATA, mirror=plan.mirror)
    fetch_dataset(key, plan.dataset(key), site, plan.scale.sources, say=say)
