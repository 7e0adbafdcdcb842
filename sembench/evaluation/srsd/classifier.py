"""Logistic regression of two classes, tested on folds that it did not see."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from sembench.core.errors import SembenchError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Rows = NDArray[np.bool_]


def fit_logistic(features: Floats, labels: Ints, strength: float, start: Floats | None = None) -> Floats:
    """Return weights and, last, the bias of a logistic regression of two classes, (width + 1,).

    They minimise ``|w|^2 / 2 + C * sum(log(1 + exp(-s * (w x + b))))`` with s = 1 for label 1 and -1 for label 0, as
    scikit-learn's ``LogisticRegression(C=strength)`` does; the bias is free.

    Args:
        features: (rows, width).
        labels: (rows,), 0 or 1.
        strength: C; small is strong regularisation.
        start: weights to begin from.
    """
    signs = 2.0 * labels - 1

    def loss(point: Floats) -> tuple[float, Floats]:
        # All of it divided by C: else a small C makes the whole loss so small that the search stops where it starts.
        margins = signs * (features @ point[:-1] + point[-1])
        # 1 / (1 + exp(m)) by tanh, which does not overflow.
        pulls = -signs * 0.5 * (1 - np.tanh(margins / 2))
        slope = np.append(features.T @ pulls + point[:-1] / strength, pulls.sum())
        return float(point[:-1] @ point[:-1] / (2 * strength) + np.logaddexp(0, -margins).sum()), slope

    begin = np.zeros(features.shape[1] + 1) if start is None else start
    found: Floats = minimize(
        loss, begin, jac=True, method="L-BFGS-B", options={"maxiter": 2000, "gtol": 1e-6, "ftol": 1e-12}
    ).x
    return found


def cross_predict(features: Floats, labels: Ints, fold: Ints, strengths: Sequence[float]) -> Floats:
    """Return for each item the log-odds of label 1 from a classifier that did not see the item's fold.

    C is the one with the best accuracy on the next fold when trained on all further ones; the classifier is then
    trained on all folds but the tested one. Features are scaled by the mean and deviation of what is trained on, so
    that one grid of C serves every encoder.

    Args:
        features: (items, width).
        labels: (items,), 0 or 1.
        fold: (items,), 0 to folds - 1; the fold in which an item is tested.
        strengths: C to choose from; the first of equally good ones is taken.

    Returns:
        Log-odds, (items,).

    Raises:
        SembenchError: a fold has no item, or too few folds are left to train on.
    """
    count = int(fold.max()) + 1
    found = np.zeros(len(labels))
    # Products of a matrix with one vector wait for memory; BLAS with more threads only waits for them as well.
    with threadpool_limits(limits=1, user_api="blas"):
        for tested in range(count):
            inner, dev, test = _roles(labels, fold, tested, (tested + 1) % count)
            strength = _best_strength(features, labels, inner, dev, strengths)
            mean, scale = _scaling(features[~test])
            point = fit_logistic((features[~test] - mean) / scale, labels[~test], strength)
            found[test] = (features[test] - mean) / scale @ point[:-1] + point[-1]
    return found


def _roles(labels: Ints, fold: Ints, tested: int, chooses: int) -> tuple[Rows, Rows, Rows]:
    """Return which items train, which choose C, and which are tested."""
    dev, test = fold == chooses, fold == tested
    inner = ~dev & ~test
    if not (test.any() and dev.any() and len(np.unique(labels[inner])) == 2):
        raise SembenchError(
            f"SRSD: fold {tested} or {chooses} of the word pairs has no item, or the others one answer; give more pairs"
        )
    return inner, dev, test


def _best_strength(features: Floats, labels: Ints, train: Rows, dev: Rows, strengths: Sequence[float]) -> float:
    mean, scale = _scaling(features[train])
    learned, judged = ((features[rows] - mean) / scale for rows in (train, dev))
    point, accuracies = None, []
    for strength in strengths:
        # From the last point on: neighbours on the grid are near.
        point = fit_logistic(learned, labels[train], strength, point)
        accuracies.append(((judged @ point[:-1] + point[-1] > 0) == labels[dev]).mean())
    return strengths[int(np.argmax(accuracies))]


def _scaling(features: Floats) -> tuple[Floats, Floats]:
    deviation = features.std(axis=0)
    return features.mean(axis=0), np.where(deviation > 0, deviation, 1.0)
