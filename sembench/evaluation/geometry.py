"""Alignment and uniformity of normalised vectors (Wang and Isola 2020; SimCSE, Equations 2 and 3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
# Rows of a block of the pairwise matrix: memory stays at a few dozen megabytes whatever the number of sentences.
_BLOCK = 1024


def normalised(vectors: NDArray[np.float32]) -> Floats:
    """Return (n, width) rows scaled to length 1 in float64; zero rows stay zero."""
    rows: Floats = vectors.astype(np.float64)
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return rows


def alignment(first: NDArray[np.float32], second: NDArray[np.float32]) -> float:
    """Return the mean squared distance between the normalised vectors of positive pairs, (n, width) each."""
    return float(np.mean(np.sum((normalised(first) - normalised(second)) ** 2, axis=1)))


def uniformity(vectors: NDArray[np.float32], counts: NDArray[np.int64] | None = None) -> float:
    """Return log E exp(-2 |f(x) - f(y)|^2) in nats, x and y drawn independently from the sentences.

    A sentence may meet itself, as the paper's expectation has it; that adds 1/n to the mean. The logarithm is taken
    once, of the mean over all pairs, not averaged over batches.

    Args:
        vectors: (n, width).
        counts: (n,), how often each row occurs in the data, so that repeated sentences need one row only.
    """
    rows = normalised(vectors)
    weights = np.ones(len(rows)) if counts is None else counts.astype(np.float64)
    squares = np.sum(rows**2, axis=1)
    total = 0.0
    for start in range(0, len(rows), _BLOCK):
        part = slice(start, start + _BLOCK)
        distances = squares[part, None] + squares[None, :] - 2 * rows[part] @ rows.T
        total += float(weights[part] @ np.exp(-2 * np.maximum(distances, 0)) @ weights)
    return float(np.log(total / weights.sum() ** 2))


def counted(sentences: Sequence[str]) -> tuple[list[str], NDArray[np.int64]]:
    """Return the unique sentences in the order of their first occurrence, and how often each occurs, (unique,)."""
    counts = Counter(sentences)
    return list(counts), np.fromiter(counts.values(), dtype=np.int64)
