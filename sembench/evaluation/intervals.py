"""Intervals of accuracies whose items are not independent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray


def bootstrap_interval(
    right: NDArray[Any], first: Sequence[str], second: Sequence[str], draws: int = 2000, seed: int = 0
) -> tuple[float, float]:
    """Return a 95% interval of an accuracy, by resampling groups of word pairs and not items.

    An item rests on two word pairs, and each of these occurs in many items, so items do not vary independently and
    Wilson's interval would be too narrow. Groups are drawn with replacement, and an item counts as often as its two
    groups together, by the product of how often each was drawn (the pigeonhole bootstrap of Owen 2007, which errs on
    the wide side). Where all items are right the interval is a point.

    Args:
        right: (items,), whether an answer is right.
        first: group of each item's first pair.
        second: group of its second pair; the same as ``first`` where an item rests on one group.
        draws: resamples.
        seed: of the draws.
    """
    codes = pd.factorize(np.array([*first, *second], dtype=object))[0]
    ones, others = codes[: len(first)], codes[len(first) :]
    size = int(codes.max()) + 1
    generator = np.random.default_rng(seed)
    hits, values = np.asarray(right, dtype=np.float64), []
    for _ in range(draws):
        times = np.bincount(generator.integers(size, size=size), minlength=size)
        weights = np.where(ones == others, times[ones], times[ones] * times[others])
        if total := weights.sum():
            values.append(hits @ weights / total)
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)


def with_interval(
    right: NDArray[Any], first: Sequence[str], second: Sequence[str], draws: int, seed: int
) -> dict[str, float]:
    """Return ``accuracy`` (0 to 1) and the bounds ``low`` and ``high`` of its 95% interval.

    Arguments as in ``bootstrap_interval``; ``right`` is (items,), true where an item was predicted as it is.
    """
    low, high = bootstrap_interval(right, first, second, draws, seed)
    return {"accuracy": float(right.mean()), "low": low, "high": high}
