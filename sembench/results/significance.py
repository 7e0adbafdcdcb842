"""Tests of two systems on the same items, two-sided: dependent correlations, McNemar, items with seeds, Holm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

LEVEL = 0.05
# Beyond this Fisher's transform of a correlation has no value.
_LARGEST = 1 - 1e-12


@dataclass(frozen=True)
class Outcome:
    """What a test says.

    Attributes:
        name: of the test and its statistic, such as ``Williams t``.
        statistic: positive where the first system is better; of an F, and of a count, the value itself.
        df: degrees of freedom; none: it has none.
        p: two-sided.
    """

    name: str
    statistic: float
    df: tuple[float, ...]
    p: float

    def __str__(self) -> str:
        df = f"({', '.join(f'{each:.4g}' for each in self.df)})" if self.df else ""
        return f"{self.name}{df} = {self.statistic:.4g}, {p_text(self.p)}"


def p_text(p: float) -> str:
    """Return a p-value as printed."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def williams(first: float, second: float, between: float, n: int) -> Outcome:
    """Test whether two correlations that share a variable differ (Williams 1959; Steiger 1980, Equation 7).

    Exact enough in small samples for Pearson's correlation; for Spearman's an approximation.

    Args:
        first: correlation of the first system with the gold scores.
        second: of the second system.
        between: of the two systems.
        n: items, at least 4.
    """
    df = n - 3
    mean = (first + second) / 2
    determinant = 1 - first**2 - second**2 - between**2 + 2 * first * second * between
    variance = 2 * (n - 1) / df * determinant + mean**2 * (1 - between) ** 3
    scaled = (first - second) * math.sqrt((n - 1) * (1 + between))
    t = _ratio(scaled, math.sqrt(max(variance, 0.0)))
    return Outcome("Williams t", t, (df,), float(2 * stats.t.sf(abs(t), df)))


def steiger(first: float, second: float, between: float, n: int) -> Outcome:
    """Test the same by Fisher's z with the pooled covariance (Steiger 1980, Equation 14).

    Arguments as for ``williams``.
    """
    pooled = ((first + second) / 2) ** 2
    covariance = between * (1 - 2 * pooled) - pooled / 2 * (1 - 2 * pooled - between**2)
    shared = _ratio(covariance, (1 - pooled) ** 2)
    scaled = (_fisher(first) - _fisher(second)) * math.sqrt(n - 3)
    z = _ratio(scaled, math.sqrt(max(2 - 2 * shared, 0.0)))
    return Outcome("Steiger z", z, (), float(2 * stats.norm.sf(abs(z))))


def _fisher(correlation: float) -> float:
    return math.atanh(max(-_LARGEST, min(_LARGEST, correlation)))


def _ratio(value: float, size: float) -> float:
    """Return value / size; 0 where both vanish, as between two systems that agree in everything."""
    return value / size if abs(size) > 1e-12 else math.copysign(math.inf, value) if abs(value) > 1e-9 else 0.0


def mcnemar(first_only: int, second_only: int) -> tuple[Outcome, Outcome]:
    """Test whether two systems are right equally often: McNemar's mid-p test, and the exact binomial one.

    The mid-p test (Fagerland, Lydersen and Laake 2013) comes nearer to its level; the exact one never exceeds it.

    Args:
        first_only: items that only the first system gets right.
        second_only: items that only the second one gets right.

    Returns:
        Mid-p, then exact; the statistic of both is the number of items that only the first one gets right.
    """
    total, fewer = first_only + second_only, min(first_only, second_only)
    exact = min(1.0, 2 * float(stats.binom.cdf(fewer, total, 0.5)))
    here = float(stats.binom.pmf(fewer, total, 0.5))
    # In the middle both tails end in the same term. Where no item tells the systems apart there is nothing to halve.
    middle = exact - (here if first_only != second_only else here / 2 if total else 0.0)
    return (
        Outcome(f"McNemar mid-p, items won of {total}", first_only, (), middle),
        Outcome(f"McNemar exact, items won of {total}", first_only, (), exact),
    )


def min_f(difference: float, item_variance: float, items: int, seed_variance: float, seeds: int) -> Outcome:
    """Test a difference over items and seeds that are both a sample: Clark's (1973) min F'.

    Equal to min F' = F1 F2 / (F1 + F2) of the difference tested over the items (F1) and over the seeds (F2).

    Args:
        difference: mean over items and seeds.
        item_variance: of this mean over the choice of items, the seeds given.
        items: their number.
        seed_variance: of this mean over the choice of seeds, the items given.
        seeds: their number, at least 2.

    Returns:
        F with 1 and Satterthwaite's degrees of freedom; its p-value is that of the interval's t.
    """
    total = item_variance + seed_variance
    f = _ratio(difference**2, total)
    df = total**2 / (item_variance**2 / (items - 1) + seed_variance**2 / (seeds - 1)) if total > 0 else seeds - 1
    return Outcome("min F'", f, (1, df), float(stats.f.sf(f, 1, df)))


def holm(p: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number by Holm's (1979) step-down method, in the given order."""
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    stepped = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
    corrected = np.empty_like(values)
    corrected[order] = np.minimum(stepped, 1.0)
    return [float(value) for value in corrected]
