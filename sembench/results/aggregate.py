"""Summing scores up over seeds, and pairing those that belong together."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import TypeVar

from sembench.core.errors import SembenchError

T = TypeVar("T")


def seed_summary(values: Sequence[float]) -> tuple[float, float | None, int]:
    """Return mean, sample standard deviation (n - 1; None for a single value) and number of values.

    Raises:
        SembenchError: there are no values.
    """
    if not values:
        raise SembenchError("no seed has a score, so there is nothing to average")
    sd = statistics.stdev(values) if len(values) > 1 else None
    return statistics.fmean(values), sd, len(values)


def paired(parts: Sequence[Mapping[str, T]], seeds: Mapping[str, int | None]) -> dict[str, tuple[T, ...]]:
    """Return the values that belong together, by run of the first part that has trained runs.

    Runs belong together if they are the same or have the same seed; an untouched encoder, which has no seed, belongs
    to every run. A run without a partner in some part is left out.

    Args:
        parts: values by run id; what is compared or averaged.
        seeds: seed of each run, None for an untouched encoder.
    """
    lead = next((part for part in parts if any(seeds[run] is not None for run in part)), parts[0])
    found = {run: [_partner(part, run, seeds) for part in parts] for run in lead}
    return {
        run: tuple(value for value in values if value is not None)
        for run, values in found.items()
        if None not in values
    }


def _partner(part: Mapping[str, T], run: str, seeds: Mapping[str, int | None]) -> T | None:
    if run in part:
        return part[run]
    return next((value for other, value in part.items() if seeds[other] in (None, seeds[run])), None)


def paired_gain(
    after: Mapping[str, float], before: Mapping[str, float], seeds: Mapping[str, int | None]
) -> dict[str, float]:
    """Return what each run gained over the run with the same seed that it is compared with (see ``paired``)."""
    return {run: now - then for run, (now, then) in paired((after, before), seeds).items()}
