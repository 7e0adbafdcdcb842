"""SRSD and analogy choice: how items are drawn, the classifier against scikit-learn, intervals worked out by hand."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from sembench.analogy.bats import WordPair
from sembench.analogy.folds import HELD_OUT, with_folds
from sembench.analogy.rules import RelationRule, load_rules
from sembench.core.errors import SembenchError
from sembench.core.plugin import PROTOCOLS
from sembench.evaluation.features import relation_features
from sembench.evaluation.intervals import bootstrap_interval
from sembench.evaluation.protocol import Prediction, Score, Source
from sembench.evaluation.srsd.classifier import cross_predict, fit_logistic
from sembench.evaluation.srsd.items import SPLITS, make_items, seen_in_training
from sembench.evaluation.srsd.questions import analogy_choice, make_questions, question_sentences

ROOT = Path(__file__).parents[2]
RULES = load_rules(ROOT / "registry/relations.yaml")
KEYS = ("E06", "E07", "L02", "L03", "L08", "L09", "L10")


def invented(keys: Sequence[str] = KEYS, sources: int = 20) -> pd.DataFrame:
    """Pairs of invented definitions: each source has two answers, the first with two definitions."""
    rows = []
    for key, number in itertools.product(keys, range(sources)):
        source = f"{key}s{number}"
        for answer, definitions in ((0, 2), (1, 1)):
            target = f"{key}t{number}x{answer}"
            rows += [
                (key, source, target, f"{key} source {number}", f"{key} target {number} {answer} {d}", "own")
                for d in range(definitions)
            ]
    frame = pd.DataFrame(rows, columns=["relation", "source", "target", "source_gloss", "target_gloss", "origin"])
    return with_folds(frame, [WordPair(*row, 1) for row in frame[["relation", "source", "target"]].to_numpy()])


FRAME = invented()
ITEMS = make_items(FRAME, RULES, 40)


# ------------------------------------------------------------------------------------------------------- items


def test_both_pairs_of_an_item_are_of_its_fold() -> None:
    of_source = dict(zip(FRAME["source"], FRAME["fold"], strict=True))
    for row in ITEMS.itertuples():
        assert {of_source[pair.split("|")[0]] for pair in (row.first_pair, row.second_pair)} == {row.leak_free}


def test_half_of_everything_has_the_same_relation() -> None:
    assert ITEMS["label"].mean() == 0.5
    assert ITEMS.groupby("subset")["label"].mean().tolist() == [0.5, 0.5]
    negatives = ITEMS[ITEMS["label"] == 0]
    assert len(negatives) == 40 * len(KEYS)
    assert negatives["exchanged"].mean() == 0.5
    assert (negatives["exchanged"] == (negatives["subset"] == "exchanged")).all()
    assert not ITEMS.loc[ITEMS["label"] == 1, "exchanged"].any()
    assert Counter(ITEMS.loc[ITEMS["label"] == 1, "relation"]) == dict.fromkeys(KEYS, 40)


def test_symmetric_relations_give_no_exchanged_pair() -> None:
    exchanged = ITEMS[ITEMS["exchanged"]]
    assert set(exchanged["relation"]) == {"E06", "E07", "L02", "L03"}
    only = make_items(invented(("L08", "L10")), RULES, 40)
    assert not only["exchanged"].any()
    assert set(only["subset"]) == {"other_relation"}


def test_two_relations_of_one_family_make_no_item() -> None:
    other = ITEMS[(ITEMS["label"] == 0) & ~ITEMS["exchanged"]]
    assert (other["relation"] != other["other_relation"]).all()
    pairs = set(zip(other["relation"], other["other_relation"], strict=True))
    assert not pairs & {("L02", "L03"), ("L03", "L02"), ("L09", "L10"), ("L10", "L09")}
    same = ITEMS[(ITEMS["label"] == 1) | ITEMS["exchanged"]]
    assert (same["relation"] == same["other_relation"]).all()


def test_sentences_stand_as_the_labels_say() -> None:
    """Sides by the invented sentences: which of the two pairs stands the other way round."""
    turned = [ITEMS[column].str.contains("target") for column in ("sentence_1", "sentence_3")]
    assert ((turned[0] != turned[1]) == ITEMS["exchanged"]).all()
    for first, second in (("sentence_1", "sentence_2"), ("sentence_3", "sentence_4")):
        assert (ITEMS[first].str.contains("target") != ITEMS[second].str.contains("target")).all()
    # No label may be read off the direction of one pair.
    for side, label in itertools.product(turned, (0, 1)):
        assert 0.4 < side[ITEMS["label"] == label].mean() < 0.6
    forward = make_items(FRAME, RULES, 40, "forward")
    assert not forward["sentence_1"].str.contains("target").any()
    assert (forward["sentence_3"].str.contains("target") == forward["exchanged"]).all()


def test_pairs_of_an_item_share_nothing_and_no_item_is_twice() -> None:
    for row in ITEMS.itertuples():
        assert not set(row.first_pair.split("|")) & set(row.second_pair.split("|"))
        assert len({row.sentence_1, row.sentence_2, row.sentence_3, row.sentence_4}) == 4
    keys = [
        (row.label, frozenset([row.sentence_1, row.sentence_2]), frozenset([row.sentence_3, row.sentence_4]))
        for row in ITEMS.itertuples()
    ]
    assert len(set(keys)) == len(keys)


def test_items_depend_on_the_seed_alone() -> None:
    pd.testing.assert_frame_equal(ITEMS, make_items(FRAME, RULES, 40))
    assert not ITEMS.equals(make_items(FRAME, RULES, 40, seed=1))


def test_the_leak_free_split_has_no_word_pair_on_both_sides_and_the_other_has() -> None:
    for place in range(5):
        sides = [ITEMS[ITEMS["leak_free"] == place], ITEMS[ITEMS["leak_free"] != place]]
        pairs = [{frozenset(p.split("|")) for c in ("first_pair", "second_pair") for p in side[c]} for side in sides]
        sources = [{p.split("|")[0] for c in ("first_pair", "second_pair") for p in side[c]} for side in sides]
        assert pairs[0] and not pairs[0] & pairs[1]
        assert not sources[0] & sources[1]
    assert seen_in_training(ITEMS, "leak_free") == {"seen_pairs": 0.0, "seen_sentences": 0.0}
    leaking = seen_in_training(ITEMS, "paper_like")
    assert leaking["seen_pairs"] > 0.9
    assert leaking["seen_sentences"] >= leaking["seen_pairs"]
    for split in SPLITS:
        assert ITEMS.groupby(split)["label"].mean().between(0.45, 0.55).all()


def test_too_few_pairs_are_an_error() -> None:
    with pytest.raises(SembenchError, match="no relation has two word pairs"):
        make_items(invented(("E06",), 1), RULES, 40)


# --------------------------------------------------------------------------------------------------- classifier


def test_features_by_hand() -> None:
    e = [np.array([row], dtype=np.float32) for row in ([5, 1], [2, 3], [4, 4], [3, 0])]
    # (3, -2), (1, 4), |(2, -6)|
    np.testing.assert_allclose(relation_features(*e), [[3, -2, 1, 4, 2, 6]])


@pytest.mark.parametrize("strength", [1e-6, 1e-3, 0.1, 10.0])
def test_the_classifier_is_that_of_scikit_learn(strength: float) -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(120, 7))
    labels = (features @ rng.normal(size=7) + rng.normal(0, 2, 120) + 1 > 0).astype(int)
    model = LogisticRegression(C=strength, solver="newton-cholesky", tol=1e-12).fit(features, labels)
    expected = np.append(model.coef_[0], model.intercept_)
    np.testing.assert_allclose(fit_logistic(features, labels, strength), expected, atol=1e-6)
    np.testing.assert_allclose(fit_logistic(features, labels, strength, np.full(8, 3.0)), expected, atol=1e-6)


def test_a_fold_without_items_is_an_error_and_no_number() -> None:
    fold = np.zeros(20, dtype=np.int64)
    with pytest.raises(SembenchError, match="fold 0 or 0 of the word pairs has no item, or the others one answer"):
        cross_predict(np.ones((20, 3)), np.arange(20) % 2, fold, (1.0,))


def test_cross_prediction_equals_a_plain_run() -> None:
    rng = np.random.default_rng(1)
    features = rng.normal(size=(200, 5)) * [1, 10, 0.1, 3, 0]
    labels = (features[:, 0] + features[:, 1] / 9 + rng.normal(0, 1, 200) > 0).astype(int)
    fold, strengths = rng.integers(0, 4, 200), (1e-4, 1e-2, 1.0)
    found = cross_predict(features, labels, fold, strengths)
    for tested in range(4):
        dev = (tested + 1) % 4
        accuracies = []
        for strength in strengths:
            rows = (fold != tested) & (fold != dev)
            scaler = StandardScaler().fit(features[rows])
            model = LogisticRegression(C=strength, tol=1e-10, max_iter=10_000)
            model.fit(scaler.transform(features[rows]), labels[rows])
            accuracies.append(model.score(scaler.transform(features[fold == dev]), labels[fold == dev]))
        rows = fold != tested
        scaler = StandardScaler().fit(features[rows])
        model = LogisticRegression(C=strengths[int(np.argmax(accuracies))], tol=1e-10, max_iter=10_000)
        model.fit(scaler.transform(features[rows]), labels[rows])
        expected = model.decision_function(scaler.transform(features[fold == tested]))
        np.testing.assert_allclose(found[fold == tested], expected, atol=2e-3)


# ----------------------------------------------------------------------------------------------------- interval


def test_the_interval_of_two_groups_by_hand() -> None:
    # One group all right, one all wrong: of four equally likely resamples one has accuracy 1 and one 0.
    right = [True] * 4 + [False] * 4
    assert bootstrap_interval(np.array(right), list("aaaabbbb"), list("aaaabbbb"), 500) == (0.0, 1.0)


def test_the_interval_of_single_items_is_the_binomial_one() -> None:
    right = np.arange(400) % 4 > 0
    names = [f"g{i}" for i in range(400)]
    half = 1.96 * (0.75 * 0.25 / 400) ** 0.5
    low, high = bootstrap_interval(right, names, names, 4000)
    assert (low, high) == (pytest.approx(0.75 - half, abs=0.006), pytest.approx(0.75 + half, abs=0.006))


def test_the_interval_of_pairs_of_groups_by_enumeration() -> None:
    # Three groups, an item for each two of them: all 27 resamples, items weighed by the product of the counts.
    first, second, right = ["a", "a", "b"], ["b", "c", "c"], np.array([True, False, False])
    values = []
    for drawn in itertools.product("abc", repeat=3):
        weights = [drawn.count(one) * drawn.count(other) for one, other in zip(first, second, strict=True)]
        if sum(weights):
            values.append(weights[0] / sum(weights))
    low, high = bootstrap_interval(right, first, second, 4000)
    assert low == pytest.approx(np.quantile(values, 0.025))
    assert high == pytest.approx(np.quantile(values, 0.975))


def test_shared_groups_widen_the_interval() -> None:
    rng = np.random.default_rng(0)
    right = rng.random(300) < 0.7
    alone = [f"i{i}" for i in range(300)]
    shared = [f"g{i // 30}" for i in range(300)]
    right_by_group = np.repeat(rng.random(10) < 0.7, 30)
    one = bootstrap_interval(right, alone, alone)
    other = bootstrap_interval(right_by_group, shared, shared)
    assert other[1] - other[0] > 3 * (one[1] - one[0])


# ------------------------------------------------------------------------------------------------------ records


def encode(sentences: Sequence[str]) -> np.ndarray:
    """A world in which a target is its source plus the relation's own direction, in 24 dimensions."""
    rows = []
    for sentence in sentences:
        key, side, number, *_ = sentence.split()
        base = np.random.default_rng(int(number) + 1000 * KEYS.index(key)).normal(size=24)
        step = np.eye(24)[KEYS.index(key)] * 9
        rows.append(base + step if side == "target" else base)
    return np.array(rows, dtype=np.float32)


