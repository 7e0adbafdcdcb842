"""Locks that die with the process that holds them: whoever is killed leaves nothing that must be cleaned up."""

from __future__ import annotations

import contextlib
import os
import platform
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from sembench.core.errors import SembenchError
from sembench.core.progress import say

# Seconds that a process waits for another without a word: most locks are held for less.
PATIENCE = 1.0


@contextlib.contextmanager
def locked(path: Path, what: str, *, wait: bool = True) -> Iterator[None]:
    """Hold a lock; while another process holds it, say which one and wait for its end.

    Args:
        path: file of the lock; its folder is created. Who holds it is noted beside it.
        what: what the holder does, such as "training of x".
        wait: whether to wait.

    Raises:
        SembenchError: another process holds it, and ``wait`` is false.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path)
    try:
        lock.acquire(timeout=PATIENCE if wait else 0)
    except Timeout:
        holder, end = _holder(path)
        if not wait:
            raise SembenchError(f"{what} is under way in {holder}; wait for its end{end}") from None
        say(f"{what} is under way in {holder}; waiting for its end{end}")
        lock.acquire()
    # Beside the lock, as some versions of the library empty its own file when they ask for it.
    note = _note(path)
    try:
        note.write_text(f"{os.getpid()} {platform.node()}", encoding="utf-8")
        yield
    finally:
        note.unlink(missing_ok=True)
        lock.release()


def _note(path: Path) -> Path:
    return path.with_name(f"{path.name}.process")


def _holder(path: Path) -> tuple[str, str]:
    """Return which process holds a lock, and how a user can end it."""
    try:
        number, _, host = _note(path).read_text(encoding="utf-8").partition(" ")
    except OSError:
        return "another process", ""  # It has only just begun.
    return f"process {number}" + (f" on {host}" if host != platform.node() else ""), f", or end it with: kill {number}"
