"""How the threads of a computation wait for each other; decided before torch is loaded."""

from __future__ import annotations

from collections.abc import Mapping


def waiting(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variable that lets a waiting thread give its core away, unless an environment says how threads wait.

    By default OpenMP's threads spin while they wait. When another program takes one of two cores, both then wait
    spinning for the thread that lost it, and a training falls to a quarter of its speed (docs/measured.md).
    """
    decided = "OMP_WAIT_POLICY" in environment or "GOMP_SPINCOUNT" in environment
    return {} if decided else {"OMP_WAIT_POLICY": "passive"}
