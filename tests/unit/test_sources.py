"""Folders as sources, checks, locks, records, and what is left behind when something goes wrong."""

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
from filelock import FileLock

from sembench.core.artifact import opened
from sembench.core.errors import SembenchError
from sembench.registry.models import Dataset
from sembench.sources import FileState, availability
from sembench.sources.verify import measure
from tests.conftest import ROOT
from tests.fetching import Place, planned

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
def site(tmp_path: Path) -> Place:
    mirror = tmp_path / "mirror"
    (mirror / "birds").mkdir(parents=True)
    (mirror / "birds" / "a.txt").write_bytes(TEXT)
    return Place(tmp_path, mirror)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_mirror_copies_and_writes_a_record(site: Place) -> None:
    birds = dataset({"name": "a.txt", "sha256": TEXT_SHA256, "rows": 2})
    record = site.fetch("birds", birds, ["mirror"])
    copy = site.folder("birds") / "a.txt"
    assert copy.read_bytes() == TEXT and not copy.is_symlink()
    assert copy.stat().st_ino != (site.mirror / "birds" / "a.txt").stat().st_ino
    assert json.loads((site.folder("birds") / "made.json").read_text()) == record
    assert record["facts"]["source"] == {"kind": "mirror", "origin": "birds/a.txt"}
    assert record["files"] == {"a.txt": TEXT_SHA256}
    facts = record["facts"]
    assert (record["name"], facts["title"], facts["licence"]) == ("birds", "Birds and trees", "CC0")
    assert facts["rows"] == {"a.txt": 2}
    assert facts["fetched"].endswith("+00:00")
    assert opened(site.root, planned("birds", birds)) == site.folder("birds")
    assert str(site.root) not in json.dumps(record)


def test_only_allowed_kinds_are_used_and_availability_agrees(site: Place) -> None:
    fixtures = site.root / "tests" / "fixtures"
    fixtures.mkdir(parents=True)
    (fixtures / "a.txt").write_bytes(b"a fixture\n")
    both = dataset(sources=[{"kind": "fixture"}, {"kind": "mirror", "path": "birds/{name}"}])
    assert site.fetch("one", both, ["mirror"])["facts"]["source"]["kind"] == "mirror"
    source = site.fetch("two", both, ["fixture", "mirror"])["facts"]["source"]
    assert source == {"kind": "fixture", "origin": "a.txt"}
    assert (site.folder("two") / "a.txt").read_bytes() == b"a fixture\n"
    assert availability(both, ["url"], site.mirror, site.root) is not None
    with pytest.raises(SembenchError, match=r"'three' needs the project's fixtures .*; allowed here: url"):
        site.fetch("three", both, ["url"])


def test_members_map_names_to_other_places_and_folders(site: Place) -> None:
    (site.mirror / "x" / "y").mkdir(parents=True)
    (site.mirror / "x" / "y" / "B.TXT").write_bytes(TEXT)
    (site.mirror / "x" / "c.txt").write_bytes(TEXT)
    source = {"kind": "mirror", "path": "x/{name}", "members": {"deep/b.txt": "x/y/B.TXT"}}
    record = site.fetch("birds", dataset({"name": "deep/b.txt"}, {"name": "c.txt"}, sources=[source]), ["mirror"])
    assert (site.folder("birds") / "deep" / "b.txt").read_bytes() == TEXT
    assert record["facts"]["source"]["origin"] == "x"


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
def test_each_check_refuses_other_content(site: Place, check: dict[str, Any], sentence: str) -> None:
    with pytest.raises(SembenchError) as caught:
        site.fetch("birds", dataset({"name": "a.txt", **check}), ["mirror"])
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
def test_each_check_accepts_the_right_content(site: Place, check: dict[str, Any]) -> None:
    birds = dataset({"name": "a.txt", **check})
    site.fetch("birds", birds, ["mirror"])
    proved = "yes" if "rows" not in check else "locked"
    assert site.verify("birds", birds) == [FileState("a.txt", True, proved)]


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


