"""Where fetching happens, and the checks that every file passes before it belongs to a data set."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple, cast

from sembench.core.errors import SembenchError
from sembench.core.files import atomic_path
from sembench.plan.layout import DATA
from sembench.registry.available import FIXTURES
from sembench.registry.models import DataFile, SourceKind
from sembench.sources.verify import PIECE, Facts, Locks, find_problem, is_pinned, measure, most_bytes, too_large

if TYPE_CHECKING:
    from sembench.plan import Plan

Say = Callable[[str], None]


@dataclass(frozen=True)
class Site:
    """Where fetching happens.

    Attributes:
        root: the project's folder.
        data: folder of fetched data; downloads under way and locks are kept in it.
        mirror: folder laid out as a mirror, if there is one.
    """

    root: Path
    data: Path
    mirror: Path | None = None

    @classmethod
    def of(cls, plan: Plan) -> Site:
        """Return where a plan has its data fetched."""
        return cls(root=plan.root, data=plan.root / DATA, mirror=plan.mirror)

    @property
    def fixtures(self) -> Path:
        """Folder of the project's own small files."""
        return self.root / FIXTURES

    @property
    def cache(self) -> Path:
        """Folder of downloads under way, which a later try resumes."""
        return self.data / "partial"

    @property
    def locks(self) -> Path:
        """File with what was locked on first use."""
        return self.data / "locks.json"

    def cached(self, address: str) -> Path:
        """Return the place in the cache that belongs to an address."""
        return self.cache / hashlib.sha256(address.encode()).hexdigest()[:32]


class Origin(NamedTuple):
    """The kind of a source and its human-readable place: address, package, ``repo@commit`` or relative path."""

    kind: SourceKind
    place: str


class Capped:
    """A stream that ends in an error where a file grows larger than the registry lets it: little may unpack to much."""

    def __init__(self, stream: IO[bytes], file: DataFile, place: str) -> None:
        self.stream, self.file, self.place = stream, file, place
        self.left = most_bytes(file)

    def read(self, size: int) -> bytes:
        """Return the next piece.

        Raises:
            SembenchError: the file is too large.
        """
        piece = self.stream.read(size)
        self.left -= len(piece)
        if self.left < 0:
            raise SembenchError(too_large(self.file, self.place))
        return piece


@dataclass(frozen=True)
class Order:
    """The files that a data set still lacks; sources fill it by ``accept``.

    Attributes:
        name: of the data set in the registry.
        folder: where its files belong.
        files: all of them.
        site: where fetching happens.
        say: takes a line about progress.
        facts: of the files that are there and passed their checks, by name.
        origins: of the files that arrived.
    """

    name: str
    folder: Path
    files: list[DataFile]
    site: Site
    say: Say
    facts: dict[str, Facts] = field(default_factory=dict)
    origins: list[Origin] = field(default_factory=list)

    @property
    def locks(self) -> Locks:
        """Locks of the site."""
        return Locks(self.site.locks)

    @property
    def missing(self) -> list[DataFile]:
        """Files that are not there yet, in the order of the registry."""
        return [file for file in self.files if file.name not in self.facts]

    def keep(self, file: DataFile, facts: Facts) -> None:
        """Take a file that is already there and passed its checks."""
        if not is_pinned(file):
            self.locks.claim(f"{self.name}/{file.name}", "found in place", sha256=facts.sha256)
        self.facts[file.name] = facts

    def accept(self, file: DataFile, stream: IO[bytes], origin: Origin) -> None:
        """Write a file from a stream; it gets its name only after what lies on disk has passed every check.

        Raises:
            SembenchError: The content contradicts the registry or its lock.
        """
        with atomic_path(self.folder / file.name) as temporary:
            with temporary.open("wb") as target:
                shutil.copyfileobj(cast("IO[bytes]", Capped(stream, file, origin.place)), target, PIECE)
            facts = measure(temporary)
            if problem := find_problem(file, facts):
                raise SembenchError(f"{file.name} from {origin.place} {problem}")
            if not is_pinned(file):
                self.locks.claim(f"{self.name}/{file.name}", origin.place, sha256=facts.sha256)
        self.facts[file.name] = facts
        if origin not in self.origins:
            self.origins.append(origin)

    def accept_all(self, folder: Path, members: dict[str, str], origin: Origin) -> None:
        """Copy the missing files from a folder; ``members`` maps a file's name to its path below the folder.

        Raises:
            SembenchError: A member cannot be read, or its content contradicts the registry or its lock.
        """
        for file in self.missing:
            member = members[file.name]
            if (folder / member).exists() and not (folder / member).is_file():
                raise SembenchError(f"{member} is not a regular file")
            try:
                stream = (folder / member).open("rb")
            except OSError as error:
                raise SembenchError(f"{member} cannot be read ({error.strerror})") from None
            with stream:
                self.accept(file, stream, origin)
