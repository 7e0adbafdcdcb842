"""The filter: which senses of a word belong to a relation, with a reason for every sense that does not.

The paper's filter takes "information contained in BabelNet, like the domain category or the part of speech"; its rules
are lost. Here one function applies the rules of ``registry/relations.yaml`` to any inventory.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sembench.analogy.bats import WordPair
from sembench.analogy.inventory.base import Inventory, Pos, Synset
from sembench.analogy.rules import BuildOptions, Choice, GraphTest, RelationRule, rule_of
from sembench.core.lazy import pd

ALL_POS: tuple[Pos, ...] = ("NOUN", "VERB", "ADJ", "ADV")


@dataclass(frozen=True)
class Verdict:
    """A sense and what the rules of its side say: the index of the choice that admits it, or why none does."""

    synset: Synset
    tier: int | None
    reason: str = ""

    @property
    def kept(self) -> bool:
        """Whether some choice admits the sense."""
        return self.tier is not None


SynsetPair = tuple[Synset, Synset]


@dataclass
class Selection:
    """What remains of a word pair: sense pairs in order of preference, and why the other admitted senses fell out."""

    pairs: list[SynsetPair]
    dropped: tuple[dict[str, str], dict[str, str]] = field(default_factory=lambda: ({}, {}))

    def keep(self, pairs: list[SynsetPair], reason: str) -> None:
        """Narrow the pairs; senses that occur in none of them any more get the reason."""
        for side in (0, 1):
            left = {pair[side].id for pair in pairs}
            for pair in self.pairs:
                if pair[side].id not in left:
                    self.dropped[side].setdefault(pair[side].id, reason)
        self.pairs = pairs


# ------------------------------------------------------------------------------------------------- one side


def judge_word(word: str, side: Sequence[Choice], inventory: Inventory, options: BuildOptions) -> list[Verdict]:
    """Return a verdict for every sense of a word, admitted ones first and in order of preference.

    The order among senses of one choice: those in WordNet, then key concepts, then the inventory's own order.

    Args:
        word: as BATS writes it.
        side: the choices of the relation's side; earlier ones are preferred.
        inventory: gives the senses.
        options: ``every_pos``, ``domain_weight``.
    """
    tags = ALL_POS if options.every_pos else tuple(dict.fromkeys(choice.pos for choice in side))
    senses = {synset.id: synset for synset in inventory.synsets(word, tags)}
    verdicts = [_judge(word, synset, side, options) for synset in senses.values()]
    best = min((verdict.tier for verdict in verdicts if verdict.tier is not None), default=0)
    settled = [
        Verdict(v.synset, None, "an earlier choice fits")
        if v.tier is not None and v.tier > best and side[v.tier].fallback
        else v
        for v in verdicts
    ]
    return sorted(settled, key=_preference)


def _preference(verdict: Verdict) -> tuple[int, bool, bool]:
    tier = sys.maxsize if verdict.tier is None else verdict.tier
    return tier, verdict.synset.wordnet is None, not verdict.synset.key_concept


# A test returns why a choice does not admit a sense, or an empty string.
Test = Callable[[str, Synset, Choice, BuildOptions], str]


def _lemma(word: str, synset: Synset, _choice: Choice, _options: BuildOptions) -> str:
    # An inventory with redirects finds senses that do not have the word among their lemmas.
    plain = word.lower().replace("_", " ")
    return "" if synset.found_as or plain in synset.lemmas else f"'{plain}' is no lemma"


def _pos(_word: str, synset: Synset, choice: Choice, _options: BuildOptions) -> str:
    return "" if synset.pos == choice.pos else f"part of speech {synset.pos}"


def _field(_word: str, synset: Synset, choice: Choice, options: BuildOptions) -> str:
    # A sense with a lexicographer file is judged by it alone: domains are often empty, so they reject nothing there.
    if synset.lexfile is not None:
        return "" if not choice.lexfiles or synset.lexfile in choice.lexfiles else f"lexfile {synset.lexfile}"
    if choice.type and synset.type not in (choice.type, "UNKNOWN"):
        return f"type {synset.type}"
    heavy = [name for name, weight in synset.domains.items() if weight >= options.domain_weight]
    if not heavy:
        return "neither lexfile nor domain"
    return "" if not choice.domains or set(heavy) & set(choice.domains) else f"domain {' '.join(sorted(heavy))}"


def _gloss(_word: str, synset: Synset, choice: Choice, _options: BuildOptions) -> str:
    if choice.gloss is None or any(re.search(choice.gloss, gloss.text, re.IGNORECASE) for gloss in synset.glosses):
        return ""
    return "definition without the words asked for"


def _words(word: str, _synset: Synset, choice: Choice, _options: BuildOptions) -> str:
    return "" if not choice.words or word in choice.words else "admitted for other words only"


# In this order. A sense that no choice admits is reported with the reason of the choice that got furthest.
TESTS: tuple[Test, ...] = (_lemma, _pos, _field, _gloss, _words)


def _judge(word: str, synset: Synset, side: Sequence[Choice], options: BuildOptions) -> Verdict:
    furthest, reason = -1, "no choice"
    for tier, choice in enumerate(side):
        passed, failure = _first_failure(word, synset, choice, options)
        if not failure:
            return Verdict(synset, tier)
        if passed > furthest:
            furthest, reason = passed, failure
    return Verdict(synset, None, reason)


def _first_failure(word: str, synset: Synset, choice: Choice, options: BuildOptions) -> tuple[int, str]:
    for passed, test in enumerate(TESTS):
        if failure := test(word, synset, choice, options):
            return passed, failure
    return len(TESTS), ""


# ------------------------------------------------------------------------------------------------- both sides


def select_senses(
    source: Iterable[Verdict],
    target: Iterable[Verdict],
    rule: RelationRule,
    inventory: Inventory,
    options: BuildOptions,
) -> Selection:
    """Return the pairs of senses that the relation admits for one word pair.

    What the rule asks of both sides at once is applied here: the same part of speech or lexicographer file, two
    different sentences, the graph test, the preferred part of speech, and the cap on senses, in this order, so that the
    graph may find a sense that preference and cap alone would cut off.
    """
    kept = [[verdict for verdict in side if verdict.kept] for side in (source, target)]
    selection = Selection([(a.synset, b.synset) for a in kept[0] for b in kept[1]])
    _alike(selection, rule.same)
    shared = any(a.id == b.id for a, b in selection.pairs)
    apart = [(a, b) for a, b in selection.pairs if a.id != b.id or len({gloss.text for gloss in a.glosses}) > 1]
    selection.keep(apart, "the same synset on both sides")
    linked = _narrowed(selection, rule.graph if options.graph else None, inventory)
    if shared and not linked and rule.twins == "exclusive":
        selection.keep([(a, b) for a, b in selection.pairs if a.id == b.id], "the words share another synset")
    if rule.same == "pos":
        # The pairs are in order of preference, so the first one has the best part of speech that is left.
        best = [(a, b) for a, b in selection.pairs if a.pos == selection.pairs[0][0].pos]
        selection.keep(best, "another part of speech fits both sides better")
    selection.keep(_capped(selection.pairs, options.senses), f"beyond {options.senses} senses")
    return selection


def _alike(selection: Selection, same: str | None) -> None:
    if same == "lexfile":
        alike = [(a, b) for a, b in selection.pairs if a.lexfile == b.lexfile]
        selection.keep(alike, "no sense of the same lexfile on the other side")
    elif same == "pos":
        alike = [(a, b) for a, b in selection.pairs if a.pos == b.pos]
        selection.keep(alike, "no sense of the same part of speech on the other side")


def _narrowed(selection: Selection, test: GraphTest | None, inventory: Inventory) -> bool:
    """Narrow the pairs to those that the test's edge links; return whether there are any."""
    if test is None:
        return False
    known = [_linked(a, b, test, inventory) for a, b in selection.pairs]
    related = [pair for pair, link in zip(selection.pairs, known, strict=True) if link]
    # None: the inventory does not know, which is no reason to reject.
    unclear = [pair for pair, link in zip(selection.pairs, known, strict=True) if link is None]
    if related:
        selection.keep(related, f"graph: another sense has the edge '{test.edge}'")
    elif test.required:
        selection.keep(unclear, f"graph: no edge '{test.edge}'")
    return bool(related)


