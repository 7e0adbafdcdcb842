"""Training curves: one line a run, one panel a quantity, from what each run recorded at its dev scores.

With a ``study``, free vectors that follow objectives alone are shown in a row of panels above.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from sembench.core.lazy import np, pd
from sembench.core.schema import Strict
from sembench.plan.needs import Needs
from sembench.registry.check import need
from sembench.reporting.coordinates import Checker
from sembench.reporting.figures import Drawn, FigureView
from sembench.reporting.provenance import read_run
from sembench.reporting.view import ViewConfig
from sembench.training.losses import Negatives, RelationEncoder

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from sembench.plan import Plan
    from sembench.registry.load import Registry

FREE = "free vectors"


class Panel(Strict):
    """A panel: what of the training curve it shows."""

    key: Literal["loss", "dev", "alignment", "uniformity", "own_cosine", "cross_cosine", "word_accuracy"]
    label: str
    times: float = 1.0


class StudyLine(Strict):
    """An objective that free vectors follow; see ``sembench.training.study``."""

    label: str
    relation_encoder: RelationEncoder
    negatives: Negatives


class Trained(Strict):
    """A trained variant under a label; several may share one."""

    label: str
    variant: str
    scales: list[str] = []


class CurvesConfig(ViewConfig):
    """The figure: its panels, the objectives of the study, and the runs."""

    panels: list[Panel] = Field(min_length=1)
    study: list[StudyLine] = []
    points: list[Trained]


@functools.cache
def free_curves(lines: tuple[tuple[str, RelationEncoder, Negatives], ...]) -> pd.DataFrame:
    """Return the curves of free vectors: label, step, loss and cosines; computed once a process."""
    from sembench.training.study import study

    return study(lines)


class Curves(FigureView[CurvesConfig]):
    """A figure of training curves."""

    Config: ClassVar[type[ViewConfig]] = CurvesConfig
    version: ClassVar[int] = 1

    @classmethod
    def check(cls, config: CurvesConfig, registry: Registry, where: str, key: str) -> None:
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
    def needs(cls, config: CurvesConfig, plan: Plan) -> Needs:
        """Return the runs whose curves are shown."""
        shown = [point.variant for point in config.points if plan.shown(point.scales)]
        made = [variant for variant in dict.fromkeys(shown) if not plan.missing(variant)]
        return Needs(runs=tuple(run.id for variant in made for run in plan.runs_of(variant) if run.trained))

    @classmethod
    def shows(cls, config: CurvesConfig, plan: Plan) -> Any:
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

    def frame(self) -> pd.DataFrame:
        """Return figure, label, run, step and a column a panel; free vectors come last, under the run ``FREE``."""
        columns = ["figure", "label", "run", "step", *(panel.key for panel in self.config.panels)]
        frame = pd.DataFrame([{"figure": self.key, **line} for line in self._recorded()], columns=columns)
        if not self.config.study:
            return frame
        lines = tuple((line.label, line.relation_encoder, line.negatives) for line in self.config.study)
        free = free_curves(lines).assign(figure=self.key, run=FREE).reindex(columns=columns)
        return pd.concat([frame, free], ignore_index=True) if len(frame) else free

    def _recorded(self) -> Iterator[dict[str, Any]]:
        for point in self.points:
            for run in self.plan.runs_of(point.variant):
                for line in (read_run(self.plan, run) or {}).get("curve") or []:
                    values: dict[str, Any] = {panel.key: line.get(panel.key) for panel in self.config.panels}
                    yield {"label": point.label, "run": run.id, "step": line["step"], **values}

    def draw(self) -> Drawn:
        """Draw one panel a quantity and one line a run; a label's seeds share its colour."""
        frame = self.frame()
        recorded = set(frame[frame["run"] != FREE]["label"])
        absent = {
            p.label: self.plan.missing(p.variant) or "not trained" for p in self.points if p.label not in recorded
        }
        return Drawn(_drawing(self.config, frame, self.plan.scale.note), frame, absent)


def _drawing(config: CurvesConfig, frame: pd.DataFrame, note: str) -> Drawing:
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from sembench.reporting.drawing import add_note

    free, runs = frame[frame["run"] == FREE], frame[frame["run"] != FREE]
    parts = [(title, part) for title, part in ((FREE, free), ("encoder", runs)) if len(part) or part is runs]
    drawing = Figure(figsize=(3.1 * len(config.panels), 3.0 * len(parts) + 0.6), layout="constrained")
    styles = _styles(list(dict.fromkeys([*runs["label"], *free["label"]])))
    grid = drawing.subplots(len(parts), len(config.panels), squeeze=False)
    for row, (title, part) in zip(grid, parts, strict=True):
        for axes, panel in zip(row, config.panels, strict=True):
            _panel(axes, panel, part, styles, f", {title}" if len(parts) > 1 else "")
    handles = [Line2D([], [], label=label, **style) for label, style in styles.items()]
    if handles:
        drawing.legend(handles=handles, loc="outside upper left", ncols=2, frameon=False)
    add_note(drawing, note, 46 * len(config.panels), 7.5)
    return drawing


def _styles(labels: list[str]) -> dict[str, dict[str, Any]]:
    import matplotlib as mpl

    colours = mpl.colormaps["viridis"](np.linspace(0, 0.85, max(len(labels), 1)))
    return {
        label: {"color": colour, "marker": "osD^vP"[number % 6], "markersize": 4, "linewidth": 1.4}
        for number, (label, colour) in enumerate(zip(labels, colours, strict=False))
    }


def _panel(axes: Axes, panel: Panel, part: pd.DataFrame, styles: Mapping[str, Any], what: str) -> None:
    from sembench.reporting.drawing import draw_line

    kept = part[part[panel.key].notna()]
    if len(part) and not len(kept):
        axes.set_visible(False)
        return
    draw_line(axes, [], panel.label + what, "")
    for (label, _), line in kept.groupby(["label", "run"], sort=False):
        axes.plot(line["step"], line[panel.key].astype(float) * panel.times, **styles[str(label)])


PLUGIN = Curves
