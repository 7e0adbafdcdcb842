"""SentEval's regressor for scored pairs: a linear layer over five levels of relatedness (Tai et al. 2015).

Papers before SBERT score STS-B and SICK-R through it (SimCSE, Table B.1, "regressor"): it learns from gold scores what
a cosine has to know by itself, so that the two settings cannot be compared.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sembench.core.errors import SembenchError
from sembench.evaluation.probes import adam, first_weights
from sembench.evaluation.sts import correlation

Floats = NDArray[np.float64]
Vectors = NDArray[np.float32]
LEVELS = 5
_RATE = 1e-3  # PyTorch's default for Adam


@dataclass(frozen=True)
class Settings:
    """How the layer is fitted; the defaults are SentEval's.

    Attributes:
        batch_size: pairs a step; the last batch of an epoch may be smaller.
        epoch_size: epochs between two checks on the dev pairs.
        max_epoch: no new round of epochs begins beyond this one.
        tenacity: the fit ends with check number ``tenacity + 1`` that is not better, counted over all of it.
        seed: of the first weights and of the order of the pairs.
    """

    batch_size: int = 64
    epoch_size: int = 50
    max_epoch: int = 1000
    tenacity: int = 3
    seed: int = 1111


@dataclass(frozen=True)
class Regressed:
    """What the regressor says.

    Attributes:
        predicted: relatedness of each test pair, 1 to 5, (pairs,).
        dev: Pearson's correlation on the dev pairs at the kept weights, by which they were chosen.
        checks: how often it was measured.
    """

    predicted: Floats
    dev: float
    checks: int


def level_targets(gold: Floats) -> Vectors:
    """Return the shares of the levels 1 to 5 that stand for gold scores (pairs,), (pairs, 5).

    A score between two levels is shared by them: 3.4 is 0.6 of level 3 and 0.4 of level 4. There is no level 0, so a
    score below 1, which STS-B has and SICK has not, gives level 1 no more than its own size; SentEval does so too.
    """
    levels = np.arange(1, LEVELS + 1)
    found: Vectors = np.clip(1 - np.abs(gold[:, None] - levels), 0, None).astype(np.float32)
    return found


def regress(
    train: tuple[Vectors, Floats], dev: tuple[Vectors, Floats], test: Vectors, settings: Settings | None = None
) -> Regressed:
    """Fit a linear layer with a softmax over the levels by mean squared error and Adam, and apply it.

    Args:
        train: features (pairs, width) and gold scores (pairs,), in SentEval's order (see ``senteval_order``).
        dev: the same; Pearson's correlation on them decides when the fit ends and which weights are kept.
        test: features (pairs, width).
        settings: the rest.

    Raises:
        SembenchError: a feature is not finite, or no check on the dev pairs could be measured.
    """
    for name, features in (("train", train[0]), ("dev", dev[0]), ("test", test)):
        if not np.isfinite(features).all():
            raise SembenchError(
                f"a vector of the {name} pairs is not finite; use fp32, or see whether weights are damaged"
            )
    settings = settings or Settings()
    inputs, targets = _with_ones(train[0]), torch.from_numpy(level_targets(train[1]))
    weights = first_weights(train[0].shape[1], LEVELS, settings.seed)
    memory = torch.zeros(2, *weights.shape)
    order = np.random.RandomState(settings.seed)
    best, kept, epoch, bad, steps, checks = -1.0, None, 0, 0, 0, 0
    while epoch <= settings.max_epoch and bad <= settings.tenacity:
        for _ in range(settings.epoch_size):
            for rows in torch.split(torch.from_numpy(order.permutation(len(inputs))), settings.batch_size):
                steps += 1
                adam(weights, _gradient(weights, inputs[rows], targets[rows]), memory, _RATE, steps)
        epoch, checks = epoch + settings.epoch_size, checks + 1
        found = _pearson(_expected(weights, dev[0]), dev[1])
        if found > best:
            best, kept = found, weights.clone()
        else:
            bad += 1
    if kept is None:
        raise SembenchError("the regressor says the same of all dev pairs; see whether their vectors are all equal")
    return Regressed(_expected(kept, test), best, checks)


def _with_ones(features: Vectors) -> Tensor:
    plain = torch.from_numpy(features)
    return torch.cat([plain, torch.ones(len(plain), 1)], dim=1)


def _gradient(weights: Tensor, inputs: Tensor, targets: Tensor) -> Tensor:
    """Return the gradient of the softmax's mean squared error, (levels, width + 1); autograd takes thrice as long."""
    shares = (inputs @ weights.T).softmax(dim=1)
    error = shares - targets
    logits = shares * (error - (error * shares).sum(dim=1, keepdim=True))
    return (logits.T @ inputs).mul_(2 / error.numel())


def _expected(weights: Tensor, features: Vectors) -> Floats:
    """Return the mean level under the softmax, (pairs,)."""
    shares = (_with_ones(features) @ weights.T).softmax(dim=1).numpy().astype(np.float64)
    found: Floats = shares @ np.arange(1, LEVELS + 1)
    return found


def _pearson(predicted: Floats, gold: Floats) -> float:
    """Return Pearson's correlation; -1 where it is undefined, which is better than nothing that was measured."""
    try:
        return correlation("pearson", predicted, gold)
    except SembenchError:
        return -1.0


def senteval_order(first: list[str], second: list[str], gold: Floats) -> NDArray[np.int64]:
    """Return the rows of pairs as SentEval sorts them before it fits, by words of both sentences and gold, (pairs,)."""
    keys = [(len(a.split()), len(b.split()), float(g)) for a, b, g in zip(first, second, gold, strict=True)]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)
