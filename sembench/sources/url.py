"""Files at addresses: one by one, or as members of an archive."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO, Literal
from urllib.parse import quote

from sembench.core.errors import SembenchError
from sembench.registry.models import DataFile, UrlSource
from sembench.sources.download import downloaded
from sembench.sources.order import Order, Origin
from sembench.sources.unpack import decompress, unpack
from sembench.sources.verify import measure, most_bytes

ARCHIVE_CHECKS = ("sha256", "sha1", "git_blob")
MOST_ARCHIVE = 2 * 10**9  # bytes; an archive may hold other data sets besides the one that is wanted


def fetch_url(source: UrlSource, order: Order) -> None:
    """Fill the order from a source's addresses, each in turn until one delivers.

    Raises:
        SembenchError: No address delivered.
    """
    kind = source.archive
    if kind in ("zip", "tar"):
        _first_that_delivers(source.urls, partial(_fetch_archive, source, kind, order))
        return
    if len(order.files) > 1 and not all("{name}" in url for url in source.urls):
        raise SembenchError("an address without '{name}' and without a zip or tar archive provides a single file")
    for file in order.missing:
        _first_that_delivers(source.urls, partial(_fetch_file, source, file, order))


def _first_that_delivers(urls: list[str], fetch: Callable[[str], None]) -> None:
    failures = []
    for url in urls:
        try:
            fetch(url)
        except SembenchError as error:
            failures.append(str(error))
        else:
            return
    raise SembenchError("; ".join(failures))


def _fetch_archive(source: UrlSource, kind: Literal["zip", "tar"], order: Order, url: str) -> None:
    wanted = {file.name: source.member(file.name) for file in order.missing}
    files = {file.name: file for file in order.missing}
    order.say(f"downloading {url}")
    most = sum(most_bytes(file) for file in order.files)
    with downloaded(url, order.site.cached(url), order.say, max(most, MOST_ARCHIVE)) as download:
        _check_archive(source, url, download.path)
        # What else it holds may be another data set, which is then spared a download of the same archive.
        download.keep = unpack(
            download.path,
            kind,
            wanted,
            lambda name, stream: order.accept(files[name], stream, Origin("url", url)),
            label=url,
            most=most,
        )


def _fetch_file(source: UrlSource, file: DataFile, order: Order, template: str) -> None:
    url = template.replace("{name}", quote(source.member(file.name)))
    order.say(f"downloading {url}")

    def deliver(_: str, stream: IO[bytes]) -> None:
        order.accept(file, stream, Origin("url", template))

    with downloaded(url, order.site.cached(url), order.say, most_bytes(file)) as download:
        _check_archive(source, url, download.path)
        if source.archive in ("gz", "bz2"):
            decompress(download.path, source.archive, file.name, deliver, label=url)
        else:
            with download.path.open("rb") as stream:
                deliver(file.name, stream)


def _check_archive(source: UrlSource, url: str, path: Path) -> None:
    expected = {check: getattr(source, check) for check in ARCHIVE_CHECKS if getattr(source, check)}
    if not expected:
        return
    facts = measure(path)
    for check, value in expected.items():
        if getattr(facts, check) != value:
            raise SembenchError(f"{url} has {check} {getattr(facts, check)}, expected {value}")
