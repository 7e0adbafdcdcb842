"""Transfer tasks: a linear classifier on frozen vectors, by SentEval's protocol (SimCSE, section 6 and Appendix E).

SentEval fits one classifier after the other: ten folds times four strengths of L2 for MRPC alone, 1,727 for all seven
tasks. Every fit sets the same seed, so the fits of one fold see the same batches in the same order and differ in L2
only. Here the folds are a batch dimension and the strengths are columns, and all of them take a step together.

A task is an entry of ``TASKS``: how its files become texts, how these become features, and which scheme of folds its
official splits ask for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sembench.core.errors import SembenchError
from sembench.evaluation.pairs import Pairs, file_lines, file_path, sample_hash, tab_columns
from sembench.registry.models import Dataset

Vectors = NDArray[np.float32]
Ints = NDArray[np.int64]
Record = dict[str, Any]
MRPC_COLUMNS = ("Quality", "#1 String", "#2 String")


@dataclass(frozen=True)
class Settings:
    """The classifier's settings; the defaults are those of SentEval's full mode as SimCSE ran it.

    Attributes:
        folds: parts of the cross-validation that chooses L2.
        l2: strengths to choose from. They enter Adam's gradient (coupled), for the bias too.
        learning_rate: Adam's; its other numbers are PyTorch's defaults.
        batch_size: rows a step; the last batch of an epoch may be smaller.
        tenacity: a fit ends with check number ``tenacity + 1`` that brings no better accuracy. SentEval never resets
            this count, so a fit may have six bad checks in all and not six in a row.
        epoch_size: epochs between two checks on the held-out rows.
        max_epoch: no new round of epochs begins beyond this one.
        held_out: share of the rows that the last fit, with the chosen L2, is checked on.
        seed: of the folds, of the first weights and of the order of the rows, anew for every fit.
    """

    folds: int = 10
    l2: tuple[float, ...] = (1e-5, 1e-4, 1e-3, 1e-2)
    learning_rate: float = 1e-3
    batch_size: int = 64
    tenacity: int = 5
    epoch_size: int = 4
    max_epoch: int = 200
    held_out: float = 0.05
    seed: int = 1111


# -------------------------------------------------------------------------------------------------------- folds


def stratified_folds(labels: Ints, folds: int, seed: int) -> Ints:
    """Return for each row the fold that it is tested in, each fold with nearly the same mix of labels.

    The same folds as ``sklearn.model_selection.StratifiedKFold(folds, shuffle=True, random_state=seed)``, which
    SentEval uses; they are spelled out here so that no version of a library can move a row.

    Args:
        labels: any integers, shape (rows,).
        folds: number of folds.
        seed: seeds numpy's older generator.

    Raises:
        SembenchError: a label has fewer rows than there are folds.
    """
    names, first = np.unique(labels, return_index=True)
    names = names[np.argsort(first)]
    counts = np.array([(labels == name).sum() for name in names])
    if counts.min() < folds:
        raise SembenchError(
            f"label {names[counts.argmin()]} has {counts.min()} rows, too few for {folds} folds; use fewer folds"
        )
    generator = np.random.RandomState(seed)
    # Labels dealt out in turn: fold f takes every folds-th of the sorted labels, beginning with number f.
    dealt = np.repeat(np.arange(len(names)), counts)
    found = np.empty(len(labels), dtype=np.int64)
    for place, name in enumerate(names):
        mine = np.repeat(np.arange(folds), [(dealt[fold::folds] == place).sum() for fold in range(folds)])
        generator.shuffle(mine)
        found[labels == name] = mine
    return found


# ---------------------------------------------------------------------------------------------------- many fits


@dataclass(frozen=True)
class Job:
    """Rows to train on, rows to check on, and the generator that orders the training rows of every epoch."""

    train: Ints
    dev: Ints
    order: np.random.RandomState


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


def fold_jobs(labels: Ints, settings: Settings) -> list[Job]:
    """Return a job per fold, which trains on all other folds."""
    fold = stratified_folds(labels, settings.folds, settings.seed)
    return [
        Job(np.flatnonzero(fold != k), np.flatnonzero(fold == k), np.random.RandomState(settings.seed))
        for k in range(settings.folds)
    ]


def held_out_job(rows: int, settings: Settings) -> Job:
    """Return a job that checks on the first rows of a random order and trains on the others, in that order."""
    generator = np.random.RandomState(settings.seed)
    order = generator.permutation(rows)
    cut = int(settings.held_out * rows)
    if not cut:
        raise SembenchError(f"{rows} rows are too few to hold out {settings.held_out:.0%} of them; give more rows")
    return Job(order[cut:], order[:cut], generator)


def fit(
    features: NDArray[np.floating[Any]],
    labels: Ints,
    jobs: Sequence[Job],
    l2: Sequence[float],
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
        l2: strengths of L2.
        settings: the rest.
        device: where to compute.
    """
    settings = settings or Settings()
    state = _State(features, labels, jobs, l2, settings, device)
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
        l2: Sequence[float],
        settings: Settings,
        device: str,
    ) -> None:
        self.jobs, self.settings = list(jobs), settings
        plain = torch.from_numpy(np.ascontiguousarray(features))
        self.features = torch.cat([plain, torch.ones(len(plain), 1, dtype=plain.dtype)], dim=1).to(device)
        self.labels = torch.from_numpy(labels).to(device)
        classes = int(labels.max()) + 1
        self.truth = torch.nn.functional.one_hot(self.labels, classes).to(self.features.dtype)
        self.shape = (len(jobs), len(l2), features.shape[1] + 1, classes)
        first = _first_weights(features.shape[1], classes, settings.seed).to(self.features)
        self.weights = first.repeat(len(jobs), 1, len(l2))
        self.mean, self.square = torch.zeros_like(self.weights), torch.zeros_like(self.weights)
        self.decay = torch.tensor(l2, dtype=torch.float64).repeat_interleave(classes).to(self.features)
        self.steps = torch.zeros(len(jobs), 1, 1).to(self.features)
        self.alive = torch.arange(len(jobs), device=device)
        self.tested = torch.zeros(len(jobs), len(features), dtype=torch.bool)
        for job, rows in zip(self.tested, (job.dev for job in jobs), strict=True):
            job[torch.from_numpy(rows)] = True
        self.tested = self.tested.to(device)
        self.best = torch.zeros(self.shape).to(self.features)
        self.accuracy = torch.full(self.shape[:2], -1.0, dtype=torch.float64, device=device)
        self.bad, self.checks = (torch.zeros(self.shape[:2], dtype=torch.int64, device=device) for _ in range(2))

    def orders(self) -> list[Ints]:
        """Return the rows of the next epoch, for each job that goes on."""
        jobs = [self.jobs[index] for index in self.alive.tolist()]
        return [job.train[job.order.permutation(len(job.train))] for job in jobs]

    def step(self, rows: Tensor, weights: Tensor) -> None:
        """Take one step of Adam on a batch per job; ``rows`` and ``weights`` are (jobs, batch)."""
        weights = weights.to(self.features)
        moves = (weights.sum(dim=1) > 0).view(-1, 1, 1)
        gradient = self._gradient(rows.to(self.labels.device), weights) + self.decay * self.weights
        # PyTorch's defaults, as in SentEval. Jobs count their own steps, since some have a batch less in an epoch.
        beta1, beta2, epsilon = 0.9, 0.999, 1e-8
        self.steps += moves
        self.mean = torch.where(moves, beta1 * self.mean + (1 - beta1) * gradient, self.mean)
        self.square = torch.where(moves, beta2 * self.square + (1 - beta2) * gradient**2, self.square)
        size = self.settings.learning_rate / (1 - beta1**self.steps)
        move = size * self.mean / ((self.square / (1 - beta2**self.steps)).sqrt() + epsilon)
        self.weights = torch.where(moves, self.weights - move, self.weights)

    def _gradient(self, rows: Tensor, weights: Tensor) -> Tensor:
        batch = self.features[rows]
        jobs, size, classes = len(rows), rows.shape[1], self.shape[3]
        logits = torch.bmm(batch, self.weights).view(jobs, size, -1, classes)
        error = (logits.softmax(dim=3) - self.truth[rows].unsqueeze(2)) * weights.view(jobs, size, 1, 1)
        return torch.bmm(batch.transpose(1, 2), error.view(jobs, size, -1))

    def check(self) -> None:
        """Measure every fit on its job's checked rows, keep what is best, and drop jobs that have ended."""
        alive, (_, strengths, width, classes) = self.alive, self.shape
        logits = torch.matmul(self.features, self.weights).view(len(alive), -1, strengths, classes)
        tested = self.tested[alive]
        right = (logits.argmax(dim=3) == self.labels.view(1, -1, 1)) & tested.unsqueeze(2)
        accuracy = right.sum(dim=1).double() / tested.sum(dim=1, keepdim=True)
        going = self.bad[alive] <= self.settings.tenacity
        better = going & (accuracy > self.accuracy[alive])
        now = self.weights.view(len(alive), width, strengths, classes).transpose(1, 2)
        self.best[alive] = torch.where(better[:, :, None, None], now, self.best[alive])
        self.accuracy[alive] = torch.where(better, accuracy, self.accuracy[alive])
        self.checks[alive] += going
        self.bad[alive] += going & ~better
        self._drop((self.bad[alive] <= self.settings.tenacity).any(dim=1))

    def _drop(self, stay: Tensor) -> None:
        self.alive = self.alive[stay]
        self.weights, self.mean, self.square, self.steps = (
            tensor[stay] for tensor in (self.weights, self.mean, self.square, self.steps)
        )


