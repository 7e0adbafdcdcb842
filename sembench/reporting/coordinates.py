"""Coordinates of scores: merging what a table, a row and a column say, and checking the names in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import Field

from sembench.core.errors import SembenchError
from sembench.plan.needs import ScoreKey
from sembench.registry.check import need, need_readout
from sembench.registry.entries import split_readout, tasks_of
from sembench.registry.models import Where

if TYPE_CHECKING:
    from sembench.plan import Plan
    from sembench.registry.load import Registry

COORDINATES = tuple(Where.model_fields)
# What holds unless a table, a row or a column says otherwise.
USUAL = Where(split="test", subset="", aggregation="all")
# Without these a cell says nothing; the read-out is the variant's own where none is given.
_NEEDED = ("variant", "suite", "task", "metric")


class Point(Where):
    """Something labelled in a figure, with coordinates of its own."""

    label: str
    scales: list[str] = []
    missing: str = Field("", description="why it cannot be shown")


def merged_where(*parts: Where) -> Where:
    """Return coordinates in which a later part wins over an earlier one; whatever else a part says is left out."""
    found = {name: value for part in parts for name in COORDINATES if (value := getattr(part, name)) is not None}
    return Where(**found)


def gives_any(given: Where) -> bool:
    """Return whether at least one coordinate is given."""
    return any(getattr(given, name) is not None for name in COORDINATES)


def score_keys(plan: Plan, places: Iterable[Where]) -> tuple[ScoreKey, ...]:
    """Return the scores that cells with these coordinates are made from; a cell that is missing needs none."""
    keys: dict[ScoreKey, None] = {}
    for place in places:
        cell = plan.cell(place)
        keys |= dict.fromkeys(cell.keys)
    return tuple(keys)


def readout_title(registry: Registry, readout: str) -> str:
    """Return the title of a read-out, that of its transform included."""
    base, transform = split_readout(readout)
    title = registry.readouts[base].title
    return f"{title}, {registry.transforms[transform].title}" if transform else title


# ------------------------------------------------------------------------------------------------------ checks


def check_once(names: Iterable[str], what: str) -> None:
    """Raise for a key that is given twice.

    Raises:
        SembenchError: naming the key.
    """
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise SembenchError(f"{what} '{name}' is given twice; give each its own key")
        seen.add(name)


class Checker:
    """Checks the names in coordinates against a registry; reads each suite and each variant once."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self._given: dict[tuple[str, str], dict[str, set[str]]] = {}
        self._tasks: dict[str, Mapping[str, Any]] = {}

    def scales(self, names: Iterable[str], where: str) -> None:
        """Raise for a scale that is not in the registry."""
        for name in names:
            need("scale", name, self.registry.scales, where)

    def whole(self, given: Where, where: str) -> None:
        """Check coordinates that must be enough to find a score.

        Raises:
            SembenchError: one lacks, a name is unknown, or the task has no such score.
        """
        if lacking := [name for name in _NEEDED if getattr(given, name) is None]:
            name = lacking[0]
            raise SembenchError(f"{where}: no {name} is given; add the key '{name}' to the row, the column or defaults")
        self.part(given, where)

    def part(self, given: Where, where: str) -> None:
        """Check the names in coordinates that may be incomplete.

        Raises:
            SembenchError: a name is unknown, or the task has no such score.
        """
        registry = self.registry
        need("variant", given.variant, registry.variants, where)
        if given.variant is not None and registry.variants[given.variant].get("abstract"):
            raise SembenchError(f"{where}: variant '{given.variant}' is only a base; name one that extends it")
        need_readout(given.readout, registry, where)
        need("suite", given.suite, registry.suites, where)
        need("metric", given.metric, registry.metrics, where)
        if given.suite is not None and given.task is not None:
            for name, known in self._given_by(given.suite, given.task, where).items():
                if known:
                    need(f"{name} of {given.suite}/{given.task}", getattr(given, name), known, where)

    def point(self, point: Point, places: Iterable[Where], where: str) -> None:
        """Check a point of a figure and the coordinates of its scores."""
        place = f"{where}, point '{point.label}'"
        self.scales(point.scales, place)
        for given in places:
            if point.missing:
                self.part(given, place)
            else:
                self.whole(given, place)

    def _given_by(self, suite: str, task: str, where: str) -> dict[str, set[str]]:
        if suite not in self._tasks:
            self._tasks[suite] = tasks_of(suite, self.registry.suites[suite])
        need(f"task of suite {suite}", task, self._tasks[suite], where)
        if (suite, task) not in self._given:
            self._given[suite, task] = _given_by(self._tasks[suite][task].protocol)
        return self._given[suite, task]


def _given_by(protocol: Any) -> dict[str, set[str]]:
    """Return which metrics, splits, subsets and aggregations a task's scores have; an empty set: not known.

    A protocol says so itself, by attributes or class methods of its parameters: ``metrics``, ``splits``, ``subsets``,
    ``aggregations``. Where ``splits`` maps each split to the names of its subsets, these are known as well.
    """
    found: dict[str, set[str]] = {}
    for name in ("metric", "split", "subset", "aggregation"):
        known = getattr(protocol.plugin, f"{name}s", ())
        found[name] = set(known(protocol.config) if callable(known) else known)
    configured = getattr(protocol.config, "splits", None)
    if isinstance(configured, Mapping):
        found["split"] |= set(configured)
        found["subset"] |= {name for names in configured.values() for name in names}
    if found["subset"]:
        found["subset"].add("")
    return found