def noise(sentences: Sequence[str]) -> np.ndarray:
    rows = [np.random.default_rng(list(sentence.encode())).normal(size=12) for sentence in sentences]
    return np.array(rows, dtype=np.float32)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    folder = tmp_path_factory.mktemp("dsbats_open")
    FRAME.to_parquet(folder / "dsbats_open.parquet")
    return Source(folder, examples="dsbats_open.parquet", root=ROOT)


def protocol(source: Source, kind: str, **config: object):
    chosen = PROTOCOLS.parse({"kind": kind, "draws": 200, **config}, "test")
    return chosen.plugin(chosen.config, source)


def srsd(source: Source, vectors, items: pd.DataFrame | None = None) -> tuple[list[Score], list[Prediction]]:
    made = protocol(source, "srsd", per_relation=40)
    pd.testing.assert_frame_equal(made.items, ITEMS)
    made.items = made.items if items is None else items
    return made.score(vectors)


def by_key(scores: list[Score]) -> dict[tuple[str, str, str], float]:
    found = {(score.split, score.subset, score.metric): score.value for score in scores}
    assert len(found) == len(scores)
    return found


def test_a_separable_world_is_told_apart(source: Source) -> None:
    records, predictions = srsd(source, encode)
    found = by_key(records)
    for split, subset in itertools.product(SPLITS, ("all", "other_relation", "exchanged")):
        assert found[split, subset, "accuracy"] == found[split, subset, "low"] == found[split, subset, "high"] == 1.0
        assert found[split, subset, "majority"] == 0.5
    assert found["leak_free", "all", "seen_pairs"] == 0.0
    assert len(predictions) == 2 * len(ITEMS)
    assert {score.aggregation for score in records} == {"all"}
    sizes = {score.subset: score.n for score in records}
    assert sizes["all"] == sizes["other_relation"] + sizes["exchanged"] == len(ITEMS)


