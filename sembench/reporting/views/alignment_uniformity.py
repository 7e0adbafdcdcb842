"""Alignment over uniformity, one point an encoder, coloured by another score (SimCSE, Figure 3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

from sembench.core.lazy import pd
from sembench.plan.needs import Needs
from sembench.registry.models import Where
from sembench.reporting.cells import Records
from sembench.reporting.coordinates import USUAL, Checker, Point, merged_where, score_keys
from sembench.reporting.figures import Drawn, FigureView
from sembench.reporting.view import ViewConfig
from sembench.results.aggregate import seed_summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from sembench.plan import Plan, PlannedCell, Run
    from sembench.registry.load import Registry

METRICS = ("uniformity", "alignment")


class AlignmentUniformityConfig(ViewConfig):
    """The figure: coordinates of the two metrics and of the colour, and the points."""

    at: Where
    colour: Where
    colour_label: str
    points: list[Point]


@dataclass(frozen=True)
class Line:
    """One run of the figure, its numbers as in the score records; a line of the csv."""

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


@dataclass(frozen=True)
class _Spot:
    """A point as drawn: the mean over its runs, and the runs themselves."""

    label: str
    x: float
    y: float
    colour: float
    trained: bool
    encoder: tuple[str, str]
    seeds: list[tuple[float, float]]


def _places(config: AlignmentUniformityConfig, point: Point) -> dict[str, Where]:
    """Return the coordinates of the three numbers of a point."""
    geometry = {name: merged_where(USUAL, config.at, point, Where(metric=name)) for name in METRICS}
    return {**geometry, "colour": merged_where(USUAL, point, config.colour)}


class AlignmentUniformity(FigureView[AlignmentUniformityConfig]):
    """The figure; diamonds are trained here, an arrow leads to one from the untouched encoder."""

    Config: ClassVar[type[ViewConfig]] = AlignmentUniformityConfig
    version: ClassVar[int] = 1

    def __init__(self, config: AlignmentUniformityConfig, plan: Plan, scores: pd.DataFrame, key: str) -> None:
        super().__init__(config, plan, scores, key)
        self.lines = [line for point in config.points if plan.shown(point.scales) for line in self._of(point)]

    @classmethod
    def check(cls, config: AlignmentUniformityConfig, registry: Registry, where: str, key: str) -> None:
        """Check the names in the coordinates.

        Raises:
            SembenchError: a name refers to nothing.
        """
        super().check(config, registry, where, key)
        check = Checker(registry)
        for point in config.points:
            check.point(point, _places(config, point).values(), where)

    @classmethod
    def needs(cls, config: AlignmentUniformityConfig, plan: Plan) -> Needs:
        """Return the scores of all points."""
        shown = [point for point in config.points if plan.shown(point.scales) and not point.missing]
        return Needs(scores=score_keys(plan, (place for p in shown for place in _places(config, p).values())))

    @classmethod
    def shows(cls, config: AlignmentUniformityConfig, plan: Plan) -> Any:
        """Return why a point is missing."""
        shown = [point for point in config.points if plan.shown(point.scales) and not point.missing]
        return [plan.cell(place).missing for point in shown for place in _places(config, point).values()]

    def _of(self, point: Point) -> Iterator[Line]:
        """Yield a line for each run of a point, or one that says why there is none."""
        if point.missing:
            yield self._line(point, "", point.readout or "", {}, point.missing)
            return
        places = _places(self.config, point)
        cells = {name: self.plan.cell(place) for name, place in places.items()}
        missing = next((cell.missing for cell in cells.values() if cell.missing), "")
        if missing:
            yield self._line(point, "", cells["colour"].readout, {}, missing)
            return
        for run in cells["colour"].runs:
            yield self._line(point, run.id, cells["colour"].readout, self._found(run, cells, places), "")

    def _found(
        self, run: Run, cells: dict[str, PlannedCell], places: dict[str, Where]
    ) -> dict[str, tuple[float, int, str, int] | None]:
        return {name: self.records.find(run.id, cells[name].readout, place) for name, place in places.items()}

    @property
    def records(self) -> Records:
        """The score records of the figure's runs."""
        if not hasattr(self, "_records"):
            runs = {key.run for key in self.needs(self.config, self.plan).scores}
            self._records = Records(self.scores, runs)
        return self._records

    def _line(self, point: Point, run: str, readout: str, found: dict[str, Any], missing: str) -> Line:
        absent = [name for name in ("uniformity", "alignment", "colour") if found.get(name) is None]
        failed = f"no score of {', '.join(absent)}" if absent else ""
        value = {name: line[0] for name, line in found.items() if line is not None}
        count = {name: line[1] for name, line in found.items() if line is not None}
        return Line(
            figure=self.key,
            label=point.label,
            run=run,
            readout=readout,
            uniformity=value.get("uniformity"),
            alignment=value.get("alignment"),
            colour=value.get("colour"),
            n_positives=count.get("alignment"),
            n_sentences=count.get("uniformity"),
            splits=self._splits(point),
            status="missing" if missing else "failed" if failed else "measured",
            reason=missing or failed,
        )

    def _splits(self, point: Point) -> str:
        """Return the subsets that make up the split, such as ``dev+test``."""
        place = _places(self.config, point)["uniformity"]
        config = self.plan.task(str(place.suite), str(place.task)).protocol.config
        return "+".join(getattr(config, "splits", {}).get(place.split, []))

    @property
    def runs(self) -> tuple[str, ...]:
        """Ids of the runs behind the figure."""
        return tuple(dict.fromkeys(line.run for line in self.lines if line.run))

    def draw(self) -> Drawn:
        """Draw the points; the numbers are those of the records, neither scaled nor rounded."""
        frame = pd.DataFrame([asdict(line) for line in self.lines], columns=[f.name for f in fields(Line)])
        frame = frame.astype({"n_positives": "Int64", "n_sentences": "Int64"})
        absent = {line.label: line.reason for line in self.lines if line.reason}
        times = self.plan.registry.metrics[str(self.config.colour.metric)].times
        drawing = _drawing(self.config, _spots(self.plan, self.lines, times), self.plan.scale.note)
        return Drawn(drawing, frame, absent)


