"""Articles out of a MediaWiki XML dump (``pages-articles``), in constant memory."""

from __future__ import annotations

import bz2
import gzip
import itertools
import lzma
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple
from xml.etree import ElementTree

from sembench.core.artifact import RECORD
from sembench.core.errors import SembenchError


class Page(NamedTuple):
    """An article of the main namespace: its title and its wikitext."""

    title: str
    text: str


_AT_ONCE = 1 << 16
# Expat codes that mean "the input ended too early": no element, unclosed token, partial character, unclosed CDATA.
_CUT_SHORT = frozenset({3, 5, 6, 20})


def dump_files(folder: Path) -> list[Path]:
    """Return the files of a dump in the order of the numbers in their names.

    Raises:
        SembenchError: the folder has none.
    """
    paths = [path for path in folder.glob("[!.]*") if path.is_file() and path.name != RECORD]
    if not paths:
        raise SembenchError(f"{folder} holds no dump; fetch it again")
    # Numbers by value: "articles2" comes before "articles10".
    return sorted(paths, key=lambda path: [part.zfill(20) for part in re.split(r"(\d+)", path.name)])


def iter_pages(path: Path, start: int = 0, end: int | None = None) -> Iterator[Page]:
    """Yield the articles of a MediaWiki XML export: namespace 0, no redirects.

    Any version of the export schema is read, plain or packed as bz2 (also multistream), gzip or xz, and memory does not
    grow with the dump.

    Args:
        path: the dump; its first bytes show how it is packed.
        start: with ``end``, only the articles that begin within these bytes of the file, which must be one that
            ``can_be_cut``: ranges that together cover it have each article once. Of a packed dump, what is packed into
            a bz2 stream begins where the stream does.
        end: none: that of the file.

    Yields:
        ``Page(title, text)`` in the order of the dump.

    Raises:
        SembenchError: the file is missing, cut short, damaged, or no MediaWiki export.
    """
    if not path.is_file():
        raise SembenchError(f"{path} does not exist; fetch the dump first or correct the path")
    try:
        size = path.stat().st_size
        part = (start, size if end is None else end)
        yield from _articles(_whole(path) if part == (0, size) else _part(path, *part), path)
    except ElementTree.ParseError as error:
        if error.code not in _CUT_SHORT:
            raise SembenchError(
                f"{path} is not well-formed XML ({error}); fetch it again or check that it is a MediaWiki dump"
            ) from None
        raise _cut_short(path) from None
    except EOFError:
        raise _cut_short(path) from None
    except (LookupError, UnicodeError, ValueError) as error:
        # What the parser says of an encoding in the first line that Python does not have, or not for XML.
        raise SembenchError(f"{path} cannot be read ({error}); save it as UTF-8") from None
    except (OSError, zlib.error, lzma.LZMAError) as error:
        # Damaged data is an OSError without a number or the library's own; one with a number is the machine's trouble.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise SembenchError(f"{path} is damaged ({error}); fetch it again") from None


_OPEN: dict[bytes, Callable[..., Any]] = {b"BZh": bz2.open, b"\x1f\x8b": gzip.open, b"\xfd7zXZ": lzma.open}
_OTHER_PACKERS = {
    b"7z\xbc\xaf": "7z",
    b"PK\x03\x04": "zip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
    b"Rar!": "rar",
    b"\x1f\x9d": "compress",
    b"\x5d\x00\x00": "lzma",
}


def _opened(path: Path) -> IO[bytes]:
    # The content decides and not the suffix: mirrors unpack files and keep their names.
    with path.open("rb") as stream:
        magic = stream.read(5)
    for start, packer in _OTHER_PACKERS.items():
        if magic.startswith(start):
            raise SembenchError(f"{path} is packed with {packer}; unpack it, or give it as bz2, gzip, xz or plain XML")
    return next((unpack(path) for start, unpack in _OPEN.items() if magic.startswith(start)), None) or path.open("rb")


def _cut_short(path: Path) -> SembenchError:
    return SembenchError(f"{path} is cut short: the dump ends before its closing tag; fetch it again")


def _whole(path: Path) -> Iterator[bytes]:
    with _opened(path) as stream:
        yield from iter(lambda: stream.read(_AT_ONCE), b"")


def _articles(pieces: Iterable[bytes], path: Path) -> Iterator[Page]:
    root: ElementTree.Element | None = None
    for event, element in _events(pieces):
        if root is None:
            root = element
            if _local(root.tag) != "mediawiki":
                raise SembenchError(
                    f"{path} is not a MediaWiki dump: its root is <{_local(root.tag)}>, not <mediawiki>"
                )
        elif event == "end" and _local(element.tag) == "page":
            page = _article(element)
            # The root as well: otherwise it would keep one empty element for each of millions of pages.
            root.clear()
            if page is not None:
                yield page


def _events(pieces: Iterable[bytes]) -> Iterator[tuple[str, Any]]:
    parser: Any = ElementTree.XMLPullParser(events=("start", "end"))
    for piece in pieces:
        parser.feed(piece)
        yield from parser.read_events()
    parser.close()
    yield from parser.read_events()


def _local(tag: str) -> str:
    # The schema's version is part of its XML namespace, which therefore is ignored.
    return tag.rpartition("}")[2]


