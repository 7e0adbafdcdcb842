"""The batched classifiers against a plain loop over fits, the schemes of SentEval step by step, and the protocol."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score as sklearn_f1
from sklearn.model_selection import StratifiedKFold

from sembench.core.errors import SembenchError
from sembench.core.plugin import PROTOCOLS
from sembench.evaluation import probes, schemes
from sembench.evaluation.features import pair_features
from sembench.evaluation.folds import Job, fold_jobs, held_out_job, stratified_folds
from sembench.evaluation.probes import Settings, fit
from sembench.evaluation.protocol import Protocol, Source
from sembench.evaluation.protocols.transfer import Transfer
from sembench.evaluation.schemes import Choice, accuracy_of, f1_score, fixed, nested, train_test
from sembench.registry.models import Dataset
from tests import senteval
from tests.senteval import one_fit

# ------------------------------------------------------------------------------------------------- folds and F1


@pytest.mark.parametrize(("folds", "seed"), [(2, 0), (5, 7), (10, 1111)])
def test_folds_are_those_of_scikit_learn(folds: int, seed: int) -> None:
    labels = np.random.default_rng(seed).choice([0, 0, 1, 1, 1, 2], size=203)
    found = stratified_folds(labels, folds, seed)
    split = StratifiedKFold(folds, shuffle=True, random_state=seed).split(np.zeros((203, 1)), labels)
    for fold, (_, tested) in enumerate(split):
        np.testing.assert_array_equal(np.flatnonzero(found == fold), tested)


def test_a_rare_label_is_an_error() -> None:
    with pytest.raises(SembenchError, match="label 1 has 2 rows, too few for 3 folds"):
        stratified_folds(np.array([0, 0, 0, 1, 1]), 3, 0)


def test_too_few_rows_to_hold_any_out() -> None:
    with pytest.raises(SembenchError, match="19 rows are too few"):
        held_out_job(np.arange(19), 0.05, 1111)


def test_f1_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    gold, predicted = rng.integers(0, 2, 90), rng.integers(0, 2, 90)
    assert f1_score(predicted, gold) == pytest.approx(sklearn_f1(gold, predicted), abs=1e-12)
    assert f1_score(np.zeros(3, dtype=int), np.zeros(3, dtype=int)) == 0.0


# -------------------------------------------------------------------------------------------- batched = one by one


def jobs_of(labels: np.ndarray, folds: int) -> list[Job]:
    return fold_jobs(labels, np.arange(len(labels)), folds, 1111)


def noisy(rows: int, width: int, classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(rows, width))
    labels = (features @ rng.normal(size=(width, classes)) + rng.normal(0, 2, (rows, classes))).argmax(axis=1)
    return features, labels


FAST = Settings("rmsprop", learning_rate=0.01, batch_size=32, tenacity=3, epoch_size=2, max_epoch=20)
STRENGTHS = (1e-4, 1e-1, 1.0)


def assert_one_by_one(features: np.ndarray, labels: np.ndarray, jobs: list[Job], l2, settings: Settings) -> np.ndarray:
    """Compare every fit with SentEval's loop, and return the numbers of checks, (jobs, strengths)."""
    found = fit(features, labels, jobs, l2, settings)
    each = np.broadcast_to(l2, found.accuracy.shape)
    for place in np.ndindex(each.shape):
        weights, best, checks = one_fit(features, labels, jobs[place[0]], float(each[place]), settings)
        torch.testing.assert_close(found.weights[place], weights, rtol=1e-9, atol=1e-11)
        assert found.accuracy[place] == pytest.approx(best, abs=1e-12)
        assert found.checks[place] == checks
    return found.checks


@pytest.mark.parametrize(
    ("rows", "classes", "folds", "settings"),
    [
        # 61 rows in 5 folds: training sides of 48 and 49 rows, so with batches of 16 only some jobs have a fourth batch.
        (61, 2, 5, Settings(batch_size=16, learning_rate=0.02, tenacity=2, epoch_size=2, max_epoch=20)),
        (61, 2, 5, replace(FAST, batch_size=16)),
        (50, 3, 3, Settings(batch_size=7, learning_rate=0.1, tenacity=0, epoch_size=1, max_epoch=200)),
        (90, 2, 2, Settings(batch_size=64, learning_rate=0.001, tenacity=5, epoch_size=4, max_epoch=12)),
    ],
)
def test_fits_together_equal_fits_one_by_one(rows: int, classes: int, folds: int, settings: Settings) -> None:
    features, labels = noisy(rows, 6, classes)
    checks = assert_one_by_one(features, labels, jobs_of(labels, folds), STRENGTHS, settings)
    assert len(set(checks.ravel().tolist())) > 1 or settings.max_epoch == 12


