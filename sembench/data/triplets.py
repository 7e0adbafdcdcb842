"""Triplets: what supervised SimCSE trains on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sembench.core.lazy import pd

if TYPE_CHECKING:
    from pandas import DataFrame

COLUMNS = ("anchor", "positive", "negative")


class Triplet(NamedTuple):
    """Three sentences: an anchor, its positive, its hard negative."""

    anchor: str
    positive: str
    negative: str


def triplet_frame(rows: Sequence[Triplet]) -> DataFrame:
    """Return a frame with the columns ``COLUMNS``, a row a triplet."""
    return pd.DataFrame(rows, columns=list(COLUMNS))


def anchor_facts(rows: Sequence[Triplet]) -> dict[str, Any]:
    """Return how many anchors differ, and the share of rows (0 to 1) whose anchor is in an earlier row.

    A repeated anchor makes a false negative wherever two of its rows share a batch (SimCSE, issue 62).
    """
    different = len({row.anchor for row in rows})
    return {"anchors": different, "duplicate_anchors": round(1 - different / len(rows), 6) if rows else 0.0}