def test_an_empty_file_is_an_error_of_its_own(site: Place) -> None:
    (site.mirror / "birds" / "a.txt").write_bytes(b"")
    with pytest.raises(SembenchError, match=r"a\.txt from birds/a\.txt is empty"):
        site.fetch("birds", dataset({"name": "a.txt", "rows": 2}), ["mirror"])


def test_a_file_missing_from_the_mirror_is_named(site: Place) -> None:
    with pytest.raises(SembenchError, match=r"data set 'birds' .*mirror: birds/b\.txt cannot be read \(No such file"):
        site.fetch("birds", dataset({"name": "b.txt"}), ["mirror"])


def test_without_any_source_the_sentence_says_what_is_needed(site: Place) -> None:
    nowhere = Place(site.root)
    with pytest.raises(SembenchError, match=r"data set 'birds' needs .*SEMBENCH_MIRROR"):
        nowhere.fetch("birds", dataset(), ["url"])


def test_files_in_place_are_kept_and_their_record_too(site: Place) -> None:
    birds = dataset({"name": "a.txt", "rows": 2})
    first = site.fetch("birds", birds, ["mirror"])
    path = site.folder("birds") / "a.txt"
    stamp = path.stat()
    shutil.rmtree(site.mirror)
    assert site.fetch("birds", birds, ["mirror"]) == first
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (stamp.st_ino, stamp.st_mtime_ns)
    (site.folder("birds") / "made.json").unlink()
    again = site.fetch("birds", birds, ["mirror"])
    assert again["facts"]["source"] == {"kind": "kept", "origin": "files found in place"}
    assert again["files"] == first["files"]


def test_a_damaged_file_is_fetched_again_and_the_others_are_kept(site: Place) -> None:
    (site.mirror / "birds" / "b.txt").write_bytes(b"b\n")
    birds = dataset({"name": "a.txt", "sha256": TEXT_SHA256}, {"name": "b.txt", "rows": 1})
    site.fetch("birds", birds, ["mirror"])
    (site.folder("birds") / "a.txt").write_bytes(TEXT + b"x")
    (site.mirror / "birds" / "b.txt").unlink()
    record = site.fetch("birds", birds, ["mirror"])
    assert (site.folder("birds") / "a.txt").read_bytes() == TEXT
    assert record["facts"]["source"]["kind"] == "mirror"


def test_no_record_outlives_a_set_that_is_no_longer_whole(site: Place) -> None:
    birds = dataset({"name": "a.txt", "sha256": TEXT_SHA256})
    site.fetch("birds", birds, ["mirror"])
    (site.folder("birds") / "a.txt").unlink()
    shutil.rmtree(site.mirror)
    with pytest.raises(SembenchError):
        site.fetch("birds", birds, ["mirror"])
    assert names_in(site.folder("birds")) == []


def test_sources_complete_each_other_and_the_record_names_both(site: Place) -> None:
    fixtures = site.root / "tests" / "fixtures"
    fixtures.mkdir(parents=True)
    (fixtures / "b.txt").write_bytes(b"b\n")
    source_list = [{"kind": "mirror", "path": "birds/{name}"}, {"kind": "fixture"}]
    birds = dataset({"name": "a.txt"}, {"name": "b.txt"}, sources=source_list)
    said: list[str] = []
    record = site.fetch("birds", birds, ["mirror", "fixture"], said.append)
    assert record["facts"]["source"] == {"kind": "mirror + fixture", "origin": "birds; b.txt"}
    assert any("mirror failed" in line for line in said)