def test_each_job_can_have_a_strength_of_its_own() -> None:
    settings = Settings(batch_size=16, learning_rate=0.02, tenacity=1, epoch_size=1, max_epoch=20)
    features, labels = noisy(70, 4, 2)
    assert_one_by_one(features, labels, jobs_of(labels, 3), np.array([[1e-4], [1e-1], [1.0]]), settings)


def test_jobs_that_order_their_rows_otherwise_are_fitted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many rows, other seeds; and equal seeds whose generators have drawn something already."""
    settings = Settings(batch_size=16, learning_rate=0.02, tenacity=1, epoch_size=1, max_epoch=10)
    features, labels = noisy(60, 4, 2)
    jobs = [
        Job(np.arange(k, 40 + k), np.arange(50, 60), np.random.RandomState(seed)) for k, seed in enumerate([1, 2, 1, 1])
    ]
    jobs[2].order.permutation(3)
    assert_one_by_one(features, labels, jobs, (1e-4, 1e-1), settings)
    monkeypatch.setattr(probes, "_CACHED", 1)
    assert_one_by_one(features, labels, jobs, (1e-4, 1e-1), settings)


def test_threads_change_nothing() -> None:
    settings = Settings(batch_size=16, learning_rate=0.02, tenacity=1, epoch_size=1, max_epoch=10)
    features, labels = noisy(90, 6, 2)
    one = fit(features.astype(np.float32), labels, jobs_of(labels, 5), STRENGTHS, settings)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        three = fit(features.astype(np.float32), labels, jobs_of(labels, 5), STRENGTHS, settings)
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(threads)
    torch.testing.assert_close(three.weights, one.weights, rtol=0, atol=0)
    np.testing.assert_array_equal(three.checks, one.checks)


def test_the_held_out_job_splits_and_orders_as_senteval() -> None:
    settings = Settings(batch_size=16, epoch_size=1, max_epoch=5)
    features, labels = noisy(100, 4, 2)
    weights = senteval.last_fit(features, labels, 1e-3, Choice(), settings)
    found = fit(features, labels, [held_out_job(np.arange(100), 0.05, 1111)], [1e-3], settings)
    torch.testing.assert_close(found.weights[0, 0], weights, rtol=1e-9, atol=1e-11)


def test_the_count_of_bad_checks_is_never_reset() -> None:
    # With a step of nearly nothing every check but the first is bad: one good and tenacity + 1 bad ones.
    settings = Settings(learning_rate=1e-30, tenacity=3)
    features, labels = noisy(40, 3, 2)
    assert set(fit(features, labels, jobs_of(labels, 2), (1e-5,), settings).checks.ravel()) == {5}


def test_no_check_beyond_the_last_epoch() -> None:
    # Rounds begin at epochs 0, 4 and 8; that at 12 would be beyond 10.
    settings = Settings(tenacity=99, epoch_size=4, max_epoch=10)
    features, labels = noisy(40, 3, 2)
    assert set(fit(features, labels, jobs_of(labels, 2), (1e-5,), settings).checks.ravel()) == {3}


def test_the_global_generators_stay_untouched() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    features, labels = noisy(40, 3, 2)
    train_test(features, labels, features, Choice(folds=2), Settings(max_epoch=0))
    torch.testing.assert_close(torch.rand(3), expected)


# ------------------------------------------------------------------------------------------- SentEval's two schemes

SMALL = Settings(batch_size=16, learning_rate=0.01, tenacity=1, epoch_size=1, max_epoch=20)
L2 = (1e-5, 1e-4, 1e-3, 1e-2)
MODES = pytest.mark.parametrize("settings", [SMALL, FAST], ids=["adam", "rmsprop"])


def assert_same(found: list[schemes.Tested], expected: list[schemes.Tested]) -> None:
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one.rows, other.rows)
        np.testing.assert_array_equal(one.predicted, other.predicted)
        assert one.l2 == other.l2
        assert one.dev_accuracy == pytest.approx(other.dev_accuracy, abs=5e-5 + 1e-9)


@MODES
@pytest.mark.parametrize("classes", [2, 6])
def test_train_and_test_equal_a_plain_run(classes: int, settings: Settings) -> None:
    (features, labels), (test, gold) = noisy(180, 5, classes, seed=3), noisy(50, 5, classes, seed=4)
    found = train_test(features, labels, test, Choice(folds=3), settings)
    assert_same(found, senteval.train_test(features, labels, test, Choice(folds=3), settings))
    assert accuracy_of(found, gold) == (found[0].predicted == gold).mean()


@MODES
def test_a_given_dev_split_equals_a_plain_run(settings: Settings) -> None:
    features, labels = noisy(560, 5, 2, seed=10)
    choice, test = Choice(l2=(1e-4, 1e-2, 0.3)), features[160:]
    given = (features[:120], labels[:120], features[120:160], labels[120:160])
    found = fixed(*given, test, choice, settings)
    assert_same(found, senteval.fixed(*given, test, choice, settings))
    assert found[0].l2 == 0.3


@MODES
def test_nested_folds_equal_a_plain_run(settings: Settings) -> None:
    features, labels = noisy(240, 4, 2, seed=5)
    found = nested(features, labels, Choice(folds=3), settings)
    assert_same(found, senteval.nested(features, labels, Choice(folds=3), settings))
    assert len({part.l2 for part in found}) > 1
    rounded = [round(100 * (part.predicted == labels[part.rows]).mean(), 2) for part in found]
    assert accuracy_of(found, labels) == pytest.approx(np.mean(rounded) / 100, abs=1e-12)


# ------------------------------------------------------------------------------------------------- the protocol


def test_pair_features_by_hand() -> None:
    u, v = np.array([[1.0, -2.0]], dtype=np.float32), np.array([[3.0, 0.5]], dtype=np.float32)
    np.testing.assert_allclose(pair_features(u, v), [[2.0, 2.5, 3.0, -1.0]])


def vectors(sentences) -> np.ndarray:
    """The class is the first word's number; the last word is noise of its own."""
    rows = []
    for sentence in sentences:
        first, last = sentence.split()[0], sentence.split()[-1]
        rows.append(np.eye(16)[int(first[1:]) % 16] * 4 + np.random.default_rng(int(last[1:])).normal(0, 0.3, 16))
    return np.array(rows, dtype=np.float32)