def _first_weights(width: int, classes: int, seed: int) -> Tensor:
    """Return the first weights of SentEval's classifier with its bias as last row, (width + 1, classes)."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layer = torch.nn.Linear(width, classes)
    return torch.cat([layer.weight.detach().T, layer.bias.detach()[None]])


def predict(weights: Tensor, features: NDArray[np.floating[Any]]) -> Ints:
    """Return the class of each row under one classifier of ``Fitted.weights``, (width + 1, classes)."""
    inputs = torch.from_numpy(np.ascontiguousarray(features)).to(weights)
    found: Ints = (inputs @ weights[:-1] + weights[-1]).argmax(dim=1).cpu().numpy()
    return found


# ------------------------------------------------------------------------------------------------------ schemes


@dataclass(frozen=True)
class Outcome:
    """What a task gives: classes predicted for the test rows, the chosen L2 and its cross-validated accuracy."""

    predicted: Ints
    l2: float
    dev_accuracy: float


def train_test(
    train: tuple[Vectors, Ints],
    test: Vectors,
    settings: Settings | None = None,
    device: str = "cpu",
) -> Outcome:
    """Choose L2 by cross-validation on the training rows, fit on them once more, and predict (MRPC, TREC).

    SentEval rounds the folds' mean to hundredths of a percent before it takes the best, and the weakest L2 wins a tie.

    Args:
        train: features (rows, width) and labels (rows,).
        test: features (rows, width).
        settings: of the classifier.
        device: where to compute.
    """
    settings = settings or Settings()
    features, labels = train
    found = fit(features, labels, fold_jobs(labels, settings), settings.l2, settings, device)
    means = (100 * found.accuracy.mean(axis=0)).round(2)
    strength = settings.l2[int(means.argmax())]
    last = fit(features, labels, [held_out_job(len(labels), settings)], [strength], settings, device)
    return Outcome(predict(last.weights[0, 0], test), strength, float(found.accuracy.mean(axis=0)[means.argmax()]))


# -------------------------------------------------------------------------------------------------------- tasks


def pair_features(first: Vectors, second: Vectors) -> Vectors:
    """Return ``|u - v|`` and ``u * v`` side by side, (rows, 2 * width): SentEval's features of a sentence pair."""
    return np.concatenate([np.abs(first - second), first * second], axis=1)