def _spots(plan: Plan, lines: Sequence[Line], times: float) -> list[_Spot]:
    by_label: dict[str, list[tuple[str, str, float, float, float]]] = {}
    for p in lines:
        if p.uniformity is not None and p.alignment is not None and p.colour is not None:
            by_label.setdefault(p.label, []).append((p.run, p.readout, p.uniformity, p.alignment, p.colour * times))
    spots = []
    for label, found in by_label.items():
        runs, readouts, xs, ys, colours = zip(*found, strict=True)
        run = plan.run(runs[0])
        x, y, colour = (seed_summary(values)[0] for values in (xs, ys, colours))
        encoder = (run.backbone, readouts[0])
        spots.append(_Spot(label, x, y, colour, run.trained, encoder, list(zip(xs, ys, strict=True))))
    return spots


# ------------------------------------------------------------------------------------------------------ drawing


def _drawing(config: AlignmentUniformityConfig, spots: Sequence[_Spot], note: str) -> Drawing:
    from matplotlib.figure import Figure

    from sembench.reporting.drawing import MUTED, add_note, empty
    from sembench.reporting.labels import Label, place_labels

    drawing = Figure(figsize=(7.2, 5.16 + 0.16 * (len(note) // 112)), layout="constrained")
    axes = drawing.subplots()
    axes.set_xlabel("Uniformity (lower is better)")
    axes.set_ylabel("Alignment (lower is better)")
    axes.margins(0.14)
    axes.grid(color=MUTED, alpha=0.15, linewidth=0.6)
    axes.set_axisbelow(True)
    if spots:
        _draw_spots(drawing, axes, spots, config.colour_label)
    else:
        empty(axes)
    add_note(drawing, note)
    if spots:
        arrows = [((start.x, start.y), (end.x, end.y)) for start, end in _arrows(spots)]
        dots = [seed for spot in spots for seed in spot.seeds]
        place_labels(drawing, axes, [Label(spot.label, spot.x, spot.y) for spot in spots], dots, arrows)
    return drawing


def _draw_spots(drawing: Drawing, axes: Axes, spots: Sequence[_Spot], colour_label: str) -> None:
    import matplotlib as mpl

    from sembench.reporting.drawing import INK, MUTED

    colours = [spot.colour for spot in spots]
    norm = mpl.colors.Normalize(min(colours), max(colours) if len(set(colours)) > 1 else min(colours) + 1)
    for trained, marker, size in ((False, "o", 62), (True, "D", 54)):
        chosen = [spot for spot in spots if spot.trained == trained]
        for spot in chosen:
            if len(spot.seeds) > 1:
                seed_xs, seed_ys = zip(*spot.seeds, strict=True)
                axes.scatter(seed_xs, seed_ys, marker=marker, s=9, color=MUTED, alpha=0.7, zorder=2)
        xs, ys, shade = ([getattr(p, name) for p in chosen] for name in ("x", "y", "colour"))
        axes.scatter(xs, ys, c=shade, norm=norm, marker=marker, s=size, edgecolors=INK, linewidths=0.8, zorder=3)
    # Arrows come last, since they do not change the limits of the axes.
    style = {"arrowstyle": "->", "color": MUTED, "shrinkA": 6, "shrinkB": 6, "linewidth": 1, "linestyle": (0, (4, 2))}
    for start, end in _arrows(spots):
        axes.annotate("", (end.x, end.y), (start.x, start.y), arrowprops=style, zorder=1)
    bar = drawing.colorbar(mpl.cm.ScalarMappable(norm, "viridis"), ax=axes, pad=0.02, aspect=30)
    bar.set_label(colour_label)
    bar.outline.set_visible(False)
    if any(spot.trained for spot in spots):
        _marker_legend(axes)


def _marker_legend(axes: Axes) -> None:
    from matplotlib.lines import Line2D

    from sembench.reporting.drawing import INK, PAPER

    look: dict[str, Any] = {"linestyle": "", "markersize": 6, "color": PAPER, "markeredgecolor": INK}
    handles = [
        Line2D([], [], marker=marker, label=text, **look)
        for marker, text in (("o", "as published"), ("D", "trained here"))
    ]
    axes.legend(handles=handles, loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False, borderaxespad=0.2)


def _arrows(spots: Sequence[_Spot]) -> Iterator[tuple[_Spot, _Spot]]:
    untouched = {spot.encoder: spot for spot in spots if not spot.trained}
    for spot in spots:
        if spot.trained and spot.encoder in untouched:
            yield untouched[spot.encoder], spot


PLUGIN = AlignmentUniformity
