"""Folds of word pairs: by hand, and what both data sets must agree on."""

from __future__ import annotations

import itertools
from collections import Counter

import pandas as pd

from sembench.analogy.bats import WordPair
from sembench.analogy.folds import FOLDS, pair_folds, pair_groups, with_folds

KEYS = ("E06", "E07", "L02", "L09")
TABLE = [
    (key, f"{key}s{number}", f"{key}t{number}x{answer}")
    for key, number, answer in itertools.product(KEYS, range(20), range(2))
]


def test_groups_join_sources_and_exchanged_pairs() -> None:
    groups = pair_groups([("hot", "cold"), ("hot", "icy"), ("cold", "hot"), ("cold", "warm"), ("wet", "dry")])
    assert len(set(groups.values())) == 2
    assert groups["hot", "icy"] == groups["cold", "warm"] == groups["cold", "hot"]
    assert groups["wet", "dry"] not in (groups["hot", "cold"],)


def test_folds_split_no_source_and_spread_each_relation() -> None:
    folds = pair_folds(TABLE, 5, 3)
    assert len({(source, folds[source, target]) for _, source, target in TABLE}) == len(KEYS) * 20
    for key in KEYS:
        counts = Counter(folds[s, t] for r, s, t in TABLE if r == key)
        assert set(counts.values()) == {8}
    assert folds == pair_folds(TABLE, 5, 3) == pair_folds(TABLE[::-1], 5, 3)
    assert folds != pair_folds(TABLE, 5, 4)


def test_a_word_pair_has_one_fold_whatever_its_definitions() -> None:
    pairs = [WordPair(*row, 1) for row in TABLE]
    columns = ["relation", "source", "target"]
    sn = pd.DataFrame(TABLE[::3], columns=columns)
    strange = [("E06", f"strange{number}", "word") for number in range(10)]
    other = pd.DataFrame([*TABLE[::-2], *strange], columns=columns)
    folds = [dict(zip(frame["source"], with_folds(frame, pairs)["fold"], strict=True)) for frame in (sn, other)]
    shared = folds[0].keys() & folds[1].keys()
    assert shared
    assert all(folds[0][source] == folds[1][source] for source in shared)
    # What BATS does not have is spread over the folds, since a classifier must be trained on some of it.
    assert Counter(folds[1][source] for _, source, _ in strange) == dict.fromkeys(range(FOLDS), 2)


def test_an_exchanged_pair_has_the_fold_of_the_pair() -> None:
    pairs = [WordPair("L08", f"s{number}", f"t{number}", 1) for number in range(10)]
    turned = pd.DataFrame([(p.relation, p.target, p.source) for p in pairs], columns=["relation", "source", "target"])
    straight = pd.DataFrame([(p.relation, p.source, p.target) for p in pairs], columns=["relation", "source", "target"])
    assert with_folds(turned, pairs)["fold"].tolist() == with_folds(straight, pairs)["fold"].tolist()
