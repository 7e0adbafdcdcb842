"""The batched classifiers against a plain loop over fits, the schemes of SentEval step by step, and the protocol."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score as sklearn_f1
from sklearn.model_selection import StratifiedKFold

from sembench.core.errors import SembenchError
from sembench.core.plugin import PROTOCOLS
from sembench.evaluation.features import pair_features
from sembench.evaluation.folds import Job, fold_jobs, held_out_job, stratified_folds
from sembench.evaluation.probes import Settings, fit, predict
from sembench.evaluation.protocol import Protocol, Source
from sembench.evaluation.protocols.transfer import Transfer
from sembench.evaluation.schemes import Choice, accuracy_of, f1_score, nested, train_test
from sembench.registry.models import Dataset

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


def one_fit(features: np.ndarray, labels: np.ndarray, job: Job, l2: float, settings: Settings):
    """SentEval's loop for one classifier, with PyTorch's own layer, loss, gradient and optimiser."""
    inputs, truth = torch.from_numpy(features), torch.from_numpy(labels)
    torch.manual_seed(settings.seed)
    layer = torch.nn.Linear(features.shape[1], int(labels.max()) + 1).to(inputs.dtype)
    adam = torch.optim.Adam(layer.parameters(), lr=settings.learning_rate, weight_decay=l2)
    best, kept, bad, checks, epoch, stop = -1.0, None, 0, 0, 0, False
    while not stop and epoch <= settings.max_epoch:
        for _ in range(settings.epoch_size):
            order = job.train[job.order.permutation(len(job.train))]
            for start in range(0, len(order), settings.batch_size):
                batch = torch.from_numpy(order[start : start + settings.batch_size])
                adam.zero_grad()
                torch.nn.functional.cross_entropy(layer(inputs[batch]), truth[batch]).backward()
                adam.step()
        epoch += settings.epoch_size
        checks += 1
        accuracy = (layer(inputs[job.dev]).argmax(dim=1) == truth[job.dev]).double().mean().item()
        if accuracy > best:
            best, kept = accuracy, copy.deepcopy(layer)
        else:
            stop = bad >= settings.tenacity
            bad += 1
    return torch.cat([kept.weight.T, kept.bias[None]]).detach(), best, checks


def jobs_of(labels: np.ndarray, folds: int) -> list[Job]:
    return fold_jobs(labels, np.arange(len(labels)), folds, 1111)


def noisy(rows: int, width: int, classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(rows, width))
    labels = (features @ rng.normal(size=(width, classes)) + rng.normal(0, 2, (rows, classes))).argmax(axis=1)
    return features, labels


@pytest.mark.parametrize(
    ("rows", "classes", "folds", "settings"),
    [
        # 61 rows in 5 folds: training sides of 48 and 49 rows, so with batches of 16 only some jobs have a fourth batch.
        (61, 2, 5, Settings(batch_size=16, learning_rate=0.02, tenacity=2, epoch_size=2, max_epoch=60)),
        (50, 3, 3, Settings(batch_size=7, learning_rate=0.1, tenacity=0, epoch_size=1, max_epoch=200)),
        (90, 2, 2, Settings(batch_size=64, learning_rate=0.001, tenacity=5, epoch_size=4, max_epoch=12)),
    ],
)
def test_fits_together_equal_fits_one_by_one(rows: int, classes: int, folds: int, settings: Settings) -> None:
    features, labels = noisy(rows, 6, classes)
    l2 = (1e-4, 1e-1, 1.0)
    found = fit(features, labels, jobs_of(labels, folds), l2, settings)
    for place, strength in enumerate(l2):
        # Jobs made anew for every strength: SentEval sets the seed for every fit.
        for number, job in enumerate(jobs_of(labels, folds)):
            weights, best, checks = one_fit(features, labels, job, strength, settings)
            torch.testing.assert_close(found.weights[number, place], weights, rtol=1e-9, atol=1e-11)
            assert found.accuracy[number, place] == pytest.approx(best, abs=1e-12)
            assert found.checks[number, place] == checks
    assert len(set(found.checks.ravel().tolist())) > 1 or settings.max_epoch == 12


def test_each_job_can_have_a_strength_of_its_own() -> None:
    settings = Settings(batch_size=16, learning_rate=0.02, tenacity=1, epoch_size=1, max_epoch=20)
    features, labels = noisy(70, 4, 2)
    strengths = np.array([[1e-4], [1e-1], [1.0]])
    found = fit(features, labels, jobs_of(labels, 3), strengths, settings)
    for number, job in enumerate(jobs_of(labels, 3)):
        weights, best, _ = one_fit(features, labels, job, float(strengths[number, 0]), settings)
        torch.testing.assert_close(found.weights[number, 0], weights, rtol=1e-9, atol=1e-11)
        assert found.accuracy[number, 0] == pytest.approx(best, abs=1e-12)


def test_the_held_out_job_splits_and_orders_as_senteval() -> None:
    settings = Settings(batch_size=16, epoch_size=1, max_epoch=5)
    features, labels = noisy(100, 4, 2)
    generator = np.random.RandomState(1111)
    order = generator.permutation(100)
    weights, best, _ = one_fit(features, labels, Job(order[5:], order[:5], generator), 1e-3, settings)
    found = fit(features, labels, [held_out_job(np.arange(100), 0.05, 1111)], [1e-3], settings)
    torch.testing.assert_close(found.weights[0, 0], weights, rtol=1e-9, atol=1e-11)
    assert found.accuracy[0, 0] == pytest.approx(best)


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


def cross_validated(features, labels, folds: int, settings: Settings) -> tuple[float, float]:
    """The strength that SentEval chooses on some rows, one fit after the other, and its accuracy in percent."""
    means = []
    for strength in L2:
        scores = []
        for train, dev in StratifiedKFold(folds, shuffle=True, random_state=1111).split(features, labels):
            job = Job(train, dev, np.random.RandomState(1111))
            scores.append(one_fit(features, labels, job, strength, settings)[1])
        means.append(round(100 * np.mean(scores), 2))
    return L2[int(np.argmax(means))], max(means)


def final(features, labels, strength: float, settings: Settings) -> torch.Tensor:
    """The weights of SentEval's last fit: five percent of a permutation are checked, the others trained on."""
    generator = np.random.RandomState(1111)
    order = generator.permutation(len(labels))
    cut = int(0.05 * len(labels))
    return one_fit(features, labels, Job(order[cut:], order[:cut], generator), strength, settings)[0]


