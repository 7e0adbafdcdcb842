"""DSBATS-sn and DSBATS4CL on invented senses; the mini-BATS and real BATS through real WordNet where it is at hand."""

from __future__ import annotations

import itertools
import os
import time
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from sembench.analogy.bats import SEMANTIC, WordPair, read_bats, read_corrections
from sembench.analogy.dsbats import (
    FRAME_COLUMNS,
    Build,
    as_sentence,
    build_dsbats4cl,
    build_dsbats_sn,
    contains_head,
    sentences,
)
from sembench.analogy.filters import Filter
from sembench.analogy.inventory.base import Gloss, Synset
from sembench.analogy.inventory.wordnet import WordNetInventory
from sembench.analogy.rules import AugmentOptions, BuildOptions, Choice, RelationRule, load_rules
from sembench.core.errors import SembenchError
from tests.unit.test_filters import Invented
from tests.unit.wordnet_database import real_inventory

ROOT = Path(__file__).parents[2]
MINI = ROOT / "tests/fixtures/analogy/mini_bats"
REGISTRY = load_rules(ROOT / "registry/relations.yaml")
NOUN = (Choice(pos="NOUN"),)
RULES = {
    "E07": RelationRule(name="animal:sound", source=NOUN, target=NOUN),
    "L02": RelationRule(name="thing:hypernym", family="hyponym", source=NOUN, target=NOUN),
    "L03": RelationRule(name="thing:hyponym", family="hyponym", inverted=True, source=NOUN, target=NOUN),
    "L09": RelationRule(name="word:antonym", family="antonym", symmetric=True, source=NOUN, target=NOUN),
    "L10": RelationRule(name="word:opposite", family="antonym", symmetric=True, source=NOUN, target=NOUN),
}


def synset(key: str, word: str, *texts: str, source: str = "WN") -> Synset:
    return Synset(key, "NOUN", (word,), tuple(Gloss(text, source) for text in texts), "noun.act", wordnet=key)


def build(pairs: list[WordPair], *synsets: Synset, **options) -> Build:
    options = {"relations": ("E07",), "min_pairs": 1, **options}
    return build_dsbats_sn(pairs, Invented(*synsets), RULES, BuildOptions(**options))


GLIM = synset("g", "glim", "a small beast of the marsh")
HOOT = synset("h", "hoot", "the call of a glim")


# ---------------------------------------------------------------------------------------------------------------------
# Sentences
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "sentence", "label"),
    [
        ("the call of a glim", "The call of a glim.", ""),
        ("  the  call\tof a glim. ", "The call of a glim.", ""),
        ("(sailing) a lamp at the bow;", "A lamp at the bow.", "sailing"),
        ("the call of a glim (or any like it)", "The call of a glim (or any like it).", ""),
        ("who calls like that?", "Who calls like that?", ""),
    ],
)
def test_a_definition_becomes_a_sentence(text: str, sentence: str, label: str) -> None:
    made = as_sentence(Gloss(text, "WN"), BuildOptions())
    assert made is not None
    assert (made.text, made.label, made.origin) == (sentence, label, "WN")


def test_brackets_go_when_asked() -> None:
    made = as_sentence(Gloss("the call (loud) of a glim (or any like it)", "WN"), BuildOptions(strip_brackets=True))
    assert made is not None
    assert made.text == "The call of a glim."


@pytest.mark.parametrize("text", ["a call", "(sailing) a lamp", "Glim may refer to many things", "", "(all of it)"])
def test_short_texts_and_lists_of_meanings_are_dropped(text: str) -> None:
    assert as_sentence(Gloss(text, "WN"), BuildOptions()) is None


def test_a_sense_gives_few_different_sentences_best_resource_first() -> None:
    glosses = [("a b c", "WIKT"), ("A B C.", "WIKI"), ("d e f", "OMWIKI"), ("g h i", "WN"), ("j k l", "OTHER")]
    rich = Synset("s", "NOUN", ("s",), tuple(Gloss(*gloss) for gloss in glosses))
    assert [(s.text, s.origin) for s in sentences(rich, BuildOptions())] == [
        ("G h i.", "WN"),
        ("A B C.", "WIKI"),
        ("D e f.", "OMWIKI"),
    ]


