"""Losses on batches of vectors. Pure functions, no encoder and no data; they expect float32 or float64.

They stand outside autocast: a product in bf16 would round cosines to two digits before they are divided by 0.05.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from sembench.core.lazy import functional, torch

if TYPE_CHECKING:
    from torch import Tensor

RelationEncoder = Literal["diff", "concat", "concat_diff"]
Similarity = Literal["cosine", "dot"]
Negatives = Literal["third_pairs", "third_pairs_plus_positive", "cross_relation"]


def cosines(first: Tensor, second: Tensor) -> Tensor:
    """Return all cosines between rows of (N, width) and (M, width) as (N, M)."""
    return functional.normalize(first, dim=-1) @ functional.normalize(second, dim=-1).T


def similarities(first: Tensor, second: Tensor, how: Similarity) -> Tensor:
    """Return all cosines or dot products between rows of (N, width) and (M, width) as (N, M)."""
    return cosines(first, second) if how == "cosine" else first @ second.T


def info_nce(anchors: Tensor, positives: Tensor, temperature: float, similarity: Similarity = "cosine") -> Tensor:
    """Return the mean cross-entropy of finding each anchor's own positive among all positives (SimCSE, Equation 1).

    Args:
        anchors: (N, width).
        positives: (N, width); row i belongs to anchor i, the other N - 1 rows are its negatives.
        temperature: divisor of the similarities.
        similarity: cosine, or the plain dot product of Table D.1.

    One direction only: positives do not look for their anchors (official code). Normalising first makes all cosines
    one matrix product of (N, width) by (width, N); broadcasting a cosine would hold N x N x width numbers.
    """
    targets = torch.arange(len(anchors), device=anchors.device)
    return functional.cross_entropy(similarities(anchors, positives, similarity) / temperature, targets)


def hard_negative_info_nce(
    anchors: Tensor,
    positives: Tensor,
    negatives: Sequence[Tensor],
    temperature: float,
    weight: float = 1.0,
    similarity: Similarity = "cosine",
) -> Tensor:
    """Return the mean cross-entropy of finding each own positive among all positives and negatives (Equation 5).

    Args:
        anchors: (N, width).
        positives: (N, width); row i belongs to anchor i.
        negatives: one (N, width) for each sort of hard negatives; row i belongs to anchor i, but all N of each sort are
            negatives of every anchor.
        temperature: divisor of the similarities.
        weight: alpha of Table 7, not negative. It counts the own hard negatives' exponentials alpha times, so
            log(alpha) is added to their logits and to no others (official code); 0 leaves them out.
        similarity: cosine, or the plain dot product of Table D.1.
    """
    n = len(anchors)
    own = torch.zeros(n, n, dtype=anchors.dtype, device=anchors.device)
    own.fill_diagonal_(math.log(weight) if weight else -math.inf)
    logits = [similarities(anchors, other, similarity) / temperature for other in (positives, *negatives)]
    return functional.cross_entropy(
        torch.cat([logits[0], *(part + own for part in logits[1:])], dim=1), torch.arange(n, device=anchors.device)
    )


def pair_features(first: Tensor, second: Tensor) -> Tensor:
    """Return (u, v, |u - v|) of row pairs: (N, width) each -> (N, 3 * width) (SBERT, section 3)."""
    return torch.cat([first, second, (first - second).abs()], dim=-1)


def relation_vectors(source: Tensor, target: Tensor, how: RelationEncoder) -> Tensor:
    """Return vectors of sentence pairs: e1 - e2, or [e1; e2], or [e1; e2; e1 - e2].

    Args:
        source: e1, (N, width).
        target: e2, (N, width).
        how: ``diff`` gives (N, width), ``concat`` (N, 2 * width), ``concat_diff`` (N, 3 * width).

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

    An anchor whose denominator is empty has no loss (it would be minus infinity) and is left out of the mean. It
    happens under ``third_pairs`` alone, in a short last batch whose third pairs are all masked for it. A batch without
    any other anchor gives 0 and moves nothing.
    """
    own = (functional.normalize(anchors, dim=-1) * functional.normalize(positives, dim=-1)).sum(-1) / temperature
    against = (cosines(anchors, thirds) / temperature).masked_fill(false, -torch.inf)
    if negatives == "cross_relation":
        others = (cosines(anchors, positives) / temperature).masked_fill(same, -torch.inf)
        against = torch.cat([against, others], dim=1)
    if negatives != "third_pairs":
        against = torch.cat([against, own.unsqueeze(1)], dim=1)
    elif bool((empty := false.all(dim=1)).any()):
        # Rows of -inf are dropped before the logarithm: its gradient there would not be a number.
        against, own = against[~empty], own[~empty]
        if not len(own):
            return own.sum()
    return (torch.logsumexp(against, dim=1) - own).mean()


def relation_facts(anchors: Tensor, positives: Tensor, same: Tensor) -> dict[str, float]:
    """Return the mean cosine with the own positive and with positives of other relations; both near 1: collapse.

    Args:
        anchors: (N, width) relation vectors.
        positives: (N, width).
        same: (N, N) bool, true where anchor i and positive j have the same directed relation.
    """
    table = cosines(anchors, positives)
    others = table[~same]
    return {
        "own_cosine": float(table.diagonal().mean()),
        "cross_cosine": float(others.mean()) if len(others) else float("nan"),
    }
