"""Linear classifiers on frozen vectors, many at once, each as SentEval's own loop would fit it.

SentEval fits one classifier after the other: ten folds times four strengths of L2 for MRPC alone, 410 fits for SUBJ.
Every fit sets the same seed, so the fits of one fold see the same batches in the same order and differ in L2 only.
Here the folds are a batch dimension and the strengths are columns, and all of them take a step together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from sembench.evaluation.folds import Job

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Settings:
    """How one classifier is fitted; the defaults are those of SentEval's full mode as SimCSE ran it.

    Attributes:
        learning_rate: Adam's; its other numbers are PyTorch's defaults.
        batch_size: rows a step; the last batch of an epoch may be smaller.
        tenacity: a fit ends with check number ``tenacity + 1`` that brings no better accuracy. SentEval never resets
            this count, so a fit may have six bad checks in all and not six in a row.
        epoch_size: epochs between two checks on the held-out rows.
        max_epoch: no new round of epochs begins beyond this one.
        seed: of the first weights.
    """

    learning_rate: float = 1e-3
    batch_size: int = 64
    tenacity: int = 5
    epoch_size: int = 4
    max_epoch: int = 200
    seed: int = 1111


@dataclass(frozen=True)
class Fitted:
    """Linear classifiers for each job and each strength of L2.

    Attributes:
        weights: (jobs, strengths, width + 1, classes); the last row is the bias.
        accuracy: (jobs, strengths), the best one on the job's checked rows, at which the weights were kept.
        checks: (jobs, strengths), how many checks a fit had.
    """

    weights: Tensor
    accuracy: NDArray[np.float64]
    checks: Ints


def fit(
    features: NDArray[np.floating[Any]],
    labels: Ints,
    jobs: Sequence[Job],
    l2: ArrayLike,
    settings: Settings | None = None,
    device: str = "cpu",
) -> Fitted:
    """Fit one linear classifier per job and strength of L2, all together, each with its own early stopping.

    A fit equals one by SentEval's own loop: the same first weights, batches, Adam steps and checks. The generators of
    the jobs are used up. The type of ``features`` is that of the computation; SentEval's is float32.

    Args:
        features: (rows, width).
        labels: (rows,), classes 0, 1, ...
        jobs: rows of each fit.
        l2: strengths of L2, the same for all jobs (strengths,), or of each job (jobs, strengths). They enter Adam's
            gradient (coupled), for the bias too.
        settings: the rest.
        device: where to compute.
    """
    settings = settings or Settings()
    strengths = np.atleast_1d(np.asarray(l2, dtype=np.float64))
    state = _State(
        features, labels, jobs, np.broadcast_to(strengths, (len(jobs), strengths.shape[-1])), settings, device
    )
    epoch = 0
    while len(state.alive) and epoch <= settings.max_epoch:
        for _ in range(settings.epoch_size):
            for rows, weights in zip(*_batches(state.orders(), settings.batch_size), strict=True):
                state.step(rows, weights)
        epoch += settings.epoch_size
        state.check()
    return Fitted(state.best, state.accuracy.cpu().numpy(), state.checks.cpu().numpy())


def _batches(orders: Sequence[Ints], size: int) -> tuple[Tensor, Tensor]:
    """Return rows and their weights in the mean loss, both (steps, jobs, size).

    Jobs differ in rows, so the last batches are filled up with row 0 at weight 0; a batch of weight 0 is no step.
    """
    steps = math.ceil(max(map(len, orders)) / size)
    rows = np.zeros((len(orders), steps * size), dtype=np.int64)
    real = np.zeros((len(orders), steps * size))
    for job, order in enumerate(orders):
        rows[job, : len(order)], real[job, : len(order)] = order, 1
    shape = (len(orders), steps, size)
    weights = real.reshape(shape) / np.maximum(real.reshape(shape).sum(axis=2, keepdims=True), 1)
    return torch.from_numpy(rows.reshape(shape)).transpose(0, 1), torch.from_numpy(weights).transpose(0, 1)


class _State:
    """Weights and Adam's memory of all fits that go on, and the best weights of every fit.

    Fits lie in tensors (jobs, width + 1, strengths * classes). Jobs whose fits have all ended are dropped from them;
    a fit that has ended beside one that goes on still moves, but its best weights stay.
    """

    def __init__(
        self,
        features: NDArray[np.floating[Any]],
        labels: Ints,
        jobs: Sequence[Job],
        l2: NDArray[np.float64],
        settings: Settings,
        device: str,
    ) -> None:
        self.jobs, self.settings = list(jobs), settings
        plain = torch.from_numpy(np.ascontiguousarray(features))
        self.features = torch.cat([plain, torch.ones(len(plain), 1, dtype=plain.dtype)], dim=1).to(device)
        self.labels = torch.from_numpy(labels).to(device)
        classes = int(labels.max()) + 1
        self.truth = torch.nn.functional.one_hot(self.labels, classes).to(self.features.dtype)
        self.shape = (len(jobs), l2.shape[1], features.shape[1] + 1, classes)
        first = _first_weights(features.shape[1], classes, settings.seed).to(self.features)
        self.weights = first.repeat(len(jobs), 1, l2.shape[1])
        self.mean, self.square = torch.zeros_like(self.weights), torch.zeros_like(self.weights)
        # A copy, since torch takes no read-only array.
        self.decay = torch.from_numpy(l2.repeat(classes, axis=1)[:, None].copy()).to(self.features)
        self.steps = torch.zeros(len(jobs), 1, 1).to(self.features)
        self.batch = self.features.new_empty(len(jobs) * settings.batch_size, self.features.shape[1])
        self.alive = torch.arange(len(jobs), device=device)
        self.best = torch.zeros(self.shape).to(self.features)
        self.accuracy = torch.full(self.shape[:2], -1.0, dtype=torch.float64, device=device)
        self.bad, self.checks = (torch.zeros(self.shape[:2], dtype=torch.int64, device=device) for _ in range(2))

    def orders(self) -> list[Ints]:
        """Return the rows of the next epoch, for each job that goes on."""
        jobs = [self.jobs[index] for index in self.alive.tolist()]
        return [job.train[job.order.permutation(len(job.train))] for job in jobs]

    def step(self, rows: Tensor, weights: Tensor) -> None:
        """Take one step of Adam on a batch per job; ``rows`` and ``weights`` are (jobs, batch).

        All in place: fresh memory for each intermediate result would cost more than the arithmetic.
        """
        weights = weights.to(self.features)
        moves = (weights.sum(dim=1) > 0).view(-1, 1, 1)
        gradient = self._gradient(rows.to(self.labels.device), weights)
        gradient += self.decay * self.weights
        # PyTorch's defaults, as in SentEval. Jobs count their own steps, since some have a batch less in an epoch; a
        # job without a batch keeps its memory whole and moves by nothing.
        beta1, beta2, epsilon = 0.9, 0.999, 1e-8
        one, nothing = self.features.new_ones(()), self.features.new_zeros(())
        self.steps += moves
        self.mean *= torch.where(moves, beta1 * one, one)
        self.mean += torch.where(moves, (1 - beta1) * one, nothing) * gradient
        self.square *= torch.where(moves, beta2 * one, one)
        self.square += torch.where(moves, (1 - beta2) * one, nothing) * gradient.square_()
        size = torch.where(moves, self.settings.learning_rate / (1 - beta1**self.steps), nothing)
        move = torch.div(self.square, 1 - beta2**self.steps, out=gradient).sqrt_().add_(epsilon)
        self.weights -= torch.div(size * self.mean, move, out=move)

    def _gradient(self, rows: Tensor, weights: Tensor) -> Tensor:
        """Return the gradient of the mean cross-entropy of each job's batch, (jobs, width + 1, strengths * classes)."""
        jobs, size, classes = len(rows), rows.shape[1], self.shape[3]
        batch = self.batch[: jobs * size]
        torch.index_select(self.features, 0, rows.reshape(-1), out=batch)
        batch = batch.view(jobs, size, -1)
        error = torch.bmm(batch, self.weights).view(jobs, size, -1, classes).softmax(dim=3)
        error -= self.truth[rows].unsqueeze(2)
        error *= weights.view(jobs, size, 1, 1)
        return torch.bmm(batch.transpose(1, 2), error.view(jobs, size, -1))

    def check(self) -> None:
        """Measure every fit on its job's checked rows, keep what is best, and drop jobs that have ended."""
        alive, (_, strengths, width, classes) = self.alive, self.shape
        accuracy = torch.stack([self._accuracy(job, place) for place, job in enumerate(alive.tolist())])
        going = self.bad[alive] <= self.settings.tenacity
        better = going & (accuracy > self.accuracy[alive])
        now = self.weights.view(len(alive), width, strengths, classes).transpose(1, 2)
        self.best[alive] = torch.where(better[:, :, None, None], now, self.best[alive])
        self.accuracy[alive] = torch.where(better, accuracy, self.accuracy[alive])
        self.checks[alive] += going
        self.bad[alive] += going & ~better
        self._drop((self.bad[alive] <= self.settings.tenacity).any(dim=1))

    def _accuracy(self, job: int, place: int) -> Tensor:
        """Return the accuracies of a job's fits on its checked rows, (strengths,)."""
        rows = torch.from_numpy(self.jobs[job].dev).to(self.labels.device)
        logits = (self.features[rows] @ self.weights[place]).view(len(rows), self.shape[1], self.shape[3])
        return (logits.argmax(dim=2) == self.labels[rows, None]).sum(dim=0).double() / len(rows)

    def _drop(self, stay: Tensor) -> None:
        self.alive = self.alive[stay]
        self.weights, self.mean, self.square, self.steps, self.decay = (
            tensor[stay] for tensor in (self.weights, self.mean, self.square, self.steps, self.decay)
        )


def _first_weights(width: int, classes: int, seed: int) -> Tensor:
    """Return the first weights of SentEval's classifier with its bias as last row, (width + 1, classes)."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layer = torch.nn.Linear(width, classes)
    return torch.cat([layer.weight.detach().T, layer.bias.detach()[None]])


def predict(weights: Tensor, features: NDArray[np.floating[Any]]) -> Ints:
    """Return the class of each row, (rows,).

    Args:
        weights: one classifier of ``Fitted.weights``, (width + 1, classes).
        features: (rows, width).
    """
    inputs = torch.from_numpy(np.ascontiguousarray(features)).to(weights)
    found: Ints = (inputs @ weights[:-1] + weights[-1]).argmax(dim=1).cpu().numpy()
    return found
