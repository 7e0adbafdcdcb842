"""DSBATS-sn and DSBATS4CL: word pairs become pairs of definitions, and these become rows for contrastive learning."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sembench.analogy.bats import WordPair
from sembench.analogy.columns import FRAME_COLUMNS, ROLES
from sembench.analogy.filters import Filter
from sembench.analogy.folds import with_folds
from sembench.analogy.inventory.base import Gloss, Inventory, Synset
from sembench.analogy.rules import AugmentOptions, BuildOptions, RelationRule, rule_of
from sembench.core.errors import SembenchError
from sembench.core.lazy import np, pd

# Order of resources, from the most to the least like a dictionary.
ORIGINS = ("WN", "OEWN", "WIKI", "WIKIDATA", "WIKT", "OMWIKI")
LABEL = re.compile(r"^\(([^()]*)\)\s*")
BRACKETS = re.compile(r"\s*\([^()]*\)")
DISAMBIGUATION = re.compile(r"\b(may|can) (also )?refer to\b", re.IGNORECASE)


@dataclass(frozen=True)
class Sentence:
    """A definition made a sentence; ``label`` is its leading bracket, such as "cricket"."""

    text: str
    label: str
    origin: str


@dataclass(frozen=True)
class Build:
    """DSBATS-sn with its sizes and the filter's report.

    Attributes:
        frame: a row per definition pair, columns ``FRAME_COLUMNS``.
        report: a row per relation, side, word and sense, with the reason for every rejection.
        sizes: index relation; columns name, word_pairs, found, kept, definition_pairs.
        not_found: words without any sense; columns relation, side, word.
        warnings: a sentence for every cluster below ``min_pairs``.
    """

    frame: pd.DataFrame
    report: pd.DataFrame
    sizes: pd.DataFrame
    not_found: pd.DataFrame
    warnings: tuple[str, ...]


# -------------------------------------------------------------------------------------------------- sentences


def as_sentence(gloss: Gloss, options: BuildOptions) -> Sentence | None:
    """Return a definition as a sentence, or None where it is too short or a list of meanings.

    The paper's sentences have a capital first letter and a full stop, which the definitions in WordNet have not.
    """
    text = " ".join(gloss.text.split())
    match = LABEL.match(text)
    label = match[1] if match else ""
    text = text[match.end() :] if match else text
    if options.strip_brackets:
        text = BRACKETS.sub("", text).strip()
    if len(text.split()) < options.min_words or DISAMBIGUATION.search(text):
        return None
    text = text[0].upper() + text[1:].rstrip(" ;,")
    return Sentence(text if text[-1] in ".!?" else f"{text}.", label, gloss.source)


def sentences(synset: Synset, options: BuildOptions) -> list[Sentence]:
    """Return the first ``options.glosses`` usable and different sentences of a sense, WordNet's before others."""
    order = {origin: place for place, origin in enumerate(ORIGINS)}
    glosses = sorted(synset.glosses, key=lambda gloss: order.get(gloss.source, len(order)))
    made = (as_sentence(gloss, options) for gloss in glosses)
    different = {sentence.text.lower(): sentence for sentence in reversed([s for s in made if s])}
    return list(reversed(different.values()))[: options.glosses]


def contains_head(sentence: str, word: str) -> bool:
    """Return whether a definition contains the word that it defines."""
    plain = re.escape(word.replace("_", " "))
    return re.search(rf"\b{plain}\b", sentence, re.IGNORECASE) is not None


# -------------------------------------------------------------------------------------------------- DSBATS-sn


def build_dsbats_sn(
    pairs: Sequence[WordPair],
    inventory: Inventory,
    rules: Mapping[str, RelationRule],
    options: BuildOptions | None = None,
) -> Build:
    """Make sentence pairs from word pairs (paper, section 3, figure 1a).

    Args:
        pairs: word pairs of BATS; those of relations that ``options`` does not list are left out.
        inventory: WordNet, BabelNet or a dump.
        rules: see ``sembench.analogy.rules.load_rules``.
        options: caps and switches.

    Raises:
        SembenchError: a relation has no rules or no definition pair at all, or fewer than ``min_pairs`` where
            ``below_min`` is ``error``.
    """
    options = options or BuildOptions()
    wanted = [pair for pair in pairs if pair.relation in options.relations]
    used = [pair for pair in wanted if not options.answers or pair.rank <= options.answers]
    check = Filter(rules, inventory, options)
    kept: Counter[str] = Counter()
    rows: dict[tuple[str, str, str], dict[str, object]] = {}
    for pair in used:
        made = list(_definition_pairs(pair, check))
        kept[pair.relation] += bool(made)
        for row in made:
            # Synonymous answers have the same definition; the first of them keeps it.
            rows.setdefault((pair.relation, str(row["source_gloss"]), str(row["target_gloss"])), row)
    frame = with_folds(pd.DataFrame(list(rows.values()), columns=FRAME_COLUMNS[:-1]), wanted)
    sizes = _sizes(used, check, frame, kept, options)
    return Build(frame, check.report(), sizes, _not_found(used, check), _small_clusters(sizes, options))


