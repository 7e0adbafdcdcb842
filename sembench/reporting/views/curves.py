"""Training curves: one line a run, one panel a quantity, from what each run recorded at its dev scores.

With a ``study``, free vectors that follow objectives alone are shown in a row of panels above.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from sembench.core.lazy import np, pd
from sembench.core.schema import Strict
from sembench.reporting.figures import Drawn
from sembench.reporting.view import ViewConfig
from sembench.reporting.views._recorded import RecordedConfig, RecordedFigure
from sembench.training.losses import Negatives, RelationEncoder

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

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


class CurvesConfig(RecordedConfig):
    """The figure: its panels, the objectives of the study, and the runs."""

    panels: list[Panel] = Field(min_length=1)
    study: list[StudyLine] = []


@functools.cache
def free_curves(lines: tuple[tuple[str, RelationEncoder, Negatives], ...]) -> pd.DataFrame:
    """Return the curves of free vectors: label, step, loss and cosines; computed once a process."""
    from sembench.training.study import study

    return study(lines)


class Curves(RecordedFigure[CurvesConfig]):
    """A figure of training curves."""

    Config: ClassVar[type[ViewConfig]] = CurvesConfig
    version: ClassVar[int] = 1

    def frame(self) -> pd.DataFrame:
        """Return figure, label, run, step and a column a panel; free vectors come last, under the run ``FREE``."""
        columns = ["figure", "label", "run", "step", *(panel.key for panel in self.config.panels)]
        lines = self.recorded(panel.key for panel in self.config.panels)
        frame = pd.DataFrame([{"figure": self.key, **line} for line in lines], columns=columns)
        if not self.config.study:
            return frame
        study = tuple((line.label, line.relation_encoder, line.negatives) for line in self.config.study)
        free = free_curves(study).assign(figure=self.key, run=FREE).reindex(columns=columns)
        return pd.concat([frame, free], ignore_index=True) if len(frame) else free

    def draw(self) -> Drawn:
        """Draw one panel a quantity and one line a run; a label's seeds share its colour."""
        frame = self.frame()
        absent = self.absent_from(frame[frame["run"] != FREE])
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
