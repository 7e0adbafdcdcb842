"""Comparing two systems on the same items, seed by seed: the difference, its interval, and tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import stats

from sembench.results.resampling import DRAWS, SEED, Floats, Statistic, Values, resamples
from sembench.results.significance import LEVEL, Outcome, min_f

Finding = Literal["better", "worse", "open"]


@dataclass(frozen=True)
class Part:
    """Items that are resampled together, and what each system says of them.

    Attributes:
        statistic: of the metric.
        gold: (items,).
        first: predictions of the first system, (seeds, items).
        second: of the second one, (seeds, items); row i belongs to row i of ``first``.
        weight: of this part in the score; over the parts of a score of raw values they add up to 1.
    """

    statistic: Statistic
    gold: Values
    first: Values
    second: Values
    weight: float = 1.0

    def differences(self, counts: Floats) -> Floats:
        """Return what the first system is better by under counts (draws, items), mean over the seeds, (draws,)."""
        # An untouched system has the same row for every seed of the other.
        rows, places = np.unique(np.concatenate([self.first, self.second]), axis=0, return_inverse=True)
        scores = self.statistic.score(rows, self.gold, counts)[places]
        found: Floats = self.weight * (scores[: len(self.first)] - scores[len(self.first) :]).mean(axis=0)
        return found


@dataclass(frozen=True)
class Comparison:
    """What a comparison says, in the unit of the given values.

    Attributes:
        difference: first less second, mean over the seeds.
        low: lower bound of its 95% interval.
        high: upper bound.
        items: how many it rests on.
        seeds: pairs of runs.
        tests: the first one is that of ``p``.
    """

    difference: float
    low: float
    high: float
    items: int
    seeds: int
    tests: tuple[Outcome, ...]

    @property
    def p(self) -> float:
        """The two-sided p-value that a correction for many comparisons starts from."""
        return self.tests[0].p

    @property
    def finding(self) -> Finding:
        """Whether the interval leaves out 0, and on which side it lies."""
        return "better" if self.low > 0 else "worse" if self.high < 0 else "open"


def compare(
    parts: Sequence[Part], values: Sequence[tuple[float, float]], draws: int = DRAWS, seed: int = SEED
) -> Comparison:
    """Compare two systems by the values of their scores and the items behind these.

    With one pair of runs the interval is the percentile interval of a paired bootstrap over items: both systems are
    scored on the same resamples. It says nothing of other seeds. With several pairs items and seeds are both a sample,
    and the interval is that of Clark's (1973) min F': the variance over items, by the same bootstrap of the mean over
    seeds, and the variance of that mean over seeds are added, with Satterthwaite's degrees of freedom.

    Args:
        parts: the items; those of different parts are drawn independently.
        values: score of first and second system by pair of runs, as the parts' weights have it: they may be rounded.
        draws: resamples; those in which a score is undefined are left out.
        seed: of the draws.
    """
    gains = np.array([first - second for first, second in values])
    difference, items = float(gains.mean()), sum(len(part.gold) for part in parts)
    seen = sum(float(part.differences(np.ones((1, len(part.gold))))[0]) for part in parts)
    generator = np.random.default_rng(seed)
    drawn = sum(
        np.concatenate([part.differences(counts) for counts in resamples(len(part.gold), draws, generator)])
        for part in parts
    )
    drawn = np.asarray(drawn)[np.isfinite(drawn)]
    if len(gains) == 1:
        low, high = difference - seen + np.quantile(drawn, [LEVEL / 2, 1 - LEVEL / 2])
        return Comparison(difference, float(low), float(high), items, 1, _tests(parts, drawn))
    over_items, over_seeds = float(drawn.var(ddof=1)), float(gains.var(ddof=1)) / len(gains)
    test = min_f(difference, over_items, items, over_seeds, len(gains))
    reach = float(stats.t.ppf(1 - LEVEL / 2, test.df[1])) * math.sqrt(over_items + over_seeds)
    return Comparison(difference, difference - reach, difference + reach, items, len(gains), (test,))


def _tests(parts: Sequence[Part], drawn: Floats) -> tuple[Outcome, ...]:
    """Return the metric's own tests for a pair of runs on one set of items; else what the bootstrap says."""
    own = parts[0].statistic.tests(parts[0].first[0], parts[0].second[0], parts[0].gold) if len(parts) == 1 else ()
    return own or (bootstrap_test(drawn),)


def bootstrap_test(drawn: Floats) -> Outcome:
    """Return the test that rejects where the percentile interval of the draws (draws,) leaves out 0."""
    less = min(int((drawn <= 0).sum()), int((drawn >= 0).sum()))
    return Outcome("bootstrap draws beyond 0", less, (), min(1.0, 2 * (less + 1) / (len(drawn) + 1)))