def test_accuracies_are_those_of_the_predictions(source: Source) -> None:
    records, predictions = srsd(source, noise)
    table = pd.DataFrame(predictions)
    table["right"] = (table["log_odds"] > 0) == (table["gold"] == 1)
    found = by_key(records)
    for split, part in table.groupby("split"):
        assert found[split, "all", "accuracy"] == pytest.approx(part["right"].mean())
        for subset, rows in part.groupby("subset"):
            assert found[split, subset, "accuracy"] == pytest.approx(rows["right"].mean())
        # Vectors that mean nothing are near the majority rate where nothing leaks.
        if split == "leak_free":
            assert abs(part["right"].mean() - 0.5) < 0.08
            assert found[split, "all", "low"] < 0.5 < found[split, "all", "high"]


def test_shuffled_labels_are_near_the_majority_rate(source: Source) -> None:
    shuffled = ITEMS.assign(label=np.random.default_rng(0).permutation(ITEMS["label"]))
    found = by_key(srsd(source, encode, shuffled)[0])
    assert abs(found["leak_free", "all", "accuracy"] - found["leak_free", "all", "majority"]) < 0.08


def test_held_out_pairs_are_a_subset_of_their_own(source: Source) -> None:
    records, predictions = srsd(source, encode)
    held_out = (ITEMS["leak_free"] == HELD_OUT).to_numpy()
    [accuracy] = [s for s in records if (s.subset, s.metric) == ("held_out", "accuracy")]
    table = pd.DataFrame(predictions).query("split == 'leak_free'")
    right = ((table["log_odds"] > 0) == (table["gold"] == 1)).to_numpy()
    assert (accuracy.split, accuracy.n) == ("leak_free", held_out.sum())
    assert accuracy.value == pytest.approx(right[held_out].mean())
    assert len(predictions) == 2 * len(ITEMS)


