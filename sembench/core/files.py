"""Writing files so that no reader ever sees half of one."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any


@contextlib.contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a temporary name beside ``path`` and rename it to ``path`` when the block ends well.

    The temporary file has the same suffix, since some writers choose a format by it. On any error it is removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.stem}.", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno and not error.filename:
            error.filename = str(path)
        raise


def sweep_temporaries(path: Path) -> None:
    """Remove what processes that were killed inside ``atomic_path(path)`` left; nobody else may be writing the file."""
    for left in path.parent.glob(f".{glob.escape(path.stem)}.{'[a-z0-9_]' * 8}{glob.escape(path.suffix)}"):
        left.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text atomically, creating the folder."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    """Write indented JSON atomically, creating the folder."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file as 64 hex digits, reading it in pieces."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def stamped(path: Path) -> None:
    """Write a stamp, an empty file ``<name>.<digest>`` (see ``Jobs.stamp``); older ones of that name are removed."""
    name, _, digest = path.name.rpartition(".")
    for old in path.parent.glob(f"{name}.*" if name else digest):
        if old.name.rpartition(".")[0] == name:
            old.unlink()
    write_text(path, "")