def task(folder: Path, reader: str, files: dict[str, str], **config: object) -> Protocol:
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    entry = {"title": "t", "licence": "l", "files": [{"name": n} for n in files], "sources": [{"kind": "fixture"}]}
    data = Source(folder, Dataset.model_validate(entry).model_copy(update={"reader": reader}))
    chosen = PROTOCOLS.parse({"kind": "transfer", "folds": 3, "learning_rate": 0.02, **config}, "test")
    return chosen.plugin(chosen.config, data)


def found_by(protocol: Protocol) -> dict[tuple[str, str, str], float]:
    scores, _ = protocol.score(vectors)
    assert {score.metric for score in scores} <= set(Transfer.metrics)
    assert len({score.sample_hash for score in scores}) == 1
    return {(score.split, score.subset, score.metric): score.value for score in scores}


@pytest.mark.parametrize("shuffled", [False, True])
def test_pairs_a_separable_task_is_solved_and_a_shuffled_one_is_not(tmp_path: Path, shuffled: bool) -> None:
    rng = np.random.default_rng(0)
    files = {}
    for split, rows in (("train", 300), ("test", 200)):
        gold = (rng.random(rows) < 0.6).astype(int)
        lines = ["Quality\t#1 String\t#2 String"]
        shown = rng.permutation(gold) if shuffled else gold
        for same, label in zip(gold, shown, strict=True):
            word = rng.integers(0, 16)
            other = word if same else (word + rng.integers(1, 16)) % 16
            lines.append(f"{label}\tw{word} n{rng.integers(99)}\tw{other} n{rng.integers(99)}")
        files[f"msr_paraphrase_{split}.txt"] = "\n".join(lines) + "\n"
    protocol = task(tmp_path, "mrpc", files, features="pair")
    scores, predictions = protocol.score(vectors)
    found = {(score.split, score.metric): score.value for score in scores}
    gold, predicted = (np.array([p[key] for p in predictions]) for key in ("gold", "predicted"))
    assert [p["index"] for p in predictions] == list(range(200))
    assert gold.tolist() == protocol.parts[1].labels.tolist()
    assert found["test", "accuracy"] == pytest.approx((predicted == gold).mean())
    assert found["test", "f1"] == pytest.approx(sklearn_f1(gold, predicted))
    assert found["test", "majority"] == pytest.approx(max(gold.mean(), 1 - gold.mean()))
    assert {score.n for score in scores} == {300, 200}
    assert set(found) == {("test", m) for m in ("accuracy", "f1", "majority")} | {("dev", "accuracy"), ("dev", "l2")}
    if shuffled:
        assert abs(found["test", "accuracy"] - found["test", "majority"]) < 0.15
    else:
        assert found["test", "accuracy"] > 0.9
    assert protocol.score(vectors)[0] == scores


def test_six_classes_have_no_f1(tmp_path: Path) -> None:
    names = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")
    rng = np.random.default_rng(1)
    lines = [
        "".join(f"{names[c]}:kind w{c} n{rng.integers(99)}\n" for c in rng.permutation(np.arange(rows) % 6))
        for rows in (240, 60)
    ]
    protocol = task(tmp_path, "trec", {"train_5500.label": lines[0], "TREC_10.label": lines[1]})
    found = found_by(protocol)
    assert ("test", "", "f1") not in found
    assert found["test", "", "accuracy"] > 0.9
    assert found["test", "", "majority"] == pytest.approx(1 / 6)


