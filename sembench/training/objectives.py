"""Contrastive objectives on batches of sentence vectors."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def info_nce(anchors: Tensor, positives: Tensor, temperature: float) -> Tensor:
    """Return the mean cross-entropy of finding each anchor's own positive among all positives (SimCSE, Equation 1).

    Args:
        anchors: (N, width).
        positives: (N, width); row i belongs to anchor i, the other N - 1 rows are its negatives.
        temperature: divisor of the cosines.

    One direction only: positives do not look for their anchors (official code). Normalising first makes all cosines
    one matrix product of (N, width) by (width, N); broadcasting a cosine would hold N x N x width numbers.
    """
    cosines = functional.normalize(anchors, dim=-1) @ functional.normalize(positives, dim=-1).T
    targets = torch.arange(len(anchors), device=anchors.device)
    return functional.cross_entropy(cosines / temperature, targets)
