"""What all figures share: style, files that are the same bytes for the same input, charts of training.

Loads matplotlib; views take it from here inside the functions that draw.
"""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure as Drawing
from matplotlib.text import Text

from sembench.reporting.text import csv_text, visible

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

# The page swaps these three for its own colours, so that a figure follows light and dark mode.
INK, MUTED, PAPER = "#1c2128", "#6a717b", "#ffffff"
ACCENT = "#3b6fb6"
STYLE: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],
    "font.size": 9,
    "text.color": INK,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.facecolor": PAPER,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.unicode_minus": True,
    "text.parse_math": False,
    "figure.facecolor": PAPER,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "image.cmap": "viridis",
    "svg.fonttype": "none",
    "svg.hashsalt": "sembench",
    "pdf.fonttype": 42,
    "savefig.dpi": 150,
}
_NO_DATES: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": None, "Format": None, "Type": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
}


def styled() -> Any:
    """Return a context in which everything is drawn in the project's style."""
    return mpl.rc_context(STYLE)


def spell_out(drawing: Drawing) -> None:
    """Spell out control characters in whatever is written in a drawing: an SVG that holds one cannot be read."""
    for text in drawing.findobj(Text):
        text.set_text(visible(text.get_text()))


def add_note(drawing: Drawing, note: str, width: int = 112, size: float = 8) -> None:
    """Write a scale's note below a drawing."""
    if note:
        drawing.supxlabel(textwrap.fill(note, width), fontsize=size, color=MUTED, ha="left", x=0.02)


def empty(axes: Axes) -> None:
    """Say in an empty panel that nothing was measured."""
    axes.text(0.5, 0.5, "no point of this figure has a score", ha="center", transform=axes.transAxes, color=MUTED)


def draw_line(axes: Axes, points: Sequence[tuple[float, float]], label: str, marker: str) -> None:
    """Draw (step, value) points as a line of a training chart; ``label`` names the y axis."""
    axes.set(xlabel="Step", ylabel=label)
    if points:
        axes.plot(*zip(*points, strict=True), color=ACCENT, marker=marker, markersize=4, linewidth=1.4)
    axes.grid(color=MUTED, alpha=0.15, linewidth=0.6)


def training_chart(run: Mapping[str, Any]) -> Drawing | None:
    """Draw loss and dev score over the steps of a ``run.json``, or return None where it holds no curve."""
    curve = [line for line in run.get("curve") or [] if isinstance(line, dict) and line.get("step") is not None]
    losses = [(i, loss) for i, loss in enumerate(run.get("losses") or [], start=1) if loss is not None]
    losses = losses or [(line["step"], line["loss"]) for line in curve if line.get("loss") is not None]
    dev = [(line["step"], 100 * line["dev"]) for line in curve if line.get("dev") is not None]
    if not losses and not dev:
        return None
    with mpl.rc_context(STYLE):
        drawing = Drawing(figsize=(6.4, 2.1), layout="constrained")
        left, right = drawing.subplots(1, 2)
        draw_line(left, thinned(losses), "Loss", "")
        draw_line(right, dev, "Dev, Spearman x 100", "o")
        best = run.get("best") or {}
        if best.get("step") is not None and best.get("dev") is not None:
            right.plot(best["step"], 100 * best["dev"], "o", markersize=9, fillstyle="none", color=INK)
        return drawing


def thinned(points: Sequence[tuple[float, float]], most: int = 400) -> list[tuple[float, float]]:
    """Return at most ``most`` points, each the mean of neighbours: long runs stay small on the page."""
    if len(points) <= most:
        return list(points)
    return [(float(x), float(y)) for x, y in (part.mean(axis=0) for part in np.array_split(np.array(points), most))]


def figure_files(drawing: Drawing, frame: pd.DataFrame) -> dict[str, str | bytes]:
    """Return a figure as svg, pdf and png, and its numbers as csv, by suffix."""
    made: dict[str, str | bytes] = {}
    for suffix in _NO_DATES:
        stream = io.BytesIO()
        save(drawing, stream, suffix)
        made[suffix] = stream.getvalue()
    return made | {"csv": csv_text(frame)}


def save(drawing: Drawing, target: Path | io.BytesIO, suffix: str) -> None:
    """Save a drawing without dates or versions in its metadata."""
    with mpl.rc_context(STYLE):
        drawing.savefig(target, format=suffix, metadata=_NO_DATES[suffix])


def inline_svg(drawing: Drawing, prefix: str, title: str) -> str:
    """Return a drawing as an SVG element for a page: ids made unique by ``prefix``, colours left to the page."""
    stream = io.BytesIO()
    save(drawing, stream, "svg")
    text = stream.getvalue().decode()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.S)
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{prefix}-", text)
    for name, colour in (("ink", INK), ("muted", MUTED), ("paper", PAPER)):
        text = text.replace(colour, f"var(--{name}, {colour})")
    return re.sub(r"<svg ", f'<svg role="img" aria-label="{_attribute(visible(title))}" ', text, count=1)


def _attribute(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