def read_mrpc(dataset: Dataset, folder: Path, subset: str) -> Pairs:
    """Read ``train`` or ``test`` of the Microsoft Research Paraphrase Corpus; gold 1 marks a paraphrase.

    The texts keep their case; runs of blanks become one, as SentEval splits and joins them. Quotation marks are text.

    Raises:
        SembenchError: the file is missing or empty, a column is missing, a line is cut, or a label is neither 0 nor 1.
    """
    path, _ = file_path(dataset, folder, f"msr_paraphrase_{subset}.txt")
    header, *lines = file_lines(path)
    names = header.split("\t")
    if absent := [name for name in MRPC_COLUMNS if name not in names]:
        raise SembenchError(f"{path}, line 1: the column '{absent[0]}' is missing; fetch it again")
    places = [names.index(name) for name in MRPC_COLUMNS]
    rows = []
    for number, line in enumerate(lines, start=2):
        cells = tab_columns(path, number, line, max(places) + 1)
        label, first, second = (" ".join(cells[place].split()) for place in places)
        if label not in ("0", "1"):
            raise SembenchError(f"{path}, line {number}: the label '{label}' is neither 0 nor 1; fetch it again")
        rows.append((first, second, float(label)))
    if not rows:
        raise SembenchError(f"{path} holds no sentence pair; fetch it again")
    return Pairs(subset, [r[0] for r in rows], [r[1] for r in rows], np.array([r[2] for r in rows]))


