"""Answers of BabelNet in JSON and the senses made of them, whether they come from the service or from a dump.

Shapes follow https://babelnet.org/guide and PyPI's babelnet 1.2.0. Keys that are not known are ignored, missing ones
get their defaults, and a value of another kind than documented is refused.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, NoReturn

from sembench.analogy.inventory.base import Edge, Gloss, Pos, Synset, SynsetType
from sembench.analogy.inventory.cache import AnswerCache, Params
from sembench.core.errors import SembenchError

Json = dict[str, Any]
LexfileOf = Callable[[str], str | None]

# ------------------------------------------------------------------------------------------------- requests


def spoken(lemma: str) -> str:
    """Return a lemma in lower case with single spaces, so that ``Hot_dog`` and ``hot dog`` are one request."""
    return " ".join(lemma.replace("_", " ").lower().split())


def ids_params(lemma: str, pos: Pos, source: str | None = None) -> Params:
    """Return the parameters of getSynsetIds for an English word, perhaps of one resource such as WN only."""
    params = {"lemma": spoken(lemma), "searchLang": "EN", "pos": pos}
    return params | {"source": source} if source else params


def synset_params(synset: str) -> Params:
    """Return the parameters of getSynset; English texts are enough."""
    return {"id": synset, "targetLang": "EN"}


def edges_params(synset: str) -> Params:
    """Return the parameters of getOutgoingEdges."""
    return {"id": synset}


def spelled_out(method: str, params: Params) -> str:
    """Return a request as it is named in errors."""
    shown = ((name, value if isinstance(value, str) else "+".join(value)) for name, value in params.items())
    return f"{method}({', '.join(f'{name}={value}' for name, value in shown)})"


# ------------------------------------------------------------------------------------------------- answers

POS: dict[str, Pos] = {"n": "NOUN", "v": "VERB", "a": "ADJ", "r": "ADV"}
REDIRECTS = frozenset({"WIKIRED"})
GLOSS_ORDER = {source: rank for rank, source in enumerate(("WN", "OEWN", "WIKI", "WIKIDATA", "WIKT", "OMWIKI"))}
# Names of older versions (PyPI babelnet 1.2.0) and what they are called since BabelNet 5.
RENAMED_DOMAINS = {
    "ANIMALS": "BIOLOGY",
    "BUSINESS_ECONOMICS_AND_FINANCE": "BUSINESS_INDUSTRY_AND_FINANCE",
    "CULTURE_AND_SOCIETY": "CULTURE_ANTHROPOLOGY_AND_SOCIETY",
    "EDUCATION": "EDUCATION_AND_SCIENCE",
    "ENGINEERING_AND_TECHNOLOGY": "CRAFT_ENGINEERING_AND_TECHNOLOGY",
    "ENVIRONMENT": "ENVIRONMENT_AND_METEOROLOGY",
    "FARMING": "FARMING_FISHING_AND_HUNTING",
    "FISHING_AND_HUNTING": "FARMING_FISHING_AND_HUNTING",
    "FOOD_AND_DRINK": "FOOD_DRINK_AND_TASTE",
    "GAMES_AND_VIDEO_GAMES": "SPORT_GAMES_AND_RECREATION",
    "GEOGRAPHY_AND_PLACES": "GEOGRAPHY_GEOLOGY_AND_PLACES",
    "GEOLOGY_AND_GEOPHYSICS": "GEOGRAPHY_GEOLOGY_AND_PLACES",
    "MATHEMATICS": "MATHEMATICS_AND_STATISTICS",
    "MEDIA": "MEDIA_AND_PRESS",
    "METEOROLOGY": "ENVIRONMENT_AND_METEOROLOGY",
    "MUSIC": "MUSIC_SOUND_AND_DANCING",
    "PHILOSOPHY_AND_PSYCHOLOGY": "PHILOSOPHY_PSYCHOLOGY_AND_BEHAVIOR",
    "POLITICS_AND_GOVERNMENT": "POLITICS_GOVERNMENT_AND_NOBILITY",
    "ROYALTY_AND_NOBILITY": "POLITICS_GOVERNMENT_AND_NOBILITY",
    "SPORT_AND_RECREATION": "SPORT_GAMES_AND_RECREATION",
    "TEXTILE_AND_CLOTHING": "TEXTILE_FASHION_AND_CLOTHING",
    "VISUAL": "VISION_AND_VISUAL",
    "WARFARE_AND_DEFENSE": "WARFARE_VIOLENCE_AND_DEFENSE",
}
SYMBOLS: dict[Edge, str] = {"antonym": "!", "similar": "&", "member": "%m", "part": "%p", "substance": "%s"}
_ID = re.compile(r"bn:\d{8}([nvar])")
_WORDNET = re.compile(r"wn:(\d{8}[nvar])")
_TRAILING_BRACKET = re.compile(r"\s*\([^()]*\)$")


class Pointer(NamedTuple):
    """One outgoing edge: WordNet's symbol, the group of relations, and the synset it leads to."""

    symbol: str
    group: str
    target: str


