"""Folds of labelled rows, and the rows that each of many fits trains on and is checked on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sembench.core.errors import SembenchError

Ints = NDArray[np.int64]


def stratified_folds(labels: Ints, folds: int, seed: int) -> Ints:
    """Return for each row the fold that it is tested in, each fold with nearly the same mix of labels.

    The same folds as ``sklearn.model_selection.StratifiedKFold(folds, shuffle=True, random_state=seed)``, which
    SentEval uses; they are spelled out here so that no version of a library can move a row.

    Args:
        labels: any integers, (rows,).
        folds: number of folds.
        seed: seeds numpy's older generator.

    Returns:
        Folds 0 to folds - 1, (rows,).

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


@dataclass(frozen=True)
class Job:
    """Rows of one fit.

    Attributes:
        train: rows to train on, (train,).
        dev: rows to check on, (dev,).
        order: orders the training rows of every epoch.
    """

    train: Ints
    dev: Ints
    order: np.random.RandomState


def fold_jobs(labels: Ints, rows: Ints, folds: int, seed: int) -> list[Job]:
    """Return a job per fold of some rows, which trains on their other folds.

    Args:
        labels: of all rows, (all,).
        rows: the rows that are dealt into folds, ascending, (rows,).
        folds: number of folds.
        seed: of the folds, and anew for the order in each job.

    Raises:
        SembenchError: a label has fewer rows than there are folds.
    """
    fold = stratified_folds(labels[rows], folds, seed)
    return [Job(rows[fold != k], rows[fold == k], np.random.RandomState(seed)) for k in range(folds)]


def held_out_job(rows: Ints, share: float, seed: int) -> Job:
    """Return a job that checks on the first rows of a random order and trains on the others, in that order.

    Args:
        rows: the rows to divide, (rows,).
        share: of the rows that are checked, rounded down to whole rows.
        seed: of the order here and, going on, in the job.

    Raises:
        SembenchError: no row would be checked.
    """
    generator = np.random.RandomState(seed)
    order = rows[generator.permutation(len(rows))]
    cut = int(share * len(rows))
    if not cut:
        raise SembenchError(f"{len(rows)} rows are too few to hold out {share:.0%} of them; give more rows")
    return Job(order[cut:], order[:cut], generator)


def sides(fold: Ints) -> Sequence[tuple[Ints, Ints]]:
    """Return the rows outside and inside each fold, ascending, from the fold of each row (rows,)."""
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(int(fold.max()) + 1)]
