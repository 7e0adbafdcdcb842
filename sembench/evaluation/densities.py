"""How cosines are spread: densities on -1 to 1, and groups of pairs by what people say of them (SimCSE, Figure G.1)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def group_of(gold: Floats, edges: Sequence[float]) -> NDArray[np.int64]:
    """Return the group of each gold score (pairs,): number i lies from ``edges[i]`` up to, not at, ``edges[i + 1]``.

    The last group has its upper end as well, as in a histogram; the paper does not say where 1, 2, ... belong. Scores
    outside all edges have group -1.
    """
    found = np.searchsorted(edges, gold, side="right") - 1
    found[gold == edges[-1]] = len(edges) - 2
    found[(gold < edges[0]) | (gold > edges[-1])] = -1
    return found.astype(np.int64)


def density(cosines: Floats, grid: Floats, width: float) -> Floats:
    """Return the density of cosines (pairs,) at the points of ``grid``, (points,).

    Each cosine is a normal distribution around it with the standard deviation ``width``, the same for all groups and
    encoders, so that curves can be compared and equal cosines have one too. What reaches beyond -1 or 1 is mirrored
    back: all of the density lies between them, where cosines do.
    """
    mirrored = np.concatenate([cosines, -2 - cosines, 2 - cosines])
    distances = (grid[:, None] - mirrored[None, :]) / width
    total: Floats = np.exp(-(distances**2) / 2).sum(axis=1)
    total /= len(cosines) * width * np.sqrt(2 * np.pi)
    return total