def sorted_as_senteval(pairs: Pairs) -> Pairs:
    """Return pairs by the lengths of both sentences in words, then by label.

    SentEval sorts to pad less; the folds depend on the order of the rows, so it belongs to the protocol.
    """
    lengths = [(len(a.split()), len(b.split())) for a, b in zip(pairs.first, pairs.second, strict=True)]
    order = sorted(range(len(pairs)), key=lambda row: (*lengths[row], pairs.gold[row]))
    return Pairs(pairs.subset, [pairs.first[i] for i in order], [pairs.second[i] for i in order], pairs.gold[order])


Features = Callable[[Vectors, Vectors], Vectors]
Scheme = Callable[[tuple[Vectors, Ints], Vectors, Settings | None, str], Outcome]


@dataclass(frozen=True)
class TransferTask:
    """One task: its reader, its features and its scheme of folds."""

    read: Callable[[Dataset, Path, str], Pairs]
    features: Features
    scheme: Scheme


TASKS = {"mrpc": TransferTask(read_mrpc, pair_features, train_test)}


def f1_score(predicted: Ints, gold: Ints) -> float:
    """Return the F1 of class 1; 0 where neither side has it."""
    hits = int(((predicted == 1) & (gold == 1)).sum())
    claimed = int((predicted == 1).sum() + (gold == 1).sum())
    return 2 * hits / claimed if claimed else 0.0


def transfer_records(
    task: str,
    train: Pairs,
    test: Pairs,
    vectors: Callable[[Sequence[str]], Vectors],
    settings: Settings | None = None,
    device: str = "cpu",
) -> tuple[list[Record], list[Record]]:
    """Score frozen vectors on a task of ``TASKS``.

    Args:
        task: its key.
        train: pairs that the classifier learns from.
        test: pairs that it is judged on.
        vectors: gives the vectors of sentences, (sentences, width).
        settings: of the classifier.
        device: where to compute.

    Returns:
        Score records (suite, task, split, subset, aggregation, metric, value, n, sample_hash): on ``test`` the
        ``accuracy``, the ``f1`` and the ``majority`` rate, on ``dev`` the cross-validated accuracy and the ``l2`` that
        it chose; and a prediction per test pair, in the order of the file.
    """
    entry = TASKS[task]
    learned = sorted_as_senteval(train)
    features = [entry.features(vectors(pairs.first), vectors(pairs.second)) for pairs in (learned, test)]
    outcome = entry.scheme((features[0], learned.gold.astype(np.int64)), features[1], settings, device)
    gold = test.gold.astype(np.int64)
    common = {"suite": "transfer", "task": task, "subset": "", "aggregation": "all"}
    common |= {"sample_hash": sample_hash([train, test])}
    values = [
        ("test", "accuracy", float((outcome.predicted == gold).mean()), len(gold)),
        ("test", "f1", f1_score(outcome.predicted, gold), len(gold)),
        ("test", "majority", float(np.bincount(gold).max() / len(gold)), len(gold)),
        ("dev", "accuracy", outcome.dev_accuracy, len(learned)),
        ("dev", "l2", outcome.l2, len(learned)),
    ]
    records = [{**common, "split": s, "metric": m, "value": value, "n": n} for s, m, value, n in values]
    kept = {"suite": "transfer", "task": task, "split": "test", "subset": ""}
    both = zip(outcome.predicted.tolist(), gold.tolist(), strict=True)
    return records, [{**kept, "index": i, "predicted": guess, "gold": truth} for i, (guess, truth) in enumerate(both)]
