"""Figures from score records, and charts of training; the same input gives the same bytes."""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Drawing
from matplotlib.lines import Line2D
from matplotlib.transforms import Bbox

from sembench.core.files import atomic_path, write_text
from sembench.registry.models import CurveFigure, Figure, Metric, Panel
from sembench.registry.plan import Plan, PlannedPoint
from sembench.reporting.provenance import read_run
from sembench.results.aggregate import seed_summary, select
from sembench.results.records import read_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

FREE = "free vectors"
SUFFIXES = ("svg", "pdf", "png", "csv")
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


# ------------------------------------------------------------------------------------------------------- points


@dataclass(frozen=True)
class FigurePoint:
    """One run of an alignment-uniformity figure, its numbers as in the score records; a line of the csv."""

    figure: str
    label: str
    run: str
    readout: str
    uniformity: float | None
    alignment: float | None
    colour: float | None
    n_positives: int | None
    n_sentences: int | None
    splits: str
    status: str
    reason: str


def figure_points(plan: Plan, figure_id: str, scores: pd.DataFrame) -> list[FigurePoint]:
    """Return one entry per run of the figure, and one for each point that this scale cannot show.

    Raises:
        SembenchError: the scores of one metric were made from different data.
    """
    spec, planned = _scored(plan, figure_id), plan.points(figure_id)
    runs = {run for point in planned for run in point.runs}
    place = {"suite": spec.suite, "task": spec.task, "split": spec.split}
    metrics = {name: Metric(**place, metric=name) for name in ("uniformity", "alignment")} | {"colour": spec.colour}
    records: dict[str, dict[tuple[str, str], dict[Any, Any]]] = {
        name: {(line["run"], line["readout"]): line for line in select(scores, metric, runs).to_dict("records")}
        for name, metric in metrics.items()
    }
    named = "+".join(plan.suites[spec.suite].tasks[spec.task].splits.get(spec.split, []))
    return [
        _point(figure_id, point, run, named, {name: lines.get((run, point.readout)) for name, lines in records.items()})
        for point in planned
        for run in point.runs or ("",)
    ]


def _point(
    figure_id: str, point: PlannedPoint, run: str, named: str, found: Mapping[str, dict[Any, Any] | None]
) -> FigurePoint:
    absent = [name for name, line in found.items() if line is None]
    failed = f"no score of {', '.join(absent)}" if absent else ""
    value = {name: line["value"] if line else None for name, line in found.items()}
    count = {name: line["n"] if line else None for name, line in found.items()}
    geometry = found["uniformity"]
    return FigurePoint(
        figure=figure_id,
        label=point.label,
        run=run,
        readout=point.readout,
        **value,
        n_positives=count["alignment"],
        n_sentences=count["uniformity"],
        splits=(geometry and geometry["subset"]) or named,
        status="missing" if point.missing else "failed" if failed else "measured",
        reason=point.missing or failed,
    )


def figure_frame(points: Sequence[FigurePoint]) -> pd.DataFrame:
    """Return the points as the csv's frame; values are those of the score records, not scaled or rounded."""
    frame = pd.DataFrame([asdict(point) for point in points], columns=[f.name for f in fields(FigurePoint)])
    return frame.astype({"n_positives": "Int64", "n_sentences": "Int64"})


@dataclass(frozen=True)
class _Place:
    """A point as drawn: the mean over its runs, and the runs themselves."""

    label: str
    x: float
    y: float
    colour: float
    trained: bool
    encoder: tuple[str, str]
    seeds: list[tuple[float, float]]


def _places(plan: Plan, points: Sequence[FigurePoint]) -> list[_Place]:
    by_label: dict[str, list[tuple[str, str, float, float, float]]] = {}
    for p in points:
        if p.uniformity is not None and p.alignment is not None and p.colour is not None:
            by_label.setdefault(p.label, []).append((p.run, p.readout, p.uniformity, p.alignment, p.colour * 100))
    places = []
    for label, lines in by_label.items():
        runs, readouts, xs, ys, colours = zip(*lines, strict=True)
        run = plan.run(runs[0])
        x, y, colour = (seed_summary(values)[0] for values in (xs, ys, colours))
        encoder = (run.backbone.key, readouts[0])
        places.append(_Place(label, x, y, colour, run.trained, encoder, list(zip(xs, ys, strict=True))))
    return places


