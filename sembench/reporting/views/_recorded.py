"""Figures of what runs recorded at their dev scores: which runs a scale shows, and their numbers step by step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from sembench.core.schema import Strict
from sembench.plan.needs import Needs
from sembench.registry.check import need
from sembench.reporting.coordinates import Checker
from sembench.reporting.figures import FigureView
from sembench.reporting.provenance import read_run
from sembench.reporting.view import ViewConfig

if TYPE_CHECKING:
    import pandas as pd

    from sembench.plan import Plan
    from sembench.registry.load import Registry


class Trained(Strict):
    """A trained variant under a label; several may share one."""

    label: str
    variant: str
    scales: list[str] = []


class RecordedConfig(ViewConfig):
    """The runs of such a figure."""

    points: list[Trained]


C = TypeVar("C", bound=RecordedConfig)


class RecordedFigure(FigureView[C]):
    """Base of the figures that show what runs recorded."""

    Config: ClassVar[type[ViewConfig]] = RecordedConfig

    @classmethod
    def check(cls, config: C, registry: Registry, where: str, key: str) -> None:
        """Check variants and scales.

        Raises:
            SembenchError: a name refers to nothing.
        """
        super().check(config, registry, where, key)
        for point in config.points:
            place = f"{where}, point '{point.label}'"
            Checker(registry).scales(point.scales, place)
            need("variant", point.variant, registry.variants, place)

    @classmethod
    def needs(cls, config: C, plan: Plan) -> Needs:
        """Return the runs whose records are shown."""
        shown = [point.variant for point in config.points if plan.shown(point.scales)]
        made = [variant for variant in dict.fromkeys(shown) if not plan.missing(variant)]
        return Needs(runs=tuple(run.id for variant in made for run in plan.runs_of(variant) if run.trained))

    @classmethod
    def shows(cls, config: C, plan: Plan) -> Any:
        """Return why a run is missing."""
        return [plan.missing(point.variant) for point in config.points if plan.shown(point.scales)]

    @property
    def points(self) -> list[Trained]:
        """The points that the scale shows."""
        return [point for point in self.config.points if self.plan.shown(point.scales)]

    @property
    def runs(self) -> tuple[str, ...]:
        """Ids of the runs behind the figure."""
        return self.needs(self.config, self.plan).runs

    def recorded(self, names: Iterable[str]) -> Iterator[dict[str, Any]]:
        """Yield label, run, step and the named numbers of every dev score, in order; what was not recorded is None."""
        kept = tuple(names)
        for point in self.points:
            for run in self.plan.runs_of(point.variant):
                for line in (read_run(self.plan, run) or {}).get("curve") or []:
                    values: dict[str, Any] = {name: line.get(name) for name in kept}
                    yield {"label": point.label, "run": run.id, "step": line["step"], **values}

    def absent_from(self, frame: pd.DataFrame) -> dict[str, str]:
        """Return why labels that the scale shows have no number in a frame."""
        there = set(frame["label"])
        return {p.label: self.plan.missing(p.variant) or "not trained" for p in self.points if p.label not in there}
