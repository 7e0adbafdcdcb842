"""GPUs lent to the jobs that share a machine: a lock for each, which dies with the job that holds it."""

from __future__ import annotations

import atexit
import contextlib
import os
import time
from collections.abc import Sequence
from pathlib import Path

from sembench.core.errors import SembenchError
from sembench.core.locks import locked
from sembench.core.progress import say

# Seconds between two looks for a free card.
AGAIN = 1.0
_UNTIL_THE_END = contextlib.ExitStack()
atexit.register(_UNTIL_THE_END.close)


def visible(devices: Path = Path("/dev")) -> int:
    """Return the number of GPUs that jobs on this machine would see, without loading what computes on them."""
    there = len([path for path in devices.glob("nvidia*") if path.name.removeprefix("nvidia").isdigit()])
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    return there if chosen is None else min(there, len([name for name in chosen.split(",") if name not in ("", "-1")]))


def lent(cards: Sequence[str], number: int, folder: Path, held: contextlib.ExitStack = _UNTIL_THE_END) -> list[int]:
    """Return the places of the first free cards among those given, and hold them; wait where too few are free.

    One job at a time chooses, and the others queue behind it: none holds a card while it waits for one that waits
    itself, so jobs of several cards cannot block each other, and none is passed over for ever by jobs of one.

    Args:
        cards: of the visible cards, names that are the same in every process.
        number: how many are needed.
        folder: where cards are locked.
        held: what gives them back; if not given, the end of the process does.

    Raises:
        SembenchError: there are fewer cards.
    """
    if number > len(cards):
        raise SembenchError(
            f"{number} GPUs are asked for, and {len(cards)} are visible; lower 'processes' in the recipe, or see "
            "CUDA_VISIBLE_DEVICES"
        )
    found, waited = list[int](), False
    with locked(folder / f"sembench-{os.getuid()}-turn.lock", "the choice of a GPU"):
        while True:
            for place, card in enumerate(cards):
                if (
                    len(found) < number
                    and place not in found
                    and _taken(folder / f"sembench-{os.getuid()}-{card}.lock", held)
                ):
                    found.append(place)
            if len(found) == number:
                return sorted(found)
            if not waited:
                say(f"{number - len(found)} of {len(cards)} GPUs are still to come free; waiting for other jobs to end")
            waited = True
            time.sleep(AGAIN)


def _taken(path: Path, held: contextlib.ExitStack) -> bool:
    try:
        held.enter_context(locked(path, "work on a GPU", wait=False))
    except SembenchError:
        return False
    return True