def test_a_given_dev_split_chooses_and_is_reported_as_dev(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    files = {
        f"sentiment-{split}": "".join(f"w{c} n{rng.integers(99)} \t{c}\n" for c in rng.integers(0, 2, rows))
        for split, rows in (("train", 120), ("dev", 40), ("test", 60))
    }
    protocol = task(tmp_path, "sst", files, scheme="fixed")
    scores, predictions = protocol.score(vectors)
    found = {(s.split, s.metric): (s.value, s.n) for s in scores}
    assert {key: n for key, (_, n) in found.items()} == {
        ("test", "accuracy"): 60, ("test", "f1"): 60, ("test", "majority"): 60, ("dev", "accuracy"): 40, ("dev", "l2"): 40,
    }  # fmt: skip
    assert found["test", "accuracy"][0] > 0.9
    assert len(predictions) == 60
    for metric, each in protocol.statistics().items():
        values, gold = (np.array([p[name] for p in predictions]) for name in (each.column, "gold"))
        anew = each.score(values[None], gold, np.ones((1, 60)))[0, 0]
        assert anew == pytest.approx(found["test", metric][0], abs=1e-4)  # SentEval rounds its accuracy


def test_a_task_without_a_test_split_is_nested(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    texts = ["".join(f"w{c} {'x ' * rng.integers(0, 5)}n{rng.integers(99)}\n" for _ in range(60)) for c in (0, 1)]
    files = {"subj.objective": texts[1], "subj.subjective": texts[0]}
    protocol = task(tmp_path, "subj", files, scheme="nested", train="all")
    scores, predictions = protocol.score(vectors)
    folds = [s for s in scores if (s.aggregation, s.metric, s.split) == ("subset", "accuracy", "test")]
    [whole] = [s for s in scores if (s.aggregation, s.metric, s.split) == ("all", "accuracy", "test")]
    assert [s.subset for s in folds] == ["fold_0", "fold_1", "fold_2"]
    assert sum(s.n for s in folds) == whole.n == 120
    assert whole.value == pytest.approx(np.mean([s.value for s in folds]))
    assert whole.value > 0.9
    # In the order of the files, whatever the order in which SentEval sorts.
    assert [(p["index"], p["gold"]) for p in predictions] == [(i, int(i < 60)) for i in range(120)]
    right = np.mean([p["predicted"] == p["gold"] for p in predictions])
    assert whole.value == pytest.approx(right, abs=1e-4)
    assert {s.value for s in scores if s.metric == "l2"} <= set(L2)


# ------------------------------------------------------------------------------------------------------ named errors


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (
            lambda v, _: v.__setitem__((7, 1), np.nan),
            r"vector 7 of \d+ given to a classifier is not finite; .*use fp32",
        ),
        (lambda v, _: v.__setitem__((3, 0), np.inf), r"vector 3 of \d+ given to a classifier is not finite"),
        (lambda _, y: y.fill(1), r"all \d+ items have the same label"),
    ],
)
def test_what_cannot_be_learned_from_is_named(spoil, message: str) -> None:
    features, labels = noisy(60, 4, 2)
    spoil(features, labels)
    for learn in (
        lambda: train_test(features, labels, features[:5], Choice(folds=2), SMALL),
        lambda: nested(features, labels, Choice(folds=2), SMALL),
        lambda: fixed(features, labels, features[:5], labels[:5], features[:5], Choice(), SMALL),
    ):
        with pytest.raises(SembenchError, match=message):
            learn()


def test_vectors_that_do_not_fit_are_named() -> None:
    features, labels = noisy(60, 4, 2)
    with pytest.raises(SembenchError, match="vectors of width 3 are tested by a classifier of width 4"):
        train_test(features, labels, features[:, :3], Choice(folds=2), replace(SMALL, max_epoch=0))
    with pytest.raises(SembenchError, match="dev vectors of width 3 beside training vectors of width 4"):
        fixed(features, labels, features[:, :3], labels, features, Choice(), SMALL)
    with pytest.raises(SembenchError, match="59 vectors for 60 labels"):
        nested(features[1:], labels, Choice(folds=2), SMALL)
    bad = features.copy()
    bad[2, 2] = np.nan
    with pytest.raises(SembenchError, match="vector 2 of 60 given to a classifier is not finite"):
        train_test(features, labels, bad, Choice(folds=2), replace(SMALL, max_epoch=0))


def test_a_split_of_one_class_is_named(tmp_path: Path) -> None:
    files = {"sentiment-train": "a\t1\nb\t0\n", "sentiment-dev": "a\t1\nb\t0\n", "sentiment-test": "a\t1\nb\t1\n"}
    with pytest.raises(SembenchError, match="all 2 items of the split 'test' have the same class"):
        task(tmp_path, "sst", files, scheme="fixed")
