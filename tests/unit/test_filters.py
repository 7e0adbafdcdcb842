"""The filter on an invented inventory, the registry's rules, and the paper's worked example on real WordNet."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pytest

from sembench.analogy.bats import RELATION_IDS, SEMANTIC, WordPair, read_bats
from sembench.analogy.filters import Filter, judge_word, select_senses
from sembench.analogy.inventory.base import Edge, Gloss, Pos, Synset
from sembench.analogy.inventory.wordnet import WordNetInventory
from sembench.analogy.rules import BuildOptions, Choice, GraphTest, RelationRule, load_rules, rule_of
from sembench.core.errors import SembenchError
from tests.unit.filter_quality import coverage, quality, read_labels
from tests.unit.wordnet_database import real_inventory

ROOT = Path(__file__).parents[2]
RULES = load_rules(ROOT / "registry/relations.yaml")
LABELS = ROOT / "tests/fixtures/analogy/labelled_synsets.tsv"


class Invented:
    """An inventory of given synsets and edges; an edge (a, b) -> None means that it cannot tell."""

    name, version = "invented", "1"

    def __init__(self, *synsets: Synset, edges: dict[tuple[str, str], bool | None] | None = None) -> None:
        self.all, self.edges = synsets, edges or {}

    def synsets(self, lemma: str, pos: Sequence[Pos]) -> list[Synset]:
        plain = lemma.replace("_", " ")
        return [s for tag in pos for s in self.all if s.pos == tag and (plain in s.lemmas or "*" in s.lemmas)]

    def related(self, first: Synset, second: Synset, edge: Edge) -> bool | None:
        return self.edges.get((first.id, second.id), False)


def sense(key: str, lemma: str, lexfile: str | None = None, text: str = "one two three", **more) -> Synset:
    pos: Pos = {"noun": "NOUN", "verb": "VERB", "adj": "ADJ", "adv": "ADV", "": "NOUN"}[(lexfile or "").split(".")[0]]
    wordnet = None if lexfile is None else key
    return Synset(key, more.pop("pos", pos), (lemma,), (Gloss(text, "WN"),), lexfile, wordnet=wordnet, **more)


def reasons(word: str, side: list[Choice], *synsets: Synset, **options) -> dict[str, str]:
    verdicts = judge_word(word, side, Invented(*synsets), BuildOptions(**options))
    return {verdict.synset.id: verdict.reason for verdict in verdicts}


ANIMAL = Choice(lexfiles=["noun.animal"], domains=["BIOLOGY"], type="CONCEPT")


# ---------------------------------------------------------------------------------------------------------------------
# One side
# ---------------------------------------------------------------------------------------------------------------------


def test_every_rejected_sense_has_its_reason() -> None:
    found = reasons(
        "glim",
        [ANIMAL],
        sense("beast", "glim", "noun.animal"),
        sense("lamp", "glim", "noun.artifact"),
        sense("call", "glim", "verb.communication"),
        # A sense with a fitting lexicographer file stays, whatever its domain.
        sense("odd", "glim", "noun.animal", domains={"COMPUTING": 1.0}),
        sense("fauna", "glim", domains={"BIOLOGY": 0.5}),
        sense("zero", "glim", domains={"MATHEMATICS_AND_STATISTICS": 0.9}),
        sense("faint", "glim", domains={"BIOLOGY": 0.05}),
        sense("band", "glim", domains={"BIOLOGY": 0.5}, type="NAMED_ENTITY"),
        sense("redirect", "*", "noun.animal"),
    )
    assert found == {
        "beast": "",
        "odd": "",
        "fauna": "",
        "lamp": "lexfile noun.artifact",
        "call": "part of speech VERB",
        "zero": "domain MATHEMATICS_AND_STATISTICS",
        "faint": "neither lexfile nor domain",
        "band": "type NAMED_ENTITY",
        "redirect": "'glim' is no lemma",
    }


def test_a_base_form_counts_as_the_word() -> None:
    leaf = sense("leaf", "*", "noun.animal", found_as="leaf")
    assert reasons("leaves", [ANIMAL], leaf) == {"leaf": ""}


def test_definitions_may_be_asked_for_words() -> None:
    side = [Choice(lexfiles=["noun.location"], gloss=r"\bcapital\b")]
    town, hub = sense("town", "ombra", "noun.location"), sense("hub", "ombra", "noun.location", "the Capital of Velia")
    assert reasons("ombra", side, town, hub) == {"hub": "", "town": "definition without the words asked for"}


def test_choices_are_preferred_in_order_and_fallbacks_wait() -> None:
    side = [
        Choice(lexfiles=["noun.event"]),
        Choice(pos="VERB"),
        Choice(lexfiles=["noun.person"], words=["baby"]),
        Choice(pos="ADJ", fallback=True),
    ]
    verb, event = sense("verb", "hoot", "verb.communication"), sense("event", "hoot", "noun.event")
    person, adjective = sense("person", "hoot", "noun.person"), sense("adj", "hoot", "adj.all")
    found = reasons("hoot", side, verb, event, person, adjective)
    assert list(found)[:2] == ["event", "verb"]
    assert found["person"] == "admitted for other words only"
    assert found["adj"] == "an earlier choice fits"
    assert reasons("hoot", side, person, adjective)["adj"] == ""


def test_senses_of_wordnet_and_key_concepts_go_first() -> None:
    plain = sense("plain", "glim", domains={"BIOLOGY": 1.0})
    key = sense("key", "glim", domains={"BIOLOGY": 1.0}, key_concept=True)
    known = sense("known", "glim", "noun.animal")
    assert list(reasons("glim", [ANIMAL], plain, key, known)) == ["known", "key", "plain"]


def test_only_admitted_parts_of_speech_are_asked_for_when_requests_cost() -> None:
    verb = sense("verb", "glim", "verb.communication")
    assert reasons("glim", [ANIMAL], verb, every_pos=False) == {}


# ---------------------------------------------------------------------------------------------------------------------
# Both sides
# ---------------------------------------------------------------------------------------------------------------------


def select(rule: RelationRule, first: list[Synset], second: list[Synset], edges=None, **options):
    inventory, chosen = Invented(*first, *second, edges=edges), BuildOptions(**options)
    one = judge_word("one", rule.source, Invented(*first), chosen)
    two = judge_word("two", rule.target, Invented(*second), chosen)
    selection = select_senses(one, two, rule, inventory, chosen)
    return [(a.id, b.id) for a, b in selection.pairs], selection.dropped


def rule(**more) -> RelationRule:
    side = more.pop("side", (Choice(pos="NOUN"),))
    return RelationRule(name="one:two", source=side, target=side, **more)


A1, A2, A3 = (sense(f"a{i}", "one", "noun.animal", f"first sense number {i}") for i in (1, 2, 3))
B1, B2, B3 = (sense(f"b{i}", "two", "noun.artifact", f"second sense number {i}") for i in (1, 2, 3))


def test_senses_are_capped_on_each_side() -> None:
    pairs, dropped = select(rule(), [A1, A2, A3], [B1, B2], senses=2)
    assert pairs == [("a1", "b1"), ("a1", "b2"), ("a2", "b1"), ("a2", "b2")]
    assert dropped == ({"a3": "beyond 2 senses"}, {})
    assert len(select(rule(), [A1, A2, A3], [B1, B2], senses=0)[0]) == 6


def test_a_required_edge_finds_a_late_sense_and_rejects_without_one() -> None:
    strict = rule(graph=GraphTest(edge="ancestor", required=True))
    pairs, dropped = select(strict, [A1, A2, A3], [B1], {("a3", "b1"): True}, senses=1)
    assert pairs == [("a3", "b1")]
    assert set(dropped[0]) == {"a1", "a2"}
    assert select(strict, [A1], [B1])[0] == []
    assert select(strict, [A1], [B1], {("a1", "b1"): None})[0] == [("a1", "b1")]
    assert select(strict, [A1], [B1], graph=False)[0] == [("a1", "b1")]


def test_an_edge_may_start_at_the_target() -> None:
    turned = rule(graph=GraphTest(edge="ancestor", start="target", required=True))
    assert select(turned, [A1], [B1], {("b1", "a1"): True})[0] == [("a1", "b1")]
    assert select(turned, [A1], [B1], {("a1", "b1"): True})[0] == []


def test_a_preferred_edge_wins_but_is_not_needed() -> None:
    soft = rule(graph=GraphTest(edge="part"))
    assert select(soft, [A1, A2], [B1, B2], {("a2", "b2"): True})[0] == [("a2", "b2")]
    assert len(select(soft, [A1, A2], [B1, B2])[0]) == 4


def test_both_sides_share_what_the_rule_asks() -> None:
    woman, hen = sense("woman", "two", "noun.person"), sense("hen", "two", "noun.animal")
    assert select(rule(same="lexfile"), [A1], [woman, hen])[0] == [("a1", "hen")]
    any_pos = (Choice(pos="ADJ"), Choice(pos="VERB"), Choice(pos="NOUN"))
    adjective, verb, noun = (sense(k, "two", f"{k}") for k in ("adj.all", "verb.change", "noun.act"))
    verb1 = sense("v", "one", "verb.change")
    pairs, dropped = select(rule(same="pos", side=any_pos), [verb1, A1], [adjective, verb, noun])
    assert pairs == [("v", "verb.change")]
    assert dropped[1]["adj.all"] == "no sense of the same part of speech on the other side"
    assert dropped[1]["noun.act"] == "another part of speech fits both sides better"


def test_one_synset_on_both_sides_is_a_pair_only_with_two_definitions() -> None:
    both = Synset("s", "NOUN", ("one", "two"), (Gloss("a b c", "WN"),), "noun.act", wordnet="s")
    rich = Synset("s", "NOUN", ("one", "two"), (Gloss("a b c", "WN"), Gloss("d e f", "WIKI")), "noun.act", wordnet="s")
    assert select(rule(), [both, A1], [both, B1])[0] == [("s", "b1"), ("a1", "s"), ("a1", "b1")]
    assert select(rule(twins="exclusive"), [both, A1], [both, B1])[0] == []
    assert select(rule(twins="exclusive"), [rich, A1], [rich, B1])[0] == [("s", "s")]
    near = rule(twins="exclusive", graph=GraphTest(edge="similar"))
    assert select(near, [both, A1], [both, B1], {("a1", "b1"): True})[0] == [("a1", "b1")]


def test_the_report_names_every_sense_once() -> None:
    rules = {"E07": RelationRule(name="animal:sound", source=(ANIMAL,), target=(Choice(lexfiles=["noun.event"]),))}
    inventory = Invented(
        sense("beast", "glim", "noun.animal"),
        sense("lamp", "glim", "noun.artifact"),
        sense("hoot", "hoot", "noun.event"),
    )
    check = Filter(rules, inventory, BuildOptions())
    check.select(WordPair("E07", "glim", "silence", 1))
    assert check.report()["reason"].tolist() == ["no sense on the other side", "lexfile noun.artifact"]
    check.select(WordPair("E07", "glim", "hoot", 2))
    report = check.report()
    assert list(report.columns) == ["relation", "side", "word", "synset", "kept", "reason", "gloss"]
    assert report[["side", "word", "synset", "kept", "reason"]].values.tolist() == [
        ["source", "glim", "beast", 1, ""],
        ["source", "glim", "lamp", 0, "lexfile noun.artifact"],
        ["target", "hoot", "hoot", 1, ""],
    ]


# ---------------------------------------------------------------------------------------------------------------------
# The rules
# ---------------------------------------------------------------------------------------------------------------------


def test_the_registry_names_all_relations_and_rules_the_semantic_ones() -> None:
    assert tuple(RULES) == RELATION_IDS
    assert tuple(key for key in RULES if RULES[key].source) == SEMANTIC
    assert len({rule.name for rule in RULES.values()}) == 40
    # Named after the data: E01 is written capital -> country, L05 member -> group.
    assert (RULES["E01"].name, RULES["L05"].name) == ("capital:country", "member:group")
    assert RULES["E07"].exchanged_name == "sound:animal"


def test_directed_labels_tell_which_pairs_are_positives_of_each_other() -> None:
    label = {(key, turned): RULES[key].directed(turned) for key in SEMANTIC for turned in (False, True)}
    assert label["L02", True] == label["L03", False] == label["L01", True]
    assert label["L02", False] == label["L01", False] == label["L03", True]
    assert label["L08", False] == label["L08", True]
    assert label["L09", True] == label["L10", False]
    assert label["E07", False] != label["E07", True]
    # 40 labels but for: L08 one instead of two, L09 and L10 one instead of four, L01-L03 two instead of six.
    assert len(set(label.values())) == 40 - 1 - 3 - 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "E07: {name: 'animal:sound', grahp: {edge: part}}",
            r"relation 'E07': unknown key 'grahp'; did you mean 'graph'",
        ),
        ("E07: {name: 'animal:sound', source: [{lexfile: [noun.animal]}]}", "did you mean 'lexfiles'"),
        ("E07: {name: 'animal:sound', source: [{lexfiles: [noun.animals]}]}", "did you mean 'noun.animal'"),
        ("E07: {name: 'animal:sound', source: [{domains: [BIOLOGIE]}]}", "did you mean 'BIOLOGY'"),
        ("E07: {name: 'animal:sound', source: [{gloss: '('}]}", "not a regular expression"),
        ("E07: {name: 'animal:sound', source: [{}]}", "both sides or for none"),
        ("E77: {name: 'animal:sound'}", "relation 'E77' is not in BATS"),
    ],
)
def test_a_mistake_in_the_rules_is_explained(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "relations.yaml"
    path.write_text(text + "\n")
    with pytest.raises(SembenchError, match=message):
        load_rules(path)


def test_relations_without_rules_are_refused() -> None:
    with pytest.raises(SembenchError, match="I01 has no filter"):
        rule_of(RULES, "I01")
    with pytest.raises(SembenchError, match="'E70' is not in"):
        rule_of(RULES, "E70")


# ---------------------------------------------------------------------------------------------------------------------
# Quality
# ---------------------------------------------------------------------------------------------------------------------


def test_quality_by_hand() -> None:
    inventory = Invented(*(sense(f"s{i}", "glim", "noun.animal") for i in range(4)), sense("v", "glim", "verb.change"))
    columns = ["relation", "side", "word", "synset", "valid"]
    keys = [("E07", "source", "glim", key) for key in ("s0", "s1", "s2", "s3", "v")]
    labels = pd.DataFrame([(*key, valid) for key, valid in zip(keys, (0, 1, 1, 0, 0), strict=True)], columns=columns)
    report = pd.DataFrame([(*keys[1], 1), (*keys[3], 1), (*keys[2], 0)], columns=[*columns[:4], "kept"])
    found = quality(labels, report, inventory, {"E07": RULES["E07"]})
    assert found.loc["filter", ["tp", "fp", "fn", "tn"]].tolist() == [1, 1, 1, 2]
    assert found.loc["filter", ["precision", "recall", "f1"]].tolist() == [0.5, 0.5, 0.5]
    assert found.loc["first sense", ["tp", "fp", "fn", "tn"]].tolist() == [0, 1, 2, 2]
    assert found.loc["POS only", ["tp", "fp", "fn", "tn"]].tolist() == [2, 2, 0, 1]


def test_the_labels_cover_every_relation() -> None:
    labels = read_labels(LABELS)
    assert labels["relation"].value_counts().to_dict() == dict.fromkeys(SEMANTIC, 5)
    assert not labels.duplicated(["relation", "side", "word", "synset"]).any()


def test_broken_labels_name_their_line(tmp_path: Path) -> None:
    path = tmp_path / "labels.tsv"
    path.write_text("relation\tside\tword\tsynset\tvalid\nE07\tleft\tglim\twn:1\t1\n")
    with pytest.raises(SembenchError, match="line 2: side must be"):
        read_labels(path)


# ---------------------------------------------------------------------------------------------------------------------
# Real WordNet, real BATS
# ---------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wordnet() -> WordNetInventory:
    return real_inventory()


WORKED = [("bee", "buzz"), ("dog", "bark"), ("cat", "mew"), ("duck", "quack")]
# Bee, buzz, bark of a dog, mew, duck and quack: the sentences of the paper that are WordNet's.
SHOWN = {"wn:02206856n", "wn:07378234n", "wn:07376621n", "wn:07386614n", "wn:01846331n", "wn:07390762n"}
WRONG = {
    "wn:13595844n": "score in cricket",
    "wn:07646578n": "meat of a duck",
    "wn:03253071n": "cotton fabric",
    "wn:10497202n": "charlatan",
    "wn:13162297n": "bark of a tree",
    "wn:02793199n": "sailing ship",
}


def test_real_worked_example_of_the_paper(wordnet: WordNetInventory) -> None:
    check = Filter(RULES, wordnet, BuildOptions())
    for rank, (source, target) in enumerate(WORKED, start=1):
        assert check.select(WordPair("E07", source, target, rank)).pairs
    report = check.report().set_index("synset")
    assert report.loc[sorted(SHOWN), "kept"].tolist() == [1] * 6
    assert report.loc[sorted(WRONG), "kept"].tolist() == [0] * 6
    assert report.loc[sorted(WRONG), "reason"].str.startswith("lexfile").all()


def test_the_number_zero_of_the_worked_example_is_rejected() -> None:
    zero = sense("bn:zero", "duck", domains={"MATHEMATICS_AND_STATISTICS": 0.8}, type="CONCEPT")
    [verdict] = judge_word("duck", RULES["E07"].source, Invented(zero), BuildOptions())
    assert (verdict.kept, verdict.reason) == (False, "domain MATHEMATICS_AND_STATISTICS")


# Word pairs in BATS and those with both words in WordNet 3.0, counted by an independent reader of both.
IN_WORDNET = {
    "E01": (52, 52), "E02": (77, 73), "E03": (50, 24), "E04": (67, 62), "E05": (118, 99), "E06": (88, 85),
    "E07": (89, 84), "E08": (127, 122), "E09": (118, 118), "E10": (68, 63), "L01": (819, 809), "L02": (792, 792),
    "L03": (1472, 1416), "L04": (196, 196), "L05": (113, 112), "L06": (827, 807), "L07": (251, 241), "L08": (185, 182),
    "L09": (861, 857), "L10": (190, 185),
}  # fmt: skip
# Those kept by the lexicographer files alone. E06, E10, L07, L08 and L09 are counted before equal synsets are dropped.
KEPT = {
    "E01": 52, "E02": 71, "E03": 20, "E04": 62, "E05": 99, "E07": 82, "E08": 121, "E09": 116, "E10": 57, "L01": 802,
    "L02": 792, "L03": 1405, "L04": 178, "L05": 105, "L06": 804, "L10": 169,
}  # fmt: skip


@pytest.mark.realdata
def test_real_coverage(wordnet: WordNetInventory) -> None:
    found = coverage(read_bats(Path(os.environ["SEMBENCH_MIRROR"]) / "BATS_3.0"), wordnet, RULES)
    assert found["word_pairs"].to_dict() == {key: pairs for key, (pairs, _) in IN_WORDNET.items()}
    for key, (_, known) in IN_WORDNET.items():
        assert abs(found.loc[key, "found"] - known) <= 2, key
    for key, kept in KEPT.items():
        assert abs(found.loc[key, "kept"] - kept) <= 2, key


@pytest.mark.realdata
def test_real_filter_beats_both_baselines(wordnet: WordNetInventory) -> None:
    check = Filter(RULES, wordnet, BuildOptions())
    for pair in read_bats(Path(os.environ["SEMBENCH_MIRROR"]) / "BATS_3.0"):
        if pair.rank <= 5:
            check.select(pair)
    found = quality(read_labels(LABELS), check.report(), wordnet, RULES)
    assert found.loc["filter", "precision"] > max(0.7, found.loc["first sense", "precision"])
    assert found.loc["filter", "recall"] > 0.8
    assert found.loc["filter", "f1"] == found["f1"].max()
