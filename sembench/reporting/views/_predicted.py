"""Figures of what scores say item by item, their predictions: panels of encoders, and each encoder's items."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from sembench.core.errors import SembenchError
from sembench.core.lazy import pd
from sembench.core.schema import Strict
from sembench.plan.needs import Needs, ScoreKey
from sembench.registry.models import Where
from sembench.reporting.coordinates import USUAL, Checker, Point, merged_where, score_keys
from sembench.reporting.figures import FigureView
from sembench.reporting.view import ViewConfig

if TYPE_CHECKING:
    from sembench.plan import Plan, Run
    from sembench.registry.load import Registry


class Panel(Strict):
    """Encoders that are shown beside each other."""

    title: str
    points: list[Point]


class PredictedConfig(ViewConfig):
    """The task whose predictions are shown, and the panels."""

    at: Where
    panels: list[Panel] = Field(min_length=1)


class PredictedFigure(FigureView[PredictedConfig]):
    """Base of the figures that show predictions.

    Attributes:
        columns: of the predictions, those that are shown.
        called: what the predictions are, for messages.
    """

    Config: ClassVar[type[ViewConfig]] = PredictedConfig
    columns: ClassVar[tuple[str, ...]]
    called: ClassVar[str]

    @classmethod
    def check(cls, config: PredictedConfig, registry: Registry, where: str, key: str) -> None:
        """Check the names in the coordinates.

        Raises:
            SembenchError: a name refers to nothing.
        """
        super().check(config, registry, where, key)
        check = Checker(registry)
        for panel in config.panels:
            for point in panel.points:
                check.point(point, (merged_where(USUAL, config.at, point),), f"{where}, panel '{panel.title}'")

    @classmethod
    def needs(cls, config: PredictedConfig, plan: Plan) -> Needs:
        """Return the scores whose predictions are shown."""
        return Needs(scores=score_keys(plan, (place for _, point, place in _shown(config, plan) if not point.missing)))

    @classmethod
    def shows(cls, config: PredictedConfig, plan: Plan) -> Any:
        """Return why a point is missing."""
        return [point.missing or plan.cell(place).missing for _, point, place in _shown(config, plan)]

    @property
    def runs(self) -> tuple[str, ...]:
        """Ids of the runs behind the figure."""
        return tuple(dict.fromkeys(key.run for key in self.needs(self.config, self.plan).scores))

    def predicted(self) -> tuple[pd.DataFrame, dict[str, str]]:
        """Return the items of all points, and why a point has none.

        Returns:
            figure, panel, label, run, readout and ``columns`` of each item; the reason by panel and label.

        Raises:
            SembenchError: predictions were changed, cannot be read, or are not those of the split.
        """
        frames, absent = [], {}
        for panel, point, place in _shown(self.config, self.plan):
            missing, found = self._found(point, place)
            frames += [each.assign(figure=self.key, panel=panel.title, label=point.label) for each in found]
            if not found:
                absent[f"{panel.title}: {point.label}"] = missing or f"no {self.called}: the run failed"
        columns = ["figure", "panel", "label", "run", "readout", *self.columns]
        return pd.concat(frames, ignore_index=True)[columns] if frames else pd.DataFrame(columns=columns), absent

    def _found(self, point: Point, place: Where) -> tuple[str, list[pd.DataFrame]]:
        """Return why a point is missing, and what its runs have, each with the columns run and readout."""
        if point.missing:
            return point.missing, []
        cell = self.plan.cell(place)
        if cell.missing:
            return cell.missing, []
        found = {run.id: self._items(run, cell.readout, place) for run in cell.runs}
        return "", [frame.assign(run=run, readout=cell.readout) for run, frame in found.items() if frame is not None]

    def _items(self, run: Run, readout: str, place: Where) -> pd.DataFrame | None:
        """Return ``columns`` of a run's predictions on a split, or None where it has none."""
        from sembench.results.store import read_predictions

        artifact = self.plan.score(ScoreKey(run.id, readout, str(place.suite), str(place.task)))
        if not (self.plan.root / artifact.record).is_file():
            return None
        frame = read_predictions(self.plan.root, artifact)
        found = frame[frame["split"] == place.split]
        if not len(found):
            raise SembenchError(
                f"{artifact.record} has no {self.called} of split {place.split}; delete it and run again"
            )
        return found[list(self.columns)]


def _shown(config: PredictedConfig, plan: Plan) -> Iterator[tuple[Panel, Point, Where]]:
    for panel in config.panels:
        for point in panel.points:
            if plan.shown(point.scales):
                yield panel, point, merged_where(USUAL, config.at, point)
