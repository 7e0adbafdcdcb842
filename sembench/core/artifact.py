"""Artefacts (class ``Artifact``): whatever is costly has its key in its path and a record that consumers check.

The key is a digest of the resolved parameters with their defaults, of the version of the plug-in that makes it (part
of the parameters) and of the keys of its inputs. It is known before anything is fetched. A changed input is another
path; the old one stays. The record is written last, so its presence means that the artefact is complete; it keeps the
checksums of the artefact's files and the content of what was read, so that a file edited by hand, or fetched again
with other content, is never used unseen.
"""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from sembench.core.canonical import digest
from sembench.core.errors import SembenchError
from sembench.core.files import sha256_of, sweep_temporaries, write_json
from sembench.core.locks import locked

RECORD = "made.json"
Kind = Literal["dataset", "shard", "made", "backbone", "run", "fit", "scores"]
# Content of what this process opened, by path of the record: a training reads its data hours before it is sealed.
_OPENED: dict[Path, str] = {}
_LIBRARIES = ("sembench", "torch", "transformers", "tokenizers", "numpy", "scipy", "pandas")


@dataclass(frozen=True)
class Artifact:
    """Something costly, whether it is made yet or only planned.

    Attributes:
        kind: what it is.
        name: for people; the path has it before the key.
        params: everything that decides its content, defaults and versions included.
        inputs: what it is made from.
        folder: where it lies, relative to the project's folder; its last part ends with the key.
        files: its files, relative to ``folder``, but for the record.
        record_name: name of the record in ``folder``.
        notes: those of ``files`` that say how it was made, such as the seconds it took; they are checked like the
            others, but two artefacts that differ in them alone have the same content.
    """

    kind: Kind
    name: str
    params: Mapping[str, Any]
    inputs: tuple[Artifact, ...]
    folder: Path
    files: tuple[str, ...]
    record_name: str = RECORD
    notes: tuple[str, ...] = ()

    @functools.cached_property
    def key(self) -> str:
        """Eight hex digits."""
        return key_of(self.kind, self.params, self.inputs)

    @property
    def record(self) -> Path:
        """Path of the record, relative to the project's folder; it counts as the artefact's presence."""
        return self.folder / self.record_name

    @property
    def paths(self) -> tuple[Path, ...]:
        """All files and, last, the record."""
        return (*(self.folder / name for name in self.files), self.record)


def key_of(kind: Kind, params: Mapping[str, Any], inputs: Iterable[Artifact]) -> str:
    """Return the key of what is made from these parameters and inputs."""
    return digest([kind, dict(params), [each.key for each in inputs]])


@contextlib.contextmanager
def alone(root: Path, artifact: Artifact) -> Iterator[bool]:
    """Hold off other processes that make the same artefact, and yield whether it is still to be made.

    What a process that was killed while it made it left half-written is removed.
    """
    # Scores have a folder in common: one lock for all of them, and no file more beside each.
    path = root / artifact.folder.parent / f".{artifact.folder.name}.lock"
    with locked(path, f"work on {artifact.kind} '{artifact.name}'"):
        is_open = not (root / artifact.record).is_file()
        if is_open:
            sweep(root, artifact)
        yield is_open


def sweep(root: Path, artifact: Artifact) -> None:
    """Remove half-written files of an artefact, which may be large; nobody else may be making it."""
    for path in artifact.paths:
        sweep_temporaries(root / path)


