"""What every sense inventory gives: the synsets of a word, and whether two synsets are related."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

Pos = Literal["NOUN", "VERB", "ADJ", "ADV"]
SynsetType = Literal["CONCEPT", "NAMED_ENTITY", "UNKNOWN"]
# Graph tests of the filter. `ancestor`: the second synset is a transitive (instance) hypernym of the first; `member`,
# `part`, `substance`: the second is a member, part or substance of the first; `antonym`, `similar`: either direction,
# antonyms also through similar-to.
Edge = Literal["ancestor", "antonym", "member", "part", "substance", "similar"]


@dataclass(frozen=True)
class Gloss:
    """One definition sentence and the resource it comes from (WN, OEWN, WIKI, WIKIDATA, WIKT, OMWIKI, ...)."""

    text: str
    source: str


@dataclass(frozen=True)
class Synset:
    """A sense: everything that the filter may ask of it.

    Attributes:
        id: ``wn:02084071n`` or ``bn:00015267n``.
        pos: universal part of speech.
        lemmas: English lemmas, lower case, spaces for underscores, without Wikipedia's brackets.
        glosses: English definitions in the inventory's order, unprocessed but for examples that were cut off.
        lexfile: WordNet's lexicographer file such as ``noun.animal``; None without a WordNet 3.0 offset.
        domains: domain name to weight; often empty.
        type: concept, named entity, or unknown.
        wordnet: offset and part of speech in WordNet 3.0, such as ``02084071n``, or None.
        key_concept: marked as a key concept by the inventory.
        found_as: the lemma under which the inventory found it, where that is not the queried word itself but its base
            form or another spelling (``leaf`` for "leaves"); the filter then takes it for the queried word.
    """

    id: str
    pos: Pos
    lemmas: tuple[str, ...]
    glosses: tuple[Gloss, ...]
    lexfile: str | None = None
    domains: dict[str, float] = field(default_factory=dict, hash=False)
    type: SynsetType = "UNKNOWN"
    wordnet: str | None = None
    key_concept: bool = False
    found_as: str | None = field(default=None, compare=False)


class Inventory(Protocol):
    """A source of senses."""

    name: str
    version: str

    def synsets(self, lemma: str, pos: Sequence[Pos]) -> list[Synset]:
        """Return the synsets of a word (lower case, underscores or spaces) in the inventory's order of senses."""

    def related(self, first: Synset, second: Synset, edge: Edge) -> bool | None:
        """Return whether ``second`` is reached from ``first`` by ``edge``; None where the inventory does not know."""