def _article(element: ElementTree.Element) -> Page | None:
    # Of several revisions the last one counts; below it, <content> has further texts that are no wikitext.
    fields = {_local(child.tag): child for child in element}
    fields |= {_local(child.tag): child for child in fields.get("revision", ())}
    words = {name: (child.text or "").strip() for name, child in fields.items()}
    text = (fields["text"].text or "") if "text" in fields else ""
    # Old exports have no <redirect>, but the directive is always the first word of the text.
    redirect = "redirect" in fields or text.lstrip()[:9].lower() == "#redirect"
    # Exports before version 0.6 have no <ns>, and those before 0.8 no <model>; their pages are taken for articles.
    article = (words.get("ns") or "0") == "0" and (words.get("model") or "wikitext") == "wikitext"
    return Page(words.get("title", ""), text) if article and text.strip() and not redirect else None


# ------------------------------------------------------------------------------------------------------ parts of a dump

# A bz2 stream with a block; six of these bytes are the digits of pi. They stand nowhere else but by a chance of 2^-76.
_STREAM = re.compile(rb"BZh[1-9]1AY&SY")
_PAGE = re.compile(rb"<page[\s>]")
# One byte less than each of them has at least: what the end of a piece may hold of one.
_MAGIC, _TAG = 9, 5
# Bytes within which a second stream must begin: the first one of an official dump holds the head alone.
_SECOND = 4 << 20
_ROOT = re.compile(rb"(?:\xef\xbb\xbf)?\s*(<\?xml[^>]*\?>)?\s*<mediawiki[\s>]")


def can_be_cut(path: Path) -> bool:
    """Tell whether ``iter_pages`` can begin anywhere in a dump: plain UTF-8, or bz2 of many streams (multistream)."""
    with path.open("rb") as file:
        head = file.read(_SECOND)
    if head.startswith(b"BZh"):
        try:
            head = bz2.BZ2Decompressor().decompress(head, 1 << 16) if _STREAM.search(head, 1) else b""
        except OSError:
            return False  # Whoever reads it says so.
    # In XML text "<" is escaped, so "<page" is a tag wherever it stands; another root may hold anything.
    if not (root := _ROOT.match(head)):
        return False
    return re.search(rb"encoding=(?!.utf-8)", root[1] or b"", re.IGNORECASE) is None


class _Cut(NamedTuple):
    """Where a part begins and the one before it ends: at a page, found by going on from some byte of the file.

    Attributes:
        stream: where to begin to unpack: at the next bz2 stream, or at that byte itself.
        skipped: how many bytes of text lie between that place and the page.
    """

    stream: int
    skipped: int


def _part(path: Path, start: int, end: int) -> Iterator[bytes]:
    """Yield the pages that begin within these bytes of a dump as an XML document."""
    size = path.stat().st_size
    # Both sides of a cut find the same page, so that none is lost or doubled, also where it begins in one stream and
    # ends in another, and what is damaged is in some part.
    first, last = _cut(path, start, size), _cut(path, end, size)
    if first == last:
        yield b"<mediawiki/>"
        return
    text = itertools.chain(_text(path, first.stream, last.stream), _up_to(last.skipped, _text(path, last.stream, size)))
    if first.stream:
        yield b"<mediawiki>"
    yield from _behind(first.skipped, text)
    if last.stream < size:
        yield b"</mediawiki>"


def _cut(path: Path, at: int, size: int) -> _Cut:
    """Return the first page that begins at or behind a byte of a dump; the end of the file where none does."""
    if at == 0:
        return _Cut(0, 0)
    stream, passed, held = _stream_behind(path, at), 0, b""
    for piece in _text(path, stream, size):
        held += piece
        if found := _PAGE.search(held):
            return _Cut(stream, passed + found.start())
        # The piece may end within a tag.
        passed, held = passed + len(held[:-_TAG]), held[-_TAG:]
    return _Cut(size, 0)


def _is_bz2(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(3) == b"BZh"


def _stream_behind(path: Path, at: int) -> int:
    """Return where the first bz2 stream at or behind a byte begins, or the file ends; of a plain file, that byte."""
    if not _is_bz2(path):
        return at
    held = b""
    for piece in _bytes(path, at, path.stat().st_size):
        held += piece
        if found := _STREAM.search(held):
            return at + found.start()
        at, held = at + len(held[:-_MAGIC]), held[-_MAGIC:]
    return path.stat().st_size


def _text(path: Path, start: int, end: int) -> Iterator[bytes]:
    """Yield what these bytes of a dump hold; of a packed one they must be whole streams.

    Raises:
        EOFError, OSError: a stream is cut short, or what follows one is none.
    """
    pieces = _bytes(path, start, end)
    if not _is_bz2(path):
        yield from pieces
        return
    stream = None
    for piece in pieces:
        packed = piece
        while packed:
            if stream is None or stream.eof:
                stream = bz2.BZ2Decompressor()
            yield stream.decompress(packed)
            packed = stream.unused_data
    if stream and not stream.eof:
        raise EOFError


def _bytes(path: Path, start: int, end: int) -> Iterator[bytes]:
    with path.open("rb") as file:
        file.seek(start)
        while piece := file.read(min(_AT_ONCE, end - start)):
            start += len(piece)
            yield piece


def _up_to(most: int, pieces: Iterable[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        if not most:
            return
        yield piece[:most]
        most -= len(piece[:most])


def _behind(skipped: int, pieces: Iterable[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        yield piece[skipped:]
        skipped -= len(piece[:skipped])
