"""Reading wanted members out of archives; no name inside an archive ever becomes a path on disk."""

from __future__ import annotations

import bz2
import contextlib
import errno
import gzip
import itertools
import lzma
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO, Any, Literal, cast

from sembench.core.errors import SembenchError
from sembench.sources.verify import PIECE

Deliver = Callable[[str, IO[bytes]], None]
MOST_MEMBERS = 200_000
MOST_AT_ONCE = 16 * PIECE  # bytes; more than this only a header that lies asks for, and it would be held in memory
_COMPRESSED: dict[bytes, Callable[[Path], Any]] = {
    b"\x1f\x8b": gzip.GzipFile,
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ": lzma.LZMAFile,
}


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
    most: int,
    below_top: bool = False,
) -> bool:
    """Hand every wanted member to ``deliver(name, stream)``, in the order of the archive.

    Args:
        archive: The archive's file.
        kind: ``tar`` may be compressed by gzip, bzip2 or xz.
        wanted: A file's name -> its member in the archive.
        deliver: Takes a file's name and a stream of its bytes.
        label: How errors name the archive.
        most: Bytes that a compressed tar may unpack to, all members together, since all of it has to be read.
        below_top: Members are named relative to the single top folder (source distributions).

    Returns:
        Whether the archive holds more files than were wanted.

    Raises:
        SembenchError: The archive is damaged, unsafe or too large, or lacks a member or has it twice; in all these
            cases but damage inside a wanted member nothing was delivered.
    """
    with _damage_explained(label), _entries(archive, kind, most, label) as entries:
        found = list(itertools.islice(entries, MOST_MEMBERS + 1))
        if len(found) > MOST_MEMBERS:
            raise SembenchError(f"{label} is refused, since it has more than {MOST_MEMBERS} members")
        _refuse_unsafe(found, label)
        named = [(_normal(entry.name, below_top), entry) for entry in found]
        chosen = _chosen(set(wanted.values()), named, label)
        for member, entry in chosen.items():
            for name in (name for name, place in wanted.items() if place == member):
                with entry.open() as stream:
                    deliver(name, stream)
        return any(entry.regular and member not in chosen for member, entry in named)


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
    """Say in one sentence whatever a library finds wrong in an archive; it may raise anything at all for bad bytes."""
    try:
        yield
    except SembenchError:
        raise
    except Exception as error:
        # Whoever writes a file names it in the error; what comes from reading an archive has no name.
        if isinstance(error, OSError) and (error.filename or error.errno in (errno.ENOSPC, errno.EDQUOT)):
            raise
        raise SembenchError(f"{label} is damaged ({error or type(error).__name__})") from None


@contextlib.contextmanager
def _entries(archive: Path, kind: Literal["zip", "tar"], most: int, label: str) -> Iterator[Iterator[Entry]]:
    if kind == "zip":
        with zipfile.ZipFile(archive) as opened:
            yield (_zip_entry(opened, info) for info in opened.infolist())
    else:
        with _tar_stream(archive) as stream:
            bounded = _Bounded(stream, max(most, archive.stat().st_size), label)
            with tarfile.open(fileobj=cast("IO[bytes]", bounded), mode="r:") as opened_tar:
                yield _tar_entries(opened_tar, bounded)


def _tar_stream(archive: Path) -> Any:
    with archive.open("rb") as stream:
        head = stream.read(6)
    opener = next((opener for magic, opener in _COMPRESSED.items() if head.startswith(magic)), None)
    return opener(archive) if opener else archive.open("rb")


class _Bounded:
    """A tar's stream, of which neither too much is unpacked nor too much held: headers may claim any length."""

    def __init__(self, stream: IO[bytes], most: int, label: str) -> None:
        self.stream, self.most, self.label = stream, most, label
        self.tell = stream.tell

    def read(self, size: int) -> bytes:
        if size > MOST_AT_ONCE:
            raise tarfile.ReadError(f"a header claims {size} bytes")
        self._check(self.stream.tell())
        return self.stream.read(size)

    def seek(self, place: int) -> int:
        self._check(place)
        return self.stream.seek(place)

    def _check(self, place: int) -> None:
        if place > self.most:
            raise SembenchError(
                f"{self.label} is refused, since it unpacks to more than {self.most / 1e6:.0f} MB, the most that its "
                "files may hold together; if that is right, raise their 'max_mb' in the registry"
            )

    def drain(self) -> None:
        """Read what follows the last member: the checksum of a compressed stream is at its end."""
        while self.read(PIECE):
            pass


def _tar_entries(archive: tarfile.TarFile, stream: _Bounded) -> Iterator[Entry]:
    for info in archive:
        yield Entry(info.name, info.isreg(), lambda info=info: cast("IO[bytes]", archive.extractfile(info)))  # type: ignore[misc]
    stream.drain()


def _zip_entry(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Entry:
    # The upper half of the attributes is a Unix mode where the archive was made on Unix, else 0.
    mode = stat.S_IFMT(info.external_attr >> 16)
    return Entry(info.filename, not info.is_dir() and mode in (0, stat.S_IFREG), lambda: archive.open(info))


def _refuse_unsafe(entries: list[Entry], label: str) -> None:
    for entry in entries:
        # Windows rules know both slashes and drives, so they catch all that any system would take for absolute.
        path = PureWindowsPath(entry.name)
        if path.anchor or ".." in path.parts:
            raise SembenchError(f"{label} is refused, since its member '{entry.name}' points outside the archive")


def _chosen(members: set[str], named: list[tuple[str, Entry]], label: str) -> dict[str, Entry]:
    """Return the wanted members with their entries, in the order of the archive."""
    found: dict[str, Entry] = {}
    for member, entry in named:
        if member in members:
            if member in found:
                # Programs differ in which of the two they take, so a checker may see another one than a user.
                raise SembenchError(f"{label} is refused, since it has the member '{member}' twice")
            found[member] = entry
    for member in sorted(members):
        if member not in found:
            raise SembenchError(f"{label} lacks the member '{member}'")
        if not found[member].regular:
            raise SembenchError(f"{label} is refused, since its member '{member}' is a link, a device or a folder")
    return found


def _normal(name: str, below_top: bool) -> str:
    parts = PurePosixPath(name).parts  # drops "./"
    return "/".join(parts[1:] if below_top else parts)
