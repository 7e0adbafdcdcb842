"""Singular values of the matrix of sentence vectors, the largest scaled to 1 (SimCSE, Figure F.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from sembench.core.lazy import np
from sembench.reporting.figures import Drawn
from sembench.reporting.views._predicted import PredictedConfig, PredictedFigure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing


class Spectrum(PredictedFigure):
    """One line a label, the mean over its seeds; the area between the seeds is shaded."""

    version: ClassVar[int] = 1
    columns = ("index", "value")
    called = "singular values"

    def draw(self) -> Drawn:
        """Draw a panel for each group of encoders; the csv holds every run's values."""
        frame, absent = self.predicted()
        return Drawn(_drawing(self.config, frame, self.plan.scale.note), frame, absent)


# ------------------------------------------------------------------------------------------------------ drawing


def _drawing(config: PredictedConfig, frame: pd.DataFrame, note: str) -> Drawing:
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
