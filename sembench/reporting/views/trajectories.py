"""Alignment over uniformity while encoders are trained, from where all of them start (SimCSE, Figure 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from sembench.core.lazy import np, pd
from sembench.reporting.figures import Drawn
from sembench.reporting.view import ViewConfig
from sembench.reporting.views._recorded import RecordedConfig, RecordedFigure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

METRICS = ("uniformity", "alignment")
# Okabe and Ito's colours, told apart by the colour-blind; markers (none looks like a head) and dashes help in print.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
_MARKERS = "osDPXh"
_DASHES = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (5, 1.5, 1.5, 1.5)), (0, (8, 2)), (0, (3, 3)))
# Heads of arrows on a line, at most: more would hide it.
_HEADS = 6


class Trajectories(RecordedFigure[RecordedConfig]):
    """A line a run through its dev scores, with arrows in the direction of training; seeds of a label look alike."""

    version: ClassVar[int] = 1
    Config: ClassVar[type[ViewConfig]] = RecordedConfig

    def draw(self) -> Drawn:
        """Draw the lines; the csv holds their points, as the runs recorded them."""
        lines = [{"figure": self.key, **line} for line in self.recorded((*METRICS, "dev"))]
        frame = pd.DataFrame(lines, columns=["figure", "label", "run", "step", *METRICS, "dev"])
        shown = frame.dropna(subset=list(METRICS))
        return Drawn(_drawing(shown, self.plan.scale.note), frame, self.absent_from(shown))


def _drawing(frame: pd.DataFrame, note: str) -> Drawing:
    from matplotlib.figure import Figure

    from sembench.reporting.drawing import MUTED, add_note, empty

    drawing = Figure(figsize=(7.2, 5.0 + 0.16 * (len(note) // 112)), layout="constrained")
    axes = drawing.subplots()
    axes.set_xlabel("Uniformity (lower is better)")
    axes.set_ylabel("Alignment (lower is better)")
    axes.margins(0.08)
    axes.grid(color=MUTED, alpha=0.15, linewidth=0.6)
    axes.set_axisbelow(True)
    if len(frame):
        _draw_lines(axes, frame)
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False, borderaxespad=0.2)
    else:
        empty(axes)
    add_note(drawing, note)
    return drawing


def _draw_lines(axes: Axes, frame: pd.DataFrame) -> None:
    from sembench.reporting.drawing import INK

    labels = list(dict.fromkeys(frame["label"]))
    for (label, _), line in frame.groupby(["label", "run"], sort=False):
        number = labels.index(label) % len(_COLOURS)
        look: dict[str, Any] = {"color": _COLOURS[number], "linestyle": _DASHES[number], "marker": _MARKERS[number]}
        first = line["run"].iloc[0] == frame[frame["label"] == label]["run"].iloc[0]
        name = label if first else f"_{label}"  # a legend leaves out what begins so
        axes.plot(line["uniformity"], line["alignment"], label=name, markersize=3.5, linewidth=1.4, zorder=2, **look)
        _draw_heads(axes, line[list(METRICS)].to_numpy(dtype=float), _COLOURS[number])
    # All begin at the untouched encoder; runs that differ in it begin at several.
    start = frame[frame["step"] == 0].drop_duplicates(list(METRICS))
    look = {"marker": "*", "s": 150, "color": INK, "linewidths": 0, "zorder": 3}
    axes.scatter(start["uniformity"], start["alignment"], label="before training", **look)


def _draw_heads(axes: Axes, points: np.ndarray, colour: str) -> None:
    """Draw heads of arrows along a line (points, 2), evenly by its length as it is seen: few where it hardly moves."""
    steps = np.diff(points, axis=0)
    seen = np.hypot(*(steps / np.maximum(np.ptp(points, axis=0), 1e-12)).T)
    if not seen.sum():
        return
    places = (np.arange(_HEADS) + 0.5) / _HEADS * seen.sum()
    style = {"arrowstyle": "-|>,head_width=0.35,head_length=0.7", "mutation_scale": 12, "shrinkA": 0, "shrinkB": 0}
    for i in np.unique(np.searchsorted(seen.cumsum(), places)):
        middle = points[i] + 0.6 * steps[i]
        axes.annotate("", middle, points[i], arrowprops={**style, "color": colour, "linewidth": 0}, zorder=2)


PLUGIN = Trajectories