# ------------------------------------------------------------------------------------------------------ drawing


def alignment_uniformity(plan: Plan, figure_id: str, points: Sequence[FigurePoint]) -> Drawing:
    """Draw alignment over uniformity, coloured by the figure's metric x 100 (SimCSE, Figure 3).

    Diamonds are trained here; an arrow leads to one from the untouched encoder with the same read-out.
    """
    spec, places = _scored(plan, figure_id), _places(plan, points)
    note = "\n".join(textwrap.wrap(plan.scale.note, 112))
    drawing = Drawing(figsize=(7.2, 5.0 + 0.16 * (note.count("\n") + 1)), layout="constrained")
    axes = drawing.subplots()
    axes.set_xlabel("Uniformity (lower is better)")
    axes.set_ylabel("Alignment (lower is better)")
    axes.margins(0.14)
    axes.grid(color=MUTED, alpha=0.15, linewidth=0.6)
    axes.set_axisbelow(True)
    if places:
        _draw_places(drawing, axes, places, spec.colour_label)
    else:
        axes.text(0.5, 0.5, "no point of this figure has a score", ha="center", transform=axes.transAxes, color=MUTED)
    if note:
        drawing.supxlabel(note, fontsize=8, color=MUTED, ha="left", x=0.02)
    if places:
        _place_labels(drawing, axes, places)
    return drawing


def _draw_places(drawing: Drawing, axes: Axes, places: Sequence[_Place], colour_label: str) -> None:
    colours = [place.colour for place in places]
    norm = mpl.colors.Normalize(min(colours), max(colours) if len(set(colours)) > 1 else min(colours) + 1)
    for trained, marker, size in ((False, "o", 62), (True, "D", 54)):
        chosen = [place for place in places if place.trained == trained]
        for place in chosen:
            if len(place.seeds) > 1:
                seed_xs, seed_ys = zip(*place.seeds, strict=True)
                axes.scatter(seed_xs, seed_ys, marker=marker, s=9, color=MUTED, alpha=0.7, zorder=2)
        xs, ys, shade = ([getattr(p, name) for p in chosen] for name in ("x", "y", "colour"))
        axes.scatter(xs, ys, c=shade, norm=norm, marker=marker, s=size, edgecolors=INK, linewidths=0.8, zorder=3)
    # Equal order of drawing on every machine: arrows last, they fix no limits.
    for start, end in _arrows(places):
        arrow = {
            "arrowstyle": "->",
            "color": MUTED,
            "shrinkA": 6,
            "shrinkB": 6,
            "linewidth": 1,
            "linestyle": (0, (4, 2)),
        }
        axes.annotate("", (end.x, end.y), (start.x, start.y), arrowprops=arrow, zorder=1)
    bar = drawing.colorbar(mpl.cm.ScalarMappable(norm, "viridis"), ax=axes, pad=0.02, aspect=30)
    bar.set_label(colour_label)
    bar.outline.set_visible(False)
    _marker_legend(axes, places)


def _marker_legend(axes: Axes, places: Sequence[_Place]) -> None:
    if not any(place.trained for place in places):
        return
    handles = [
        mpl.lines.Line2D(
            [], [], linestyle="", marker=marker, markersize=6, color=PAPER, markeredgecolor=INK, label=text
        )
        for marker, text in (("o", "as published"), ("D", "trained here"))
    ]
    axes.legend(handles=handles, loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False, borderaxespad=0.2)


def _arrows(places: Sequence[_Place]) -> Iterator[tuple[_Place, _Place]]:
    untouched = {place.encoder: place for place in places if not place.trained}
    for place in places:
        if place.trained and place.encoder in untouched:
            yield untouched[place.encoder], place


