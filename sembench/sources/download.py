"""Downloads that survive interruptions: what is there already is not fetched twice."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path

import requests
import urllib3
from filelock import FileLock, Timeout
from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from sembench.core.errors import PassingError, SembenchError
from sembench.core.files import write_text
from sembench.core.locks import locked
from sembench.core.progress import Interval
from sembench.sources.order import Say
from sembench.sources.verify import PIECE

TRIES = 3
WAIT = wait_exponential(multiplier=0.5, max=8)
LONGEST_WAIT = 120.0  # seconds that a server may ask for; beyond that the user gets an error instead
TIMEOUT = (10, 60)  # seconds until connected, and between two pieces
PASSING = (408, 425, 429)  # a timeout, "too early", "too many"
KEPT = 3 * 24 * 3600.0  # seconds that an interrupted download waits to be resumed


@dataclass
class Download:
    """A file that arrived; with ``keep`` it stays in the cache for the next who wants the same address."""

    path: Path
    keep: bool = False


@contextlib.contextmanager
def downloaded(url: str, part: Path, say: Say, most: int) -> Iterator[Download]:
    """Yield all bytes of an address in the file ``part``, and remove it when it has been used or proved wrong.

    ``most``: bytes that may come; a server that sends more, or without end, must not fill the disk.

    It stays where the next try can use it: after a broken download, an interruption, and a full disk.
    A lock beside it keeps two processes that want the same address apart.

    Raises:
        SembenchError: The address did not deliver.
    """
    with locked(part.with_suffix(".lock"), f"download of {url}"):
        retrying = Retrying(
            stop=stop_after_attempt(TRIES), wait=_wait, retry=retry_if_exception_type(PassingError), reraise=True
        )
        retrying(_resume, url, part, say, most)
        download = Download(part)
        try:
            yield download
        except SembenchError:
            _forget(part)
            raise
        if not download.keep:
            _forget(part)


def _wait(state: RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    return max(WAIT(state), error.after if isinstance(error, PassingError) else 0.0)


def sweep_cache(cache: Path) -> None:
    """Remove what interrupted downloads left in the cache long ago and nobody is resuming now."""
    for path in cache.iterdir():
        # Whoever works on it holds its lock; a process that does the same as this one may be faster.
        with contextlib.suppress(Timeout, FileNotFoundError):
            if path.suffix in (".lock", ".version") or time.time() - path.stat().st_mtime < KEPT:
                continue
            with FileLock(path.with_suffix(".lock"), timeout=0):
                shutil.rmtree(path) if path.is_dir() else _forget(path)


def _version_file(part: Path) -> Path:
    return part.with_suffix(".version")


def _forget(part: Path) -> None:
    part.unlink(missing_ok=True)
    _version_file(part).unlink(missing_ok=True)


def _resume(url: str, part: Path, say: Say, most: int) -> None:
    have = part.stat().st_size if part.exists() else 0
    with _ask(url, _headers(part, have)) as response:
        if response.status_code == 416 and have:
            if response.headers.get("Content-Range") == f"bytes */{have}":
                return  # the part is the whole
            _start_over(url, part)
        if response.status_code in PASSING or response.status_code >= 500:
            raise _ask_later(url, response)
        if response.status_code not in (200, 206):
            raise SembenchError(f"{url} answered {response.status_code}")
        if response.status_code == 206 and not response.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
            _start_over(url, part)
        _receive(response, url, part, have if response.status_code == 206 else 0, say, most)


def _ask_later(url: str, response: requests.Response) -> SembenchError:
    after = seconds_until(response.headers.get("Retry-After", ""))
    if after > LONGEST_WAIT:
        return SembenchError(f"{url} answered {response.status_code} and asks to come back in {after:.0f} s")
    return PassingError(f"{url} answered {response.status_code}", after)


def seconds_until(retry_after: str) -> float:
    """Return the seconds that a ``Retry-After`` header asks to wait: a number, or a date; 0 where it says nothing."""
    if retry_after.strip().isdecimal():
        return float(retry_after)
    try:
        moment = parsedate_to_datetime(retry_after)
    except ValueError:
        return 0.0
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


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
    # An address that a server redirects to may be anything; urllib3 refuses some that requests lets through.
    except (requests.RequestException, urllib3.exceptions.HTTPError, ValueError) as error:
        raise SembenchError(f"{url} cannot be used ({type(error).__name__})") from None


def _receive(response: requests.Response, url: str, part: Path, start: int, say: Say, most: int) -> None:
    length = response.headers.get("Content-Length", "")
    total = start + int(length) if length.isdecimal() else None
    if total and total > most:
        raise _too_long(url, part, most)
    if not start:
        _remember_version(response, part)
    # Not decoded: a server that calls a .gz file a content encoding would have it unpacked on the way.
    pieces = response.raw.stream(PIECE, decode_content=False)
    broken = False
    try:
        with part.open("ab" if start else "wb") as target:
            for piece in _with_progress(pieces, start, total, url, say):
                target.write(piece)
                if target.tell() > most:
                    raise _too_long(url, part, most)
    except (urllib3.exceptions.HTTPError, ValueError):  # urllib3 reads a chunk of negative length
        broken = True
    size = part.stat().st_size
    if broken or total not in (None, size):
        raise PassingError(f"{url} broke off after {size} of {total or 'unknown'} bytes (the next try resumes there)")


def _too_long(url: str, part: Path, most: int) -> SembenchError:
    _forget(part)
    return SembenchError(
        f"{url} sends more than {most / 1e6:g} MB, the most that it may; "
        "if that is right, raise 'max_mb' of its files in the registry"
    )


def _remember_version(response: requests.Response, part: Path) -> None:
    etag = response.headers.get("ETag", "")
    # A weak tag ("W/...") names equivalent content, not equal bytes, and must not be sent in If-Range.
    version = etag if etag.startswith('"') else response.headers.get("Last-Modified", "")
    _version_file(part).unlink(missing_ok=True)
    if version:
        write_text(_version_file(part), version)


def _with_progress(pieces: Iterable[bytes], done: int, total: int | None, url: str, say: Say) -> Iterator[bytes]:
    interval, first = Interval(), done
    for piece in pieces:
        yield piece
        done += len(piece)
        if interval.is_over():
            rate = (done - first) / interval.seconds
            left = f" of {total / 1e6:.1f}, {(total - done) / rate:.0f} s left" if total else ""
            say(f"{url}: {done / 1e6:.1f} MB{left}, {rate / 1e6:.2f} MB/s")
