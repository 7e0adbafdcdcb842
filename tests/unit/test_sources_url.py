"""Downloads from a loopback server that breaks off, forgets, moves and lies."""

from __future__ import annotations

import bz2
import errno
import gzip
import hashlib
import io
import os
import sys
import tarfile
import threading
import time
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import tenacity

from sembench.core.errors import SembenchError
from sembench.registry.models import Dataset
from sembench.sources import download
from tests.fetching import Place

BODY = bytes(range(256)) * 2000
BODY_SHA256 = hashlib.sha256(BODY).hexdigest()


class Server(ThreadingHTTPServer):
    """Serves ``files``; ``script`` holds what befalls the next requests: a status, or how many bytes to send."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {"/a.bin": BODY}
        self.moved: dict[str, str] = {}
        self.script: list[tuple[str, int]] = []
        self.seen: list[tuple[str, dict[str, str]]] = []
        self.sent: list[int] = []
        self.ranges = True
        self.asks = ""  # Retry-After of a status
        self.pause = 0.0  # seconds between the two halves of a body
        self.versions: dict[str, str] = {"ETag": '"v1"'}
        self.lengths: dict[str, str] | None = None  # what is said of a body's length; none: the truth

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that hung up, as it may."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_port}{path}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        server = self.server
        server.seen.append((self.path, dict(self.headers)))
        action, number = server.script.pop(0) if server.script else ("send", len(BODY))
        if action == "status":
            return self.answer(number, {"Retry-After": server.asks} if server.asks else {}, b"")
        if self.path in server.moved:
            return self.answer(302, {"Location": server.moved[self.path]}, b"")
        if self.path not in server.files:
            return self.answer(404, {}, b"")
        body, start = server.files[self.path], self.start()
        if start is None:
            return self.answer(200, server.versions, body, number)
        if start >= len(body):
            return self.answer(416, {"Content-Range": f"bytes */{len(body)}"}, b"")
        place = {"Content-Range": f"bytes {start}-{len(body) - 1}/{len(body)}"}
        return self.answer(206, server.versions | place, body[start:], number)

    def start(self) -> int | None:
        wanted = self.headers.get("Range")
        fits = self.headers.get("If-Range") in (None, *self.server.versions.values())
        return int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and fits and self.server.ranges else None

    def answer(self, status: int, headers: dict[str, str], body: bytes, most: int = 0) -> None:
        self.server.sent.append(len(body[:most]))  # before the client can be done with it
        self.send_response(status)
        lengths = {"Content-Length": str(len(body))} if self.server.lengths is None else self.server.lengths
        for name, value in (headers | lengths).items():
            self.send_header(name, value)
        self.end_headers()
        half = len(body[:most]) // 2
        self.wfile.write(body[:half])
        time.sleep(self.server.pause)
        self.wfile.write(body[half:most])
        self.close_connection = True


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(download, "WAIT", tenacity.wait_none())
    running = Server()
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield running
    running.shutdown()
    running.server_close()
    thread.join()


@pytest.fixture
def site(tmp_path: Path) -> Place:
    return Place(tmp_path)


def dataset(urls: list[str], files: dict[str, dict[str, Any]] | None = None, **source: Any) -> Dataset:
    files = files or {"a.bin": {"sha256": BODY_SHA256}}
    return Dataset.model_validate(
        {
            "title": "Numbers",
            "licence": "CC0",
            "files": [{"name": name, **checks} for name, checks in files.items()],
            "sources": [{"kind": "url", "urls": urls, **source}],
        }
    )


def fetch(site: Place, wanted: Dataset) -> dict[str, Any]:
    return site.fetch("numbers", wanted, ["url"])


def left_in_cache(site: Place) -> list[str]:
    return sorted(path.name for path in site.site.cache.iterdir() if path.suffix != ".lock")


def assert_whole(site: Place) -> None:
    assert (site.folder("numbers") / "a.bin").read_bytes() == BODY
    assert left_in_cache(site) == []


def test_plain_download(server: Server, site: Place) -> None:
    record = fetch(site, dataset([server.url("/a.bin")]))
    assert record["facts"]["source"] == {"kind": "url", "origin": server.url("/a.bin")}
    assert_whole(site)


def test_a_truncated_body_is_resumed_within_the_same_call(server: Server, site: Place) -> None:
    server.script = [("send", 100_000)]
    fetch(site, dataset([server.url("/a.bin")]))
    assert_whole(site)
    assert server.sent == [100_000, len(BODY) - 100_000]
    assert server.seen[1][1]["Range"] == "bytes=100000-" and server.seen[1][1]["If-Range"] == '"v1"'


def test_three_truncations_fail_and_the_next_call_resumes(server: Server, site: Place) -> None:
    server.script = [("send", 1000), ("send", 1000), ("send", 1000)]
    with pytest.raises(SembenchError, match=r"/a\.bin broke off after 3000 of 512000 bytes"):
        fetch(site, dataset([server.url("/a.bin")]))
    assert not list(site.folder("numbers").glob("*"))
    fetch(site, dataset([server.url("/a.bin")]))
    assert_whole(site)
    assert server.sent == [1000, 1000, 1000, len(BODY) - 3000]


def test_the_part_from_before_is_checked_as_well(server: Server, site: Place) -> None:
    server.script = [("send", 1000)] * 3
    with pytest.raises(SembenchError):
        fetch(site, dataset([server.url("/a.bin")]))
    (part,) = (path for path in site.site.cache.iterdir() if not path.suffix)
    part.write_bytes(b"x" * 3000)
    with pytest.raises(SembenchError, match=f"expected {BODY_SHA256}"):
        fetch(site, dataset([server.url("/a.bin")]))
    assert left_in_cache(site) == []


@pytest.mark.parametrize("versions", [{"Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT"}, {"ETag": 'W/"v1"'}, {}])
def test_resuming_without_a_strong_tag(server: Server, site: Place, versions: dict[str, str]) -> None:
    server.versions, server.script = versions, [("send", 1000)]
    fetch(site, dataset([server.url("/a.bin")]))
    assert server.sent == [1000, len(BODY) - 1000]
    assert server.seen[1][1].get("If-Range") == versions.get("Last-Modified")
    assert_whole(site)


def test_a_file_that_changed_meanwhile_is_downloaded_anew(server: Server, site: Place) -> None:
    server.files["/a.bin"], server.script = b"old" * 5000, [("send", 1000)] * 3
    with pytest.raises(SembenchError):
        fetch(site, dataset([server.url("/a.bin")]))
    server.files["/a.bin"], server.versions = BODY, {"ETag": '"v2"'}
    fetch(site, dataset([server.url("/a.bin")]))
    assert server.sent[-1] == len(BODY)
    assert_whole(site)


def test_a_server_that_ignores_ranges_starts_over(server: Server, site: Place) -> None:
    server.ranges, server.script = False, [("send", 1000)]
    fetch(site, dataset([server.url("/a.bin")]))
    assert server.sent == [1000, len(BODY)]
    assert_whole(site)


@pytest.mark.parametrize("extra", [b"", b"too much"])
def test_a_part_that_is_the_whole_or_too_long(server: Server, site: Place, extra: bytes) -> None:
    url = server.url("/a.bin")
    site.site.cache.mkdir(parents=True)
    site.site.cached(url).write_bytes(BODY + extra)
    fetch(site, dataset([url]))
    assert server.sent == ([0] if not extra else [0, len(BODY)])
    assert_whole(site)


@pytest.mark.parametrize("archive", [None, "gz", "zip"])
def test_more_than_may_come_is_refused_before_it_comes(
    server: Server, site: Place, monkeypatch: pytest.MonkeyPatch, archive: str | None
) -> None:
    monkeypatch.setattr("sembench.sources.url.MOST_ARCHIVE", 1000)
    with pytest.raises(SembenchError, match=r"/a\.bin sends more than 0\.1 MB, .*raise 'max_mb' of its files"):
        fetch(site, dataset([server.url("/a.bin")], {"a.bin": {"max_mb": 0.1}}, archive=archive))
    assert len(server.seen) == 1 and left_in_cache(site) == []


@pytest.mark.parametrize("length", ["", "abc", "-5"])
def test_a_body_whose_length_is_not_known_ends_where_it_may_not_grow(server: Server, site: Place, length: str) -> None:
    server.lengths = {"Content-Length": length}
    with pytest.raises(SembenchError, match=r"/a\.bin sends more than 0\.1 MB"):
        fetch(site, dataset([server.url("/a.bin")], {"a.bin": {"max_mb": 0.1}}))
    fetch(site, dataset([server.url("/a.bin")]))
    assert_whole(site)


@pytest.mark.parametrize("chunks", [b"ff\r\ncut", b"zz\r\ntext", b"-5\r\ntext"])
def test_a_chunked_body_that_breaks_off_is_asked_for_again(server: Server, site: Place, chunks: bytes) -> None:
    server.lengths, server.files["/c"] = {"Transfer-Encoding": "chunked"}, chunks
    with pytest.raises(SembenchError, match=r"/c broke off after \d+ of unknown bytes"):
        fetch(site, dataset([server.url("/c")], {"a.bin": {}}))
    assert len(server.seen) == 3


@pytest.mark.parametrize("status", [408, 425, 429, 500, 503])
def test_what_passes_is_asked_again(server: Server, site: Place, status: int) -> None:
    server.script = [("status", status)]
    fetch(site, dataset([server.url("/a.bin")]))
    assert len(server.seen) == 2
    assert_whole(site)


def test_500_then_200(server: Server, site: Place) -> None:
    server.script = [("status", 500), ("status", 503)]
    fetch(site, dataset([server.url("/a.bin")]))
    assert len(server.seen) == 3
    assert_whole(site)


def test_three_500_are_enough(server: Server, site: Place) -> None:
    server.script = [("status", 500)] * 9
    with pytest.raises(SembenchError, match=r"url: http://127\.0\.0\.1:\d+/a\.bin answered 500\)"):
        fetch(site, dataset([server.url("/a.bin")]))
    assert len(server.seen) == 3


def test_429_waits_as_long_as_the_server_asks(server: Server, site: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("tenacity.nap.time.sleep", waits.append)
    server.script, server.versions = [("status", 429)], {"ETag": '"v1"'}
    server.asks = "7"
    fetch(site, dataset([server.url("/a.bin")]))
    assert max(waits) == 7
    assert_whole(site)


def test_a_long_wait_is_left_to_the_user(server: Server, site: Place) -> None:
    server.script, server.asks = [("status", 429)], "3600"
    with pytest.raises(SembenchError, match=r"/a\.bin answered 429 and asks to come back in 3600 s"):
        fetch(site, dataset([server.url("/a.bin")]))
    assert len(server.seen) == 1


def test_the_forms_of_retry_after() -> None:
    soon = datetime.now(UTC) + timedelta(seconds=30)
    assert 28 < download.seconds_until(format_datetime(soon, usegmt=True)) <= 30
    assert download.seconds_until("Mon, 01 Jan 2024 00:00:00 GMT") == 0
    assert [download.seconds_until(text) for text in ("5", " 5 ", "0", "", "soon", "-3", "7, 8")] == [
        5,
        5,
        0,
        0,
        0,
        0,
        0,
    ]
    # What makes no sense asks for nothing.
    for absurd in ("1e9", "inf", "nan", "Mon, 99 Foo 2030 99:99:99 GMT", "Fri, 31 Dec 9999 23:59:59 +9999"):
        assert download.seconds_until(absurd) == 0


def test_redirects_are_followed(server: Server, site: Place) -> None:
    server.moved["/old"] = "/a.bin"
    fetch(site, dataset([server.url("/old")]))
    assert_whole(site)


@pytest.mark.parametrize(
    "place",
    [
        "file:///etc/hostname",
        "ftp://example.invalid/a.bin",
        "data:text/plain,hello",
        "http://[::1",
        "http://" + "a" * 70 + ".invalid/",
        "http://127.0.0.1:99999/",
        "http://\xe9.invalid/",
        "/old",
    ],
)
def test_redirects_to_nowhere_are_one_sentence(server: Server, site: Place, place: str) -> None:
    server.moved["/old"] = place
    with pytest.raises(SembenchError, match=r"/old cannot be used \("):
        fetch(site, dataset([server.url("/old")]))
    assert left_in_cache(site) == []


def test_404_is_not_tried_again_and_falls_to_the_next_address(server: Server, site: Place) -> None:
    record = fetch(site, dataset([server.url("/gone"), server.url("/a.bin")]))
    assert [path for path, _ in server.seen] == ["/gone", "/a.bin"]
    assert record["facts"]["source"]["origin"] == server.url("/a.bin")
    assert_whole(site)


def test_404_falls_to_the_next_source(server: Server, site: Place) -> None:
    fixtures = site.root / "tests" / "fixtures"
    fixtures.mkdir(parents=True)
    (fixtures / "a.bin").write_bytes(BODY)
    sources = [{"kind": "url", "urls": [server.url("/gone")]}, {"kind": "fixture"}]
    wanted = Dataset.model_validate({**dataset(["x"]).model_dump(), "sources": sources})
    record = site.fetch("numbers", wanted, ["url", "fixture"])
    assert record["facts"]["source"]["kind"] == "fixture"
    assert_whole(site)


def test_an_address_where_nobody_answers(site: Place, server: Server) -> None:
    dead = Server()
    dead.server_close()
    with pytest.raises(SembenchError, match="cannot be reached \\(ConnectionError\\)"):
        fetch(site, dataset([dead.url("/a.bin")]))


def test_a_wrong_checksum_leaves_nothing(server: Server, site: Place) -> None:
    server.files["/b.bin"] = b"not it"
    with pytest.raises(SembenchError) as caught:
        fetch(site, dataset([server.url("/b.bin")]))
    got = hashlib.sha256(b"not it").hexdigest()
    assert f"a.bin from {server.url('/b.bin')} has sha256 {got}, expected {BODY_SHA256}" in str(caught.value)
    assert left_in_cache(site) == [] and list(site.folder("numbers").iterdir()) == []


def test_one_download_a_file_with_names_quoted(server: Server, site: Place) -> None:
    server.files = {"/set/I01%20%5Bnoun%5D%20%231%3F.txt": b"one\n", "/set/b.txt": b"two\n"}
    files: dict[str, dict[str, Any]] = {"I01 [noun] #1?.txt": {}, "two.txt": {}}
    wanted = dataset([server.url("/set/{name}")], files, members={"two.txt": "b.txt"})
    fetch(site, wanted)
    assert (site.folder("numbers") / "I01 [noun] #1?.txt").read_bytes() == b"one\n"
    assert (site.folder("numbers") / "two.txt").read_bytes() == b"two\n"


def test_one_plain_address_cannot_provide_two_files(server: Server, site: Place) -> None:
    with pytest.raises(SembenchError, match="provides a single file"):
        fetch(site, dataset([server.url("/a.bin")], {"a.bin": {}, "b.bin": {}}))


def test_a_full_disk_keeps_the_download_but_nothing_in_the_folder(
    server: Server, site: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr("shutil.copyfileobj", full)
        with pytest.raises(OSError, match="No space left"):
            fetch(site, dataset([server.url("/a.bin")]))
    assert list(site.folder("numbers").iterdir()) == []
    fetch(site, dataset([server.url("/a.bin")]))
    assert server.sent == [len(BODY), 0]  # the second request only learns that the part is the whole
    assert_whole(site)


def test_progress_is_shown(server: Server, site: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sembench.core.progress.LOG_EVERY", 1e-9)
    monkeypatch.setattr(download, "PIECE", 256_000)
    said: list[str] = []
    site.fetch("numbers", dataset([server.url("/a.bin")]), ["url"], said.append)
    assert said[0] == f"downloading {server.url('/a.bin')}"
    assert f"{server.url('/a.bin')}: 0.3 MB of 0.5, 0 s left" in said[1]


def test_two_sets_share_an_address_at_once(server: Server, site: Place) -> None:
    server.pause = 0.2
    done: list[dict[str, Any]] = []
    wanted = dataset([server.url("/a.bin")])
    threads = [
        threading.Thread(target=lambda key=key: done.append(site.fetch(key, wanted, ["url"]))) for key in ("one", "two")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(done) == 2
    assert server.sent == [len(BODY)] * 2  # the second began after the first was through
    assert {(site.folder(key) / "a.bin").read_bytes() for key in ("one", "two")} == {BODY}


# ------------------------------------------------------------------------------------------------- archives


def packed_zip(members: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return packed.getvalue()


def packed_tar(members: dict[str, bytes], mode: str) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=f"w:{mode}") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return packed.getvalue()


MEMBERS = {"./top/a.txt": b"one\n", "top/sub/b.txt": b"two\n", "top/unwanted.txt": b"three\n"}


@pytest.mark.parametrize("form", ["zip", "tar", "tar.gz", "tar.bz2"])
def test_only_the_wanted_members_are_unpacked(server: Server, site: Place, form: str) -> None:
    body = packed_zip(MEMBERS) if form == "zip" else packed_tar(MEMBERS, form[4:])
    server.files["/x"], server.script = body, [("send", 10**6)]
    wanted = dataset(
        [server.url("/x")],
        {"a.txt": {"rows": 1}, "b.txt": {}},
        archive=form[:3],
        path="top/{name}",
        members={"b.txt": "top/sub/b.txt"},
        sha256=hashlib.sha256(body).hexdigest(),
        sha1=hashlib.sha1(body).hexdigest(),
        git_blob=hashlib.sha1(f"blob {len(body)}\0".encode() + body).hexdigest(),
    )
    fetch(site, wanted)
    folder = site.folder("numbers")
    assert sorted(path.name for path in folder.iterdir()) == ["a.txt", "b.txt", "made.json"]
    assert (folder / "a.txt").read_bytes() == b"one\n" and (folder / "b.txt").read_bytes() == b"two\n"
    # The rest of the archive may be another set's: it stays, and its bytes are not sent again.
    assert len(left_in_cache(site)) == 2
    other = dataset([server.url("/x")], {"c.txt": {}}, archive=form[:3], members={"c.txt": "top/unwanted.txt"})
    site.fetch("others", other, ["url"])
    assert (site.folder("others") / "c.txt").read_bytes() == b"three\n"
    assert server.sent == [len(body), 0]


def test_an_archive_of_a_single_set_is_not_kept(server: Server, site: Place) -> None:
    server.files["/x"] = packed_zip({"a.bin": BODY})
    fetch(site, dataset([server.url("/x")], archive="zip"))
    assert left_in_cache(site) == []


@pytest.mark.parametrize(("kind", "pack"), [("gz", gzip.compress), ("bz2", bz2.compress)])
def test_single_compressed_files(server: Server, site: Place, kind: str, pack: Any) -> None:
    server.files["/x"] = pack(BODY)
    fetch(site, dataset([server.url("/x")], archive=kind))
    assert_whole(site)


def test_a_gz_that_the_server_calls_an_encoding_stays_as_it_is(server: Server, site: Place) -> None:
    server.files["/x"], server.versions = gzip.compress(BODY), {"Content-Encoding": "gzip"}
    fetch(site, dataset([server.url("/x")], archive="gz"))
    assert_whole(site)


@pytest.mark.parametrize("check", ["sha256", "sha1", "git_blob"])
def test_a_wrong_archive_is_named(server: Server, site: Place, check: str) -> None:
    server.files["/x"] = packed_zip({"a.bin": BODY})
    wrong = "0" * (64 if check == "sha256" else 40)
    with pytest.raises(SembenchError, match=f"/x has {check} [0-9a-f]+, expected {wrong}"):
        fetch(site, dataset([server.url("/x")], archive="zip", **{check: wrong}))
    assert left_in_cache(site) == []


def test_a_missing_member_is_named(server: Server, site: Place) -> None:
    server.files["/x"] = packed_zip({"b.bin": BODY})
    with pytest.raises(SembenchError, match=r"/x lacks the member 'a\.bin'"):
        fetch(site, dataset([server.url("/x")], archive="zip"))
    assert left_in_cache(site) == [] and not site.folder("numbers").exists()


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("zip", b"no archive"),
        ("tar", b"no archive"),
        ("gz", b"no archive"),
        ("bz2", b"no archive"),
        ("gz", gzip.compress(BODY)[:-20]),
        ("bz2", bz2.compress(BODY)[:-20]),
        ("tar", packed_tar({"a.bin": BODY}, "gz")[:-400]),
    ],
)
def test_damaged_archives_are_named(server: Server, site: Place, kind: str, body: bytes) -> None:
    server.files["/x"] = body
    with pytest.raises(SembenchError, match="/x is damaged"):
        fetch(site, dataset([server.url("/x")], archive=kind))
    assert left_in_cache(site) == []
    assert not list(site.folder("numbers").glob("*"))
