"""What a table or figure is made from; it waits for nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class ScoreKey(NamedTuple):
    """The scores of a run (its id) under a read-out on a task; ``Plan.score`` says where they lie."""

    run: str
    readout: str
    suite: str
    task: str


@dataclass(frozen=True)
class Needs:
    """Inputs of a view.

    Attributes:
        scores: with their predictions.
        runs: ids of trained runs whose record (curve, recipe) it shows.
        data: names of data sets whose files it shows; without one of them it cannot be rendered at all.
    """

    scores: tuple[ScoreKey, ...] = ()
    runs: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
