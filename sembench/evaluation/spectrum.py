"""Singular values of normalised sentence vectors, how evenly they are spread, and the average cosine.

With W the matrix of n vectors of length 1, the average cosine is Sum(W W') / n^2. Where no cosine is negative, that sum
is an upper bound of the largest eigenvalue of W W', so that what pushes sentences apart flattens the singular values
(SimCSE, section 5). Always, the average cosine is at most the share of the largest squared singular value.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sembench.core.errors import SembenchError
from sembench.evaluation.geometry import normalised

Floats = NDArray[np.float64]


def singular_values(vectors: NDArray[np.float32], counts: NDArray[np.int64] | None = None) -> Floats:
    """Return the singular values of normalised rows, largest first, (min(n, width),).

    They are roots of the eigenvalues of the smaller Gram matrix, in float64: exact to about 1e-8 of the largest.

    Args:
        vectors: (n, width).
        counts: (n,), how often each row occurs in the matrix; once if not given.

    Raises:
        SembenchError: all vectors are zero.
    """
    rows = normalised(vectors)
    if counts is not None:
        rows *= np.sqrt(counts.astype(np.float64))[:, None]
    gram = rows.T @ rows if rows.shape[0] >= rows.shape[1] else rows @ rows.T
    found: Floats = np.sqrt(np.maximum(np.linalg.eigvalsh(gram)[::-1], 0.0))
    if not found[0]:
        raise SembenchError("all sentence vectors are zero, so their singular values mean nothing; use another encoder")
    return found


def largest_share(values: Floats) -> float:
    """Return the share of the largest squared singular value in the sum of all, 1/n to 1, of values (n,)."""
    squares = values**2
    return float(squares[0] / squares.sum())


def effective_rank(values: Floats) -> float:
    """Return exp of the entropy of the singular values (n,) as shares of their sum (Roy and Vetterli 2007), 1 to n."""
    shares = values[values > 0] / values.sum()
    return float(np.exp(-(shares * np.log(shares)).sum()))


def average_cosine(vectors: NDArray[np.float32], counts: NDArray[np.int64] | None = None) -> float:
    """Return the mean cosine of two sentences that are drawn independently, 0 to 1.

    A sentence may meet itself, as in the paper's Sum(W W') and as for uniformity here; that adds 1/n at most. It is the
    squared length of the mean of the normalised vectors, so that no pair has to be looked at.

    Args:
        vectors: (n, width).
        counts: (n,), how often each row occurs in the data; once if not given.
    """
    mean = np.average(normalised(vectors), axis=0, weights=counts)
    return float(mean @ mean)
