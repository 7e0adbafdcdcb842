"""Entries of the registry with their plug-ins chosen: makers, converters, transforms, tasks, recipes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sembench.core.errors import SembenchError, unknown
from sembench.core.plugin import CONVERTERS, MAKERS, OBJECTIVES, PROTOCOLS, TRANSFORMS, Chosen
from sembench.core.schema import deciding, merged, parse
from sembench.registry.models import Backbone, Made, Recipe, Suite, SuiteLaid, Transform


@dataclass(frozen=True)
class Task:
    """A task of a suite: its data set, and the protocol with its parameters."""

    suite: str
    name: str
    title: str
    data: str
    protocol: Chosen[Any]


@dataclass(frozen=True)
class Training:
    """A recipe with its objective chosen."""

    recipe: Recipe
    objective: Chosen[Any]

    @property
    def params(self) -> dict[str, Any]:
        """All that decides a training besides its inputs and seed, defaults included."""
        return {**deciding(self.recipe), "objective": self.objective.params}

    @property
    def values(self) -> dict[str, Any]:
        """Every parameter of recipe and objective, for people."""
        return {**self.recipe.model_dump(mode="json"), "objective": self.objective.values}


def maker_of(name: str, entry: Made, overlay: Mapping[str, Any] | None = None, where: str = "") -> Chosen[Any]:
    """Return the maker of a data set; ``overlay`` replaces parameters, and ``where`` says who gave it.

    Raises:
        SembenchError: an unknown kind, or a parameter that it does not take.
    """
    place = where or f"registry/made.yaml, data set '{name}'"
    return MAKERS.parse(merged(entry.maker, overlay or {}), place)


def converter_of(name: str, entry: Backbone) -> Chosen[Any]:
    """Return the converter of a backbone.

    Raises:
        SembenchError: an unknown kind, or a parameter that it does not take.
    """
    return CONVERTERS.parse(entry.convert, f"registry/backbones.yaml, backbone '{name}', convert")


def transform_of(name: str, entry: Transform) -> Chosen[Any]:
    """Return the transform of an entry.

    Raises:
        SembenchError: an unknown kind, or a parameter that it does not take.
    """
    return TRANSFORMS.parse(entry.fit, f"registry/transforms.yaml, transform '{name}'")


def tasks_of(name: str, suite: Suite, overlay: SuiteLaid | None = None, where: str = "") -> dict[str, Task]:
    """Return the tasks of a suite: its defaults with the task's own keys and then a scale's laid over them.

    Args:
        name: of the suite.
        suite: its entry.
        overlay: what a scale lays over it.
        where: names file and entry of the overlay in errors.

    Raises:
        SembenchError: a task without title or data, an unknown protocol, a parameter that it does not take.
    """
    found = {}
    overlay = overlay or SuiteLaid()
    laid = overlay.tasks
    for task in laid:
        if task not in suite.tasks:
            raise SembenchError(f"{where}: {unknown('task', task, suite.tasks, f'suite {name}')}")
    for task, raw in suite.tasks.items():
        entry = merged(merged(merged(suite.defaults, overlay.defaults), raw), laid.get(task, {}))
        place = where if task in laid else f"registry/suites.yaml, suite '{name}', task '{task}'"
        for key in ("title", "data"):
            if not isinstance(entry.get(key), str):
                raise SembenchError(f"{place}: the key '{key}' is missing; add it")
        params = {key: value for key, value in entry.items() if key not in ("title", "data")}
        found[task] = Task(name, task, entry["title"], entry["data"], PROTOCOLS.parse(params, place))
    return found


def training_of(raw: Mapping[str, Any], where: str) -> Training:
    """Return a recipe with its objective.

    Raises:
        SembenchError: a key that a recipe or its objective does not have, a value out of range, or a single row where
            rows are compared.
    """
    recipe = parse(Recipe, raw, where)
    objective = OBJECTIVES.parse(recipe.objective, f"{where}, objective")
    for key, given in (("batch_size", recipe.batch_size), ("rows", recipe.rows)):
        if given == 1 and objective.plugin.in_batch_negatives:
            raise SembenchError(
                f"{where}: key '{key}': the rows of a batch are each other's negatives for objective "
                f"'{objective.kind}', so there must be at least 2 (given: 1)"
            )
    return Training(recipe, objective)


def split_readout(readout: str) -> tuple[str, str | None]:
    """Return the base read-out and the transform of ``<read-out>`` or ``<read-out>.<transform>``."""
    base, _, transform = readout.partition(".")
    return base, transform or None
