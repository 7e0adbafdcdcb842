"""Selecting score records and summing them up over seeds."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from sembench.core.errors import SembenchError
from sembench.registry.models import Metric

if TYPE_CHECKING:
    import pandas as pd


def seed_summary(values: Sequence[float]) -> tuple[float, float | None, int]:
    """Return mean, sample standard deviation (n - 1; None for a single value) and number of values.

    Raises:
        SembenchError: there are no values.
    """
    if not values:
        raise SembenchError("no seed has a score, so there is nothing to average")
    sd = statistics.stdev(values) if len(values) > 1 else None
    return statistics.fmean(values), sd, len(values)


def select(scores: pd.DataFrame, metric: Metric, runs: Collection[str]) -> pd.DataFrame:
    """Return the records of some runs under one metric, after checking that all were made from the same data.

    Raises:
        SembenchError: two records carry different sample hashes, so comparing them would mean nothing.
    """
    wanted = scores["run"].isin(list(runs))
    for column, value in metric.model_dump().items():
        wanted &= scores[column] == value
    found = scores[wanted]
    if found["sample_hash"].nunique() > 1:
        first, second = found.drop_duplicates("sample_hash").iloc[:2].to_dict("records")
        raise SembenchError(
            f"{metric.suite}/{metric.task}/{metric.split}: the scores of {first['run']} and {second['run']} are "
            f"cells from different data ({first['sample_hash'][:8]} and {second['sample_hash'][:8]}); "
            "delete the older score file and run again"
        )
    return found
