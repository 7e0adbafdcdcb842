"""Bootstrap over items: a score under many resamples at once, each a row of counts of how often an item was drawn.

Ranks under counts need no sorting again: items are sorted once, and the midrank of a group of ties is what was drawn
before it and half of what was drawn of it. So a resample costs a pass over the items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sembench.results.significance import Outcome, mcnemar, steiger, williams

Floats = NDArray[np.float64]
Values = NDArray[Any]
DRAWS, SEED = 2000, 0
# Entries of a block of counts, which stays in the processor's cache.
_BLOCK = 1 << 18


@dataclass(frozen=True)
class Statistic:
    """How a metric is computed anew from predictions, and how two systems are tested by it.

    Attributes:
        column: of the predictions; it is judged against their column ``gold``.
        score: predictions (systems, items), gold (items,) and counts (draws, items) -> (systems, draws), raw as in
            score records; NaN where it is undefined.
        tests: predictions of two systems and gold, (items,) each -> tests; the first one decides.
    """

    column: str
    score: Callable[[Values, Values, Floats], Floats]
    tests: Callable[[Values, Values, Values], tuple[Outcome, ...]] = lambda *_: ()


def pearson(predicted: Values, gold: Values, counts: Floats) -> Floats:
    """Return Pearson's correlation of systems (systems, items) in each resample, (systems, draws)."""
    return _correlations([_centred(row, counts) for row in predicted], _centred(gold, counts), counts)


def spearman(predicted: Values, gold: Values, counts: Floats) -> Floats:
    """Return Spearman's correlation of systems in each resample, (systems, draws); ties share their mean rank."""
    return _correlations((_ranks(row, counts) for row in predicted), _ranks(gold, counts), counts)


def accuracy(predicted: Values, gold: Values, counts: Floats) -> Floats:
    """Return the share of right predictions of systems in each resample, (systems, draws)."""
    found: Floats = _sums(predicted == gold, counts) / counts.sum(axis=1)
    return found


def f1(predicted: Values, gold: Values, counts: Floats) -> Floats:
    """Return the F1 of class 1 of systems in each resample, (systems, draws); 0 where neither side has it."""
    claims, holds = predicted == 1, gold == 1
    hits, both = _sums(claims & holds, counts), _sums(claims, counts) + _sums(holds, counts)
    return np.divide(2 * hits, both, out=np.zeros_like(hits), where=both > 0)


def _sums(which: NDArray[np.bool_], counts: Floats) -> Floats:
    found: Floats = which.astype(np.float64) @ counts.T
    return found


def _centred(values: Values, counts: Floats) -> Floats:
    found: Floats = values - (counts @ values / counts.sum(axis=1))[:, None]
    return found


def _ranks(values: Values, counts: Floats) -> Floats:
    """Return ranks less their mean, (draws, items)."""
    _, ties, sizes = np.unique(values, return_inverse=True, return_counts=True)
    drawn = np.add.reduceat(counts[:, np.argsort(ties, kind="stable")], np.cumsum(sizes) - sizes, axis=1)
    ends = np.cumsum(drawn, axis=1)
    middles: Floats = ends - drawn / 2 - ends[:, -1:] / 2
    return middles[:, ties]


def _correlations(systems: Iterable[Floats], gold: Floats, counts: Floats) -> Floats:
    """Return weighted correlations of centred values, (draws, items) each; NaN where one side does not vary."""
    weighted = counts * gold
    of_gold, found = np.einsum("di,di->d", weighted, gold), []
    for values in systems:
        products = np.einsum("di,di->d", weighted, values)
        size = np.sqrt(of_gold * np.einsum("di,di,di->d", counts, values, values))
        found.append(np.divide(products, size, out=np.full_like(size, np.nan), where=size > 1e-10))
    return np.array(found)


def correlation_tests(
    score: Callable[[Values, Values, Floats], Floats],
) -> Callable[[Values, Values, Values], tuple[Outcome, ...]]:
    """Return the tests of a correlation: Williams's, then Steiger's; none with fewer than four items."""

    def tests(first: Values, second: Values, gold: Values) -> tuple[Outcome, ...]:
        once = np.ones((1, len(gold)))
        of_gold, between = score(np.stack([first, second]), gold, once), score(first[None], second, once)
        one, other, both = (float(each) for each in (*of_gold[:, 0], between[0, 0]))
        if len(gold) < 4 or not np.isfinite([one, other, both]).all():
            return ()
        return williams(one, other, both, len(gold)), steiger(one, other, both, len(gold))

    return tests


def accuracy_tests(first: Values, second: Values, gold: Values) -> tuple[Outcome, ...]:
    """Return McNemar's tests: mid-p, then exact."""
    one, other = first == gold, second == gold
    return mcnemar(int((one & ~other).sum()), int((other & ~one).sum()))


# --------------------------------------------------------------------------------------------------------- resamples


def resamples(items: int, draws: int, generator: np.random.Generator) -> Iterator[Floats]:
    """Yield counts of resamples of as many items as there are, with replacement, in blocks (draws, items)."""
    step = max(1, _BLOCK // items)
    for start in range(0, draws, step):
        size = min(step, draws - start)
        drawn = generator.integers(items, size=(size, items)) + items * np.arange(size)[:, None]
        yield np.bincount(drawn.ravel(), minlength=size * items).reshape(size, items).astype(np.float64)


def interval(
    statistic: Statistic, predicted: Values, gold: Values, draws: int = DRAWS, seed: int = SEED
) -> tuple[float, float]:
    """Return the 95% percentile interval of a score by bootstrap over its items.

    Args:
        statistic: of the metric.
        predicted: (items,).
        gold: (items,).
        draws: resamples; those in which the score is undefined are left out.
        seed: of the draws.
    """
    blocks = resamples(len(gold), draws, np.random.default_rng(seed))
    found = np.concatenate([statistic.score(predicted[None], gold, counts)[0] for counts in blocks])
    low, high = np.nanquantile(found, [0.025, 0.975])
    return float(low), float(high)