@pytest.mark.parametrize("classes", [2, 6])
def test_train_and_test_equal_a_plain_run(classes: int) -> None:
    features, labels = noisy(180, 5, classes, seed=3)
    test, gold = noisy(50, 5, classes, seed=4)
    strength, accuracy = cross_validated(features, labels, 3, SMALL)
    [found] = train_test(features, labels, test, Choice(folds=3), SMALL)
    assert found.l2 == strength
    assert found.dev_accuracy == pytest.approx(accuracy / 100, abs=5e-5 + 1e-9)
    np.testing.assert_array_equal(found.predicted, predict(final(features, labels, strength, SMALL), test))
    assert accuracy_of([found], gold) == (found.predicted == gold).mean()


def test_nested_folds_equal_a_plain_run() -> None:
    """Every outer fold: its strength chosen by an inner cross-validation, its last fit, its accuracy rounded."""
    features, labels = noisy(300, 4, 2, seed=5)
    found = nested(features, labels, Choice(folds=3), SMALL)
    accuracies = []
    outer = StratifiedKFold(3, shuffle=True, random_state=1111).split(features, labels)
    for part, (train, tested) in zip(found, outer, strict=True):
        strength, dev = cross_validated(features[train], labels[train], 3, SMALL)
        guesses = predict(final(features[train], labels[train], strength, SMALL), features[tested])
        assert part.l2 == strength
        assert part.dev_accuracy == pytest.approx(dev / 100, abs=5e-5 + 1e-9)
        np.testing.assert_array_equal(part.rows, tested)
        np.testing.assert_array_equal(part.predicted, guesses)
        accuracies.append(round(100 * (guesses == labels[tested]).mean(), 2))
    assert len({part.l2 for part in found}) > 1
    assert accuracy_of(found, labels) == pytest.approx(np.mean(accuracies) / 100, abs=1e-12)


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
