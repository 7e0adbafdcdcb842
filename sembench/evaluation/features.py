"""What a classifier sees of several sentence vectors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]


def pair_features(first: Vectors, second: Vectors) -> Vectors:
    """Return ``|u - v|`` and ``u * v`` side by side: SentEval's features of a sentence pair.

    Args:
        first: u, (rows, width).
        second: v, (rows, width).

    Returns:
        (rows, 2 * width).
    """
    return np.concatenate([np.abs(first - second), first * second], axis=1)


def relation_features(e1: Vectors, e2: Vectors, e3: Vectors, e4: Vectors) -> NDArray[np.float64]:
    """Return ``e1 - e2``, ``e3 - e4`` and ``|e1 - e2 - e3 + e4|`` side by side (analogy paper, Figure 2).

    Args:
        e1: first sentence of the first pair, (items, width).
        e2: its second sentence.
        e3: first sentence of the second pair.
        e4: its second sentence.

    Returns:
        (items, 3 * width).
    """
    one, other = (e1 - e2).astype(np.float64), (e3 - e4).astype(np.float64)
    return np.concatenate([one, other, np.abs(one - other)], axis=1)