def test_the_data_must_be_made_here_and_have_its_columns(tmp_path: Path) -> None:
    with pytest.raises(SembenchError, match="reads a data set made here, not a fetched one"):
        protocol(Source(tmp_path, root=ROOT), "srsd")
    FRAME.drop(columns="fold").to_parquet(tmp_path / "x.parquet")
    with pytest.raises(SembenchError, match="lacks the column 'fold'"):
        protocol(Source(tmp_path, examples="x.parquet", root=ROOT), "choice")


def test_the_rules_count_as_data(source: Source) -> None:
    for kind in ("srsd", "choice"):
        made = protocol(source, kind)
        assert type(made).reads(made.config) == ("registry/relations.yaml",)
        assert (ROOT / "registry/relations.yaml").is_file()


def test_hashes_tell_data_apart(source: Source) -> None:
    hashes = [
        {(s.split, s.subset): s.sample_hash for s in srsd(source, encode, items)[0]}
        for items in (ITEMS, ITEMS, make_items(FRAME, RULES, 40, seed=1))
    ]
    assert hashes[0] == hashes[1]
    assert not set(hashes[0].values()) & set(hashes[2].values())


# ----------------------------------------------------------------------------------------------- analogy choice


def test_questions_have_one_right_answer_and_three_other_families() -> None:
    questions = make_questions(FRAME, RULES, 10)
    assert Counter(questions["relation"]) == dict.fromkeys(KEYS, 10)
    assert set(questions["answer"]) == {0, 1, 2, 3}
    families = {key: RULES[key].family or RULES[key].name for key in KEYS}
    for row in questions.to_dict("records"):
        keys = [row[f"source_{place}"].split()[0] for place in range(4)]
        assert [place for place in range(4) if keys[place] == row["relation"]] == [row["answer"]]
        assert len({families[key] for key in keys}) == 4
        assert row["asked_source"] not in [row[f"source_{place}"] for place in range(4)]
        assert row["asked_source"].startswith(row["relation"])
    assert len(question_sentences(questions)) == 10 * len(questions)
    pd.testing.assert_frame_equal(questions, make_questions(FRAME, RULES, 10))


