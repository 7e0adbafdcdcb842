"""Values of config.yaml, checked: what is wrong is one sentence that names the key."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from sembench.core.errors import SembenchError, unknown

PAPERS = ("simcse", "analogy", "beyond")
KEYS = ("scale", "seeds", "papers", "mirror", "partial", "relations", "inventory", "dump", "srsd_pairs")
# torch takes seeds up to this.
LARGEST_SEED = 2**63 - 1


def papers(value: Any) -> list[str] | None:
    """Return the chosen papers; a single one may be a word."""
    if value is None:
        return None
    chosen = [value] if isinstance(value, str) else value
    if not isinstance(chosen, list):
        raise SembenchError(f"config.yaml: 'papers' must be a list such as [simcse], not {value!r}")
    for paper in chosen:
        if paper not in PAPERS:
            raise unknown("paper", str(paper), PAPERS, "config.yaml")
    return chosen


def relations(value: Any) -> list[str] | None:
    """Return the chosen word relations; a single one may be a word."""
    if value is None or isinstance(value, str):
        return [value] if value else None
    if not (isinstance(value, list) and all(isinstance(name, str) for name in value)):
        raise SembenchError(f"config.yaml: 'relations' must be a list such as [E06, E07, L04, L09], not {value!r}")
    if repeated := [name for name in value if value.count(name) > 1]:
        raise SembenchError(f"config.yaml: 'relations' names {repeated[0]} twice; name it once")
    return value


def seeds(value: Any) -> list[int] | None:
    """Return the configured seeds; ``--config seeds=[42,43]`` hands them over as words."""
    if value is None:
        return None
    numbers = isinstance(value, list) and value and all(str(seed).isdecimal() for seed in value)
    if not numbers or any(int(seed) > LARGEST_SEED for seed in value):
        raise SembenchError(f"config.yaml: 'seeds' must be a list of whole numbers such as [42, 43], not {value!r}")
    return [int(seed) for seed in value]


def own_file(value: Any) -> str | None:
    """Return the path of a user's file, the home folder's sign resolved."""
    return str(Path(str(value)).expanduser()) if value else None


def flag(value: Any, key: str) -> bool:
    """Return a switch; ``--config partial=true`` hands a word over, and any word would count as true."""
    known = {"true": True, "false": False, "none": False}
    if (word := str(value).lower()) in known:
        return known[word]
    raise SembenchError(f"config.yaml: '{key}' must be true or false, not {value!r}")


def mirror_folder(configured: Any = None) -> Path | None:
    """Return the mirror folder: ``SEMBENCH_MIRROR``, else the one in config.yaml; one that is absent is an error."""
    value = os.environ.get("SEMBENCH_MIRROR") or configured
    if not value:
        return None
    folder = Path(str(value)).expanduser()
    if not folder.is_dir():
        raise SembenchError(f"the mirror folder '{value}' does not exist; unset SEMBENCH_MIRROR or mend the path")
    return folder
