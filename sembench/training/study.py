"""What an objective rewards where nothing holds it back: free sentence vectors moved by its gradient alone.

An encoder starts from vectors that mean something and is trained for a while; where the loss leads in the end shows
sooner without one. Relations are made of random vectors, so that nothing distinguishes them but the objective.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd
import torch

from sembench.training.losses import Negatives, RelationEncoder, relation_facts, relation_info_nce, relation_vectors

# 16 relations of 8 pairs in 32 dimensions, batch and temperature as in registry/variants.yaml: a loss of -35.8 is then
# that of one common direction, -15.9 that of 16 perfectly separate ones.
RELATIONS, PAIRS, WIDTH, BATCH, TEMPERATURE = 16, 8, 32, 64, 0.05
STEPS, EVERY, LEARNING_RATE = 200, 10, 0.05


def free_vectors(
    label: str, relation_encoder: RelationEncoder, negatives: Negatives, seed: int = 0, steps: int = STEPS
) -> pd.DataFrame:
    """Return the loss and the cosines within and across relations while free vectors follow an objective.

    Args:
        label: name of the curve.
        relation_encoder: how a pair of vectors becomes one.
        negatives: what the loss divides by.
        seed: of the starting vectors and of the pairs drawn in each step.
        steps: of Adam.

    Returns:
        A frame with ``label``, ``step``, ``loss``, ``own_cosine`` and ``cross_cosine``, a row every tenth step.
    """
    generator = torch.Generator().manual_seed(seed)
    vectors = torch.randn(RELATIONS, PAIRS, 2, WIDTH, generator=generator).requires_grad_()
    optimizer = torch.optim.Adam([vectors], lr=LEARNING_RATE)
    relation = torch.arange(BATCH) % RELATIONS
    same = relation.unsqueeze(1) == relation
    none = torch.zeros_like(same)
    rows = []
    for step in range(steps + 1):
        # Three different pairs of a relation a row; the third is exchanged.
        drawn = torch.stack([torch.randperm(PAIRS, generator=generator)[:3] for _ in range(BATCH)])
        sides = vectors[relation.unsqueeze(1), drawn]
        anchors, positives = (relation_vectors(sides[:, k, 0], sides[:, k, 1], relation_encoder) for k in range(2))
        thirds = relation_vectors(sides[:, 2, 1], sides[:, 2, 0], relation_encoder)
        loss = relation_info_nce(anchors, positives, thirds, TEMPERATURE, negatives, same, none)
        if step % EVERY == 0:
            facts = relation_facts(anchors.detach(), positives.detach(), same)
            rows.append({"label": label, "step": step, "loss": float(loss.detach()), **facts})
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return pd.DataFrame(rows)


def study(lines: Iterable[tuple[str, RelationEncoder, Negatives]], steps: int = STEPS) -> pd.DataFrame:
    """Return the curves of several objectives, (label, relation encoder, negatives), one below the other."""
    return pd.concat([free_vectors(*line, steps=steps) for line in lines], ignore_index=True).replace({np.nan: None})
