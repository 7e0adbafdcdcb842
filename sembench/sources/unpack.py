"""Reading wanted members out of archives; no name inside an archive ever becomes a path on disk."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO, Literal, cast

from sembench.core.errors import SembenchError

Deliver = Callable[[str, IO[bytes]], None]
DAMAGE = (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, RuntimeError)


@dataclass(frozen=True)
class Entry:
    """A member of an archive, not read yet."""

    name: str
    regular: bool
    open: Callable[[], IO[bytes]]


def unpack(
    archive: Path,
    kind: Literal["zip", "tar"],
    wanted: dict[str, str],
    deliver: Deliver,
    *,
    label: str,
    below_top: bool = False,
) -> bool:
    """Hand every wanted member to ``deliver(name, stream)``, in the order of the archive.

    Args:
        archive: The archive's file.
        kind: ``tar`` may be compressed in any way that ``tarfile`` detects.
        wanted: A file's name -> its member in the archive.
        deliver: Takes a file's name and a stream of its bytes.
        label: How errors name the archive.
        below_top: Members are named relative to the single top folder (source distributions).

    Returns:
        Whether the archive holds more files than were wanted.

    Raises:
        SembenchError: The archive is damaged or unsafe, or lacks a member; nothing was delivered if unsafe or lacking.
    """
    with _damage_explained(label), _entries(archive, kind) as entries:
        _refuse_unsafe(entries, label)
        named = [(_normal(entry.name, below_top), entry) for entry in entries]
        _refuse_missing(set(wanted.values()), dict(named), label)
        for member, entry in named:
            for name in (name for name, place in wanted.items() if place == member):
                with entry.open() as stream:
                    deliver(name, stream)
        return any(entry.regular and member not in wanted.values() for member, entry in named)


def decompress(archive: Path, kind: Literal["gz", "bz2"], name: str, deliver: Deliver, *, label: str) -> None:
    """Hand the content of a compressed single file to ``deliver(name, stream)``.

    Raises:
        SembenchError: The file is damaged.
    """
    reader = gzip.GzipFile if kind == "gz" else bz2.BZ2File
    with _damage_explained(label), reader(archive) as stream:
        deliver(name, cast("IO[bytes]", stream))


@contextlib.contextmanager
def _damage_explained(label: str) -> Iterator[None]:
    try:
        yield
    except DAMAGE as error:
        raise SembenchError(f"{label} is damaged ({error})") from None
    except OSError as error:
        # gzip and bz2 report damage as an OSError without a number; those with one come from the system.
        if error.errno is not None:
            raise
        raise SembenchError(f"{label} is damaged ({error})") from None


@contextlib.contextmanager
def _entries(archive: Path, kind: Literal["zip", "tar"]) -> Iterator[list[Entry]]:
    if kind == "zip":
        with zipfile.ZipFile(archive) as opened:
            yield [_zip_entry(opened, info) for info in opened.infolist()]
    else:
        with tarfile.open(archive, "r:*") as opened_tar:
            yield [_tar_entry(opened_tar, info) for info in opened_tar.getmembers()]


def _zip_entry(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Entry:
    # The upper half of the attributes is a Unix mode where the archive was made on Unix, else 0.
    mode = stat.S_IFMT(info.external_attr >> 16)
    return Entry(info.filename, not info.is_dir() and mode in (0, stat.S_IFREG), lambda: archive.open(info))


def _tar_entry(archive: tarfile.TarFile, info: tarfile.TarInfo) -> Entry:
    return Entry(info.name, info.isreg(), lambda: cast("IO[bytes]", archive.extractfile(info)))


def _refuse_unsafe(entries: list[Entry], label: str) -> None:
    for entry in entries:
        # Windows rules know both slashes and drives, so they catch all that any system would take for absolute.
        path = PureWindowsPath(entry.name)
        if path.anchor or ".." in path.parts:
            raise SembenchError(f"{label} is refused, since its member '{entry.name}' points outside the archive")


def _refuse_missing(members: set[str], named: dict[str, Entry], label: str) -> None:
    for member in sorted(members):
        if member not in named:
            raise SembenchError(f"{label} lacks the member '{member}'")
        if not named[member].regular:
            raise SembenchError(f"{label} is refused, since its member '{member}' is a link, a device or a folder")


def _normal(name: str, below_top: bool) -> str:
    parts = PurePosixPath(name).parts  # drops "./"
    return "/".join(parts[1:] if below_top else parts)
