"""Downloads that survive interruptions: what is there already is not fetched twice."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import requests
import urllib3
from filelock import FileLock
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from sembench.core.errors import SembenchError
from sembench.core.files import write_text
from sembench.sources.order import Say
from sembench.sources.verify import PIECE

TRIES = 3
WAIT = wait_exponential(multiplier=0.5, max=8)
TIMEOUT = (10, 60)  # seconds until connected, and between two pieces
TELL_EVERY = 60.0  # seconds between two lines about progress


class PassingError(SembenchError):
    """A failure that another try may overcome."""


@contextlib.contextmanager
def downloaded(url: str, part: Path, say: Say) -> Iterator[Path]:
    """Yield ``part`` with all bytes of an address, and remove it when it has been used or proved wrong.

    It stays where the next try can use it: after a broken download, an interruption, and a full disk.
    A lock beside it keeps two processes that want the same address apart.

    Raises:
        SembenchError: The address did not deliver.
    """
    part.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(part.with_suffix(".lock")):
        retrying = Retrying(
            stop=stop_after_attempt(TRIES), wait=WAIT, retry=retry_if_exception_type(PassingError), reraise=True
        )
        retrying(_resume, url, part, say)
        try:
            yield part
        except SembenchError:
            _forget(part)
            raise
        _forget(part)


def _version_file(part: Path) -> Path:
    return part.with_suffix(".version")


def _forget(part: Path) -> None:
    part.unlink(missing_ok=True)
    _version_file(part).unlink(missing_ok=True)


def _resume(url: str, part: Path, say: Say) -> None:
    have = part.stat().st_size if part.exists() else 0
    with _ask(url, _headers(part, have)) as response:
        if response.status_code == 416 and have:
            if response.headers.get("Content-Range") == f"bytes */{have}":
                return  # the part is the whole
            _start_over(url, part)
        if response.status_code >= 500:
            raise PassingError(f"{url} answered {response.status_code}")
        if response.status_code not in (200, 206):
            raise SembenchError(f"{url} answered {response.status_code}")
        if response.status_code == 206 and not response.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
            _start_over(url, part)
        _receive(response, url, part, have if response.status_code == 206 else 0, say)


def _start_over(url: str, part: Path) -> None:
    _forget(part)
    raise PassingError(f"{url} no longer fits the part that was downloaded before")


def _headers(part: Path, have: int) -> dict[str, str]:
    headers = {"Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
        if _version_file(part).exists():
            # A server whose file has changed since then answers with all of it instead of a rest that does not fit.
            headers["If-Range"] = _version_file(part).read_text(encoding="utf-8")
    return headers


def _ask(url: str, headers: dict[str, str]) -> requests.Response:
    try:
        return requests.get(url, headers=headers, stream=True, timeout=TIMEOUT)
    except (requests.ConnectionError, requests.Timeout) as error:
        raise PassingError(f"{url} cannot be reached ({type(error).__name__})") from None
    except requests.RequestException as error:
        raise SembenchError(f"{url} cannot be used ({type(error).__name__})") from None


def _receive(response: requests.Response, url: str, part: Path, start: int, say: Say) -> None:
    length = response.headers.get("Content-Length")
    total = start + int(length) if length else None
    if not start:
        _remember_version(response, part)
    # Not decoded: a server that calls a .gz file a content encoding would have it unpacked on the way.
    pieces = response.raw.stream(PIECE, decode_content=False)
    broken = False
    try:
        with part.open("ab" if start else "wb") as target:
            for piece in _told(pieces, start, total, url, say):
                target.write(piece)
    except urllib3.exceptions.HTTPError:
        broken = True
    size = part.stat().st_size
    if broken or total not in (None, size):
        raise PassingError(f"{url} broke off after {size} of {total or 'unknown'} bytes (the next try resumes there)")


def _remember_version(response: requests.Response, part: Path) -> None:
    etag = response.headers.get("ETag", "")
    # A weak tag ("W/...") names equivalent content, not equal bytes, and must not be sent in If-Range.
    version = etag if etag.startswith('"') else response.headers.get("Last-Modified", "")
    _version_file(part).unlink(missing_ok=True)
    if version:
        write_text(_version_file(part), version)


def _told(pieces: Iterable[bytes], done: int, total: int | None, url: str, say: Say) -> Iterator[bytes]:
    begun = told = time.monotonic()
    first = done
    for piece in pieces:
        yield piece
        done += len(piece)
        now = time.monotonic()
        if now - told >= TELL_EVERY:
            told = now
            rate = (done - first) / (now - begun)
            left = f" of {total / 1e6:.1f}, {(total - done) / rate:.0f} s left" if total else ""
            say(f"{url}: {done / 1e6:.1f} MB{left}, {rate / 1e6:.2f} MB/s")
