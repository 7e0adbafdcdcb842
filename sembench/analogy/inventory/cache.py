"""Every answer of a sense service, kept for good: none is ever paid for twice.

One JSON file holds one answer, in ``<folder>/<api>/<method>/<two hex digits>/<sha256>.json``. Files were chosen over
SQLite because a rename is all or nothing whenever a process dies, because readers then need no lock at all (SQLite's
needs shared memory, which network file systems of clusters lack), and because a person can look at them.

The key of an account is no part of a request here: it is neither hashed nor stored.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from filelock import BaseFileLock, FileLock

from sembench.core.canonical import digest
from sembench.core.errors import SembenchError
from sembench.core.files import atomic_path

API = "v9"
# Where the project keeps BabelNet's answers, below its folder.
FOLDER = Path("results/data/babelnet")
Params = Mapping[str, str | Sequence[str]]
Pairs = tuple[tuple[str, str], ...]

_FILE = re.compile(r"[0-9a-f]{64}\.json")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*")


@dataclass(frozen=True)
class Answer:
    """What the service said to one request.

    Attributes:
        method: such as ``getSynset``.
        params: name and value, sorted; a repeated parameter occurs several times.
        status: HTTP status, 200, or 400 for an id that does not exist.
        body: parsed JSON.
        fetched_at: time in UTC, ISO 8601.
    """

    method: str
    params: Pairs
    status: int
    body: Any
    fetched_at: str

    @property
    def found(self) -> bool:
        """Whether this is data and not the message that there is none; some clients met that one with status 200."""
        return self.status == 200 and not (isinstance(self.body, dict) and "message" in self.body)

    def param(self, name: str) -> str | None:
        """Return the first value of a parameter."""
        return next((value for key, value in self.params if key == name), None)


def pairs_of(params: Params) -> Pairs:
    """Return parameters as sorted pairs, so that their order makes no second request.

    Raises:
        ValueError: A key is among them; it belongs to the sender and must reach no file.
    """
    if "key" in params:
        raise ValueError("the key of an account is not a parameter of a cached request")
    values = {name: [value] if isinstance(value, str) else list(value) for name, value in params.items()}
    return tuple(sorted((name, value) for name, several in values.items() for value in several))


def utc_now() -> datetime:
    """Return the present time in UTC."""
    return datetime.now(UTC)


class AnswerCache:
    """Answers on disk, and what was spent on which day.

    Reading needs no lock. Writing is atomic and reaches the disk before it counts, so an answer that is there is
    whole, after ``kill -9`` and after a power cut. Whoever wants to ask the service holds `lock` from a second look
    at the cache until the answer is stored: then no two processes ask the same.
    """

    def __init__(self, folder: Path, api: str = API, now: Callable[[], datetime] = utc_now) -> None:
        """Use ``folder``, which need not exist, for answers of one version of the API.

        Args:
            folder: where answers and the ledger are.
            api: version of the API, part of every request's identity.
            now: clock in UTC.
        """
        self.folder = folder
        self.api = _checked(api)
        self.ledger = Ledger(folder / "spent", now)
        self._now = now

    @cached_property
    def lock(self) -> BaseFileLock:
        """Lock of everybody who asks the service and files the answer in this folder."""
        self.folder.mkdir(parents=True, exist_ok=True)
        return FileLock(self.folder / "requests.lock")

    def path(self, method: str, params: Params) -> Path:
        """Return the file of a request, named by the SHA-256 of API version, method, and sorted parameters."""
        request = json.dumps([self.api, method, pairs_of(params)], ensure_ascii=True, separators=(",", ":"))
        digest = hashlib.sha256(request.encode()).hexdigest()
        return self.folder / f"{self.api}/{_checked(method)}/{digest[:2]}/{digest}.json"

    def has(self, method: str, params: Params) -> bool:
        """Return whether a request was answered before, without reading the answer."""
        return self.path(method, params).exists()

    def get(self, method: str, params: Params) -> Answer | None:
        """Return the answer to a request if it was asked before.

        Raises:
            SembenchError: The file is damaged.
        """
        return _read(self.path(method, params))

    def put(self, method: str, params: Params, status: int, body: Any) -> Answer:
        """Store an answer and return it.

        Raises:
            ValueError: The answer is a refusal or a failure, which must be asked again another day.
        """
        if status not in (200, 400):
            raise ValueError(f"an answer with status {status} is not kept")
        fetched_at = self._now().isoformat(timespec="seconds")
        answer = Answer(method, pairs_of(params), status, body, fetched_at)
        content = {
            "api": self.api,
            "method": method,
            "params": answer.params,
            "status": status,
            "body": body,
            "fetched_at": fetched_at,
        }
        _write(self.path(method, params), content)
        return answer

    def answers(self, method: str) -> Iterator[Answer]:
        """Yield all answers to a method, sorted by their parameters.

        Only parameters are held in memory meanwhile; each file is read twice.

        Raises:
            SembenchError: A file is damaged.
        """
        # A process that was killed leaves its temporary file, which has another name, behind.
        paths = (self.folder / self.api / _checked(method)).glob("??/*.json")
        read = ((path, _read(path)) for path in paths if _FILE.fullmatch(path.name))
        for _, path in sorted((answer.params, path) for path, answer in read if answer):
            if answer := _read(path):
                yield answer


def stored(folder: Path) -> str:
    """Return a digest of which requests a cache has answers to; answers themselves never change."""
    names = sorted(path.name for path in folder.glob("*/*/??/*.json") if _FILE.fullmatch(path.name))
    return digest(names, 16)


class Ledger:
    """How many requests were sent on each day (UTC), whatever became of them.

    A day is a file, and its size is the number: a byte is appended in one step, no half of it can be written.
    """

    def __init__(self, folder: Path, now: Callable[[], datetime] = utc_now) -> None:
        """Use a folder, which need not exist, and a clock in UTC."""
        self.folder = folder
        self._now = now

    @property
    def today(self) -> int:
        """Requests sent today."""
        path = self._path()
        return path.stat().st_size if path.exists() else 0

    def days(self) -> dict[str, int]:
        """Return day, such as ``2031-05-04``, to number of requests, in order."""
        return {path.name: path.stat().st_size for path in sorted(self.folder.glob("????-??-??"))}

    def add(self) -> None:
        """Count a request of today, before it is sent: a process killed in between must not hide spending."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._path().open("ab") as stream:
            stream.write(b".")

    def take_back(self) -> None:
        """Uncount a request that was refused; the caller holds the lock of the cache."""
        if self.today:
            os.truncate(self._path(), self.today - 1)

    def _path(self) -> Path:
        return self.folder / self._now().date().isoformat()


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} cannot name a folder")
    return name


def _write(path: Path, content: Any) -> None:
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8") as stream:
        stream.write(json.dumps(content, ensure_ascii=False))
        stream.flush()
        # A power cut after the rename would otherwise leave an empty file, and an answer costs more than a few ms.
        _to_disk(stream.fileno())


_to_disk = os.fsync


def _read(path: Path) -> Answer | None:
    try:
        content = json.loads(path.read_bytes())
        params = tuple((str(name), str(value)) for name, value in content["params"])
        return Answer(content["method"], params, content["status"], content["body"], content["fetched_at"])
    except FileNotFoundError:
        return None
    except (KeyError, TypeError, ValueError, RecursionError):
        raise SembenchError(f"{path} is damaged; delete it, and the next crawl asks for it again") from None