def _nonsense(what: str, problem: str) -> NoReturn:
    raise SembenchError(f"{what} has a shape that this program does not know: {problem}")


def _objects(body: Json, name: str, what: str) -> list[Json]:
    """Return a list of objects that may be missing."""
    value = body.get(name)
    value = [] if value is None else value
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        _nonsense(what, f"'{name}' is not a list of objects")
    return list(value)


def _text(body: Json, name: str, what: str, default: str = "") -> str:
    """Return a text that may be missing."""
    value = body.get(name)
    if value is None:
        return default
    if not isinstance(value, str):
        _nonsense(what, f"'{name}' is not a text")
    return value


def _as_list(body: Any, what: str) -> list[Json]:
    if not isinstance(body, list):
        _nonsense(what, "it is not a list")
    return _objects({"answer": body}, "answer", what)


def version_of(body: Any, what: str) -> str:
    """Return the version in an answer of getVersion in capitals, since it was written both ways.

    Raises:
        SembenchError: The answer makes no sense.
    """
    if not isinstance(body, dict) or not isinstance(body.get("version"), str):
        _nonsense(what, "'version' is not a text")
    return str(body["version"]).upper()


def stored_version(cache: AnswerCache) -> str:
    """Return the version of BabelNet that was stored with the answers, or ``unknown``."""
    answer = cache.get("getVersion", {})
    return version_of(answer.body, "the stored answer to getVersion()") if answer else "unknown"


def ids_of(body: Any, what: str) -> list[str]:
    """Return the ids in an answer of getSynsetIds.

    Raises:
        SembenchError: The answer makes no sense.
    """
    ids = [_text(item, "id", what) for item in _as_list(body, what)]
    for synset in ids:
        _pos_of(synset, what)
    return list(dict.fromkeys(ids))


def pointers_of(body: Any, what: str) -> list[Pointer]:
    """Return those edges in an answer of getOutgoingEdges that a graph test follows.

    Nearly all of the thousands around a common word only say "related", and some are guessed by a program.

    Raises:
        SembenchError: The answer makes no sense.
    """
    pointers = []
    for edge in _as_list(body, what):
        pointer = edge.get("pointer") or {}
        if not isinstance(pointer, dict):
            _nonsense(what, "'pointer' is not an object")
        symbol, group = _text(pointer, "fSymbol", what), _text(pointer, "relationGroup", what).upper()
        target = _text(edge, "target", what)
        followed = group == "HYPERNYM" or symbol in SYMBOLS.values()
        if followed and pointer.get("isAutomatic") is not True:
            pointers.append(Pointer(symbol, group, target))
    return pointers


def is_id(synset: str) -> bool:
    """Return whether a text is the id of a synset, such as ``bn:00015267n``."""
    return _ID.fullmatch(synset) is not None


