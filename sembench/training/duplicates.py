"""Rows with the same first sentence: false negatives of each other wherever they share a batch (SimCSE, issue 62)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sembench.core.plugin import Chosen
from sembench.core.progress import StepProgress
from sembench.training.objectives.base import Objective

if TYPE_CHECKING:
    import pandas as pd

# Pairs of such rows, per batch, from which on a training says so: some in every tenth batch.
WORTH_A_LINE = 0.1


def pairs_per_batch(anchors: pd.Series[Any], batch_size: int) -> float:
    """Return how many pairs of rows with the same anchor a batch is expected to hold.

    Any two of the rows share a batch with the same chance, so an anchor that stands in c rows counts c (c - 1) / 2
    times. The short last batch of an epoch is taken for a full one.

    Args:
        anchors: one for each row that is trained on.
        batch_size: rows of a batch.
    """
    rows = len(anchors)
    drawn = min(batch_size, rows)
    counts = anchors.value_counts().to_numpy()
    pairs = int((counts * (counts - 1) // 2).sum())
    return pairs * (drawn * (drawn - 1)) / (rows * (rows - 1)) if rows > 1 else 0.0


def announce_duplicates(
    objective: Chosen[Objective], examples: pd.DataFrame, batch_size: int, progress: StepProgress
) -> None:
    """Say so where batches are expected to hold false negatives. They stay as they are, as in the papers.

    Args:
        objective: one without in-batch negatives has no false ones.
        examples: what is trained on, a row an example.
        batch_size: rows of a batch.
        progress: takes the line.
    """
    if not objective.plugin.in_batch_negatives:
        return
    column = objective.plugin.columns[0]
    expected = pairs_per_batch(examples[column], batch_size)
    if expected >= WORTH_A_LINE:
        share = examples[column].duplicated().mean()
        progress.say(
            f"warning: {share:.1%} of the rows repeat the '{column}' of an earlier one, so a batch of {batch_size} "
            f"holds {expected:.2g} pairs of equal ones on average, false negatives of each other; the papers keep them"
        )
