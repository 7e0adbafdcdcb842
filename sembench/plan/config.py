"""Values of config.yaml, checked: what is wrong is one sentence that names the key."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sembench.core.errors import SembenchError, shortened, unknown
from sembench.registry.models import LARGEST_SEED

PAPERS = ("simcse", "analogy", "beyond")
KEYS = ("scale", "seeds", "papers", "mirror", "partial")


def from_json(text: str) -> dict[str, Any]:
    """Return what the variable SEMBENCH_CONFIG holds.

    Raises:
        SembenchError: it is no mapping.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise SembenchError(
            f'SEMBENCH_CONFIG must be a JSON mapping such as {{"scale": "demo"}}, not {shortened(text)}'
        )
    return value


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
        raise SembenchError(f"config.yaml: 'papers' must be a list such as [simcse], not {shortened(repr(value))}")
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
        raise SembenchError(
            f"config.yaml: 'seeds' must be a list of whole numbers such as [42, 43], not {shortened(repr(value))}"
        )
    return [int(seed) for seed in value]


def flag(value: Any, key: str) -> bool:
    """Return a switch; ``--config partial=true`` hands a word over, and any word would count as true.

    Raises:
        SembenchError: it is neither true nor false.
    """
    known = {"true": True, "false": False, "none": False}
    if (word := str(value).lower()) in known:
        return known[word]
    raise SembenchError(f"config.yaml: '{key}' must be true or false, not {shortened(repr(value))}")


def mirror_folder(named: Any = None, configured: Any = None) -> Path | None:
    """Return the mirror folder: the one named on the command line, else ``SEMBENCH_MIRROR``, else config.yaml's.

    Raises:
        SembenchError: the folder does not exist.
    """
    value = named or os.environ.get("SEMBENCH_MIRROR") or configured
    if not value:
        return None
    folder = Path(home(str(value), "mirror"))
    if not folder.is_dir():
        raise SembenchError(f"the mirror folder '{value}' does not exist; unset SEMBENCH_MIRROR or correct the path")
    return folder


def home(value: Any, key: str) -> Any:
    """Return a value with ``~`` replaced by the home folder, where it is a path that begins with it.

    Raises:
        SembenchError: there is no such user, or no file can have so long a name.
    """
    if not isinstance(value, str):
        return value
    try:
        path = Path(value).expanduser() if value.startswith("~") else Path(value)
        path.is_file()
    except (RuntimeError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise SembenchError(f"config.yaml: '{key}' cannot be '{shortened(value)}' ({reason}); correct it") from None
    return str(path) if value.startswith("~") else value