def test_locked_on_first_use_then_changed(site: Place) -> None:
    birds = dataset()
    site.fetch("birds", birds, ["mirror"])
    entry = json.loads(site.site.locks.read_text())["birds/a.txt"]
    assert entry["sha256"] == TEXT_SHA256 and entry["source"] == "birds/a.txt" and entry["date"]
    assert site.verify("birds", birds) == [FileState("a.txt", True, "locked")]
    (site.mirror / "birds" / "a.txt").write_bytes(b"something else\n")
    shutil.rmtree(site.folder("birds"))
    with pytest.raises(SembenchError, match=r"locked on first use.*delete the entry 'birds/a\.txt' of locks\.json"):
        site.fetch("birds", birds, ["mirror"])
    assert names_in(site.folder("birds")) == []
    site.site.locks.write_text("{}")
    site.fetch("birds", birds, ["mirror"])
    assert (site.folder("birds") / "a.txt").read_bytes() == b"something else\n"


def test_a_row_count_alone_does_not_pin_the_content(site: Place) -> None:
    birds = dataset({"name": "a.txt", "rows": 2})
    site.fetch("birds", birds, ["mirror"])
    (site.folder("birds") / "a.txt").write_bytes(b"other\nlines\n")
    (state,) = site.verify("birds", birds)
    assert state.verified == "no" and "locked on first use" in state.problem


def test_pinned_files_are_not_locked(site: Place) -> None:
    site.fetch("birds", dataset({"name": "a.txt", "git_blob": TEXT_BLOB}), ["mirror"])
    assert not site.site.locks.exists()


def test_unreadable_locks_are_named(site: Place) -> None:
    site.site.data.mkdir(parents=True)
    site.site.locks.write_text("{")
    with pytest.raises(SembenchError, match=r"locks\.json is not valid JSON; correct or delete it"):
        site.fetch("birds", dataset(), ["mirror"])


def test_verify_tells_missing_wrong_and_unknown(site: Place) -> None:
    birds = dataset({"name": "a.txt", "rows": 5}, {"name": "b.txt"}, {"name": "c.txt"})
    site.folder("birds").mkdir(parents=True)
    (site.folder("birds") / "a.txt").write_bytes(TEXT)
    (site.folder("birds") / "b.txt").write_bytes(TEXT)
    assert site.verify("birds", birds) == [
        FileState("a.txt", True, "no", "has 2 rows, expected 5"),
        FileState("b.txt", True, "unknown"),
        FileState("c.txt", False, "unknown", "is not there"),
    ]


def test_availability_counts_a_mirror_only_if_it_holds_every_file(site: Place) -> None:
    one, two = dataset(), dataset({"name": "a.txt"}, {"name": "b.txt"})
    assert availability(one, ["mirror"], site.mirror, site.root) is None
    assert availability(one, ["url"], site.mirror, site.root) is not None
    assert "mirror" in str(availability(two, ["mirror"], site.mirror, site.root))
    assert "SEMBENCH_MIRROR" in str(availability(one, ["url"], None, site.root))


