"""Senses in a file of JSON lines: made from a cache, or by anybody who has BabelNet's indices.

The first line is a header::

    {"format": "sembench-babelnet-dump", "format_version": 1, "babelnet": "V5_3", "created_from": "...",
     "counts": {"words": 2, "synsets": 3, "edges": 0}}

Every other line is one of three kinds, in any order:

* a word: ``{"lemma": "...", "pos": "NOUN", "synsets": ["bn:...n", ...]}``, synsets in BabelNet's order;
* a synset: the object of getSynset with its ``id`` added, or ``{"id": "bn:...n", "message": "..."}`` if there is none;
* edges: ``{"id": "bn:...n", "edges": [...]}`` with the list of getOutgoingEdges.

``counts`` may be left out; with it, a file that lost its end is noticed. BabelNet's licence
allows non-commercial research alone and wants processed data marked as such, hence the version in the header.
"""

from __future__ import annotations

import contextlib
import gzip
import itertools
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from sembench.analogy.inventory.babelnet_answers import (
    POS,
    BabelNetSenses,
    Json,
    LexfileOf,
    Pointer,
    ids_of,
    is_id,
    pointers_of,
    spoken,
    stored_version,
    synset_of,
    synset_params,
)
from sembench.analogy.inventory.base import Pos, Synset
from sembench.analogy.inventory.cache import Answer, AnswerCache, pairs_of
from sembench.core.errors import SembenchError
from sembench.core.files import atomic_path

FORMAT = "sembench-babelnet-dump"
FORMAT_VERSION = 1
_REMEDY = "export or copy the file again"

# ------------------------------------------------------------------------------------------------- writing


def export_dump(cache: AnswerCache, target: Path, *, source: str | None = None) -> Json:
    """Write all answers of a cache as a dump, in a fixed order and atomically, and return its header.

    Args:
        cache: where the answers are.
        target: file to write; packed if its name ends in ``.gz``.
        source: take the words that were looked up with this resource only, or those without such a limit.

    Raises:
        SembenchError: There is nothing to export, or a file of the cache is damaged.
    """
    counts = {
        "words": sum(1 for _ in _words(cache, source)),
        "synsets": sum(1 for _ in _synsets(cache)),
        "edges": sum(1 for _ in _edges(cache)),
    }
    if not counts["words"]:
        limit = f" with source {source}" if source else ""
        raise SembenchError(
            f"{cache.folder} holds no words{limit}, so there is nothing to export; crawl first, or name its --source"
        )
    header = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "babelnet": stored_version(cache),
        "created_from": f"processed answers of BabelNet's HTTP interface {cache.api}",
        "source": source,
        "counts": counts,
    }
    with atomic_path(target) as temporary, temporary.open("wb") as raw, _packed(raw, target) as stream:
        for line in itertools.chain([header], _words(cache, source), _synsets(cache), _edges(cache)):
            stream.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
    return header


def _words(cache: AnswerCache, source: str | None) -> Iterator[Json]:
    for answer in cache.answers("getSynsetIds"):
        pos, lemma = answer.param("pos"), answer.param("lemma")
        if answer.param("source") == source and answer.param("searchLang") == "EN" and pos:
            yield {"lemma": lemma, "pos": pos, "synsets": _ids(answer)}


def _synsets(cache: AnswerCache) -> Iterator[Json]:
    for answer in cache.answers("getSynset"):
        synset = answer.param("id") or ""
        # Others were asked for by hand, in other languages or by WordNet's ids.
        if is_id(synset) and answer.params == pairs_of(synset_params(synset)):
            yield {"id": synset} | answer.body | {"id": synset}


def _edges(cache: AnswerCache) -> Iterator[Json]:
    for answer in cache.answers("getOutgoingEdges"):
        synset = answer.param("id") or ""
        if is_id(synset):
            yield {"id": synset, "edges": answer.body if answer.found else []}


def _ids(answer: Answer) -> list[str]:
    return ids_of(answer.body, f"the stored answer about '{answer.param('lemma')}'") if answer.found else []


@contextlib.contextmanager
def _packed(raw: IO[bytes], target: Path) -> Iterator[IO[bytes]]:
    if target.suffix != ".gz":
        yield raw
        return
    # Without name and time in its head, the same answers give the same bytes.
    with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as stream:
        yield stream  # type: ignore[misc]


# ------------------------------------------------------------------------------------------------- reading


