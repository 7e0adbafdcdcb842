"""Archives that try to write where they should not."""

from __future__ import annotations

import gzip
import io
import stat
import struct
import tarfile
import warnings
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


def unpacked(path: Path, wanted: dict[str, str], below_top: bool = False, most: int = 10**6) -> Got:
    got: Got = {}

    def take(name: str, stream: IO[bytes]) -> None:
        got[name] = stream.read()

    kind = "zip" if path.suffix == ".zip" else "tar"
    try:
        unpack(path, kind, wanted, take, label=path.name, most=most, below_top=below_top)
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


# ------------------------------------------------------------------------------------- archives, each a single sentence

NOISE = bytes(range(256)) * 40


def tar(*members: tuple[tarfile.TarInfo, bytes], mode: str = "w") -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode) as archive:  # type: ignore[call-overload]
        for info, content in members:
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return packed.getvalue()


def zipped(*members: tuple[zipfile.ZipInfo | str, bytes], how: int = zipfile.ZIP_DEFLATED) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", how) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # names that are there twice
        for name, content in members:
            archive.writestr(name, content)
    return packed.getvalue()


def flipped(packed: bytes, at: int) -> bytes:
    return packed[:at] + bytes([packed[at] ^ 255]) + packed[at + 1 :]


def with_field(packed: bytes, header: bytes, offset: int, value: bytes) -> bytes:
    at = packed.index(header) + offset
    return packed[:at] + value + packed[at + len(value) :]


def sized(claimed: int, kind: bytes = tarfile.REGTYPE, name: str = "a.txt", pax: dict[str, str] | None = None) -> bytes:
    """A header that claims more bytes than follow it."""
    info = tar_member(name, kind)
    info.size, info.pax_headers = claimed, pax or {}
    return info.tobuf(tarfile.PAX_FORMAT if pax else tarfile.GNU_FORMAT)


def sparse(claimed: int) -> bytes:
    facts = {"major": "1", "minor": "0", "name": "a.txt", "realsize": str(claimed)}
    pax = {f"GNU.sparse.{key}": value for key, value in facts.items()}
    return sized(512, name="GNUSparseFile.0/a.txt", pax=pax) + b"1\nx\n".ljust(512, b"\0") + bytes(1024)


def link(kind: int = stat.S_IFLNK) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo("a.txt")
    info.external_attr = kind << 16
    return info


