"""WordNet 3.0 as a sense inventory, through nltk's reader on a folder of database files."""

from __future__ import annotations

import contextlib
import functools
import io
import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from nltk.corpus.reader.wordnet import WordNetCorpusReader, WordNetError
from nltk.data import PathPointer

from sembench.analogy.inventory.base import Edge, Gloss, Pos, Synset
from sembench.analogy.inventory.wordnet_files import SUFFIXES, WORDNET_FILES, database_text, definition
from sembench.core.errors import SembenchError

LETTERS: dict[Pos, str] = {"NOUN": "n", "VERB": "v", "ADJ": "a", "ADV": "r"}
NAMES: dict[str, Pos] = {"n": "NOUN", "v": "VERB", "a": "ADJ", "s": "ADJ", "r": "ADV"}


def spellings(word: str) -> tuple[str, ...]:
    """Return the ways to write a word in WordNet: with underscores, then with hyphens moved about (goodmami/wn 19)."""
    plain = word.lower().strip().replace(" ", "_")
    joined = plain.replace("-", "_")
    return tuple(dict.fromkeys((plain, joined, joined.replace("_", "-"), joined.replace("_", ""))))


class _Memory(PathPointer):  # type: ignore[misc]
    """The database files, read whole.

    Streams over text in memory belong to one reader alone, so that no other thread moves a file's position
    (nltk issues 803, 1576), and the reader needs no entry in the global ``nltk.data.path``.
    """

    def __init__(self, folder: Path) -> None:
        self.path = str(folder)
        self.texts = {name: database_text(folder / name) for name in WORDNET_FILES if name != "index.sense"}

    def open(self, encoding: str | None = None) -> Any:
        raise NotImplementedError

    def file_size(self) -> int:
        return sum(map(len, self.texts.values()))

    def join(self, fileid: str) -> _Memory:
        raise NotImplementedError


class _Reader(WordNetCorpusReader):  # type: ignore[misc]
    def __init__(self, memory: _Memory) -> None:
        self._texts = memory.texts
        # Any value but None for the multilingual data keeps the reader from warning that there is none.
        super().__init__(memory, omw_reader=())

    def open(self, file: str) -> io.StringIO:
        return io.StringIO(self._texts[file])

    def map_wn(self, version: str = "wordnet") -> None:
        """Skip the map between versions, which needs an installed corpus and serves other languages alone."""

    def gloss(self, letter: str, offset: int) -> str:
        # nltk's `definition()` drops all quoted text; the line itself still has it.
        text = self._texts[f"data.{self._FILEMAP[letter]}"]
        return text[offset : text.index("\n", offset)].partition("|")[2]


@contextlib.contextmanager
def _damage_told(folder: Path) -> Iterator[None]:
    """Turn what nltk's reader raises over a damaged database, when it is opened or when it is read, into a sentence."""
    try:
        yield
    except (ValueError, TypeError, AssertionError, StopIteration, AttributeError, LookupError, WordNetError) as error:
        raise SembenchError(f"{folder} holds no readable WordNet database ({error}); prepare it again") from None