# Where a label may stand: direction, and distance in points from the marker's centre.
_DIRECTIONS = [(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (1, -1), (-1, 1), (-1, -1)]
_DISTANCES = [8, 14, 22, 32]
_ANCHOR = {-1: "right", 0: "center", 1: "left"}, {-1: "top", 0: "center", 1: "bottom"}


def _place_labels(drawing: Drawing, axes: Axes, places: Sequence[_Place]) -> None:
    """Write each label where it covers least: first come, first served, so equal input gives equal places."""
    drawing.draw_without_rendering()  # fixes the layout, without which no box is known
    drawing.set_layout_engine("none")
    points = {place.label: axes.transData.transform((place.x, place.y)) for place in places}
    seeds = [axes.transData.transform(seed) for place in places for seed in place.seeds]
    taken = [Bbox.from_bounds(x - 9, y - 9, 18, 18) for x, y in points.values()]
    taken += [Bbox.from_bounds(x - 4, y - 4, 8, 8) for x, y in seeds]
    for start, end in _arrows(places):
        steps = np.linspace(points[start.label], points[end.label], 120)[8:-8]
        taken += [Bbox.from_bounds(x - 2, y - 2, 4, 4) for x, y in steps]
    inside = axes.get_window_extent()
    for place in sorted(places, key=lambda p: (p.y, p.x)):
        taken.append(_write_label(axes, place, taken, inside))


def _write_label(axes: Axes, place: _Place, taken: Sequence[Bbox], inside: Bbox) -> Bbox:
    best: tuple[float, Text, Bbox] | None = None
    for distance in _DISTANCES:
        for dx, dy in _DIRECTIONS:
            text = axes.annotate(
                place.label,
                (place.x, place.y),
                (dx * distance, dy * distance),
                textcoords="offset points",
                ha=_ANCHOR[0][dx],
                va=_ANCHOR[1][dy],
                zorder=4,
            )
            box = text.get_window_extent().padded(2)
            cost = _covered(box, taken) + 10 * _outside(box, inside) + distance
            if best is None or cost < best[0]:
                if best:
                    best[1].remove()
                best = (cost, text, box)
            else:
                text.remove()
    assert best is not None
    return best[2]


def _covered(box: Bbox, taken: Sequence[Bbox]) -> float:
    shared = (Bbox.intersection(box, other) for other in taken)
    return 4 * sum(abs(part.width * part.height) for part in shared if part)


def _outside(box: Bbox, inside: Bbox) -> float:
    part = Bbox.intersection(box, inside)
    return box.width * box.height - (abs(part.width * part.height) if part else 0)


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
        _line(left, _thinned(losses), "Loss", "")
        _line(right, dev, "Dev, Spearman x 100", "o")
        best = run.get("best") or {}
        if best.get("step") is not None and best.get("dev") is not None:
            right.plot(best["step"], 100 * best["dev"], "o", markersize=9, fillstyle="none", color=INK)
        return drawing


def _line(axes: Axes, points: Sequence[tuple[float, float]], label: str, marker: str) -> None:
    axes.set(xlabel="Step", ylabel=label)
    if points:
        axes.plot(*zip(*points, strict=True), color=ACCENT, marker=marker, markersize=4, linewidth=1.4)
    axes.grid(color=MUTED, alpha=0.15, linewidth=0.6)


def _thinned(points: Sequence[tuple[float, float]], most: int = 400) -> list[tuple[float, float]]:
    """Return at most ``most`` points, each the mean of neighbours: long runs stay small on the page."""
    if len(points) <= most:
        return list(points)
    return [(float(x), float(y)) for x, y in (part.mean(axis=0) for part in np.array_split(np.array(points), most))]


# ------------------------------------------------------------------------------------------------------ writing


def rendered(plan: Plan, figure_id: str, scores: pd.DataFrame) -> tuple[Drawing, pd.DataFrame, dict[str, str]]:
    """Return a figure's drawing, its numbers, and why a label is absent, whatever its kind."""
    with mpl.rc_context(STYLE):
        if isinstance(plan.figure(figure_id), CurveFigure):
            frame = curve_frame(plan, figure_id)
            drawn = set(frame["label"])
            reasons = {p.label: p.missing or "not trained" for p in plan.points(figure_id) if p.label not in drawn}
            return training_curves(plan, figure_id, frame), frame, reasons
        points = figure_points(plan, figure_id, scores)
        absent = {point.label: point.reason for point in points if point.reason}
        return alignment_uniformity(plan, figure_id, points), figure_frame(points), absent


def curve_frame(plan: Plan, figure_id: str) -> pd.DataFrame:
    """Return what the runs of a figure kept at each dev score: figure, label, run, step and a column a panel.

    The curves of free vectors come last, under the run ``FREE``.
    """
    spec = _curves(plan, figure_id)
    rows: list[dict[Any, Any]] = []
    for point in plan.points(figure_id):
        for run in point.runs:
            for line in (read_run(plan, run) or {}).get("curve") or []:
                values: dict[str, Any] = {panel.key: line.get(panel.key) for panel in spec.panels}
                rows.append({"figure": figure_id, "label": point.label, "run": run, "step": line["step"], **values})
    for path in plan.figure_study(figure_id):
        if (plan.root / path).is_file():
            free = read_frame(plan.root / path, ["label", "step", "loss"])
            rows += free.assign(figure=figure_id, run=FREE).to_dict("records")
    columns = ["figure", "label", "run", "step", *(panel.key for panel in spec.panels)]
    return pd.DataFrame(rows, columns=columns)


def training_curves(plan: Plan, figure_id: str, frame: pd.DataFrame) -> Drawing:
    """Draw one panel a quantity and one line a run; a label's seeds share its colour. Free vectors go above."""
    spec = _curves(plan, figure_id)
    free, runs = frame[frame["run"] == FREE], frame[frame["run"] != FREE]
    parts = [(title, part) for title, part in ((FREE, free), ("encoder", runs)) if len(part) or part is runs]
    drawing = Drawing(figsize=(3.1 * len(spec.panels), 3.0 * len(parts) + 0.6), layout="constrained")
    labels = list(dict.fromkeys([*runs["label"], *free["label"]]))
    colours = mpl.colormaps["viridis"](np.linspace(0, 0.85, max(len(labels), 1)))
    styles = {
        label: {"color": colour, "marker": "osD^vP"[number % 6], "markersize": 4, "linewidth": 1.4}
        for number, (label, colour) in enumerate(zip(labels, colours, strict=False))
    }
    grid = drawing.subplots(len(parts), len(spec.panels), squeeze=False)
    for line, (title, part) in zip(grid, parts, strict=True):
        for axes, panel in zip(line, spec.panels, strict=True):
            _curve_panel(axes, panel, part, styles, f", {title}" if len(parts) > 1 else "")
    handles = [Line2D([], [], label=label, **style) for label, style in styles.items()]
    if handles:
        drawing.legend(handles=handles, loc="outside upper left", ncols=2, frameon=False)
    if plan.scale.note:
        drawing.supxlabel(
            textwrap.fill(plan.scale.note, 46 * len(spec.panels)), fontsize=7.5, color=MUTED, x=0.02, ha="left"
        )
    return drawing


def _curve_panel(axes: Axes, panel: Panel, part: pd.DataFrame, styles: Mapping[str, Any], what: str) -> None:
    kept = part[part[panel.key].notna()]
    if part[panel.key].isna().all() and len(part):
        axes.set_visible(False)
        return
    _line(axes, [], panel.label + what, "")
    for (label, _), line in kept.groupby(["label", "run"], sort=False):
        axes.plot(line["step"], line[panel.key].astype(float) * panel.times, **styles[str(label)])


def _scored(plan: Plan, figure_id: str) -> Figure:
    spec = plan.figure(figure_id)
    if not isinstance(spec, Figure):
        raise TypeError(f"{figure_id} shows training curves, not scores")
    return spec


def _curves(plan: Plan, figure_id: str) -> CurveFigure:
    spec = plan.figure(figure_id)
    if not isinstance(spec, CurveFigure):
        raise TypeError(f"{figure_id} shows scores, not training curves")
    return spec


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
    return re.sub(r"<svg ", f'<svg role="img" aria-label="{_attribute(title)}" ', text, count=1)


def _attribute(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")


def write_figure(plan: Plan, figure_id: str, scores: pd.DataFrame) -> list[Path]:
    """Write a figure as svg, pdf and png, and its numbers as csv, below the plan's root; return the paths.

    Raises:
        SembenchError: the scores of one metric were made from different data.
    """
    drawing, frame, _ = rendered(plan, figure_id, scores)
    paths = {suffix: plan.root / plan.layout.figure(figure_id, suffix) for suffix in SUFFIXES}
    for suffix in _NO_DATES:
        with atomic_path(paths[suffix]) as temporary:
            save(drawing, temporary, suffix)
    write_text(paths["csv"], str(frame.to_csv(index=False, lineterminator="\n")))
    return list(paths.values())