def test_too_few_families_for_a_question() -> None:
    with pytest.raises(SembenchError, match="no question can be made"):
        make_questions(invented(("L02", "L03", "L09", "L10")), RULES, 10)


def test_choices_by_a_plain_loop_and_in_a_separable_world(source: Source) -> None:
    questions = make_questions(FRAME, RULES, 10)
    for vector in ("diff", "concat"):
        expected = []
        for row in questions.to_dict("records"):

            def relation(source: str, target: str) -> np.ndarray:
                one, other = noise([row[source]])[0], noise([row[target]])[0]  # noqa: B023
                return one - other if vector == "diff" else np.concatenate([one, other])  # noqa: B023

            asked = relation("asked_source", "asked_target")
            pairs = [relation(f"source_{place}", f"target_{place}") for place in range(4)]
            cosines = [asked @ pair / np.linalg.norm(asked) / np.linalg.norm(pair) for pair in pairs]
            expected.append(int(np.argmax(cosines)))
        assert analogy_choice(questions, noise, vector).tolist() == expected
    choice = protocol(source, "choice", questions=10)
    pd.testing.assert_frame_equal(choice.questions, questions)
    records, predictions = choice.score(encode)
    found = by_key(records)
    assert found["test", "diff", "accuracy"] == 1.0
    assert found["test", "diff", "chance"] == 0.25
    by_chance = by_key(choice.score(noise)[0])
    assert abs(by_chance["test", "diff", "accuracy"] - 0.25) < 0.15
    assert len(predictions) == 2 * len(questions)


def test_a_rule_that_is_symmetric_counts_and_not_its_name() -> None:
    rules = {
        **RULES,
        "E06": RelationRule(name="animal:young", symmetric=True),
        "E07": RelationRule(name="animal:sound"),
    }
    items = make_items(invented(("E06", "E07")), rules, 40)
    assert set(items.loc[items["exchanged"], "relation"]) == {"E07"}
    assert items.loc[items["label"] == 0, "exchanged"].mean() == 0.5
