"""Snapshots from a small loopback hub that answers as the real one does."""

from __future__ import annotations

import errno
import hashlib
import json
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from sembench.core.errors import SembenchError
from sembench.registry.models import Dataset
from tests.fetching import Place

OLD, NEW = "a" * 40, "b" * 40
FILES = {
    OLD: {"config.json": b'{"old": 1}', "sub/I01 [noun - plural].txt": b"cat\tcats\n", "big.bin": b"unwanted"},
    NEW: {"config.json": b'{"new": 1}', "sub/I01 [noun - plural].txt": b"cat\tcats\n", "big.bin": b"unwanted"},
}


def blob_id(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class Hub(ThreadingHTTPServer):
    """A hub with one repository, ``owner/tiny``, whose branch ``main`` stands at ``head``."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.head = OLD
        self.seen: list[str] = []


class Handler(BaseHTTPRequestHandler):
    server: Hub

    def log_message(self, *args: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = unquote(self.path.partition("?")[0])
        self.server.seen.append(path)
        for kind in ("models", "datasets"):
            api = f"/api/{kind}/owner/tiny"
            files = "/owner/tiny/resolve/" if kind == "models" else f"/{kind}/owner/tiny/resolve/"
            if path == f"{api}/revision/main":
                return self.answer(json.dumps({"id": "owner/tiny", "sha": self.server.head}).encode())
            if path.startswith(f"{api}/tree/"):
                return self.tree(FILES[path.split("/")[6]])
            if path.startswith(files):
                commit, _, name = path.removeprefix(files).partition("/")
                return self.file(commit, FILES[commit][name])
        return self.answer(b'{"error": "Repository not found"}', 404, {"X-Error-Code": "RepoNotFound"})

    def tree(self, files: dict[str, bytes]) -> None:
        lines = [{"type": "file", "path": n, "size": len(c), "oid": blob_id(c)} for n, c in files.items()]
        self.answer(json.dumps(lines).encode())

    def file(self, commit: str, content: bytes) -> None:
        self.answer(content, 200, {"X-Repo-Commit": commit, "ETag": f'"{blob_id(content)}"'})

    def answer(self, body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (
            {"Content-Type": "application/json", "Content-Length": str(len(body))} | (headers or {})
        ).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    running = Hub()
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{running.server_port}")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")  # as in the workflow's shells
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield running
    running.shutdown()
    running.server_close()
    thread.join()


@pytest.fixture
def site(tmp_path: Path) -> Place:
    return Place(tmp_path)


def fetch(site: Place, key: str = "tiny", **source: Any) -> dict[str, Any]:
    tiny = Dataset.model_validate(
        {
            "title": "Tiny",
            "licence": "CC0",
            "files": [{"name": "config.json"}, {"name": "nouns.txt", "rows": 1}],
            "sources": [
                {
                    "kind": "hub",
                    "repo": "owner/tiny",
                    "members": {"nouns.txt": "sub/I01 [noun - plural].txt"},
                    **source,
                }
            ],
        }
    )
    return site.fetch(key, tiny, ["hub"])


def test_a_branch_is_locked_to_its_commit_on_first_use(hub: Hub, site: Place) -> None:
    record = fetch(site)
    assert record["facts"]["source"] == {"kind": "hub", "origin": f"owner/tiny@{OLD}"}
    assert (site.folder("tiny") / "config.json").read_bytes() == b'{"old": 1}'
    assert (site.folder("tiny") / "nouns.txt").read_bytes() == b"cat\tcats\n"
    assert sorted(path.name for path in site.folder("tiny").iterdir()) == ["config.json", "made.json", "nouns.txt"]
    assert not any("big.bin" in path for path in hub.seen)
    assert all(path.suffix == ".lock" for path in site.site.cache.iterdir())
    assert json.loads(site.site.locks.read_text())["owner/tiny@main"]["commit"] == OLD
    hub.head = NEW
    assert fetch(site, "again")["facts"]["source"]["origin"] == f"owner/tiny@{OLD}"
    assert (site.folder("again") / "config.json").read_bytes() == b'{"old": 1}'


def test_a_commit_is_taken_as_it_is(hub: Hub, site: Place) -> None:
    assert fetch(site, revision=NEW, repo_type="dataset")["facts"]["source"]["origin"] == f"owner/tiny@{NEW}"
    assert (site.folder("tiny") / "config.json").read_bytes() == b'{"new": 1}'
    assert set(json.loads(site.site.locks.read_text())) == {"tiny/config.json", "tiny/nouns.txt"}
    assert not any("/revision/" in path for path in hub.seen)


def test_an_unknown_repository_is_one_sentence(hub: Hub, site: Place) -> None:
    with pytest.raises(SembenchError, match=r"'tiny'.*owner/none@main did not arrive \(Repo.*NotFound") as caught:
        fetch(site, repo="owner/none")
    assert "\n" not in str(caught.value)


def test_a_missing_member_is_named(hub: Hub, site: Place) -> None:
    with pytest.raises(SembenchError, match=r"nowhere\.json cannot be read"):
        fetch(site, members={"config.json": "nowhere.json"})
    assert all(path.suffix == ".lock" for path in site.site.cache.iterdir())


def test_a_hub_that_does_not_answer(hub: Hub, site: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(SembenchError, match=r"owner/tiny@main did not arrive \(\w*Connect"):
        fetch(site)


@pytest.mark.parametrize("printed", ["", '{"error": "OSError: full", "errno": 28}'])
def test_a_process_that_ends_badly(site: Place, monkeypatch: pytest.MonkeyPatch, printed: str) -> None:
    answer = subprocess.CompletedProcess([], 1, printed)
    monkeypatch.setattr(subprocess, "run", lambda *args, **options: answer)
    if printed:
        with pytest.raises(OSError, match="No space left") as caught:
            fetch(site)
        assert caught.value.errno == errno.ENOSPC
    else:
        with pytest.raises(SembenchError, match="the process ended"):
            fetch(site)
