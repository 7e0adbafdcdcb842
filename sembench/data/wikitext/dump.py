"""Articles out of a MediaWiki XML dump (``pages-articles``), in constant memory."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple
from xml.etree import ElementTree

from sembench.core.artifact import RECORD
from sembench.core.errors import SembenchError


class Page(NamedTuple):
    """An article of the main namespace: its title and its wikitext."""

    title: str
    text: str


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


def iter_pages(path: Path) -> Iterator[Page]:
    """Yield the articles of a MediaWiki XML export: namespace 0, no redirects.

    Any version of the export schema is read, plain or packed as bz2 (also multistream), gzip or xz, and memory does not
    grow with the dump.

    Args:
        path: the dump; its first bytes show how it is packed.

    Yields:
        ``Page(title, text)`` in the order of the dump.

    Raises:
        SembenchError: the file is missing, cut short, damaged, or no MediaWiki export.
    """
    if not path.is_file():
        raise SembenchError(f"{path} does not exist; fetch the dump first or correct the path")
    try:
        with _opened(path) as stream:
            yield from _articles(stream, path)
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


def _articles(stream: IO[bytes], path: Path) -> Iterator[Page]:
    events = ElementTree.iterparse(stream, events=("start", "end"))
    root: ElementTree.Element | None = None
    for event, element in events:
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
