"""Placing labels in a drawing where they cover least."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

Place = tuple[float, float]

# Where a label may stand: direction, and distance in points from the marker's centre.
_DIRECTIONS = [(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (1, -1), (-1, 1), (-1, -1)]
_DISTANCES = [8, 14, 22, 32]
_ANCHOR = {-1: "right", 0: "center", 1: "left"}, {-1: "top", 0: "center", 1: "bottom"}


@dataclass(frozen=True)
class Label:
    """A text and the point that it names, in data coordinates."""

    text: str
    x: float
    y: float


def place_labels(
    drawing: Drawing,
    axes: Axes,
    labels: Sequence[Label],
    dots: Sequence[Place] = (),
    arrows: Sequence[tuple[Place, Place]] = (),
) -> None:
    """Write each label where it covers least: first come, first served, so equal input gives equal places.

    Args:
        drawing: the figure; its layout is fixed by this.
        axes: where the points are.
        labels: what to write.
        dots: further points, in data coordinates, that should stay visible.
        arrows: start and end of lines, in data coordinates, that should stay visible.
    """
    drawing.draw_without_rendering()  # fixes the layout, without which no box is known
    drawing.set_layout_engine("none")
    to_pixels = axes.transData.transform
    taken = [_around(to_pixels((each.x, each.y)), 9) for each in labels]
    taken += [_around(to_pixels(dot), 4) for dot in dots]
    for start, end in arrows:
        steps = np.linspace(to_pixels(start), to_pixels(end), 120)[8:-8]
        taken += [_around(step, 2) for step in steps]
    inside = np.array([axes.get_window_extent().extents])
    for label in sorted(labels, key=lambda each: (each.y, each.x)):
        taken.append(_write(axes, label, np.array(taken), inside))


def _around(point: Floats, half: float) -> Floats:
    """Return a square around a point as left, bottom, right, top."""
    return np.array([point[0] - half, point[1] - half, point[0] + half, point[1] + half])


def _write(axes: Axes, label: Label, taken: Floats, inside: Floats) -> Floats:
    """Write a label at the best of all places and return its box; ``taken`` and ``inside``: (boxes, 4) pixels."""
    text = axes.annotate(label.text, (label.x, label.y), (0, 0), textcoords="offset points", zorder=4)
    width, height = text.get_window_extent().padded(2).size
    anchor = axes.transData.transform((label.x, label.y))
    per_point = axes.figure.dpi / 72
    best: tuple[float, int, int, int, Floats] | None = None
    for distance in _DISTANCES:
        for dx, dy in _DIRECTIONS:
            # A label to the right begins at its anchor, one to the left ends there, one above or below is centred.
            left = anchor[0] + per_point * dx * distance + width * (dx - 1) / 2
            bottom = anchor[1] + per_point * dy * distance + height * (dy - 1) / 2
            box = np.array([left, bottom, left + width, bottom + height])
            outside = width * height - float(_shared(box, inside).sum())
            cost = 4 * float(_shared(box, taken).sum()) + 10 * outside + distance
            if best is None or cost < best[0]:
                best = (cost, dx, dy, distance, box)
    assert best is not None
    _, dx, dy, distance, box = best
    text.set(position=(dx * distance, dy * distance), ha=_ANCHOR[0][dx], va=_ANCHOR[1][dy])
    return box


def _shared(box: Floats, others: Floats) -> Floats:
    """Return the area that a box has in common with each of others, (boxes, 4)."""
    sides = np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2])
    areas: Floats = np.clip(sides, 0, None).prod(axis=1)
    return areas