def _definition_pairs(pair: WordPair, check: Filter) -> Iterator[dict[str, object]]:
    name = check.rules[pair.relation].name
    for first, second in check.select(pair).pairs:
        for a, b in _sentence_pairs(first, second, check.options):
            values = (pair.relation, pair.source, pair.target, first.id, second.id, a.text, b.text, name)
            details = (a.origin, b.origin, a.label, b.label, pair.rank)
            heads = (contains_head(a.text, pair.source), contains_head(b.text, pair.target))
            yield dict(zip(FRAME_COLUMNS[:-1], (*values, *details, *heads), strict=True))


def _sentence_pairs(first: Synset, second: Synset, options: BuildOptions) -> Iterator[tuple[Sentence, Sentence]]:
    ones, others = sentences(first, options), sentences(second, options)
    for i, one in enumerate(ones):
        # Two definitions of one sense make one pair, not two that differ in direction.
        for other in others[i + 1 :] if first.id == second.id else others:
            if one.text.lower() != other.text.lower():
                yield one, other


def _sizes(
    used: Sequence[WordPair], check: Filter, frame: pd.DataFrame, kept: Counter[str], options: BuildOptions
) -> pd.DataFrame:
    pairs = Counter(pair.relation for pair in used)
    found: Counter[str] = Counter()
    for pair in used:
        found[pair.relation] += all(
            check.verdicts(pair.relation, i, w) for i, w in enumerate((pair.source, pair.target))
        )
    made = Counter(frame["relation"])
    rows = [
        (key, rule_of(check.rules, key).name, pairs[key], found[key], kept[key], made[key]) for key in options.relations
    ]
    columns = ["relation", "name", "word_pairs", "found", "kept", "definition_pairs"]
    return pd.DataFrame(rows, columns=columns).set_index("relation")


def _not_found(used: Sequence[WordPair], check: Filter) -> pd.DataFrame:
    asked = dict.fromkeys((p.relation, i, w) for p in used for i, w in enumerate((p.source, p.target)))
    rows = [(key, ("source", "target")[i], word) for key, i, word in asked if not check.verdicts(key, i, word)]
    return pd.DataFrame(rows, columns=["relation", "side", "word"])


def _small_clusters(sizes: pd.DataFrame, options: BuildOptions) -> tuple[str, ...]:
    warnings = []
    for key, pairs, found, size in sizes[["word_pairs", "found", "definition_pairs"]].itertuples(name=None):
        counts = f"{size} definition pairs from {pairs} word pairs"
        if not size:
            raise SembenchError(
                f"relation {key} is empty: {counts}, of which the inventory knows both words in {found}; "
                f"widen its rules in registry/relations.yaml, or leave {key} out of the relations"
            )
        if size < options.min_pairs:
            warnings.append(f"relation {key} has {counts}, fewer than the {options.min_pairs} asked for")
    if warnings and options.below_min == "error":
        raise SembenchError(f"{warnings[0]}; lower min_pairs, or leave the relation out")
    return tuple(warnings)


