"""Archives that try to write where they should not."""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile
from pathlib import Path
from typing import IO

import pytest

from sembench.core.errors import SembenchError
from sembench.sources.unpack import unpack

Got = dict[str, bytes]


def zip_file(path: Path, *members: tuple[zipfile.ZipInfo | str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members:
            archive.writestr(name, content)
    return path


def tar_file(path: Path, *members: tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for info in members:
            info.size = 4 if info.isreg() else 0
            archive.addfile(info, io.BytesIO(b"text") if info.isreg() else None)
    return path


def tar_member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def unpacked(path: Path, wanted: dict[str, str], below_top: bool = False) -> Got:
    got: Got = {}

    def take(name: str, stream: IO[bytes]) -> None:
        got[name] = stream.read()

    kind = "zip" if path.suffix == ".zip" else "tar"
    try:
        unpack(path, kind, wanted, take, label=path.name, below_top=below_top)
    except SembenchError:
        assert got == {}  # nothing was handed out of an archive that is refused
        raise
    return got


@pytest.mark.parametrize("name", ["../evil.txt", "/evil.txt", "a/../../evil.txt", "..\\evil.txt", "C:\\evil.txt"])
def test_names_that_leave_the_folder_condemn_the_archive(tmp_path: Path, name: str) -> None:
    archives = [
        zip_file(tmp_path / "x.zip", ("good.txt", b"text"), (name, b"text")),
        tar_file(tmp_path / "x.tar", tar_member("good.txt"), tar_member(name)),
    ]
    for path in archives:
        with pytest.raises(SembenchError, match=rf"{path.name} is refused, since its member '.*evil\.txt' points out"):
            unpacked(path, {"good.txt": "good.txt"})


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE])
def test_wanted_members_that_are_no_files_are_refused(tmp_path: Path, kind: bytes) -> None:
    path = tar_file(tmp_path / "x.tar", tar_member("good.txt"), tar_member("bad.txt", kind, "good.txt"))
    with pytest.raises(SembenchError, match=r"'bad\.txt' is a link, a device or a folder"):
        unpacked(path, {"good.txt": "good.txt", "bad.txt": "bad.txt"})


def test_a_symbolic_link_in_a_zip_is_refused(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("bad.txt")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    path = zip_file(tmp_path / "x.zip", (link, b"/etc/hostname"))
    with pytest.raises(SembenchError, match=r"'bad\.txt' is a link"):
        unpacked(path, {"bad.txt": "bad.txt"})


def test_members_below_the_top_folder_and_one_member_for_two_files(tmp_path: Path) -> None:
    path = tar_file(tmp_path / "x.tar", tar_member("pkg-1.0", tarfile.DIRTYPE), tar_member("pkg-1.0/data/a.txt"))
    got = unpacked(path, {"one.txt": "data/a.txt", "two.txt": "data/a.txt"}, below_top=True)
    assert got == {"one.txt": b"text", "two.txt": b"text"}


def test_an_encrypted_zip_is_one_sentence(tmp_path: Path) -> None:
    path = zip_file(tmp_path / "x.zip", ("a.txt", b"text"))
    content = bytearray(path.read_bytes())
    for header, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(header) + flags] |= 1
    path.write_bytes(content)
    with pytest.raises(SembenchError, match=r"x\.zip is damaged \(.*encrypted"):
        unpacked(path, {"a.txt": "a.txt"})