def test_a_definition_with_its_own_word_is_seen() -> None:
    assert contains_head("The bark of a dog.", "bark")
    assert contains_head("A hot dog stand.", "hot_dog")
    assert not contains_head("A barking dog.", "bark")


# ---------------------------------------------------------------------------------------------------------------------
# DSBATS-sn
# ---------------------------------------------------------------------------------------------------------------------


def test_a_row_holds_the_pair_and_its_dictionaries() -> None:
    made = build([WordPair("E07", "glim", "hoot", 2)], GLIM, HOOT)
    assert list(made.frame.columns) == FRAME_COLUMNS
    [row] = made.frame.to_dict("records")
    assert row == {
        "relation": "E07",
        "source": "glim",
        "target": "hoot",
        "source_synset": "g",
        "target_synset": "h",
        "source_gloss": "A small beast of the marsh.",
        "target_gloss": "The call of a glim.",
        "relation_name": "animal:sound",
        "source_gloss_origin": "WN",
        "target_gloss_origin": "WN",
        "source_label": "",
        "target_label": "",
        "answer_rank": 2,
        "source_contains_head": False,
        "target_contains_head": False,
        "fold": 0,
    }


def test_caps_on_answers_senses_and_glosses() -> None:
    beasts = [synset(f"g{i}", "glim", f"beast number {i} here") for i in range(3)]
    calls = [synset(f"h{i}", f"hoot{i}", f"call number {i} here", f"other call {i} here") for i in range(4)]
    pairs = [WordPair("E07", "glim", f"hoot{i}", i + 1) for i in range(4)]
    assert len(build(pairs, *beasts, *calls).frame) == 4 * 2 * 2
    assert len(build(pairs, *beasts, *calls, answers=2, senses=1, glosses=1).frame) == 2
    assert len(build(pairs, *beasts, *calls, answers=0, senses=0).frame) == 4 * 3 * 2


def test_equal_pairs_and_equal_sides_appear_once_or_never() -> None:
    hoots = [synset("h", "hoot", "the call of a glim"), synset("h", "howl", "the call of a glim")]
    same = synset("x", "echo", "A small beast of the marsh.")
    pairs = [WordPair("E07", "glim", word, rank) for rank, word in enumerate(("hoot", "howl", "echo"), start=1)]
    made = build(pairs, GLIM, *hoots, same)
    assert made.frame[["target"]].values.tolist() == [["hoot"]]
    assert made.sizes.loc["E07", ["word_pairs", "found", "kept", "definition_pairs"]].tolist() == [3, 3, 2, 1]


def test_two_definitions_of_one_sense_make_one_pair() -> None:
    both = Synset(
        "s", "NOUN", ("glim", "hoot"), (Gloss("a b c", "WN"), Gloss("d e f", "WIKI")), "noun.act", wordnet="s"
    )
    made = build([WordPair("E07", "glim", "hoot", 1)], both)
    assert made.frame[["source_gloss", "target_gloss"]].values.tolist() == [["A b c.", "D e f."]]


def test_words_without_senses_are_counted_not_fatal() -> None:
    made = build([WordPair("E07", "glim", "hoot", 1), WordPair("E07", "glim", "hooot", 2)], GLIM, HOOT)
    assert made.not_found.values.tolist() == [["E07", "target", "hooot"]]


def test_small_and_empty_clusters() -> None:
    pairs = [WordPair("E07", "glim", "hoot", 1)]
    message = build(pairs, GLIM, HOOT, min_pairs=2).warnings
    assert message == ("relation E07 has 1 definition pairs from 1 word pairs, fewer than the 2 asked for",)
    with pytest.raises(SembenchError, match="fewer than the 2 asked for; lower min_pairs"):
        build(pairs, GLIM, HOOT, min_pairs=2, below_min="error")
    with pytest.raises(SembenchError, match=r"E07 is empty: 0 .* from 1 word pairs, .* both words in 0; widen"):
        build(pairs, GLIM)
    with pytest.raises(SembenchError, match="relation 'E08' is not in"):
        build(pairs, GLIM, HOOT, relations=("E07", "E08"))


# ---------------------------------------------------------------------------------------------------------------------
# DSBATS4CL
# ---------------------------------------------------------------------------------------------------------------------


