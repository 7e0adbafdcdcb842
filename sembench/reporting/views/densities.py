"""Densities of the cosine of sentence pairs, group by group of their gold scores (SimCSE, Figure G.1)."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from sembench.core.lazy import np, pd
from sembench.reporting.figures import Drawn
from sembench.reporting.views._predicted import PredictedFigure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

EDGES = (0, 1, 2, 3, 4, 5)
GROUPS = tuple(f"{low}-{high}" for low, high in pairwise(EDGES))
# Standard deviation of the normal distribution that stands for a cosine, and points of a curve from -1 to 1.
WIDTH, POINTS = 0.03, 201
# Height of the highest curve of a panel, in distances between two groups.
_HIGHEST = 1.3


class Densities(PredictedFigure):
    """A panel an encoder, a row of panels a group of encoders; a curve is the mean over the encoder's seeds."""

    version: ClassVar[int] = 1
    columns = ("cosine", "gold")
    called = "cosines"

    def draw(self) -> Drawn:
        """Draw the curves; the csv holds every run's, with how many pairs a group has and the mean of their cosines."""
        items, absent = self.predicted()
        names = ["figure", "panel", "label", "run", "readout"]
        curves = [_curves(part, part[names].iloc[0].to_dict()) for _, part in items.groupby(names, sort=False)]
        columns = [*names, "group", "pairs", "mean", "cosine", "density"]
        frame = pd.concat(curves, ignore_index=True)[columns] if curves else pd.DataFrame(columns=columns)
        return Drawn(_drawing(frame, self.plan.scale.note), frame, absent)


def _curves(items: pd.DataFrame, place: dict[Any, Any]) -> pd.DataFrame:
    """Return the curves of a run's groups, those that have a pair, from its cosines and gold scores."""
    from sembench.evaluation.densities import density, group_of

    grid = np.linspace(-1, 1, POINTS)
    cosines, groups = items["cosine"].to_numpy(), group_of(items["gold"].to_numpy(), EDGES)
    parts = {name: cosines[groups == number] for number, name in enumerate(GROUPS)}
    found = [
        pd.DataFrame(
            {
                **place,
                "group": name,
                "pairs": len(part),
                "mean": part.mean(),
                "cosine": grid.round(2),
                "density": density(part, grid, WIDTH).round(6),
            }
        )
        for name, part in parts.items()
        if len(part)
    ]
    return pd.concat(found, ignore_index=True)


# ------------------------------------------------------------------------------------------------------ drawing


def _drawing(frame: pd.DataFrame, note: str) -> Drawing:
    from matplotlib.figure import Figure

    from sembench.reporting.drawing import add_note, empty

    labels = {str(panel): list(dict.fromkeys(part["label"])) for panel, part in frame.groupby("panel", sort=False)}
    rows, columns = max(len(labels), 1), max((2, *map(len, labels.values())))
    drawing = Figure(figsize=(2.9 * columns, 2.7 * rows + 0.3), layout="constrained")
    if not labels:
        empty(drawing.subplots())
    means = frame.groupby(["panel", "label", "group", "cosine"], sort=False)[["density", "mean"]].mean()
    for row, panel in enumerate(labels):
        for column, label in enumerate(labels[panel]):
            axes = drawing.add_subplot(rows, columns, row * columns + column + 1, title=label)
            _ridges(axes, means.loc[panel, label])
    add_note(drawing, note, 40 * columns, 7.5)
    return drawing


def _ridges(axes: Axes, curves: pd.DataFrame) -> None:
    """Draw a curve for each group above its own line, the group's mean cosine marked on it."""
    import matplotlib as mpl

    from sembench.reporting.drawing import INK, MUTED, PAPER

    unit = _HIGHEST / curves["density"].max()
    colours = mpl.colormaps["viridis"](np.linspace(0.1, 0.9, len(GROUPS)))
    for number in reversed(range(len(GROUPS))):
        axes.axhline(number, color=MUTED, alpha=0.4, linewidth=0.6, zorder=0)
        if GROUPS[number] in curves.index.get_level_values("group"):
            curve = curves.loc[GROUPS[number]]
            look: dict[str, Any] = {"facecolor": colours[number], "edgecolor": PAPER, "linewidth": 0.8}
            heights = number + unit * curve["density"].to_numpy()
            axes.fill_between(curve.index.to_numpy(), number, heights, zorder=len(GROUPS) - number, **look)
            axes.plot([curve["mean"].iloc[0]] * 2, [number - 0.12, number + 0.12], color=INK, linewidth=1, zorder=99)
    axes.set(xlim=(-1, 1), ylim=(-0.3, len(GROUPS) - 1 + _HIGHEST + 0.1), yticks=range(len(GROUPS)), yticklabels=GROUPS)
    axes.set(xlabel="Cosine", ylabel="Gold score")


PLUGIN = Densities
