"""Building a training corpus: one sentence per line, from a line file or from a MediaWiki dump."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from sembench.core.errors import SembenchError
from sembench.core.files import atomic_path, sha256_of
from sembench.corpora.lines import iter_lines
from sembench.corpora.wikipedia import clean, iter_pages, sentences

Reader = Literal["lines", "mediawiki"]


def build_corpus(reader: Reader, source: Path, target: Path) -> dict[str, Any]:
    """Write the sentences of ``source`` to ``target``, one per line, UTF-8, atomically and streaming.

    Exact duplicates are dropped for ``mediawiki`` (the first one stays), since templates repeat boilerplate; they are
    kept for ``lines``, since the SimCSE file is used as it is. Memory does not grow with the length of the source but
    for one 12-byte digest per distinct sentence of a dump.

    Args:
        reader: ``lines`` for a one-sentence-per-line file, ``mediawiki`` for a ``pages-articles`` XML dump.
        source: the file to read.
        target: the file to write; an existing one is replaced only when everything went well.

    Returns:
        ``reader``, ``sentences``, ``words`` (tokens by white space), ``duplicates_dropped``, ``sha256`` of the target,
        and for ``mediawiki`` also ``pages`` (articles read).

    Raises:
        SembenchError: unknown reader, unreadable source, or a source without any sentence.
    """
    counts: dict[str, Any] = {"reader": reader, "sentences": 0, "words": 0, "duplicates_dropped": 0}
    if reader == "lines":
        stream = iter_lines(source)
    elif reader == "mediawiki":
        counts["pages"] = 0
        stream = _distinct(_dump_sentences(source, counts), counts)
    else:
        raise SembenchError(f"corpus reader '{reader}' is not known; use 'lines' or 'mediawiki'")
    with atomic_path(target) as temporary:
        _write(stream, temporary, counts)
        if not counts["sentences"]:
            raise SembenchError(f"{source} holds no sentence for reader '{reader}'; check the file and the reader")
        counts["sha256"] = sha256_of(temporary)
    return counts


def _dump_sentences(source: Path, counts: dict[str, Any]) -> Iterator[str]:
    for page in iter_pages(source):
        counts["pages"] += 1
        yield from sentences(clean(page.text))


def _distinct(stream: Iterator[str], counts: dict[str, Any]) -> Iterator[str]:
    # 96 bits per sentence instead of the sentence: no collision is to be expected even for all of Wikipedia.
    seen: set[bytes] = set()
    for sentence in stream:
        digest = hashlib.blake2b(sentence.encode(), digest_size=12).digest()
        if digest in seen:
            counts["duplicates_dropped"] += 1
            continue
        seen.add(digest)
        yield sentence


def _write(stream: Iterator[str], path: Path, counts: dict[str, Any]) -> None:
    # newline="\n" keeps the bytes, and with them the checksum, equal on every platform.
    with path.open("w", encoding="utf-8", newline="\n") as output:
        for sentence in stream:
            output.write(sentence + "\n")
            counts["sentences"] += 1
            counts["words"] += len(sentence.split())


def read_sentences(path: Path) -> list[str]:
    """Return the sentences of a corpus written by ``build_corpus``, in order.

    Raises:
        SembenchError: the file is missing, empty or not UTF-8.
    """
    found = list(iter_lines(path))
    if not found:
        raise SembenchError(f"{path} holds no sentence; build the corpus again")
    return found
