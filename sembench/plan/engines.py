"""Engines: code that plug-ins share, with versions that are part of the keys of all that it takes part in.

Raise a version when results of that engine change; everything that it made is then computed anew. A test compares the
digests of engines and plug-ins with ``registry/code.yaml``: whoever changes code raises a version or relocks it with a
reason (``sembench relock``).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Engine:
    """A version, and the files that the digest starts from (see ``sembench.plan.code``)."""

    version: int
    roots: tuple[str, ...]


ENGINES = {
    "encoding": Engine(
        1,
        (
            "sembench/encoders/devices.py",
            "sembench/encoders/folder.py",
            "sembench/encoders/readouts.py",
            "sembench/encoders/static.py",
            "sembench/encoders/transformer.py",
        ),
    ),
    "training": Engine(2, ("sembench/training/trainer.py",)),
    "scoring": Engine(1, ("sembench/evaluation/engine.py",)),
}


def versions(*engines: str) -> dict[str, int]:
    """Return the versions of some engines, as a part of keys."""
    return {name: ENGINES[name].version for name in engines}