def frame(**sizes: int) -> pd.DataFrame:
    """Clusters of word pairs; the first of each has two definition pairs."""
    rows = [
        (key, f"{key}s{i}", f"{key}t{i}", f"{key} source {i} {j}.", f"{key} target {i} {j}.")
        for key, size in sizes.items()
        for i in range(size)
        for j in range(2 if i == 0 else 1)
    ]
    return pd.DataFrame(rows, columns=["relation", "source", "target", "source_gloss", "target_gloss"])


def rows(table: pd.DataFrame, **options) -> pd.DataFrame:
    return build_dsbats4cl(table, RULES, AugmentOptions(**options))


def test_a_row_has_the_shape_of_table_5() -> None:
    made = rows(frame(E07=4))
    first = made.iloc[0]
    names = [first[f"{role}_relation_name"] for role in ("anchor", "positive", "third")]
    assert names == ["animal:sound", "animal:sound", "sound:animal"]
    assert first["third_source_gloss"].startswith("E07 target")
    assert first["third_target_gloss"].startswith("E07 source")
    assert (first["anchor_inverted"], first["third_inverted"]) == (False, True)
    assert first["third_directed"] == "animal:sound^-1"


@pytest.mark.parametrize("third", ["other", "anchor", "positive"])
def test_all_possible_rows_and_no_others_are_drawn(third: str) -> None:
    table = frame(E07=4)
    words = (table["source"] + table["target"]).tolist()
    expected = {
        (a, p, t)
        for a, p, t in itertools.product(range(len(table)), repeat=3)
        if words[a] != words[p]
        and {"other": words[t] not in (words[a], words[p]), "anchor": t == a, "positive": t == p}[third]
    }
    made = rows(table, third_from=third)
    drawn = list(zip(made["anchor_row"], made["positive_row"], made["third_row"], strict=True))
    assert len(drawn) == len(set(drawn))
    assert set(drawn) == expected


def test_rows_are_capped_and_balanced() -> None:
    table = frame(E07=9, L02=3)
    assert rows(table, rows=100)["relation"].value_counts().to_dict() == {"E07": 12, "L02": 12}
    assert rows(table, rows=100, balance=False)["relation"].value_counts().to_dict() == {"E07": 100, "L02": 12}
    assert rows(table, rows=5)["relation"].value_counts().to_dict() == {"E07": 5, "L02": 5}


def test_rows_depend_on_the_seed_alone() -> None:
    table = frame(E07=6, L02=6)
    pd.testing.assert_frame_equal(rows(table, rows=30), rows(table, rows=30))
    assert not rows(table, rows=30).equals(rows(table, rows=30, seed=1))
    # A cluster's rows stay when another cluster joins.
    alone = rows(frame(L02=6), rows=30).drop(columns=[f"{role}_row" for role in ("anchor", "positive", "third")])
    joined = rows(table, rows=30).query("relation == 'L02'")[alone.columns].reset_index(drop=True)
    pd.testing.assert_frame_equal(alone, joined)


def test_inverted_rows_turn_all_three_pairs() -> None:
    made = rows(frame(E07=5), orientation="both", rows=20)
    assert made["orientation"].value_counts().to_dict() == {"forward": 10, "inverted": 10}
    turned = made[made["orientation"] == "inverted"].iloc[0]
    names = [turned[f"{role}_relation_name"] for role in ("anchor", "positive", "third")]
    assert names == ["sound:animal", "sound:animal", "animal:sound"]
    assert turned["anchor_source_gloss"].startswith("E07 target")
    assert (made["third_directed"] != made["anchor_directed"]).all()
    assert set(rows(frame(E07=5), orientation="inverted", rows=9)["orientation"]) == {"inverted"}


def test_symmetric_relations_take_the_third_pair_from_elsewhere() -> None:
    made = rows(frame(E07=4, L09=4, L10=4), rows=60)
    opposites = made[made["relation"] == "L09"]
    # L10 is of the same family, so its pairs would be false negatives.
    assert set(opposites["third_relation"]) == {"E07"}
    assert not opposites["third_inverted"].any()
    assert (made["third_directed"] != made["anchor_directed"]).all()


