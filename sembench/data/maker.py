"""What a maker of a data set is: fetched files, or sets made before, become files that the rest of the project reads.

A maker is chosen in ``registry/made.yaml`` by ``kind``, with its own parameters beside; ``inputs`` says which data set,
or which encoder, plays each of its roles. What it writes lies in a folder whose name ends with a key. The key is made
of the parameters, the maker's version, the keys of the inputs, the content of ``reads`` and what ``extra`` returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from sembench.core.artifact import RECORD
from sembench.core.errors import SembenchError
from sembench.core.schema import Strict

Say = Callable[[str], None]


class Maker:
    """Base of all makers.

    Attributes:
        version: raised whenever the same inputs and parameters give another result.
        roles: names of the inputs that must be given.
        optional_roles: names of inputs that may be given.
        encoders: those of the roles that an encoder plays, a name of ``registry/backbones.yaml``.
        files: what it writes, relative to its folder.
        examples: the one of ``files`` that is a frame of examples (parquet); empty: none is.
        columns: columns of that frame, in order.
        sharded: several jobs may share its work (see ``sembench.data.shards``).
    """

    class Config(Strict):
        """No parameters."""

    version: ClassVar[int] = 1
    roles: ClassVar[tuple[str, ...]] = ()
    optional_roles: ClassVar[tuple[str, ...]] = ()
    encoders: ClassVar[tuple[str, ...]] = ()
    files: ClassVar[tuple[str, ...]] = ()
    examples: ClassVar[str] = ""
    columns: ClassVar[tuple[str, ...]] = ()
    sharded: ClassVar[bool] = False

    @classmethod
    def reads(cls, config: Any) -> tuple[str, ...]:
        """Return further files whose content decides the result: below the project's folder, or a user's own path."""
        return ()

    @classmethod
    def extra(cls, config: Any, root: Path) -> str:
        """Return a digest of whatever else decides the result, such as which answers of a service are stored."""
        return ""

    @classmethod
    def check(cls, config: Any, root: Path) -> None:
        """Find, before anything is fetched, what no schema can: names that must occur in a file of the registry.

        Raises:
            SembenchError: the parameters cannot work.
        """

    @classmethod
    def make(cls, config: Any, inputs: Mapping[str, Path], target: Path, root: Path, say: Say) -> dict[str, Any]:
        """Write ``files`` into a folder and return facts for the record.

        Args:
            config: the kind's parameters.
            inputs: role to the folder of the data set or encoder that plays it.
            target: folder to write into; it may not exist yet.
            root: the project's folder, below which ``reads`` lie.
            say: takes a line for the log.

        Returns:
            Numbers worth keeping, such as ``rows``.

        Raises:
            SembenchError: an input is not as it should be; the sentence names file and line.
        """
        raise NotImplementedError


def only_file(folder: Path, suffixes: Iterable[str]) -> Path:
    """Return the one file of a data set's folder that has one of the suffixes.

    Raises:
        SembenchError: there is none, or more than one.
    """
    wanted = tuple(suffixes)
    found = sorted(path for path in folder.rglob("*") if path.name.endswith(wanted) and path.name != RECORD)
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "none"
        raise SembenchError(f"{folder} must hold one file ending in {' or '.join(wanted)}, but holds {names}")
    return found[0]
