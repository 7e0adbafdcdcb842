"""Linear classifiers on frozen vectors, many at once, each as SentEval's own loop would fit it.

SentEval fits one classifier after the other: ten folds times four strengths of L2 for MRPC alone, 410 fits for SUBJ.
Every fit sets the same seed, so all fits with equally many rows draw the same orders, and those of one fold see the
same batches and differ in L2 only. Here the folds are a batch dimension and the strengths are columns, and all of them
take a step together.
"""

from __future__ import annotations

import copy
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from sembench.core.errors import SembenchError
from sembench.evaluation.folds import Job

Ints = NDArray[np.int64]
Optimiser = Literal["adam", "rmsprop"]

# Bytes of a batch of several folds: it is written once and read twice, so it should stay in a core's own cache.
_CACHED = 2**20


@dataclass(frozen=True)
class Settings:
    """How one classifier is fitted; the defaults are those of SentEval's full mode as SimCSE ran it.

    Attributes:
        optimiser: its numbers beside the learning rate are PyTorch's defaults.
        learning_rate: SentEval's is PyTorch's default too, 0.001 for Adam and 0.01 for RMSprop.
        batch_size: rows a step; the last batch of an epoch may be smaller.
        tenacity: a fit ends with check number ``tenacity + 1`` that brings no better accuracy. SentEval never resets
            this count, so a fit may have six bad checks in all and not six in a row.
        epoch_size: epochs between two checks on the held-out rows.
        max_epoch: no new round of epochs begins beyond this one.
        seed: of the first weights.
    """

    optimiser: Optimiser = "adam"
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
        weights: (jobs, strengths, classes, width + 1); the last column is the bias.
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

    A fit equals one by SentEval's own loop: the same first weights, batches, steps and checks. The type of
    ``features`` is that of the computation; SentEval's is float32.

    Args:
        features: (rows, width).
        labels: (rows,), classes 0, 1, ...
        jobs: rows of each fit; their generators stay as they are.
        l2: strengths of L2, the same for all jobs (strengths,), or of each job (jobs, strengths). They enter the
            gradient as the optimiser's weight decay does (coupled), for the bias too.
        settings: the rest.
        device: where to compute.

    Raises:
        SembenchError: a feature is not finite, there is a label too many or too few, or all labels are the same.
    """
    _check(features, labels)
    settings = settings or Settings()
    plain = torch.from_numpy(np.ascontiguousarray(features))
    inputs = torch.cat([plain, torch.ones(len(plain), 1, dtype=plain.dtype)], dim=1).to(device)
    each = np.broadcast_to(np.atleast_1d(np.asarray(l2, dtype=np.float64)), (len(jobs), np.shape(l2)[-1]))
    strengths = torch.from_numpy(each.copy()).to(inputs)
    first = first_weights(features.shape[1], int(labels.max()) + 1, settings.seed).to(inputs)
    truth = torch.from_numpy(labels).to(device)

    def run(places: list[int]) -> _Fits:
        fits = _Fits(inputs, truth, [jobs[place] for place in places], strengths[places], first, settings)
        fits.run()
        return fits

    shape = each.shape
    found = Fitted(torch.empty(*shape, *first.shape).to(inputs), np.empty(shape), np.empty(shape, dtype=np.int64))
    threads = torch.get_num_threads() if device == "cpu" else 1
    most = max(1, _CACHED // (settings.batch_size * inputs.shape[1] * inputs.element_size()))
    groups = list(_groups(jobs, most if device == "cpu" else len(jobs), threads))
    for places, fits in zip(groups, _in_threads(run, groups, threads), strict=True):
        found.weights[places] = fits.best
        found.accuracy[places], found.checks[places] = fits.accuracy.numpy(), fits.checks.numpy()
    return found


def _check(features: NDArray[np.floating[Any]], labels: Ints) -> None:
    if len(features) != len(labels):
        raise SembenchError(f"there are {len(features)} vectors for {len(labels)} labels; give one for each")
    _check_finite(features)
    if len(np.unique(labels)) < 2:
        raise SembenchError(f"all {len(labels)} items have the same label, so there is nothing to learn; give others")


def _check_finite(features: NDArray[np.floating[Any]]) -> None:
    bad = np.flatnonzero(~np.isfinite(features).all(axis=1))
    if len(bad):
        raise SembenchError(
            f"vector {bad[0]} of {len(features)} given to a classifier is not finite; the encoder's weights or the "
            "vectors in the file are damaged, or the precision is too low (use fp32)"
        )


def _groups(jobs: Sequence[Job], most: int, threads: int) -> Iterator[list[int]]:
    """Yield the places of jobs that order equally many rows in the same way, as those of one seed do.

    At most so many at once; and fewer where some of the threads would have none.
    """
    alike = defaultdict(list)
    for place, job in enumerate(jobs):
        _, keys, position, *_ = job.order.get_state(legacy=True)
        alike[len(job.train), position, np.asarray(keys).tobytes()].append(place)
    for places in alike.values():
        parts = math.ceil(len(places) / min(most, math.ceil(len(places) / threads)))
        yield from (part.tolist() for part in np.array_split(places, parts))


def _in_threads(run: Callable[[list[int]], _Fits], groups: list[list[int]], threads: int) -> Iterator[_Fits]:
    """Yield what ``run`` makes of each group, each computed by one thread: several would wait for each other."""
    if threads == 1:
        yield from map(run, groups)
        return
    try:
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            yield from pool.map(run, groups)
    finally:
        # PyTorch would give the new number to all threads that begin later.
        torch.set_num_threads(threads)


class _Fits:
    """Fits that see batches of the same size in the same order.

    Those that go on lie in tensors (jobs, strengths * classes, width + 1). Jobs whose fits have all ended are dropped
    from them; a fit that has ended beside one that goes on still moves, but its best weights stay.
    """

    def __init__(
        self, inputs: Tensor, labels: Tensor, jobs: Sequence[Job], l2: Tensor, first: Tensor, settings: Settings
    ) -> None:
        self.inputs, self.labels, self.settings, self.jobs = inputs, labels, settings, jobs
        self.truth = torch.nn.functional.one_hot(labels, len(first)).to(inputs)
        self.train = torch.from_numpy(np.stack([job.train for job in jobs])).to(inputs.device)
        self.order = copy.deepcopy(jobs[0].order)
        self.weights = first.repeat(len(jobs), l2.shape[1], 1)
        self.memory = torch.zeros(2, *self.weights.shape).to(inputs)
        self.decay = l2.repeat_interleave(len(first), dim=1)[:, :, None]
        self.batch = inputs.new_empty(len(jobs) * settings.batch_size, inputs.shape[1])
        self.gradient = torch.empty_like(self.weights)
        self.steps = 0
        self.alive = torch.arange(len(jobs))
        self.best = torch.zeros(*l2.shape, *first.shape).to(inputs)
        self.accuracy = torch.full(l2.shape, -1.0, dtype=torch.float64)
        self.bad, self.checks = (torch.zeros(l2.shape, dtype=torch.int64) for _ in range(2))

    def run(self) -> None:
        """Fit until every fit has ended."""
        epoch = 0
        while len(self.alive) and epoch <= self.settings.max_epoch:
            for _ in range(self.settings.epoch_size):
                order = torch.from_numpy(self.order.permutation(self.train.shape[1])).to(self.train.device)
                rows = self.train[:, order]
                truth = self.truth[rows].transpose(1, 2).contiguous()
                size = self.settings.batch_size
                for batch in zip(torch.split(rows, size, dim=1), torch.split(truth, size, dim=2), strict=True):
                    self.step(*batch)
            epoch += self.settings.epoch_size
            self.check()

    def step(self, rows: Tensor, truth: Tensor) -> None:
        """Take one step on a batch per job: ``rows`` (jobs, batch) and their ``truth`` (jobs, classes, batch)."""
        self.steps += 1
        gradient = self._gradient(rows, truth)
        move = _MOVES[self.settings.optimiser]
        move(self.weights, gradient, self.memory, self.settings.learning_rate, self.steps)

    def _gradient(self, rows: Tensor, truth: Tensor) -> Tensor:
        """Return the gradient of each job's mean cross-entropy with its decay, shaped as the weights.

        In place where it can be: fresh memory for each intermediate result would cost as much as the arithmetic.
        """
        jobs, size = rows.shape
        batch = self.batch[: jobs * size]
        torch.index_select(self.inputs, 0, rows.reshape(-1), out=batch)
        batch = batch.view(jobs, size, -1)
        logits = torch.bmm(self.weights, batch.transpose(1, 2))
        error = logits.view(jobs, -1, truth.shape[1], size).softmax(dim=2).sub_(truth[:, None])
        gradient = torch.mul(self.weights, self.decay, out=self.gradient[:jobs])
        return gradient.baddbmm_(error.view(jobs, -1, size), batch, alpha=1 / size)

    def check(self) -> None:
        """Measure every fit on its job's checked rows, keep what is best, and drop jobs that have ended."""
        alive = self.alive
        accuracy = torch.stack([self._accuracy(job, place) for place, job in enumerate(alive.tolist())])
        going = self.bad[alive] <= self.settings.tenacity
        better = going & (accuracy > self.accuracy[alive])
        now = self.weights.view(len(alive), *self.best.shape[1:])
        places, columns = better.nonzero(as_tuple=True)
        self.best[alive[places], columns] = now[places, columns]
        self.accuracy[alive] = torch.where(better, accuracy, self.accuracy[alive])
        self.checks[alive] += going
        self.bad[alive] += going & ~better
        self._keep((self.bad[alive] <= self.settings.tenacity).any(dim=1))

    def _accuracy(self, job: int, place: int) -> Tensor:
        """Return the accuracies of a job's fits on its checked rows, (strengths,)."""
        rows = torch.from_numpy(self.jobs[job].dev).to(self.labels.device)
        logits = (self.weights[place] @ self.inputs[rows].T).view(*self.best.shape[1:3], len(rows))
        return (logits.argmax(dim=1) == self.labels[rows]).sum(dim=1).double().cpu() / len(rows)

    def _keep(self, stay: Tensor) -> None:
        """Drop jobs from what is computed, unless they stay (jobs,)."""
        if not stay.all():
            self.alive, kept = self.alive[stay], stay.to(self.weights.device)
            self.weights, self.train, self.decay = self.weights[kept], self.train[kept], self.decay[kept]
            self.memory = self.memory[:, kept]


