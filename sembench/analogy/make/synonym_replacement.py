"""Synonym replacement: a sentence beside itself with one word exchanged for a synonym (SimCSE, Table 1).

The paper used nlpaug, which draws a word, tags its part of speech, and draws from WordNet's lemmas for it. Here a word
can be drawn only if it has a synonym, and its senses of all parts of speech count; function words are left alone, since
WordNet knows "in" as an inch and "a" as a blood type.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from pydantic import Field

from sembench.analogy.inventory.base import Pos
from sembench.core.schema import Strict
from sembench.data.augment import Augmenter, Change
from sembench.data.wikitext.marks import words

if TYPE_CHECKING:
    from numpy.random import Generator

    from sembench.analogy.inventory.wordnet import WordNetInventory

# A word with the marks around it.
_PARTS = re.compile(r"([\W_]*)(.*?)([\W_]*)", re.DOTALL)
_FUNCTION_WORDS = words(
    "a about above after again against all also am among an and another any are as at be because been before being "
    "below beside besides between both but by can could did do does doing down during each either else even ever "
    "every few for from further had has have having he her here hers herself him himself his how i if in into is it "
    "its itself just less like many may me might mine more most much must my myself near neither no nor not now of "
    "off on once one only or other our ours ourselves out over own per same shall she should since so some still "
    "such than that the their theirs them themselves then there these they this those though through thus till to "
    "too under until up upon us very was we were what when where whether which while who whom whose why will with "
    "within without would yes yet you your yours yourself yourselves"
)


class SynonymReplacement(Augmenter):
    """Exchanges one word for a lemma of a synset that has both; capital first letters stay."""

    class Config(Strict):
        """Parameters."""

        seed: int = Field(0, ge=0)

    roles = ("sentences", "wordnet")

    @classmethod
    def change(cls, config: Config, inputs: Mapping[str, Path]) -> Change:
        """Return what exchanges one of the words that have a synonym, all as likely as another.

        Raises:
            SembenchError: the database of the role ``wordnet`` cannot be read.
        """
        from sembench.analogy.inventory.wordnet import WordNetInventory

        synonyms = Synonyms(WordNetInventory(inputs["wordnet"] / "corpora" / "wordnet"))

        def change(words: list[str], random: Generator) -> list[str]:
            known = [(place, found) for place, word in enumerate(words) if (found := synonyms.of(word))]
            if not known:
                return words
            place, found = known[int(random.integers(len(known)))]
            return [*words[:place], found[int(random.integers(len(found)))], *words[place + 1 :]]

        return change


class Synonyms:
    """Looks words up, each once."""

    def __init__(self, inventory: WordNetInventory) -> None:
        self.inventory = inventory
        self._lemmas = functools.cache(self._look_up)

    def of(self, word: str) -> list[str]:
        """Return what can take the word's place, marks around it included, in WordNet's order of senses."""
        match = _PARTS.fullmatch(word)
        before, core, behind = match.groups() if match else ("", "", "")
        if len(core) < 2 or not core.isalpha():
            return []
        lemmas = self._lemmas(core.lower())
        return [before + (lemma[0].upper() + lemma[1:] if core[0].isupper() else lemma) + behind for lemma in lemmas]

    def _look_up(self, word: str) -> list[str]:
        if word in _FUNCTION_WORDS:
            return []
        # A noun's base form is found as well; its synonyms would need the ending that it lost. Nor is "Paris" exchanged
        # for "city of light".
        found = self.inventory.synsets(word, get_args(Pos))
        senses = [sense for sense in found if word in sense.lemmas and sense.type != "NAMED_ENTITY"]
        return list(dict.fromkeys(lemma for sense in senses for lemma in sense.lemmas if lemma != word))


PLUGIN = SynonymReplacement
