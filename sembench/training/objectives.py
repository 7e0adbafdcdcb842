"""Contrastive objectives on batches of vectors. Pure functions: no encoder, no data."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

RelationEncoder = Literal["diff", "concat", "concat_diff"]
Negatives = Literal["third_pairs", "third_pairs_plus_positive", "cross_relation"]


def info_nce(anchors: Tensor, positives: Tensor, temperature: float) -> Tensor:
    """Return the mean cross-entropy of finding each anchor's own positive among all positives (SimCSE, Equation 1).

    Args:
        anchors: (N, width).
        positives: (N, width); row i belongs to anchor i, the other N - 1 rows are its negatives.
        temperature: divisor of the cosines.

    One direction only: positives do not look for their anchors (official code). Normalising first makes all cosines
    one matrix product of (N, width) by (width, N); broadcasting a cosine would hold N x N x width numbers.
    """
    targets = torch.arange(len(anchors), device=anchors.device)
    return functional.cross_entropy(cosines(anchors, positives) / temperature, targets)


def cosines(first: Tensor, second: Tensor) -> Tensor:
    """Return all cosines between rows of (N, width) and (M, width) as (N, M)."""
    return functional.normalize(first, dim=-1) @ functional.normalize(second, dim=-1).T


def relation_vectors(source: Tensor, target: Tensor, how: RelationEncoder) -> Tensor:
    """Return vectors of sentence pairs: e1 - e2, or [e1; e2], or [e1; e2; e1 - e2].

    The analogy paper's figure 2 shows e1 - e2; its loss does not say what it compares. With differences an exchanged
    pair is the negated vector, which makes its objective reward collapse; with [e1; e2] nothing cancels.
    """
    parts = {"diff": (source - target,), "concat": (source, target), "concat_diff": (source, target, source - target)}
    return torch.cat(parts[how], dim=-1)


def relation_info_nce(
    anchors: Tensor,
    positives: Tensor,
    thirds: Tensor,
    temperature: float,
    negatives: Negatives,
    same: Tensor,
    false: Tensor,
) -> Tensor:
    """Return the analogy paper's changed InfoNCE (Equation 2) or one of its repairs, averaged over the batch.

    Args:
        anchors: (N, width) relation vectors h.
        positives: (N, width) vectors h+ of another pair of the same relation.
        thirds: (N, width) vectors h- of exchanged pairs, one a row.
        temperature: divisor of the cosines.
        negatives: what the denominator sums over. ``third_pairs``: all third pairs of the batch and nothing else, as
            the paper says; the loss has no lower bound of 0. ``third_pairs_plus_positive``: the own positive as well,
            the usual InfoNCE. ``cross_relation``: besides, positives of rows whose relation differs.
        same: (N, N) bool, true where anchor i and positive j have the same directed relation.
        false: (N, N) bool, true where third pair j has the directed relation of anchor i: a false negative, masked.

    Raises:
        ValueError: an anchor has no negative left, so its loss is undefined.
    """
    own = (functional.normalize(anchors, dim=-1) * functional.normalize(positives, dim=-1)).sum(-1) / temperature
    against = (cosines(anchors, thirds) / temperature).masked_fill(false, -torch.inf)
    if negatives == "cross_relation":
        others = (cosines(anchors, positives) / temperature).masked_fill(same, -torch.inf)
        against = torch.cat([against, others], dim=1)
    if negatives != "third_pairs":
        against = torch.cat([against, own.unsqueeze(1)], dim=1)
    elif bool(false.all(dim=1).any()):
        raise ValueError("every third pair of the batch is a false negative of some anchor")
    return (torch.logsumexp(against, dim=1) - own).mean()
