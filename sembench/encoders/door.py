"""The door through which model folders come in: whatever a library raises behind it is one sentence."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from sembench.core.errors import SembenchError, sentence_of

_POINTER = b"version https://git-lfs"


@contextlib.contextmanager
def door(folder: Path) -> Iterator[None]:
    """Turn an error of whichever library into a sentence that names the folder.

    Raises:
        SembenchError: whatever was raised, unless a user is told of it anyhow, as of a file that may not be read.
    """
    try:
        yield
    except Exception as error:
        if pointer := _pointer(folder):
            raise SembenchError(f"{pointer} is a Git LFS pointer, not the file; fetch it with: git lfs pull") from error
        if sentence_of(error):
            raise
        reason = " ".join(str(error).split())[:300]
        raise SembenchError(
            f"{folder} cannot be loaded ({type(error).__name__}: {reason}); restore its files, or save the model again"
        ) from error


def _pointer(folder: Path) -> Path | None:
    """Return the first file that Git LFS has left in place of a large one."""
    for path in sorted([*folder.glob("*"), *folder.glob("[0-9]_*/*")]):
        with contextlib.suppress(OSError):
            # One has some hundred bytes; what the system pretends to be a file, and may never answer, has none.
            if path.is_file() and 0 < path.stat().st_size < 1024 and path.read_bytes().startswith(_POINTER):
                return path
    return None
