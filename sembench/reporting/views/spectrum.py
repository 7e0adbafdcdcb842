"""Singular values of the matrix of sentence vectors, the largest scaled to 1 (SimCSE, Figure F.1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from sembench.core.errors import SembenchError
from sembench.core.lazy import np, pd
from sembench.core.schema import Strict
from sembench.plan.needs import Needs, ScoreKey
from sembench.registry.models import Where
from sembench.reporting.coordinates import USUAL, Checker, Point, merged_where, score_keys
from sembench.reporting.figures import Drawn, FigureView
from sembench.reporting.view import ViewConfig

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from sembench.plan import Plan, Run
    from sembench.registry.load import Registry

COLUMNS = ("split", "index", "value")


class Panel(Strict):
    """Encoders that are shown beside each other."""

    title: str
    points: list[Point]


class SpectrumConfig(ViewConfig):
    """The figure: the task whose sentences make the matrix, and its panels."""

    at: Where
    panels: list[Panel] = Field(min_length=1)


class Spectrum(FigureView[SpectrumConfig]):
    """One line a label, the mean over its seeds; the area between the seeds is shaded."""

    Config: ClassVar[type[ViewConfig]] = SpectrumConfig
    version: ClassVar[int] = 1

    @classmethod
    def check(cls, config: SpectrumConfig, registry: Registry, where: str, key: str) -> None:
        """Check the names in the coordinates.

        Raises:
            SembenchError: a name refers to nothing.
        """
        super().check(config, registry, where, key)
        check = Checker(registry)
        for panel in config.panels:
            for point in panel.points:
                place = merged_where(USUAL, Where(metric="largest_share"), config.at, point)
                check.point(point, (place,), f"{where}, panel '{panel.title}'")

    @classmethod
    def needs(cls, config: SpectrumConfig, plan: Plan) -> Needs:
        """Return the scores whose predictions are the singular values."""
        return Needs(scores=score_keys(plan, (place for _, point, place in _shown(config, plan) if not point.missing)))

    @classmethod
    def shows(cls, config: SpectrumConfig, plan: Plan) -> Any:
        """Return why a point is missing."""
        return [point.missing or plan.cell(place).missing for _, point, place in _shown(config, plan)]

    @property
    def runs(self) -> tuple[str, ...]:
        """Ids of the runs behind the figure."""
        return tuple(dict.fromkeys(key.run for key in self.needs(self.config, self.plan).scores))

    def values(self, run: Run, readout: str, place: Where) -> pd.DataFrame | None:
        """Return split, index and value of a run's singular values, or None where it has none.

        Raises:
            SembenchError: the predictions were changed, cannot be read, or are not those of the split.
        """
        from sembench.results.store import read_predictions

        artifact = self.plan.score(ScoreKey(run.id, readout, str(place.suite), str(place.task)))
        if not (self.plan.root / artifact.record).is_file():
            return None
        frame = read_predictions(self.plan.root, artifact)
        found = frame[frame["split"] == place.split]
        if not len(found):
            raise SembenchError(
                f"{artifact.record} has no singular values of split {place.split}; delete it and run again"
            )
        return found[list(COLUMNS[1:])]

    def _found(self, point: Point, place: Where) -> tuple[str, list[pd.DataFrame]]:
        """Return why a point is missing, and what its runs have, each with the columns run and readout."""
        if point.missing:
            return point.missing, []
        cell = self.plan.cell(place)
        if cell.missing:
            return cell.missing, []
        found = {run.id: self.values(run, cell.readout, place) for run in cell.runs}
        return "", [frame.assign(run=run, readout=cell.readout) for run, frame in found.items() if frame is not None]

    def draw(self) -> Drawn:
        """Draw a panel for each group of encoders; the csv holds every run's values."""
        frames, absent = [], {}
        for panel, point, place in _shown(self.config, self.plan):
            missing, found = self._found(point, place)
            frames += [each.assign(figure=self.key, panel=panel.title, label=point.label) for each in found]
            if not found:
                absent[f"{panel.title}: {point.label}"] = missing or "no singular values: the run failed"
        columns = ["figure", "panel", "label", "run", "readout", "index", "value"]
        frame = pd.concat(frames, ignore_index=True)[columns] if frames else pd.DataFrame(columns=columns)
        return Drawn(_drawing(self.config, frame, self.plan.scale.note), frame, absent)


def _shown(config: SpectrumConfig, plan: Plan) -> Iterator[tuple[Panel, Point, Where]]:
    for panel in config.panels:
        for point in panel.points:
            if plan.shown(point.scales):
                yield panel, point, merged_where(USUAL, config.at, point)


# ------------------------------------------------------------------------------------------------------ drawing


def _drawing(config: SpectrumConfig, frame: pd.DataFrame, note: str) -> Drawing:
    from matplotlib.figure import Figure

    from sembench.reporting.drawing import MUTED, add_note, empty

    drawing = Figure(figsize=(4.2 * len(config.panels), 3.6), layout="constrained")
    for axes, panel in zip(drawing.subplots(1, len(config.panels), squeeze=False)[0], config.panels, strict=True):
        axes.set(xlabel="Index", ylabel="Singular value / largest", title=panel.title, ylim=(-0.02, 1.02))
        axes.grid(color=MUTED, alpha=0.15, linewidth=0.6)
        part = frame[frame["panel"] == panel.title]
        if len(part):
            _lines(axes, part)
        else:
            empty(axes)
    add_note(drawing, note, 58 * len(config.panels), 7.5)
    return drawing


def _lines(axes: Axes, part: pd.DataFrame) -> None:
    import matplotlib as mpl

    labels = list(dict.fromkeys(part["label"]))
    colours = mpl.colormaps["viridis"](np.linspace(0, 0.85, len(labels)))
    for number, (label, colour) in enumerate(zip(labels, colours, strict=True)):
        by_index = part[part["label"] == label].groupby("index")["value"].agg(["mean", "min", "max"])
        style = ("-", "--", "-.", ":")[number % 4]
        axes.plot(by_index.index, by_index["mean"], color=colour, linestyle=style, linewidth=1.5, label=label)
        axes.fill_between(by_index.index, by_index["min"], by_index["max"], color=colour, alpha=0.15, linewidth=0)
    axes.legend(frameon=False, fontsize=8)


PLUGIN = Spectrum
