"""Semantic textual similarity: cosine per pair, correlation with people, no regressor (SimCSE, Appendix B).

Three aggregations over a task's subsets: ``all`` joins them and correlates once (the paper's), ``mean`` averages the
subsets' correlations, ``wmean`` weighs them by size. Papers that differ only in this differ by several points.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from sembench.core.errors import SembenchError

Floats = NDArray[np.float64]


def cosine(first: NDArray[np.float32], second: NDArray[np.float32]) -> Floats:
    """Return the cosine of each row pair of two (n, width) arrays in float64; 0 where a vector is zero (SentEval).

    Rounded to 12 decimals: pairs of equal sentences must tie at 1, not be ranked by the last bit of a division.
    """
    a, b = first.astype(np.float64), second.astype(np.float64)
    norms: Floats = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    products: Floats = np.einsum("ij,ij->i", a, b)
    return np.divide(products, norms, out=np.zeros_like(products), where=norms > 0).round(12)


def correlation(metric: str, predicted: Floats, gold: Floats) -> float:
    """Return Spearman's or Pearson's correlation, -1 to 1, of two (pairs,) arrays.

    Raises:
        SembenchError: it is undefined, as for a constant prediction.
    """
    if len(gold) < 2 or np.ptp(predicted) == 0 or np.ptp(gold) == 0:
        raise SembenchError("the correlation is undefined: all similarities (or all gold scores) are equal")
    result = stats.spearmanr(predicted, gold) if metric == "spearman" else stats.pearsonr(predicted, gold)
    return float(result.statistic)


def aggregate(metric: str, predicted: Sequence[Floats], gold: Sequence[Floats]) -> dict[str, float]:
    """Return the correlations ``all``, ``mean`` and ``wmean`` over subsets, each -1 to 1.

    Args:
        metric: spearman or pearson.
        predicted: for each subset an array (pairs,).
        gold: the same.

    Raises:
        SembenchError: a correlation is undefined.
    """
    parts = [correlation(metric, p, g) for p, g in zip(predicted, gold, strict=True)]
    sizes = [len(g) for g in gold]
    return {
        "all": correlation(metric, np.concatenate(predicted), np.concatenate(gold)),
        "mean": float(np.mean(parts)),
        "wmean": float(np.average(parts, weights=sizes)),
    }
