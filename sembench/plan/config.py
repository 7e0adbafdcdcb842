"""Values of config.yaml, checked: what is wrong is one sentence that names the key."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sembench.core.errors import SembenchError, unknown

PAPERS = ("simcse", "analogy", "beyond")
KEYS = ("scale", "seeds", "papers", "mirror", "partial")
# torch takes seeds up to this.
LARGEST_SEED = 2**63 - 1


def check_keys(given: Iterable[str], settings: Iterable[str]) -> None:
    """Raise for a key that is neither the workflow's nor a setting of a data set made here."""
    known = [*KEYS, *settings]
    for key in given:
        if key not in known:
            raise unknown("key", key, known, "config.yaml")


def papers(value: Any) -> list[str] | None:
    """Return the chosen papers; a single one may be a word.

    Raises:
        SembenchError: it is not a list, or a paper is unknown.
    """
    if value is None:
        return None
    chosen = [value] if isinstance(value, str) else value
    if not isinstance(chosen, list):
        raise SembenchError(f"config.yaml: 'papers' must be a list such as [simcse], not {value!r}")
    for paper in chosen:
        if paper not in PAPERS:
            raise unknown("paper", str(paper), PAPERS, "config.yaml")
    return chosen


def seeds(value: Any) -> list[int] | None:
    """Return the configured seeds; ``--config seeds=[42,43]`` hands them over as words.

    Raises:
        SembenchError: it is not a list of whole numbers that torch takes as seeds.
    """
    if value is None:
        return None
    numbers = isinstance(value, list) and value and all(str(seed).isdecimal() for seed in value)
    if not numbers or any(int(seed) > LARGEST_SEED for seed in value):
        raise SembenchError(f"config.yaml: 'seeds' must be a list of whole numbers such as [42, 43], not {value!r}")
    return [int(seed) for seed in value]


def flag(value: Any, key: str) -> bool:
    """Return a switch; ``--config partial=true`` hands a word over, and any word would count as true.

    Raises:
        SembenchError: it is neither true nor false.
    """
    known = {"true": True, "false": False, "none": False}
    if (word := str(value).lower()) in known:
        return known[word]
    raise SembenchError(f"config.yaml: '{key}' must be true or false, not {value!r}")


def mirror_folder(named: Any = None, configured: Any = None) -> Path | None:
    """Return the mirror folder: the one named on the command line, else ``SEMBENCH_MIRROR``, else config.yaml's.

    Raises:
        SembenchError: the folder does not exist.
    """
    value = named or os.environ.get("SEMBENCH_MIRROR") or configured
    if not value:
        return None
    folder = Path(str(value)).expanduser()
    if not folder.is_dir():
        raise SembenchError(f"the mirror folder '{value}' does not exist; unset SEMBENCH_MIRROR or correct the path")
    return folder