def _pos_of(synset: str, what: str) -> Pos:
    match = _ID.fullmatch(synset)
    if not match:
        _nonsense(what, f"{synset[:40]!r} is not the id of a synset")
    return POS[match[1]]


def _lemmas_of(body: Json, what: str) -> tuple[str, ...]:
    lemmas = []
    for sense in _objects(body, "senses", what):
        # Fields moved under `properties` with BabelNet 5 (babelnetpy#8).
        facts = sense.get("properties", sense)
        if not isinstance(facts, dict):
            _nonsense(what, "'properties' is not an object")
        if _text(facts, "language", what, "EN") == "EN" and _text(facts, "source", what) not in REDIRECTS:
            lemma = _text(facts, "simpleLemma", what) or _text(facts, "fullLemma", what)
            lemmas.append(_TRAILING_BRACKET.sub("", spoken(lemma)))
    return tuple(dict.fromkeys(lemma for lemma in lemmas if lemma))


def _glosses_of(body: Json, what: str) -> tuple[Gloss, ...]:
    """Return English glosses by source; a text that two resources share counts for the first."""
    glosses = [
        Gloss(_text(item, "gloss", what).strip(), _text(item, "source", what))
        for item in _objects(body, "glosses", what)
        if _text(item, "language", what, "EN") == "EN"
    ]
    glosses.sort(key=lambda gloss: GLOSS_ORDER.get(gloss.source, len(GLOSS_ORDER)))
    first: dict[str, Gloss] = {}
    for gloss in glosses:
        first.setdefault(gloss.text, gloss)
    return tuple(gloss for gloss in first.values() if gloss.text)


def _domains_of(body: Json, what: str) -> dict[str, float]:
    domains: dict[str, float] = {}
    given = body.get("domains")
    if not isinstance(given, dict | None):
        _nonsense(what, "'domains' is not an object")
    for name, weight in (given or {}).items():
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not abs(weight) < 1e9:
            _nonsense(what, f"the weight of domain {name!r} is not a number")
        current = RENAMED_DOMAINS.get(name.upper(), name.upper())
        domains[current] = max(float(weight), domains.get(current, 0.0))
    return domains


def _wordnet_of(body: Json, what: str) -> str | None:
    """Return the offset in WordNet 3.0; the entry of Open English WordNet, which has other ones, often comes first."""
    for item in _objects(body, "wnOffsets", what):
        if _text(item, "version", what) == "WN_30" and (match := _WORDNET.fullmatch(_text(item, "id", what))):
            return match[1]
    return None


def _type_of(body: Json, what: str) -> SynsetType:
    given = _text(body, "synsetType", what).upper().replace(" ", "_")
    known: dict[str, SynsetType] = {"CONCEPT": "CONCEPT", "NAMED_ENTITY": "NAMED_ENTITY"}
    return known.get(given, "UNKNOWN")


def synset_of(synset: str, body: Any, lexfile_of: LexfileOf | None, what: str) -> Synset:
    """Return the sense in an answer of getSynset: unknown keys are ignored, missing ones get their defaults.

    Args:
        synset: its id, which the answer itself does not state.
        body: the answer.
        lexfile_of: gives the lexicographer file of an offset in WordNet 3.0 such as ``02444819n``.
        what: names the answer in errors.

    Raises:
        SembenchError: The answer makes no sense.
    """
    if not isinstance(body, dict):
        _nonsense(what, "it is not an object")
    wordnet = _wordnet_of(body, what)
    return Synset(
        id=synset,
        pos=_pos_of(synset, what),
        lemmas=_lemmas_of(body, what),
        glosses=_glosses_of(body, what),
        lexfile=lexfile_of(wordnet) if wordnet and lexfile_of else None,
        domains=_domains_of(body, what),
        type=_type_of(body, what),
        wordnet=wordnet,
        key_concept=body.get("bkeyConcepts") is True,
    )