class DumpInventory(BabelNetSenses):
    """Senses from a dump; answers as `BabelNetInventory` does over the cache that the dump was made from."""

    def __init__(self, path: Path, lexfile_of: LexfileOf | None = None) -> None:
        """Read a dump; senses are kept as objects, which are much smaller than BabelNet's JSON.

        Args:
            path: the dump, packed if its name ends in ``.gz``.
            lexfile_of: gives the lexicographer file of an offset in WordNet 3.0 such as ``02444819n``.

        Raises:
            SembenchError: There is no such file, or a line is not what it should be.
        """
        self._path = path
        self._lexfile_of = lexfile_of
        self._index: dict[tuple[str, Pos], list[str]] = {}
        self._found: dict[str, Synset | None] = {}
        self._edges: dict[str, list[Pointer]] = {}
        lines = _lines(path)
        header = _header(next(lines, None), path)
        self.version = str(header["babelnet"])
        for number, line in lines:
            self._take(line, f"{path}, line {number},")
        self._check_counts(header.get("counts"))

    def _take(self, line: Json, what: str) -> None:
        if "lemma" in line and "synsets" in line:
            self._index[_word(line, what)] = ids_of(_as_objects(line["synsets"]), what)
        elif "edges" in line and "senses" not in line:
            self._edges[_id(line, what)] = pointers_of(line["edges"], what)
        elif "message" in line:
            self._found[_id(line, what)] = None
        else:
            synset = _id(line, what)
            self._found[synset] = synset_of(synset, line, self._lexfile_of, what)

    def _check_counts(self, counts: Any) -> None:
        if not isinstance(counts, dict):
            return
        for name, have in (("words", self._index), ("synsets", self._found), ("edges", self._edges)):
            if len(have) != counts.get(name, len(have)):
                raise SembenchError(f"{self._path} has {len(have)} of {counts[name]} {name}; {_REMEDY}")

    def _absent(self, what: str) -> SembenchError:
        return SembenchError(f"{self._path} has no line for {what}; export it again after a crawl of that word")

    def _ids(self, lemma: str, pos: Pos) -> list[str]:
        if (lemma, pos) not in self._index:
            raise self._absent(f"the {pos} '{lemma}'")
        return self._index[lemma, pos]

    def _synset(self, synset: str) -> Synset | None:
        if synset not in self._found:
            raise self._absent(synset)
        return self._found[synset]

    def _pointers(self, synset: str) -> list[Pointer] | None:
        return self._edges.get(synset)


def _word(line: Json, what: str) -> tuple[str, Pos]:
    lemma, pos = line["lemma"], next((known for known in POS.values() if known == line.get("pos")), None)
    if not isinstance(lemma, str) or pos is None:
        raise SembenchError(f"{what} needs a text as 'lemma' and one of {', '.join(POS.values())} as 'pos'")
    return spoken(lemma), pos


def _as_objects(ids: Any) -> Any:
    return [{"id": synset} for synset in ids] if isinstance(ids, list) else ids


def _id(line: Json, what: str) -> str:
    """Return the id of a synset: beside the object, or where getSynset has it, in its senses."""
    candidates: list[Any] = [line.get("id")]
    senses = line.get("senses")
    for sense in senses if isinstance(senses, list) else []:
        with contextlib.suppress(KeyError, TypeError):
            candidates.append(sense["properties"]["synsetID"]["id"])
    found = next((one for one in candidates if one is not None), None)
    if not isinstance(found, str):
        raise SembenchError(f"{what} is neither a word, a synset, nor edges: it lacks an 'id'; {_REMEDY}")
    return ids_of([{"id": found}], what)[0]


def _header(first: tuple[int, Json] | None, path: Path) -> Json:
    line = first[1] if first else {}
    if line.get("format") != FORMAT or not isinstance(line.get("babelnet"), str):
        raise SembenchError(f"{path} is not a dump: its first line must be the header with format {FORMAT}; {_REMEDY}")
    if line.get("format_version") != FORMAT_VERSION:
        raise SembenchError(
            f"{path} has format version {line.get('format_version')}, this program reads {FORMAT_VERSION}; {_REMEDY}"
        )
    return line


def _lines(path: Path) -> Iterator[tuple[int, Json]]:
    """Yield number and content of every line that is not empty."""
    number = 0
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                if line.strip():
                    yield number, _parsed(line, f"{path}, line {number},")
    except FileNotFoundError:
        raise SembenchError(f"there is no dump {path}; make one with an export of the crawled answers") from None
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise SembenchError(f"{path} is cut off or damaged after line {number}; {_REMEDY}") from None


def _parsed(line: bytes, what: str) -> Json:
    try:
        content = json.loads(line)
        # A half of a surrogate pair is valid JSON and no text.
        json.dumps(content, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise SembenchError(f"{what} is not a JSON object, so the file is damaged or cut off; {_REMEDY}")
    return content
