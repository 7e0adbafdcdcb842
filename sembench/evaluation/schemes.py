"""How SentEval turns fits into the accuracy of a task, by the splits that the task has.

Accuracies that are compared are rounded to hundredths of a percent first, as SentEval does, and of equal ones that of
the weakest L2 wins.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sembench.core.errors import SembenchError
from sembench.evaluation.folds import Ints, Job, fold_jobs, held_out_job, sides, stratified_folds
from sembench.evaluation.probes import Settings, fit, predict

Floats32 = NDArray[np.float32]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Choice:
    """How the strength of L2 is chosen.

    Attributes:
        folds: parts of the cross-validation.
        l2: strengths to choose from, ascending.
        held_out: share of the rows that the last fit, with the chosen strength, is checked on.
        seed: of the folds and of the order of the rows, anew for every fit.
    """

    folds: int = 10
    l2: tuple[float, ...] = (1e-5, 1e-4, 1e-3, 1e-2)
    held_out: float = 0.05
    seed: int = 1111


@dataclass(frozen=True)
class Tested:
    """Test rows that one final classifier judges.

    Attributes:
        rows: their places in the tested data, (tested,).
        predicted: classes, (tested,).
        l2: the chosen strength.
        dev_accuracy: its cross-validated accuracy, 0 to 1.
    """

    rows: Ints
    predicted: Ints
    l2: float
    dev_accuracy: float


def train_test(
    features: Floats32, labels: Ints, test: Floats32, choice: Choice, settings: Settings, device: str = "cpu"
) -> list[Tested]:
    """Choose L2 by cross-validation on the training rows, fit on them once more, and predict (MRPC, TREC).

    Args:
        features: of the training rows, (rows, width).
        labels: (rows,).
        test: features of the test rows, (test, width).
        choice: folds and strengths.
        settings: of the classifiers.
        device: where to compute.

    Returns:
        One entry for all test rows.

    Raises:
        SembenchError: there are too few rows.
    """
    rows = np.arange(len(labels))
    jobs = fold_jobs(labels, rows, choice.folds, choice.seed)
    accuracy = fit(features, labels, jobs, choice.l2, settings, device).accuracy.mean(axis=0)
    best = int(_rounded(accuracy).argmax())
    last = held_out_job(rows, choice.held_out, choice.seed)
    weights = fit(features, labels, [last], [choice.l2[best]], settings, device).weights[0, 0]
    return [Tested(np.arange(len(test)), predict(weights, test), choice.l2[best], float(accuracy[best]))]


def fixed(
    features: Floats32,
    labels: Ints,
    dev: Floats32,
    dev_labels: Ints,
    test: Floats32,
    choice: Choice,
    settings: Settings,
    device: str = "cpu",
) -> list[Tested]:
    """Choose L2 on a given dev split and predict (SST-2).

    SentEval then fits once more with the chosen strength, on the same rows from the same seed: that is the same fit.

    Args:
        features: of the training rows, (rows, width).
        labels: (rows,).
        dev: features of the dev rows, (dev, width). They stop the fits too.
        dev_labels: (dev,).
        test: features of the test rows, (test, width).
        choice: strengths and seed.
        settings: of the classifiers.
        device: where to compute.

    Returns:
        One entry for all test rows.

    Raises:
        SembenchError: there is nothing to learn, or vectors are damaged.
    """
    if dev.shape[1] != features.shape[1]:
        raise SembenchError(f"dev vectors of width {dev.shape[1]} beside training vectors of width {features.shape[1]}")
    rows = np.arange(len(labels) + len(dev_labels))
    job = Job(rows[: len(labels)], rows[len(labels) :], np.random.RandomState(choice.seed))
    found = fit(
        np.concatenate([features, dev]), np.concatenate([labels, dev_labels]), [job], choice.l2, settings, device
    )
    accuracy = found.accuracy[0]
    best = int(_rounded(accuracy).argmax())
    predicted = predict(found.weights[0, best], test)
    return [Tested(np.arange(len(test)), predicted, choice.l2[best], float(accuracy[best]))]


def nested(features: Floats32, labels: Ints, choice: Choice, settings: Settings, device: str = "cpu") -> list[Tested]:
    """Test every fold with a classifier whose L2 was chosen by cross-validation within the others (MR, CR, SUBJ, MPQA).

    All inner fits run together, and then all final ones.

    Args:
        features: (rows, width).
        labels: (rows,).
        choice: folds, outer and inner, and strengths.
        settings: of the classifiers.
        device: where to compute.

    Returns:
        An entry for each outer fold. SentEval's accuracy is the mean of theirs.

    Raises:
        SembenchError: there are too few rows.
    """
    outer = sides(stratified_folds(labels, choice.folds, choice.seed))
    jobs = [job for rows, _ in outer for job in fold_jobs(labels, rows, choice.folds, choice.seed)]
    found = fit(features, labels, jobs, choice.l2, settings, device).accuracy
    accuracy: Floats = found.reshape(len(outer), choice.folds, -1).mean(axis=1)
    best = _rounded(accuracy).argmax(axis=1)
    last = [held_out_job(rows, choice.held_out, choice.seed) for rows, _ in outer]
    strengths = np.array(choice.l2)[best]
    weights = fit(features, labels, last, strengths[:, None], settings, device).weights
    return [
        Tested(rows, predict(weights[k, 0], features[rows]), float(strengths[k]), float(accuracy[k, best[k]]))
        for k, (_, rows) in enumerate(outer)
    ]


def _rounded(accuracy: Floats) -> Floats:
    found: Floats = (100 * accuracy).round(2)
    return found


def accuracy_of(tested: list[Tested], labels: Ints) -> float:
    """Return the accuracy as SentEval reports it, 0 to 1: the mean over entries, each rounded if there are several.

    Args:
        tested: what was predicted, for each fold or once.
        labels: of all rows, (rows,).
    """
    each = np.array([(part.predicted == labels[part.rows]).mean() for part in tested])
    return float(each[0]) if len(each) == 1 else float(_rounded(each).mean() / 100)


def f1_score(predicted: Ints, gold: Ints) -> float:
    """Return the F1 of class 1, 0 to 1, of two (items,) arrays; 0 where neither side has it."""
    hits = int(((predicted == 1) & (gold == 1)).sum())
    claimed = int((predicted == 1).sum() + (gold == 1).sum())
    return 2 * hits / claimed if claimed else 0.0