def definitions(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the different (word, gloss) of both sides of DSBATS-sn, what DefSent trains on."""
    sides = [frame[[side, f"{side}_gloss"]].set_axis(["word", "gloss"], axis=1) for side in ("source", "target")]
    found = pd.concat(sides, ignore_index=True).drop_duplicates(ignore_index=True)
    found["word"] = found["word"].str.replace("_", " ")
    return found


# -------------------------------------------------------------------------------------------------- DSBATS4CL


def build_dsbats4cl(
    frame: pd.DataFrame, rules: Mapping[str, RelationRule], options: AugmentOptions | None = None
) -> pd.DataFrame:
    """Make rows of three pairs: an anchor, a positive of the same relation, a third pair as negative (paper, table 5).

    Anchor and positive are different word pairs of a cluster in random order, so both ``A:B::C:D`` and ``C:D::A:B``
    occur; ``orientation`` adds or chooses ``B:A::D:C``. The exchange of the means, ``A:C::B:D``, is never used, since
    sentences joined by a relation do not admit it (Afantenos et al. 2022).

    The third pair is an exchanged one (paper, section 4): that of the anchor, of the positive, or of another word pair
    of the cluster (``third_from``). With difference vectors the anchor's own exchanged pair has the similarity -1
    whatever the weights and so teaches nothing, hence the default ``other``. A symmetric relation exchanged is the
    same relation; there the third pair comes from another relation unless ``symmetric`` says otherwise.

    Args:
        frame: of ``build_dsbats_sn``.
        rules: names, families and symmetry of the relations.
        options: seed, size and the choices above.

    Returns:
        A frame with ``relation``, ``orientation`` (forward or inverted) and, for each of anchor, positive and third:
        ``_source_gloss _target_gloss`` (as read, so exchanged already), ``_relation _relation_name _inverted``
        (exchanged against the data), ``_directed`` (equal labels: the pair is a positive, so a trainer masks third
        pairs of the batch whose label is the anchor's), ``_pair`` (the words), ``_row`` (position in ``frame``).

    Raises:
        SembenchError: a cluster has too few word pairs, or no other relation is there to take a third pair from.
    """
    options = options or AugmentOptions()
    maker = _RowMaker(frame, rules, options)
    keys = [key for key in dict.fromkeys(frame["relation"]) if options.symmetric != "skip" or not rules[key].symmetric]
    if not keys:
        raise SembenchError("no relation is left to make rows from; do not skip the symmetric ones")
    wanted = {key: min(options.rows, maker.possible(key)) for key in keys}
    if options.balance:
        wanted = dict.fromkeys(keys, min(wanted.values()))
    return pd.DataFrame([row for key in keys for row in maker.rows(key, wanted[key])])


class _RowMaker:
    def __init__(self, frame: pd.DataFrame, rules: Mapping[str, RelationRule], options: AugmentOptions) -> None:
        self.rules, self.options = rules, options
        self.table = frame.reset_index(drop=True)
        self.relations = self.table["relation"].tolist()
        self.words = (self.table["source"] + "|" + self.table["target"]).tolist()
        self.glosses = list(zip(self.table["source_gloss"], self.table["target_gloss"], strict=True))
        self.clusters = {str(key): rows.to_numpy() for key, rows in self.table.groupby("relation").groups.items()}

    def takes_other(self, key: str) -> bool:
        """Whether the third pair of a cluster comes from another relation."""
        return self.rules[key].symmetric and self.options.symmetric == "other_relation"

    def possible(self, key: str) -> int:
        """Return the number of different rows that a cluster gives.

        Raises:
            SembenchError: there is no relation to take third pairs from, or the cluster is too small for a row.
        """
        groups = np.array(list(Counter(self.words[row] for row in self.clusters[key]).values()), dtype=np.int64)
        n, squares = int(groups.sum()), int((groups**2).sum())
        if self.takes_other(key):
            count = (n * n - squares) * len(self.others(key))
        elif self.options.third_from == "other":
            # Ordered triples from three different groups, by inclusion and exclusion.
            count = n**3 - 3 * n * squares + 2 * int((groups**3).sum())
        else:
            count = n * n - squares
        if not count:
            raise SembenchError(f"relation {key} has too few word pairs ({len(groups)}) for a row of DSBATS4CL")
        return count

    def others(self, key: str) -> np.ndarray:
        """Return the rows (n,) of relations that are not of the cluster's family.

        Raises:
            SembenchError: there is no other relation.
        """
        label = self.rules[key].directed()
        families = {k for k, rule in self.rules.items() if label in (rule.directed(), rule.directed(True))}
        found = [rows for other, rows in self.clusters.items() if other not in families]
        if not found:
            raise SembenchError(f"relation {key} is symmetric and no other relation is there to take third pairs from")
        return np.concatenate(found)

    def rows(self, key: str, count: int) -> Iterator[dict[str, object]]:
        """Yield ``count`` different rows of a cluster; its random numbers depend on no other cluster."""
        generator = np.random.Generator(np.random.PCG64([self.options.seed, *key.encode()]))
        rows, others = self.clusters[key], self.others(key) if self.takes_other(key) else None
        seen: set[tuple[int, int, int]] = set()
        while len(seen) < count:
            drawn = self._draw(generator, rows, others)
            if drawn is not None and drawn not in seen:
                seen.add(drawn)
                inverted = self.options.orientation == "inverted" or (
                    self.options.orientation == "both" and len(seen) % 2 == 0
                )
                yield self._row(key, drawn, inverted)

    def _draw(
        self, generator: np.random.Generator, rows: np.ndarray, others: np.ndarray | None
    ) -> tuple[int, int, int] | None:
        anchor, positive, third = (int(row) for row in generator.choice(rows, size=3))
        if others is not None:
            third = int(generator.choice(others))
        elif self.options.third_from != "other":
            third = anchor if self.options.third_from == "anchor" else positive
        words = [self.words[anchor], self.words[positive]]
        if others is None and self.options.third_from == "other":
            words.append(self.words[third])
        return (anchor, positive, third) if len(set(words)) == len(words) else None

    def _row(self, key: str, drawn: tuple[int, int, int], inverted: bool) -> dict[str, object]:
        exchange = inverted if self.takes_other(key) else not inverted
        row: dict[str, object] = {"relation": key, "orientation": "inverted" if inverted else "forward"}
        for role, index, exchanged in zip(ROLES, drawn, (inverted, inverted, exchange), strict=True):
            rule, (first, second) = self.rules[self.relations[index]], self.glosses[index]
            row |= {
                f"{role}_source_gloss": second if exchanged else first,
                f"{role}_target_gloss": first if exchanged else second,
                f"{role}_relation": self.relations[index],
                f"{role}_relation_name": rule.exchanged_name if exchanged else rule.name,
                f"{role}_inverted": exchanged,
                f"{role}_directed": rule.directed(exchanged),
                f"{role}_pair": self.words[index],
                f"{role}_row": index,
            }
        return row