def adam(weights: Tensor, gradient: Tensor, memory: Tensor, rate: float, step: int) -> None:
    """Take step number ``step`` of Adam; ``memory`` holds the means of the gradient and of its square."""
    beta1, beta2, epsilon = 0.9, 0.999, 1e-8
    mean, square = memory
    mean.lerp_(gradient, 1 - beta1)
    square.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
    size = torch.sqrt(square, out=gradient).div_(math.sqrt(1 - beta2**step)).add_(epsilon)
    weights.addcdiv_(mean, size, value=-rate / (1 - beta1**step))


def _rmsprop(weights: Tensor, gradient: Tensor, memory: Tensor, rate: float, _step: int) -> None:
    """Take a step of RMSprop; of ``memory`` the mean of the gradient's square is used."""
    alpha, epsilon = 0.99, 1e-8
    _, square = memory
    square.mul_(alpha).addcmul_(gradient, gradient, value=1 - alpha)
    weights.addcdiv_(gradient, square.sqrt().add_(epsilon), value=-rate)


_MOVES: dict[Optimiser, Callable[[Tensor, Tensor, Tensor, float, int], None]] = {"adam": adam, "rmsprop": _rmsprop}


def first_weights(width: int, classes: int, seed: int) -> Tensor:
    """Return the first weights of SentEval's classifier with its bias as last column, (classes, width + 1)."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layer = torch.nn.Linear(width, classes)
    return torch.cat([layer.weight.detach(), layer.bias.detach()[:, None]], dim=1)


def predict(weights: Tensor, features: NDArray[np.floating[Any]]) -> Ints:
    """Return the class of each row, (rows,).

    Args:
        weights: one classifier of ``Fitted.weights``, (classes, width + 1).
        features: (rows, width).

    Raises:
        SembenchError: the vectors are not as wide as those that the classifier learned from, or not finite.
    """
    width = weights.shape[1] - 1
    if features.shape[1:] != (width,):
        raise SembenchError(f"vectors of width {features.shape[-1]} are tested by a classifier of width {width}")
    _check_finite(features)
    inputs = torch.from_numpy(np.ascontiguousarray(features)).to(weights)
    found: Ints = (inputs @ weights[:, :-1].T + weights[:, -1]).argmax(dim=1).cpu().numpy()
    return found