class WordNetInventory:
    """Senses of WordNet 3.0; safe to share between threads.

    Args:
        folder: holds the database files (``data.noun`` ...); ``<root>/corpora/wordnet`` of ``prepare_wordnet``.

    Raises:
        SembenchError: a file is missing, has CRLF line ends or is not a database file.
    """

    name = "wordnet"
    version = "3.0"

    def __init__(self, folder: Path) -> None:
        memory = _Memory(folder)
        self._lock = threading.RLock()
        self._folder = folder
        with _damage_told(folder):
            self._reader = _Reader(memory)
        self._synsets: dict[tuple[str, int], Synset] = {}
        self._words: dict[tuple[str, Pos], tuple[Synset, ...]] = {}
        self._edges = functools.cache(self._reached)

    def synsets(self, lemma: str, pos: Sequence[Pos]) -> list[Synset]:
        """Return the synsets of a word in WordNet's order of senses, part of speech after part of speech.

        A spelling as given goes before variants of hyphen and space; only a noun that has none of them is looked up
        by its base form (exception list, then suffixes), so "glasses" is not a glass.
        """
        with self._lock, _damage_told(self._folder):
            return [synset for tag in pos for synset in self._senses(lemma, tag)]

    def synset(self, key: str) -> Synset:
        """Return a synset by its id (``wn:02084071n``).

        Raises:
            SembenchError: there is none at that offset.
        """
        with self._lock, _damage_told(self._folder):
            return self._convert(self._at(key))

    def lexfile(self, offset: str) -> str | None:
        """Return the lexicographer file at an offset such as ``02444819n``, or None if there is no synset."""
        try:
            return self.synset(f"wn:{offset}").lexfile
        except SembenchError:
            return None

    def related(self, first: Synset, second: Synset, edge: Edge) -> bool | None:
        """Return whether ``second`` is reached from ``first`` by ``edge``; None for synsets without an offset."""
        if first.wordnet is None or second.wordnet is None:
            return None
        with self._lock, _damage_told(self._folder):
            return second.wordnet in self._edges(first.wordnet, edge)

    def __len__(self) -> int:
        """Return the number of synsets in the database."""
        lines = (line for s in SUFFIXES for line in io.StringIO(self._reader._texts[f"data.{s}"]))
        return sum(1 for line in lines if not line.startswith(" "))

    def _senses(self, word: str, tag: Pos) -> tuple[Synset, ...]:
        key = (word, tag)
        if key not in self._words:
            forms = spellings(word)
            found = next(filter(None, (self._exact(form, tag) for form in forms)), [])
            if not found and tag == "NOUN" and (base := self._reader.morphy(forms[0], "n")):
                found = self._exact(base, tag)
            plain = forms[0].replace("_", " ")
            self._words[key] = tuple(
                synset if form == plain else replace(synset, found_as=form) for form, synset in found
            )
        return self._words[key]

    def _exact(self, form: str, tag: Pos) -> list[tuple[str, Synset]]:
        return [
            (form.replace("_", " "), self._convert(found))
            for found in self._reader.synsets(form, LETTERS[tag])
            if form in _names(found)
        ]

    def _at(self, key: str) -> Any:
        match = re.fullmatch(r"(?:wn:)?(\d{8})([nvar])", key)
        lines = self._reader._texts[f"data.{self._reader._FILEMAP[match[2]]}"] if match else ""
        if not match or lines[int(match[1]) : int(match[1]) + 8] != match[1]:
            raise SembenchError(f"'{key}' is not a synset of WordNet 3.0; ids look like wn:02084071n")
        return self._reader.synset_from_pos_and_offset(match[2], int(match[1]))

    def _convert(self, found: Any) -> Synset:
        letter = "a" if found.pos() == "s" else found.pos()
        key = (letter, found.offset())
        if key not in self._synsets:
            identity = f"{found.offset():08d}{letter}"
            self._synsets[key] = Synset(
                id=f"wn:{identity}",
                pos=NAMES[letter],
                lemmas=tuple(name.replace("_", " ") for name in _names(found)),
                glosses=(Gloss(definition(self._reader.gloss(letter, found.offset())), "WN"),),
                lexfile=found.lexname(),
                type="NAMED_ENTITY" if found.instance_hypernyms() else "CONCEPT",
                wordnet=identity,
            )
        return self._synsets[key]

    def _reached(self, identity: str, edge: Edge) -> frozenset[str]:
        start = self._at(identity)
        if edge == "ancestor":
            found: Iterable[Any] = start.closure(lambda s: [*s.hypernyms(), *s.instance_hypernyms()])
        elif edge == "antonym":
            found = _antonyms(start)
        elif edge == "similar":
            # Verb groups and see-also are what WordNet has for near synonyms beside the adjectives' similar-to.
            found = [*start.similar_tos(), *start.verb_groups(), *start.also_sees()]
        else:
            found = getattr(start, f"{edge}_meronyms")()
        return frozenset(self._convert(s).wordnet or "" for s in found)


def _names(found: Any) -> list[str]:
    # Adjectives carry a marker of position, as in `galore(ip)`, which nltk has cut off; capitals mark proper names.
    return [name.lower() for name in found.lemma_names()]


def _antonyms(start: Any) -> set[Any]:
    """Return antonyms of a synset or of the head it is similar to, and what is similar to them."""
    near = [start, *start.similar_tos()]
    direct = {other.synset() for s in near for lemma in s.lemmas() for other in lemma.antonyms()}
    return direct | {s for found in direct for s in found.similar_tos()}