def seal(root: Path, artifact: Artifact, facts: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Write the record of an artefact whose files are all in place, and return it.

    The artefact's inputs must be there too: what they hold now is what it was made from.

    Args:
        root: the project's folder.
        artifact: what was made.
        facts: more to keep, such as numbers of rows; no part of its key or its content.

    Raises:
        SembenchError: an input that this process opened has other content by now.
    """
    folder = root / artifact.folder
    for each in artifact.inputs:
        if _OPENED.get(root / each.record, found := content_of(root, each)) != found:
            raise SembenchError(
                f"{each.folder} was made anew with other content while {artifact.kind} '{artifact.name}' was made from "
                "it; run the same command again"
            )
    record = {
        "kind": artifact.kind,
        "name": artifact.name,
        "key": artifact.key,
        "params": dict(artifact.params),
        "inputs": [
            {"kind": each.kind, "name": each.name, "key": each.key, "content": content_of(root, each)}
            for each in artifact.inputs
        ],
        "origins": _origins(root, artifact),
        "files": {name: sha256_of(folder / name) for name in artifact.files},
        "facts": dict(facts or {}),
        "versions": {name: found for name in _LIBRARIES if (found := _version(name))},
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    write_json(root / artifact.record, record)
    return record


def _origins(root: Path, artifact: Artifact) -> list[dict[str, str]]:
    """Return what the inputs were made from in their turn, which stays comparable when an input is deleted."""
    records = (read_record(root, each) or {} for each in artifact.inputs)
    found = [entry for record in records for entry in [*record.get("inputs", []), *record.get("origins", [])]]
    return list({_identity(entry): entry for entry in found}.values())


@functools.cache
def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def read_record(root: Path, artifact: Artifact) -> dict[str, Any] | None:
    """Return the record of an artefact, or None where it is not made yet.

    Raises:
        SembenchError: the record is not JSON, or that of another artefact.
    """
    path = root / artifact.record
    try:
        stamp = path.stat()
    except FileNotFoundError:
        return None
    try:
        record = _parsed(str(path), stamp.st_mtime_ns, stamp.st_size)
    except (ValueError, RecursionError):
        record = None
    if not _well_formed(record) or record["files"].keys() != set(artifact.files):
        raise SembenchError(f"{artifact.record} is damaged; {_remedy(artifact)}")
    if record["key"] != artifact.key:
        raise SembenchError(
            f"{artifact.record} is that of key {record['key']}, not {artifact.key}; {_remedy(artifact)}"
        )
    return dict(record)


def _well_formed(record: Any) -> bool:
    """Tell whether a record has what ``seal`` writes: whoever edits one must not bring unchecked files in."""
    return (
        isinstance(record, dict)
        and isinstance(record.get("key"), str)
        and _of_text(record.get("files"))
        and _are_origins(record.get("inputs"))
        and _are_origins(record.get("origins", []))
        and isinstance(record.get("facts"), dict)
    )


def _identity(entry: Mapping[str, str]) -> tuple[str, str, str]:
    return entry["kind"], entry["name"], entry["key"]


def _are_origins(value: Any) -> bool:
    return isinstance(value, list) and all(
        _of_text(each) and {"kind", "name", "key", "content"} <= each.keys() for each in value
    )


def _of_text(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(each, str) for each in value.values())


@functools.lru_cache(maxsize=4096)
def _parsed(path: str, _modified: int, _size: int) -> Any:
    """Read a record once for as long as the file stays as it is: thousands of scores share a few origins."""
    return json.loads(Path(path).read_text(encoding="utf-8"))


def content_of(root: Path, artifact: Artifact) -> str:
    """Return a digest of what an artefact's files hold, according to its record; empty where it is not made.

    Raises:
        SembenchError: the record is damaged or that of another artefact.
    """
    record = read_record(root, artifact)
    return _content(artifact, record) if record else ""


def _content(artifact: Artifact, record: Mapping[str, Any]) -> str:
    return digest({name: sha256 for name, sha256 in record["files"].items() if name not in artifact.notes}, 16)


def opened(root: Path, artifact: Artifact) -> Path:
    """Return the folder of an artefact after comparing its record with its files and with what it was made from.

    Raises:
        SembenchError: it is not made, a file is missing or was changed, or an input has other content by now; the
            sentence says which artefact it is, and what to delete so that it is made anew.
    """
    record = _compared(root, artifact, artifact.files)
    _OPENED[root / artifact.record] = _content(artifact, record)
    return root / artifact.folder


def opened_file(root: Path, artifact: Artifact, name: str) -> Path:
    """Return one file of an artefact after the comparisons of ``opened``; its other files may be large.

    Raises:
        SembenchError: as ``opened``.
    """
    _compared(root, artifact, (name,))
    return root / artifact.folder / name


def _compared(root: Path, artifact: Artifact, names: Iterable[str]) -> dict[str, Any]:
    record = read_record(root, artifact)
    if record is None:
        raise SembenchError(
            f"{artifact.record} does not exist: {artifact.kind} '{artifact.name}' is not made yet; run a target of "
            "snakemake that needs it"
        )
    for name in names:
        path = root / artifact.folder / name
        if not path.is_file():
            raise SembenchError(f"{artifact.folder / name} is missing; {_remedy(artifact)}")
        if sha256_of(path) != record["files"][name]:
            raise SembenchError(f"{artifact.folder / name} was changed after it was made; {_remedy(artifact)}")
    _check_origins(root, artifact, record)
    return record


def check_origins(root: Path, artifacts: Iterable[Artifact]) -> None:
    """Compare what artefacts were made from with what lies there now; those that are not made pass.

    Raises:
        SembenchError: an origin has other content by now.
    """
    seen: set[Path] = set()
    for each in artifacts:
        if record := read_record(root, each):
            _check_origins(root, each, record, seen)


def _check_origins(root: Path, artifact: Artifact, record: Mapping[str, Any], seen: set[Path] | None = None) -> None:
    """Compare what an artefact was made from, and that in turn, with what lies there now.

    What is gone is not compared, but what it was made from is. Only records are compared: each job hashes the files
    that it opens itself. ``seen`` gathers the records of origins whose own origins are compared already.

    Raises:
        SembenchError: an origin has other content by now, as a file without a checksum that was fetched again.
    """
    made_from = {_identity(entry): entry["content"] for entry in [*record.get("origins", []), *record["inputs"]]}
    waiting = list(artifact.inputs)
    while waiting:
        each = waiting.pop()
        origin = read_record(root, each)
        if origin is None:
            waiting += each.inputs
            continue
        content = _content(each, origin)
        if content != made_from.get((each.kind, each.name, each.key), "" if each in artifact.inputs else content):
            raise SembenchError(
                f"{artifact.kind} '{artifact.name}' was made from other content of {each.kind} '{each.name}' than "
                f"{each.folder} holds now; {_remedy(artifact, each)}"
            )
        if seen is None or each.record not in seen:
            _check_origins(root, each, origin, seen)
            if seen is not None:
                seen.add(each.record)


def _remedy(artifact: Artifact, changed: Artifact | None = None) -> str:
    what = artifact.folder if artifact.record_name == RECORD else artifact.record
    if artifact.kind == "scores" and changed and changed.kind in ("run", "backbone"):
        what = artifact.folder.parent  # Another encoder: none of its scores holds any more.
    return f"delete {what} and run the same command again to make it anew"