def has_senses(body: Any) -> bool:
    """Return whether an answer of getSynset is one: every sense has words, in whatever language."""
    return isinstance(body, dict) and isinstance(body.get("senses"), list)


def check_shape(method: str, body: Any, what: str) -> None:
    """Check an answer before it is kept, since what is kept is never asked for again.

    Raises:
        SembenchError: The answer makes no sense.
    """
    match method:
        case "getVersion":
            version_of(body, what)
        case "getSynset":
            if not has_senses(body):
                _nonsense(what, "it is no object with 'senses'")
            synset_of("bn:00000000n", body, None, what)
        case "getSynsetIds" | "getSynsetIdsFromResourceID":
            ids_of(body, what)
        case "getOutgoingEdges":
            pointers_of(body, what)
        case _:
            _as_list(body, what)


# ------------------------------------------------------------------------------------------------- inventories


class BabelNetSenses(ABC):
    """What the inventory over the service's answers and the one over a dump share."""

    name = "babelnet"
    version: str

    @abstractmethod
    def _ids(self, lemma: str, pos: Pos) -> list[str]:
        """Return the ids of a word."""

    @abstractmethod
    def _synset(self, synset: str) -> Synset | None:
        """Return a sense, or None if it does not exist."""

    @abstractmethod
    def _pointers(self, synset: str) -> list[Pointer] | None:
        """Return the edges of a synset, or None if they are unknown."""

    def synsets(self, lemma: str, pos: Sequence[Pos]) -> list[Synset]:
        """Return the synsets of a word in the order of ``pos`` and then of BabelNet, which is not by frequency.

        Raises:
            SembenchError: The word was not fetched yet.
        """
        ids = dict.fromkeys(synset for one in pos for synset in self._ids(spoken(lemma), one))
        return [found for synset in ids if (found := self._synset(synset)) is not None]

    def related(self, first: Synset, second: Synset, edge: Edge) -> bool | None:
        """Return whether ``second`` is reached from ``first`` by ``edge``; None where too few edges are known.

        See `Edge` for directions. Edges that a program guessed do not count.
        """
        if edge == "ancestor":
            return self._climbs(first.id, second.id)
        if edge == "antonym":
            return self._opposes(first.id, second.id)
        if edge == "similar":
            return self._linked({first.id}, {second.id}, SYMBOLS[edge])
        pointers = self._pointers(first.id)
        return None if pointers is None else second.id in _targets(pointers, SYMBOLS[edge])

    def _climbs(self, low: str, high: str) -> bool | None:
        """Search upwards for a transitive hypernym; a gap in the known edges leaves the question open."""
        unknown, seen, ahead = False, {low}, [low]
        while ahead:
            pointers = self._pointers(ahead.pop())
            unknown |= pointers is None
            above = {pointer.target for pointer in pointers or [] if pointer.group == "HYPERNYM"} - seen
            if high in above:
                return True
            seen |= above
            ahead.extend(sorted(above))
        return None if unknown else False

    def _opposes(self, first: str, second: str) -> bool | None:
        near, far = self._with_similar(first), self._with_similar(second)
        return self._linked(near, far, SYMBOLS["antonym"])

    def _with_similar(self, synset: str) -> set[str]:
        return {synset} | _targets(self._pointers(synset) or [], SYMBOLS["similar"])

    def _linked(self, near: set[str], far: set[str], symbol: str) -> bool | None:
        """Return whether an edge leads from one side to the other, in either direction."""
        unknown = False
        for one, goals in [(one, far) for one in sorted(near)] + [(one, near) for one in sorted(far)]:
            pointers = self._pointers(one)
            unknown |= pointers is None
            if goals & _targets(pointers or [], symbol):
                return True
        return None if unknown else False


def _targets(pointers: Iterable[Pointer], symbol: str) -> set[str]:
    return {pointer.target for pointer in pointers if pointer.symbol == symbol}