def _linked(a: Synset, b: Synset, test: GraphTest, inventory: Inventory) -> bool | None:
    return inventory.related(a, b, test.edge) if test.start == "source" else inventory.related(b, a, test.edge)


def _capped(pairs: list[SynsetPair], senses: int) -> list[SynsetPair]:
    if not senses:
        return pairs
    first, second = (list(dict.fromkeys(pair[side].id for pair in pairs))[:senses] for side in (0, 1))
    return [(a, b) for a, b in pairs if a.id in first and b.id in second]


# ------------------------------------------------------------------------------------------------- the filter


class Filter:
    """The rules of all relations over one inventory; remembers a verdict per relation, side and word."""

    def __init__(self, rules: Mapping[str, RelationRule], inventory: Inventory, options: BuildOptions) -> None:
        self.rules, self.inventory, self.options = rules, inventory, options
        self._verdicts: dict[tuple[str, int, str], list[Verdict]] = {}
        self._reasons: dict[tuple[str, int, str], dict[str, str]] = {}

    def verdicts(self, relation: str, side: int, word: str) -> list[Verdict]:
        """Return the verdicts on a word's senses; ``side`` is 0 for the source and 1 for the target."""
        key = (relation, side, word)
        if key not in self._verdicts:
            rule = rule_of(self.rules, relation)
            choices = rule.target if side else rule.source
            self._verdicts[key] = judge_word(word, choices, self.inventory, self.options)
        return self._verdicts[key]

    def select(self, pair: WordPair) -> Selection:
        """Return the sense pairs of a word pair, and keep for the report why each other sense was rejected."""
        rule = rule_of(self.rules, pair.relation)
        sides = [self.verdicts(pair.relation, side, word) for side, word in enumerate((pair.source, pair.target))]
        selection = select_senses(sides[0], sides[1], rule, self.inventory, self.options)
        for side, word in enumerate((pair.source, pair.target)):
            reasons = self._reasons.setdefault((pair.relation, side, word), {})
            for verdict in sides[side]:
                reason = verdict.reason or selection.dropped[side].get(verdict.synset.id, "")
                if not reason and not selection.pairs:
                    reason = "no sense on the other side"
                # A sense kept with one partner is kept, whatever happens with others.
                reasons[verdict.synset.id] = reason if reasons.get(verdict.synset.id, reason) else ""
        return selection

    def report(self) -> pd.DataFrame:
        """Return one row per relation, side, word and sense: kept or not, and the reason if not.

        Columns ``relation side word synset kept reason gloss``.
        """
        rows = [
            (
                relation,
                ("source", "target")[side],
                word,
                verdict.synset.id,
                int(not reasons[verdict.synset.id]),
                reasons[verdict.synset.id],
                verdict.synset.glosses[0].text if verdict.synset.glosses else "",
            )
            for (relation, side, word), reasons in self._reasons.items()
            for verdict in self._verdicts[relation, side, word]
        ]
        return pd.DataFrame(rows, columns=["relation", "side", "word", "synset", "kept", "reason", "gloss"])


def lookups(
    pairs: Iterable[WordPair], rules: Mapping[str, RelationRule], options: BuildOptions
) -> list[tuple[str, Pos]]:
    """Return the different (word, part of speech) that a build asks an inventory for, in the order of the pairs."""
    asked: dict[tuple[str, Pos], None] = {}
    for pair in pairs:
        if pair.relation in options.relations and (not options.answers or pair.rank <= options.answers):
            rule = rule_of(rules, pair.relation)
            for word, side in ((pair.source, rule.source), (pair.target, rule.target)):
                asked.update(dict.fromkeys((word, choice.pos) for choice in side))
    return list(asked)
