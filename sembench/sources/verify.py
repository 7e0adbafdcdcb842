"""Measuring files and comparing them with what the registry and the locks say of them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Literal

from filelock import FileLock

from sembench.core.errors import SembenchError
from sembench.core.files import write_json
from sembench.registry.models import DataFile

PIECE = 1 << 20  # bytes held in memory at a time
CHECKSUMS = ("sha256", "git_blob", "sha1_no_final_newline")
Verified = Literal["yes", "no", "locked", "unknown"]


@dataclass(frozen=True)
class Facts:
    """What one pass over a file gives: size in bytes, lines, and the checksums a registry may name (hex digits)."""

    bytes: int
    lines: int
    sha256: str
    sha1: str
    git_blob: str
    sha1_no_final_newline: str

    def rows(self, header: bool) -> int:
        """Return the number of lines after the header."""
        return self.lines - header


@dataclass(frozen=True)
class FileState:
    """One file of a data set as it lies on disk; ``problem`` is empty where nothing is wrong."""

    name: str
    present: bool
    verified: Verified
    problem: str = ""


def measure(path: Path) -> Facts:
    """Return the facts of a file, reading it once and in pieces; a last line without a newline counts as a line."""
    with path.open("rb") as stream:
        return _measure(stream, path.stat().st_size)


def _measure(stream: IO[bytes], size: int) -> Facts:
    sha256, sha1, trimmed = hashlib.sha256(), hashlib.sha1(), hashlib.sha1()
    blob = hashlib.sha1(b"blob %d\0" % size)
    lines, held, last = 0, b"", b""
    while piece := stream.read(PIECE):
        for digest in (sha256, sha1, blob):
            digest.update(piece)
        # A newline at the end is held back until it is known not to be the file's last byte.
        trimmed.update(held)
        held = b"\n" if piece.endswith(b"\n") else b""
        trimmed.update(piece.removesuffix(b"\n"))
        lines += piece.count(b"\n")
        last = piece[-1:]
    lines += last not in (b"", b"\n")
    return Facts(size, lines, sha256.hexdigest(), sha1.hexdigest(), blob.hexdigest(), trimmed.hexdigest())


def find_problem(file: DataFile, facts: Facts) -> str:
    """Return what contradicts the registry, such as ``has 3 rows, expected 4``, or an empty string."""
    if facts.bytes == 0:
        return "is empty"
    for check in CHECKSUMS:
        expected, got = getattr(file, check), getattr(facts, check)
        if expected not in (None, got):
            return f"has {check} {got}, expected {expected}"
    if file.rows not in (None, facts.rows(file.header)):
        return f"has {facts.rows(file.header)} rows, expected {file.rows}"
    return ""


def is_pinned(file: DataFile) -> bool:
    """Tell whether the registry fixes the content of a file by a checksum; a row count alone does not."""
    return any(getattr(file, check) for check in CHECKSUMS)


def most_bytes(file: DataFile) -> int:
    """Return how many bytes a file may have."""
    return round(file.max_mb * 1e6)


def too_large(file: DataFile, place: str) -> str:
    """Return the sentence for a file that is larger than it may be."""
    return (
        f"{file.name} from {place} is larger than {file.max_mb:g} MB, the most that it may hold; "
        "if that is right, raise its 'max_mb' in the registry"
    )


@dataclass(frozen=True)
class Locks:
    """What was seen on first use: ``locks.json`` maps ``dataset/file`` to its checksum, ``repo@revision`` to a commit.

    Every change happens under a file lock, and readers never see half of the file.
    """

    path: Path

    def value(self, name: str) -> str | None:
        """Return the locked checksum or commit of a name, or None before its first use.

        Raises:
            SembenchError: the file of locks is damaged.
        """
        entry = self._read().get(name, {})
        return entry.get("sha256") or entry.get("commit")

    def claim(self, name: str, source: str, *, sha256: str = "", commit: str = "") -> None:
        """Lock a name on first use.

        Raises:
            SembenchError: The name is locked to something else.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(self.path.with_suffix(".lock")):
            if known := self.value(name):
                if known != (sha256 or commit):
                    raise SembenchError(self.contradiction(name, known, sha256 or commit))
                return
            value = {"sha256": sha256} if sha256 else {"commit": commit}
            now = datetime.now(UTC).isoformat(timespec="seconds")
            write_json(self.path, {**self._read(), name: {**value, "source": source, "date": now}})

    def contradiction(self, name: str, known: str, got: str) -> str:
        """Return the sentence for content that differs from its lock."""
        return (
            f"'{name}' is {got}, but {known} was locked on first use; "
            f"to accept the new content, delete the entry '{name}' of {self.path.name}"
        )

    def _read(self) -> dict[str, dict[str, str]]:
        if not self.path.exists():
            return {}
        try:
            entries: dict[str, dict[str, str]] = json.loads(self.path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError):
            raise SembenchError(f"{self.path.name} is not valid JSON; correct or delete it") from None
        if not isinstance(entries, dict) or not all(isinstance(entry, dict) for entry in entries.values()):
            raise SembenchError(f"{self.path.name} must map names to what was locked; correct or delete it")
        return entries


def state_of(dataset: str, file: DataFile, path: Path, locks: Locks) -> tuple[FileState, Facts | None]:
    """Return the state of one file of a data set that should lie at ``path``, and its facts where it does."""
    if not path.is_file():
        return FileState(file.name, False, "unknown", "is not there"), None
    facts = measure(path)
    if problem := find_problem(file, facts):
        return FileState(file.name, True, "no", problem), facts
    if is_pinned(file):
        return FileState(file.name, True, "yes"), facts
    # A row count alone is no proof of content: any file of so many lines would do.
    known = locks.value(f"{dataset}/{file.name}")
    if known not in (None, facts.sha256):
        problem = locks.contradiction(f"{dataset}/{file.name}", str(known), facts.sha256)
        return FileState(file.name, True, "no", problem), facts
    return FileState(file.name, True, "locked" if known else "unknown"), facts
