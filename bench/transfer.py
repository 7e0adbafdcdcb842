"""SentEval's full mode on MiniLM's vectors: time and accuracy of the seven tasks beside two other ways to get them.

``python -m bench.transfer [TASK ...]`` prints a table. All fits together are timed beside one fit after the other, as
in tests/senteval.py, task by task in turn. The latter time is extrapolated, as it would take most of an hour: the
mean of one fit for each strength of L2 times the number of fits. Encoding is not timed. Scikit-learn's logistic
regression, which goes on until it converges, is tested on the same rows and chooses its strength of L2 from the same
ones, by three folds: another solver must come to about the same accuracy.

Needs the fetched data and the backbone minilm of scale small, which `snakemake simcse_table_e1` leaves behind.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

from sembench.core.artifact import opened
from sembench.core.errors import explained
from sembench.encoders.folder import load_encoder
from sembench.evaluation.folds import Ints, Job, fold_jobs, sides, stratified_folds
from sembench.evaluation.job import open_protocol
from sembench.evaluation.protocol import Vectors, VectorsOf
from sembench.evaluation.protocols.transfer import Transfer
from sembench.evaluation.schemes import Tested, accuracy_of
from sembench.plan import Plan
from tests.senteval import one_fit

PLAN = Plan("small")
SUITE = "transfer"


def lookup(sentences: Sequence[str]) -> VectorsOf:
    """Encode each sentence once by MiniLM, mean read-out, and return the function that gives their vectors."""
    unique = list(dict.fromkeys(sentences))
    found = load_encoder(opened(PLAN.root, PLAN.backbone("minilm"))).encode(unique, ["mean"])["mean"]
    row = {sentence: place for place, sentence in enumerate(unique)}
    return lambda asked: found[[row[sentence] for sentence in asked]]


def number_of_fits(protocol: Transfer) -> int:
    """Return how many classifiers SentEval fits for a task."""
    each = protocol.choice.folds * len(protocol.choice.l2) + 1
    fits = {"nested": protocol.choice.folds * each, "train_test": each, "fixed": len(protocol.choice.l2) + 1}
    return fits[protocol.config.scheme]


def sample_job(protocol: Transfer, vectors: VectorsOf) -> tuple[Vectors, Ints, Job]:
    """Return features, labels and the first job of a task."""
    learned, choice = protocol.parts[0], protocol.choice
    features, rows = protocol.features(learned, vectors), np.arange(len(learned))
    if protocol.config.scheme == "fixed":
        dev = protocol.parts[1]
        job = Job(rows, np.arange(len(dev)) + len(rows), np.random.RandomState(choice.seed))
        joined = np.concatenate([features, protocol.features(dev, vectors)])
        return joined, np.concatenate([learned.labels, dev.labels]), job
    if protocol.config.scheme == "nested":
        rows, _ = sides(stratified_folds(learned.labels, choice.folds, choice.seed))[0]
    return features, learned.labels, fold_jobs(learned.labels, rows, choice.folds, choice.seed)[0]


def one_by_one(protocol: Transfer, vectors: VectorsOf) -> float:
    """Return the seconds of SentEval's loop for a task, extrapolated."""
    features, labels, job = sample_job(protocol, vectors)
    start = time.perf_counter()
    for l2 in protocol.choice.l2:
        one_fit(features, labels, job, l2, protocol.settings)
    return (time.perf_counter() - start) / len(protocol.choice.l2) * number_of_fits(protocol)


def converged(protocol: Transfer, vectors: VectorsOf, tested: Sequence[Tested]) -> float:
    """Return the accuracy of scikit-learn's classifiers on the rows in ``tested``, 0 to 1."""
    learned, last = protocol.parts[0], protocol.parts[-1]
    features, test, right = protocol.features(learned, vectors), protocol.features(last, vectors), []
    for part in tested:
        train = np.arange(len(learned))
        if protocol.config.scheme == "nested":
            train = np.setdiff1d(train, part.rows)
        # SentEval's decay adds l2 / 2 times the squared weights to the mean loss; scikit-learn adds to the sum.
        strengths = [1 / (l2 * len(train)) for l2 in protocol.choice.l2]
        solver = GridSearchCV(LogisticRegression(max_iter=1000), {"C": strengths}, cv=3)
        guesses = solver.fit(features[train], learned.labels[train]).predict(test[part.rows])
        right.append(float((guesses == last.labels[part.rows]).mean()))
    return float(np.mean(right))


@explained
def main(names: Sequence[str]) -> None:
    """Print a row for each named task, or for all, and the sums."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    protocols = {name: open_protocol(PLAN, SUITE, name) for name in names or PLAN.suites[SUITE]}
    vectors = lookup([sentence for protocol in protocols.values() for sentence in protocol.sentences])
    print(f"{torch.get_num_threads()} threads\n")
    print("| task | accuracy | dev | scikit-learn | seconds | one by one, seconds | times |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    totals = np.zeros(2)
    for name, protocol in protocols.items():
        start = time.perf_counter()
        tested = protocol.tested(vectors)
        seconds = np.array([time.perf_counter() - start, one_by_one(protocol, vectors)])
        totals += seconds
        accuracy = accuracy_of(tested, protocol.parts[-1].labels)
        dev = float(np.mean([part.dev_accuracy for part in tested]))
        row(name, [accuracy, dev, converged(protocol, vectors, tested)], seconds)
    row("all", [], totals)


def row(name: str, accuracies: Sequence[float], seconds: NDArray[np.float64]) -> None:
    """Print a row of the table."""
    shown = [f"{100 * value:.2f}" for value in accuracies] or [""] * 3
    print(
        f"| {name} | {' | '.join(shown)} | {seconds[0]:.1f} | {seconds[1]:.0f} | {seconds[1] / seconds[0]:.0f} |",
        flush=True,
    )


if __name__ == "__main__":
    main(sys.argv[1:])