def test_symmetric_relations_may_be_faithful_or_skipped() -> None:
    table = frame(E07=4, L09=4)
    faithful = rows(table, symmetric="faithful").query("relation == 'L09'")
    assert faithful["third_inverted"].all()
    # The bookkeeping shows that faithful negatives are positives.
    assert (faithful["third_directed"] == faithful["anchor_directed"]).all()
    assert set(rows(table, symmetric="skip")["relation"]) == {"E07"}
    with pytest.raises(SembenchError, match="no other relation"):
        rows(frame(L09=4, L10=4))
    with pytest.raises(SembenchError, match="no relation is left"):
        rows(frame(L09=4), symmetric="skip")


def test_labels_unmask_hypernyms_exchanged() -> None:
    made = rows(frame(L02=4, L03=4))
    third = made.groupby("relation")["third_directed"].first()
    anchor = made.groupby("relation")["anchor_directed"].first()
    assert third["L02"] == anchor["L03"]
    assert third["L03"] == anchor["L02"]


def test_a_cluster_without_enough_word_pairs_is_an_error() -> None:
    with pytest.raises(SembenchError, match=r"E07 has too few word pairs \(2\)"):
        rows(frame(E07=2))
    assert len(rows(frame(E07=2), third_from="anchor")) == 4


# ---------------------------------------------------------------------------------------------------------------------
# Real WordNet, real BATS
# ---------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wordnet() -> WordNetInventory:
    return real_inventory()


def test_real_mini_bats_fills_every_cluster(wordnet: WordNetInventory) -> None:
    made = build_dsbats_sn(read_bats(MINI), wordnet, REGISTRY)
    assert made.warnings == ()
    assert made.sizes.index.tolist() == list(SEMANTIC)
    assert made.sizes["definition_pairs"].min() >= BuildOptions().min_pairs
    assert "henhuose" in made.not_found["word"].tolist()
    again = build_dsbats_sn(read_bats(MINI), wordnet, REGISTRY)
    pd.testing.assert_frame_equal(made.frame, again.frame)
    table = build_dsbats4cl(made.frame, REGISTRY, AugmentOptions(rows=100))
    assert set(table["relation"].value_counts()) == {100}
    assert (table["third_directed"] != table["anchor_directed"]).all()


@pytest.mark.realdata
def test_real_bats_gives_twenty_clusters(wordnet: WordNetInventory) -> None:
    start = time.process_time()
    corrections = read_corrections(ROOT / "registry/corrections.tsv")
    pairs = read_bats(Path(os.environ["SEMBENCH_MIRROR"]) / "BATS_3.0", SEMANTIC, corrections)
    made = build_dsbats_sn(pairs, wordnet, REGISTRY)
    table = build_dsbats4cl(made.frame, REGISTRY)
    assert time.process_time() - start < 30
    assert len(made.sizes) == 20
    assert made.sizes["definition_pairs"].min() >= 20
    assert set(table["relation"].value_counts()) == {2000}
    shown = set(made.frame["source_gloss"]) | set(made.frame["target_gloss"])
    assert {"Sound of rapid vibration.", "The sound made by a dog.", "The harsh sound of a duck."} <= shown
    assert not made.frame.duplicated(["relation", "source_gloss", "target_gloss"]).any()
    assert (made.frame["source_gloss"] != made.frame["target_gloss"]).all()


@pytest.mark.realdata
def test_real_sizes_without_the_graph(wordnet: WordNetInventory) -> None:
    # Counted by an independent program with at most 2 senses and 5 answers, for clusters whose rules are the same.
    expected = {
        "E02": 89,
        "E05": 162,
        "E07": 154,
        "E08": 197,
        "L02": 468,
        "L03": 583,
        "L04": 335,
        "L06": 518,
        "L09": 625,
    }
    check, made = Filter(REGISTRY, wordnet, BuildOptions(graph=False)), set()
    for pair in read_bats(Path(os.environ["SEMBENCH_MIRROR"]) / "BATS_3.0", expected):
        if pair.rank <= 5:
            made |= {(pair.relation, first.id, second.id) for first, second in check.select(pair).pairs}
    sizes = Counter(key for key, _, _ in made)
    assert all(abs(sizes[key] - size) <= 1 for key, size in expected.items()), sizes