A, DIRECTORY = "a.txt", b"PK\x01\x02"
TEXT = (A, b"text")
REFUSED = {
    "link, then file.tar": (lambda: tar((tar_member(A, tarfile.SYMTYPE, "/x"), b""), (tar_member(A), b"b")), "twice"),
    "hard link, then file.tar": (
        lambda: tar((tar_member(A, tarfile.LNKTYPE, "nowhere"), b""), (tar_member(A), b"b")),
        "twice",
    ),
    "file, then link.tar": (lambda: tar((tar_member(A), b"b"), (tar_member(A, tarfile.SYMTYPE, "/x"), b"")), "twice"),
    "folder, then file.tar": (lambda: tar((tar_member(A, tarfile.DIRTYPE), b""), (tar_member(A), b"b")), "twice"),
    "two spellings.tar": (lambda: tar((tar_member("./a.txt"), b"a"), (tar_member(A), b"b")), "twice"),
    "link, then file.zip": (lambda: zipped((link(), b"/etc/hostname"), TEXT), "twice"),
    "two files.zip": (lambda: zipped(TEXT, (A, b"other")), "twice"),
    "a pipe.zip": (lambda: zipped((link(stat.S_IFIFO), b"")), "is a link, a device or a folder"),
    "a look-alike.tar": (lambda: tar((tar_member("\u0430.txt"), b"a")), "lacks the member 'a.txt'"),
    "a name that moves the cursor.tar": (
        lambda: tar((tar_member("../x\n\x1b[2J"), b"a")),
        r"'../x\n\x1b[2J' points outside",
    ),
    "a bomb of gzip.tar": (lambda: tar((tar_member(A), bytes(2 * 10**6)), mode="w:gz"), "more than 1 MB"),
    "a bomb of bzip2.tar": (lambda: tar((tar_member(A), bytes(2 * 10**6)), mode="w:bz2"), "more than 1 MB"),
    "a bomb of xz.tar": (lambda: tar((tar_member(A), bytes(2 * 10**6)), mode="w:xz"), "more than 1 MB"),
    "a bomb beside it.tar": (
        lambda: tar((tar_member(A), b"a"), (tar_member("z"), bytes(2 * 10**6)), mode="w:gz"),
        "more than 1 MB",
    ),
    "a long extended header.tar": (
        lambda: gzip.compress(sized(2**30, tarfile.XHDTYPE) + bytes(1024)),
        "damaged (a header claims 1073741824 bytes)",
    ),
    "a long name.tar": (
        lambda: gzip.compress(sized(2**30, tarfile.GNUTYPE_LONGNAME) + bytes(1024)),
        "damaged (a header claims 1073741824 bytes)",
    ),
    "headers without end.tar": (
        lambda: (sized(5, tarfile.GNUTYPE_LONGNAME) + b"name\0".ljust(512, b"\0")) * 2000,
        "damaged (maximum recursion",
    ),
    "a size of exabytes.tar": (lambda: sized(2**62) + bytes(1024), "more than 1 MB"),
    "a broken sparse map.tar": (lambda: sparse(10**10), "damaged (invalid literal"),
    "a wrong checksum.tar": (
        lambda: flipped(tar((tar_member(A), NOISE), mode="w:gz"), -6),
        "damaged (CRC check failed",
    ),
    "a flipped bit of xz.tar": (lambda: flipped(tar((tar_member(A), NOISE), mode="w:xz"), 100), "damaged ("),
    "half of bzip2.tar": (lambda: tar((tar_member(A), NOISE), mode="w:bz2")[:60], "damaged (Compressed file ended"),
    "nothing.tar": (lambda: b"", "damaged (empty file)"),
    "a page.tar": (lambda: b"<html>log in</html>" * 99, "damaged ("),
    "packed twice.tar": (lambda: gzip.compress(gzip.compress(tar((tar_member(A), b"a")))), "damaged ("),
    "a name in no encoding.zip": (
        lambda: zipped(("\xe9.txt", b"a")).replace("\xe9".encode(), b"\xff\xfe"),
        "damaged ('utf-8' codec",
    ),
    "a wrong checksum.zip": (
        lambda: flipped(zipped((A, NOISE), how=zipfile.ZIP_STORED), 99),
        "damaged (Bad CRC-32",
    ),
    "flipped lzma.zip": (lambda: flipped(zipped((A, NOISE), how=zipfile.ZIP_LZMA), 99), "damaged (Corrupt input"),
    "an unknown method.zip": (
        lambda: with_field(zipped(TEXT), DIRECTORY, 10, struct.pack("<H", 99)),
        "damaged (That compression method",
    ),
    "a place beyond the end.zip": (
        lambda: with_field(zipped(TEXT), DIRECTORY, 42, struct.pack("<I", 2**31 - 1)),
        "damaged (Truncated file header",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_hostile_archives_are_refused_in_one_sentence(tmp_path: Path, name: str) -> None:
    pack, sentence = REFUSED[name]
    path = tmp_path / f"x{Path(name).suffix}"
    path.write_bytes(pack())
    with pytest.raises(SembenchError) as caught:
        unpacked(path, {A: A})
    said = str(caught.value)
    assert said.startswith(path.name) and sentence in said and said.isprintable()
    assert list(tmp_path.iterdir()) == [path]


def test_more_members_than_any_data_set_has_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sembench.sources.unpack.MOST_MEMBERS", 3)
    path = tar_file(tmp_path / "x.tar", *(tar_member(f"{i}.txt") for i in range(4)))
    with pytest.raises(SembenchError, match=r"x\.tar is refused, since it has more than 3 members"):
        unpacked(path, {"0.txt": "0.txt"})


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_a_tar_is_read_however_it_is_compressed(tmp_path: Path, mode: str) -> None:
    (tmp_path / "x.tar").write_bytes(tar((tar_member("b.txt"), NOISE), (tar_member(A), b"text"), mode=mode))
    assert unpacked(tmp_path / "x.tar", {A: A}) == {A: b"text"}