def test_a_full_disk_leaves_nothing_half_written(site: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(source: Any, target: Any, _: int) -> None:
        target.write(source.read(5))
        target.flush()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(shutil, "copyfileobj", half)
    with pytest.raises(OSError, match="No space left") as caught:
        site.fetch("birds", dataset(), ["mirror"])
    assert caught.value.errno == errno.ENOSPC
    assert names_in(site.folder("birds")) == []


def test_two_threads_fetch_once(site: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    copies, real = [], shutil.copyfileobj

    def slow(source: Any, target: Any, size: int) -> None:
        copies.append(1)
        threading.Event().wait(0.1)
        real(source, target, size)

    monkeypatch.setattr(shutil, "copyfileobj", slow)
    results: list[dict[str, Any]] = []
    threads = [
        threading.Thread(target=lambda: results.append(site.fetch("birds", dataset(), ["mirror"]))) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(results) == 3 and results[0] == results[1] == results[2]
    assert len(copies) == 1


def test_two_processes_fetch_at_once(site: Place) -> None:
    code = (
        "import sys; from pathlib import Path; from sembench.registry.models import Dataset\n"
        "from tests.fetching import Place\n"
        "root = Path(sys.argv[1]); birds = Dataset.model_validate_json(sys.argv[2])\n"
        "print(Place(root, root / 'mirror').fetch('birds', birds, ['mirror'])['made'])\n"
        "assert 'torch' not in sys.modules\n"
    )
    command = [sys.executable, "-c", code, str(site.root), dataset().model_dump_json()]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) for _ in range(2)]
    stamps = {process.communicate(timeout=30)[0] for process in running}
    assert [process.returncode for process in running] == [0, 0]
    assert len(stamps) == 1  # the later one found the earlier one's record
    assert names_in(site.folder("birds")) == ["a.txt", "made.json"]


def test_availability_is_file_by_file(site: Place) -> None:
    fixtures = site.root / "tests" / "fixtures"
    fixtures.mkdir(parents=True)
    (fixtures / "b.txt").write_bytes(b"b\n")
    sources = [{"kind": "mirror", "path": "birds/{name}"}, {"kind": "fixture"}]
    split = dataset({"name": "a.txt"}, {"name": "b.txt"}, sources=sources)
    assert availability(split, ["mirror", "fixture"], site.mirror, site.root) is None
    assert site.fetch("birds", split, ["mirror", "fixture"])["files"].keys() == {"a.txt", "b.txt"}
    assert availability(split, ["mirror"], site.mirror, site.root) is not None


def test_a_named_pipe_in_a_mirror_does_not_hang(site: Place) -> None:
    os.mkfifo(site.root / "mirror" / "birds" / "b.txt")
    with pytest.raises(SembenchError, match=r"birds/b\.txt is not a regular file"):
        site.fetch("birds", dataset({"name": "b.txt"}), ["mirror"])


def test_what_is_larger_than_the_registry_lets_it_be_is_refused(site: Place) -> None:
    """TEXT has 22 bytes."""
    with pytest.raises(
        SembenchError, match=r"a\.txt from birds/a\.txt is larger than 2.1e-05 MB, .*raise its 'max_mb'"
    ):
        site.fetch("birds", dataset({"name": "a.txt", "max_mb": 0.000021}), ["mirror"])
    assert names_in(site.folder("birds")) == []
    site.fetch("birds", dataset({"name": "a.txt", "max_mb": 0.000022}), ["mirror"])


def test_what_a_killed_fetch_left_half_written_is_removed(site: Place) -> None:
    folder = site.folder("birds")
    folder.mkdir(parents=True)
    for name in (".a.0b1c2d3_.txt", ".made.abcdefgh.json", ".a.notes.txt", "own notes.txt"):
        (folder / name).write_text("half")
    site.fetch("birds", dataset(), ["mirror"])
    assert names_in(folder) == [".a.notes.txt", "a.txt", "made.json", "own notes.txt"]


def test_a_damaged_record_is_made_anew(site: Place) -> None:
    first = site.fetch("birds", dataset(), ["mirror"])
    (site.folder("birds") / "made.json").write_text("{")
    again = site.fetch("birds", dataset(), [])
    assert again["files"] == first["files"] and again["facts"]["source"]["kind"] == "kept"


def test_old_leftovers_are_swept_but_not_those_in_use(site: Place) -> None:
    cache = site.site.cache
    old, used, new, folder = (cache / name for name in ("old", "used", "new", "old folder"))
    folder.mkdir(parents=True)
    (folder / "x.whl").write_bytes(b"x")
    for path in (old, old.with_suffix(".version"), used, new):
        path.write_bytes(b"x")
    for path in (old, used, folder):
        os.utime(path, (0, 0))
    with FileLock(used.with_suffix(".lock")):
        site.fetch("birds", dataset(), ["mirror"])
    assert {path.name for path in cache.iterdir() if path.suffix != ".lock"} == {"used", "new"}
