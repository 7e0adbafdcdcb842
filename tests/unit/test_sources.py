"""Folders as sources, checks, locks, manifests, and what is left behind when something goes wrong."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from sembench.core.errors import SembenchError
from sembench.registry.models import Dataset
from sembench.sources import FileState, Site, availability, fetch_dataset, verify_dataset
from sembench.sources.verify import measure

TEXT = b"a red kite\nan old oak\n"
# Computed with sha256sum, git hash-object and sha1sum, not with this project's code.
TEXT_SHA256 = "0f2e44182fec972978a22aa9b2f81947526f96606dc95d5424b777224a7891a5"
TEXT_BLOB = "ce77839b14537218c34361bce6ff2719d52e540b"
TEXT_SHA1_TRIMMED = "3a43c5c6891fc7edbac5145de75c223e3226ab93"  # of "a red kite\nan old oak"


def dataset(*files: dict[str, Any], sources: list[dict[str, Any]] | None = None) -> Dataset:
    return Dataset.model_validate(
        {
            "title": "Birds and trees",
            "licence": "CC0",
            "files": list(files) or [{"name": "a.txt"}],
            "sources": sources or [{"kind": "mirror", "path": "birds/{name}"}],
        }
    )


@pytest.fixture
def site(tmp_path: Path) -> Site:
    mirror = tmp_path / "mirror"
    (mirror / "birds").mkdir(parents=True)
    (mirror / "birds" / "a.txt").write_bytes(TEXT)
    return Site(root=tmp_path, data=tmp_path / "results" / "data", mirror=mirror)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_mirror_copies_and_writes_a_manifest(site: Site) -> None:
    birds = dataset({"name": "a.txt", "sha256": TEXT_SHA256, "rows": 2})
    manifest = fetch_dataset("birds", birds, site, ["mirror"])
    copy = site.folder("birds") / "a.txt"
    assert copy.read_bytes() == TEXT and not copy.is_symlink()
    assert copy.stat().st_ino != (site.mirror / "birds" / "a.txt").stat().st_ino
    assert json.loads((site.folder("birds") / "manifest.json").read_text()) == manifest
    assert manifest["source"] == {"kind": "mirror", "origin": "birds/a.txt"}
    assert manifest["files"] == [{"name": "a.txt", "sha256": TEXT_SHA256, "bytes": 22, "rows": 2}]
    assert (manifest["dataset"], manifest["title"], manifest["licence"]) == ("birds", "Birds and trees", "CC0")
    assert manifest["fetched"].endswith("+00:00")
    assert str(site.root) not in json.dumps(manifest)


def test_mirror_is_used_without_being_among_the_kinds_but_fixtures_are_not(site: Site) -> None:
    fixtures = site.root / "tests" / "fixtures"
    fixtures.mkdir(parents=True)
    (fixtures / "a.txt").write_bytes(b"a fixture\n")
    both = dataset(sources=[{"kind": "fixture"}, {"kind": "mirror", "path": "birds/{name}"}])
    assert fetch_dataset("one", both, site, [])["source"]["kind"] == "mirror"
    assert fetch_dataset("two", both, site, ["fixture"])["source"] == {"kind": "fixture", "origin": "a.txt"}
    assert (site.folder("two") / "a.txt").read_bytes() == b"a fixture\n"


def test_members_map_names_to_other_places_and_folders(site: Site) -> None:
    (site.mirror / "x" / "y").mkdir(parents=True)
    (site.mirror / "x" / "y" / "B.TXT").write_bytes(TEXT)
    (site.mirror / "x" / "c.txt").write_bytes(TEXT)
    source = {"kind": "mirror", "path": "x/{name}", "members": {"deep/b.txt": "x/y/B.TXT"}}
    manifest = fetch_dataset("birds", dataset({"name": "deep/b.txt"}, {"name": "c.txt"}, sources=[source]), site, [])
    assert (site.folder("birds") / "deep" / "b.txt").read_bytes() == TEXT
    assert manifest["source"]["origin"] == "x"


@pytest.mark.parametrize(
    ("check", "sentence"),
    [
        ({"sha256": "0" * 64}, f"has sha256 {TEXT_SHA256}, expected {'0' * 64}"),
        ({"git_blob": "0" * 40}, f"has git_blob {TEXT_BLOB}, expected"),
        ({"sha1_no_final_newline": "0" * 40}, f"has sha1_no_final_newline {TEXT_SHA1_TRIMMED}, expected"),
        ({"rows": 3}, "has 2 rows, expected 3"),
        ({"rows": 2, "header": True}, "has 1 rows, expected 2"),
    ],
)
def test_each_check_refuses_other_content(site: Site, check: dict[str, Any], sentence: str) -> None:
    with pytest.raises(SembenchError) as caught:
        fetch_dataset("birds", dataset({"name": "a.txt", **check}), site, [])
    assert sentence in str(caught.value) and "'birds'" in str(caught.value) and "a.txt" in str(caught.value)
    assert names_in(site.folder("birds")) == []


@pytest.mark.parametrize(
    "check",
    [
        {"sha256": TEXT_SHA256},
        {"git_blob": TEXT_BLOB},
        {"sha1_no_final_newline": TEXT_SHA1_TRIMMED},
        {"rows": 2},
        {"rows": 1, "header": True},
    ],
)
def test_each_check_accepts_the_right_content(site: Site, check: dict[str, Any]) -> None:
    birds = dataset({"name": "a.txt", **check})
    fetch_dataset("birds", birds, site, [])
    assert verify_dataset("birds", birds, site) == [FileState("a.txt", True, "yes")]


@pytest.mark.parametrize(
    ("content", "lines"),
    [(b"one\n", 1), (b"one", 1), (b"one\n\n", 2), (b"one\r\ntwo", 2), (b"\n", 1), (b"a\xe2\x80\xa8b\n", 1)],
)
def test_lines_end_at_newlines_only(tmp_path: Path, content: bytes, lines: int) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    assert measure(path).lines == lines


def test_checksums_hold_where_a_newline_falls_on_the_end_of_a_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sembench.sources.verify.PIECE", 11)  # "a red kite\n" fills the first piece
    path = tmp_path / "x"
    path.write_bytes(TEXT)
    facts = measure(path)
    assert (facts.sha256, facts.git_blob, facts.sha1_no_final_newline) == (TEXT_SHA256, TEXT_BLOB, TEXT_SHA1_TRIMMED)
    assert facts.lines == 2


def test_git_agrees_on_the_blob(tmp_path: Path) -> None:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    path = tmp_path / "x"
    path.write_bytes(bytes(range(256)) * 9000)
    said = subprocess.run(["git", "hash-object", "--no-filters", path], capture_output=True, text=True, check=True)
    assert measure(path).git_blob == said.stdout.strip()


def test_an_empty_file_is_an_error_of_its_own(site: Site) -> None:
    (site.mirror / "birds" / "a.txt").write_bytes(b"")
    with pytest.raises(SembenchError, match=r"a\.txt from birds/a\.txt is empty"):
        fetch_dataset("birds", dataset({"name": "a.txt", "rows": 2}), site, [])


def test_a_file_missing_from_the_mirror_is_named(site: Site) -> None:
    with pytest.raises(SembenchError, match=r"data set 'birds' .*mirror: birds/b\.txt cannot be read \(No such file"):
        fetch_dataset("birds", dataset({"name": "b.txt"}), site, [])


def test_without_any_source_the_sentence_says_what_is_needed(site: Site) -> None:
    nowhere = Site(site.root, site.data)
    with pytest.raises(SembenchError, match=r"data set 'birds' needs .*SEMBENCH_MIRROR"):
        fetch_dataset("birds", dataset(), nowhere, ["url"])


def test_files_in_place_are_kept_and_their_manifest_too(site: Site) -> None:
    birds = dataset({"name": "a.txt", "rows": 2})
    first = fetch_dataset("birds", birds, site, [])
    path = site.folder("birds") / "a.txt"
    stamp = path.stat()
    shutil.rmtree(site.mirror)
    assert fetch_dataset("birds", birds, site, []) == first
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (stamp.st_ino, stamp.st_mtime_ns)
    (site.folder("birds") / "manifest.json").unlink()
    again = fetch_dataset("birds", birds, site, [])
    assert again["source"] == {"kind": "kept", "origin": "files found in place"}
    assert again["files"] == first["files"]


def test_a_damaged_file_is_fetched_again_and_the_others_are_kept(site: Site) -> None:
    (site.mirror / "birds" / "b.txt").write_bytes(b"b\n")
    birds = dataset({"name": "a.txt", "sha256": TEXT_SHA256}, {"name": "b.txt", "rows": 1})
    fetch_dataset("birds", birds, site, [])
    (site.folder("birds") / "a.txt").write_bytes(TEXT + b"x")
    (site.mirror / "birds" / "b.txt").unlink()
    manifest = fetch_dataset("birds", birds, site, [])
    assert (site.folder("birds") / "a.txt").read_bytes() == TEXT
    assert manifest["source"]["kind"] == "mirror"


def test_no_manifest_outlives_a_set_that_is_no_longer_whole(site: Site) -> None:
    birds = dataset({"name": "a.txt", "sha256": TEXT_SHA256})
    fetch_dataset("birds", birds, site, [])
    (site.folder("birds") / "a.txt").unlink()
    shutil.rmtree(site.mirror)
    with pytest.raises(SembenchError):
        fetch_dataset("birds", birds, site, [])
    assert names_in(site.folder("birds")) == []


def test_sources_complete_each_other_and_the_manifest_names_both(site: Site) -> None:
    fixtures = site.root / "tests" / "fixtures"
    fixtures.mkdir(parents=True)
    (fixtures / "b.txt").write_bytes(b"b\n")
    source_list = [{"kind": "mirror", "path": "birds/{name}"}, {"kind": "fixture"}]
    birds = dataset({"name": "a.txt"}, {"name": "b.txt"}, sources=source_list)
    said: list[str] = []
    manifest = fetch_dataset("birds", birds, site, ["fixture"], said.append)
    assert manifest["source"] == {"kind": "mirror + fixture", "origin": "birds; b.txt"}
    assert any("mirror failed" in line for line in said)


def test_locked_on_first_use_then_changed(site: Site) -> None:
    birds = dataset()
    fetch_dataset("birds", birds, site, [])
    entry = json.loads(site.locks.read_text())["birds/a.txt"]
    assert entry["sha256"] == TEXT_SHA256 and entry["source"] == "birds/a.txt" and entry["date"]
    assert verify_dataset("birds", birds, site) == [FileState("a.txt", True, "locked")]
    (site.mirror / "birds" / "a.txt").write_bytes(b"something else\n")
    shutil.rmtree(site.folder("birds"))
    with pytest.raises(SembenchError, match=r"locked on first use.*delete the entry 'birds/a\.txt' of locks\.json"):
        fetch_dataset("birds", birds, site, [])
    assert names_in(site.folder("birds")) == []
    site.locks.write_text("{}")
    fetch_dataset("birds", birds, site, [])
    assert (site.folder("birds") / "a.txt").read_bytes() == b"something else\n"


def test_a_row_count_alone_does_not_pin_the_content(site: Site) -> None:
    birds = dataset({"name": "a.txt", "rows": 2})
    fetch_dataset("birds", birds, site, [])
    (site.folder("birds") / "a.txt").write_bytes(b"other\nlines\n")
    (state,) = verify_dataset("birds", birds, site)
    assert state.verified == "no" and "locked on first use" in state.problem


def test_pinned_files_are_not_locked(site: Site) -> None:
    fetch_dataset("birds", dataset({"name": "a.txt", "git_blob": TEXT_BLOB}), site, [])
    assert not site.locks.exists()


def test_unreadable_locks_are_named(site: Site) -> None:
    site.data.mkdir(parents=True)
    site.locks.write_text("{")
    with pytest.raises(SembenchError, match=r"locks\.json is not valid JSON; mend or delete it"):
        fetch_dataset("birds", dataset(), site, [])


def test_verify_tells_missing_wrong_and_unknown(site: Site) -> None:
    birds = dataset({"name": "a.txt", "rows": 5}, {"name": "b.txt"}, {"name": "c.txt"})
    site.folder("birds").mkdir(parents=True)
    (site.folder("birds") / "a.txt").write_bytes(TEXT)
    (site.folder("birds") / "b.txt").write_bytes(TEXT)
    assert verify_dataset("birds", birds, site) == [
        FileState("a.txt", True, "no", "has 2 rows, expected 5"),
        FileState("b.txt", True, "unknown"),
        FileState("c.txt", False, "unknown", "is not there"),
    ]


def test_availability_counts_a_mirror_only_if_it_holds_every_file(site: Site) -> None:
    one, two = dataset(), dataset({"name": "a.txt"}, {"name": "b.txt"})
    assert availability(one, ["mirror"], site.mirror, site.root) is None
    assert availability(one, ["url"], site.mirror, site.root) is not None
    assert "mirror" in str(availability(two, ["mirror"], site.mirror, site.root))
    assert "SEMBENCH_MIRROR" in str(availability(one, ["url"], None, site.root))


def test_a_full_disk_leaves_nothing_half_written(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(source: Any, target: Any, _: int) -> None:
        target.write(source.read(5))
        target.flush()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(shutil, "copyfileobj", half)
    with pytest.raises(OSError, match="No space left") as caught:
        fetch_dataset("birds", dataset(), site, [])
    assert caught.value.errno == errno.ENOSPC
    assert names_in(site.folder("birds")) == []


def test_two_threads_fetch_once(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    copies, real = [], shutil.copyfileobj

    def slow(source: Any, target: Any, size: int) -> None:
        copies.append(1)
        threading.Event().wait(0.1)
        real(source, target, size)

    monkeypatch.setattr(shutil, "copyfileobj", slow)
    results: list[dict[str, Any]] = []
    threads = [
        threading.Thread(target=lambda: results.append(fetch_dataset("birds", dataset(), site, []))) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(results) == 3 and results[0] == results[1] == results[2]
    assert len(copies) == 1


def test_two_processes_fetch_at_once(site: Site) -> None:
    code = (
        "import sys; from pathlib import Path; from sembench.registry.models import Dataset\n"
        "from sembench.sources import Site, fetch_dataset\n"
        "root = Path(sys.argv[1]); said = []\n"
        "birds = Dataset.model_validate_json(sys.argv[2])\n"
        "print(fetch_dataset('birds', birds, Site(root, root / 'results' / 'data', root / 'mirror'), [])['fetched'])\n"
        "assert 'torch' not in sys.modules\n"
    )
    command = [sys.executable, "-c", code, str(site.root), dataset().model_dump_json()]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    stamps = {process.communicate(timeout=30)[0] for process in running}
    assert [process.returncode for process in running] == [0, 0]
    assert len(stamps) == 1  # the later one found the earlier one's manifest
    assert names_in(site.folder("birds")) == ["a.txt", "manifest.json"]
