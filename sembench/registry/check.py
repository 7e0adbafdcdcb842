"""What refers to what in the registry: a name that refers to nothing is found before anything runs."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sembench.core.errors import SembenchError, unknown
from sembench.registry.entries import (
    converter_of,
    maker_of,
    split_readout,
    tasks_of,
    training_of,
    transform_of,
)
from sembench.registry.load import Registry, project_root, read_registry
from sembench.registry.models import Made, Scale, Variant


@functools.cache
def load_registry(root: Path | None = None) -> Registry:
    """Read and check the whole registry below ``root``.

    Raises:
        SembenchError: a file is absent or broken, a key is unknown, a name refers to nothing.
    """
    registry = read_registry(root or project_root())
    check_references(registry)
    return registry


def need(kind: str, name: Any, known: Iterable[str], where: str, place: str = "the registry") -> None:
    """Raise for a name that is given but not among the known ones, which are those of ``place``."""
    names = list(known)
    if name is not None and name not in names:
        raise SembenchError(f"{where}: {unknown(kind, str(name), names, place)}")


def need_readout(readout: str | None, registry: Registry, where: str) -> None:
    """Raise for a read-out whose base or transform is not known."""
    if readout is not None:
        base, transform = split_readout(readout)
        need("read-out", base, registry.readouts, where)
        need("transform", transform, registry.transforms, where)


def check_references(registry: Registry) -> None:
    """Raise for the first name in the registry that refers to nothing.

    Raises:
        SembenchError: the sentence names file, entry and the nearest known name.
    """
    for name, made in registry.made.items():
        _check_made(name, made, registry)
    for name, backbone in registry.backbones.items():
        where = f"registry/backbones.yaml, backbone '{name}'"
        need("data set", backbone.dataset, registry.datasets, where)
        offered = converter_of(name, backbone).plugin.offers(converter_of(name, backbone).config)
        need("read-out", backbone.readout, offered, where)
    for name, transform in registry.transforms.items():
        transform_of(name, transform)
        where = f"registry/transforms.yaml, transform '{name}'"
        need("data set", transform.fitted_on, ["task", *registry.datasets, *registry.made], where)
    for name in registry.concrete:
        _check_variant(name, registry.variant(name), registry)
    for name, suite in registry.suites.items():
        for task in tasks_of(name, suite).values():
            _check_task(task, registry)
    for name, scale in registry.scales.items():
        _check_scale(f"registry/scales.yaml, scale '{name}'", scale, registry)
    for view in registry.views.values():
        where = f"registry/{view.folder}/{view.key}.yaml"
        for name in view.by_name:
            need("scale", name, registry.scales, f"{where}, by_name")
        view.chosen.plugin.check(view.chosen.config, registry, where, view.key)
    for value in registry.paper_values:
        need("table", value.table, registry.views, "registry/paper_values.csv")


def _check_made(name: str, entry: Made, registry: Registry) -> None:
    where = f"registry/made.yaml, data set '{name}'"
    if name in registry.datasets:
        raise SembenchError(f"{where}: registry/datasets.yaml has a data set of that name; rename one")
    maker = maker_of(name, entry)
    roles = (*maker.plugin.roles, *maker.plugin.optional_roles)
    for role, source in entry.inputs.items():
        need("role", role, roles, f"{where}, inputs")
        if role in maker.plugin.encoders:
            need("backbone", source, registry.backbones, f"{where}, inputs", "registry/backbones.yaml")
        else:
            need("data set", source, [*registry.datasets, *registry.made], f"{where}, inputs")
    if absent := [role for role in maker.plugin.roles if role not in entry.inputs]:
        what = "backbone" if absent[0] in maker.plugin.encoders else "data set"
        raise SembenchError(f"{where}, inputs: the role '{absent[0]}' is missing; name the {what} that plays it")
    for parameter in entry.settings:
        need("parameter", parameter, maker.plugin.Config.model_fields, f"{where}, settings")
    seen, open_names = {name}, [*entry.inputs.values()]
    while open_names:
        source = open_names.pop()
        if source == name:
            raise SembenchError(f"{where}: it is made from itself through '{source}'; break the circle")
        if source not in seen and source in registry.made:
            open_names += registry.made[source].inputs.values()
        seen.add(source)


def _check_variant(name: str, variant: Variant, registry: Registry) -> None:
    where = f"registry/variants.yaml, variant '{name}'"
    need("backbone", variant.backbone, registry.backbones, where)
    need_readout(variant.readout, registry, where)
    for scale in variant.scales:
        need("scale", scale, registry.scales, f"{where}, scales")
    if variant.backbone is None:
        raise SembenchError(f"{where}: the key 'backbone' is missing; add it, or 'abstract: true' for a mere base")
    if variant.recipe is None:
        if given := [key for key in ("data", "start") if getattr(variant, key)]:
            raise SembenchError(f"{where}: an encoder without a recipe is not trained; drop '{given[0]}'")
        return
    training = training_of(variant.recipe, f"{where}, recipe")
    need_readout(training.recipe.select_by, registry, f"{where}, recipe, select_by")
    need("data set", training.recipe.dev, registry.datasets, f"{where}, recipe, dev", "registry/datasets.yaml")
    if variant.data is None:
        raise SembenchError(f"{where}: it is trained but names no data; add the key 'data'")
    need("data set", variant.data, registry.made, f"{where}, data", "registry/made.yaml")
    maker = maker_of(variant.data, registry.made[variant.data])
    wanted = training.objective.plugin.columns
    if lacking := [column for column in wanted if column not in maker.plugin.columns]:
        raise SembenchError(
            f"{where}: objective {training.objective.kind} does not train on {variant.data}, which has no column "
            f"'{lacking[0]}'; take {' or '.join(_data_with(wanted, registry)) or 'another objective'}"
        )
    _check_start(where, variant, registry)


def _data_with(columns: Iterable[str], registry: Registry) -> list[str]:
    return [name for name, entry in registry.made.items() if set(columns) <= set(maker_of(name, entry).plugin.columns)]


def _check_start(where: str, variant: Variant, registry: Registry) -> None:
    """Raise unless what a variant starts from is trained, on the same backbone, and not itself."""
    seen: list[str] = []
    while variant.start:
        need("variant", variant.start, registry.variants, where)
        if variant.start in seen:
            raise SembenchError(f"{where}: starts from itself through '{variant.start}'; break the circle")
        seen.append(variant.start)
        start = registry.variant(variant.start)
        if start.abstract or start.recipe is None:
            raise SembenchError(f"{where}: '{variant.start}' is not trained; start from a trained variant")
        if start.backbone != variant.backbone:
            raise SembenchError(
                f"{where}: '{variant.start}' has the backbone {start.backbone}, not {variant.backbone}; use the same"
            )
        variant = start


def _check_task(task: Any, registry: Registry) -> None:
    where = f"registry/suites.yaml, suite '{task.suite}', task '{task.name}'"
    need("data set", task.data, [*registry.datasets, *registry.made], where)
    for metric in task.protocol.plugin.metrics:
        need("metric", metric, registry.metrics, where, "registry/metrics.yaml")
    readers = task.protocol.plugin.readers
    if task.data in registry.datasets and registry.datasets[task.data].reader not in readers:
        given = registry.datasets[task.data].reader or "none"
        raise SembenchError(
            f"{where}: protocol {task.protocol.kind} does not read the format of {task.data} ({given}); "
            f"it reads {', '.join(readers) or 'data sets made here'}"
        )


def _check_scale(where: str, scale: Scale, registry: Registry) -> None:
    for key, pairs in (("substitutes", scale.substitutes), ("fallbacks", scale.fallbacks)):
        for old, new in pairs.items():
            known = registry.backbones if old in registry.backbones else {**registry.datasets, **registry.made}
            for name in (old, new):
                need("data set or backbone", name, known, f"{where}, {key}")
    for name in scale.variants:
        need("variant", name, registry.variants, f"{where}, variants")
    for name, overlay in scale.made.items():
        need("data set", name, registry.made, f"{where}, made")
        maker_of(name, registry.made[name], overlay, f"{where}, made, '{name}'")
    for name, laid in scale.suites.items():
        need("suite", name, registry.suites, f"{where}, suites")
        tasks_of(name, registry.suites[name], laid, f"{where}, suite '{name}'")
