"""The batched classifiers against a plain loop over fits, folds and F1 against scikit-learn, and the reader of MRPC."""

from __future__ import annotations

import copy
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score as sklearn_f1
from sklearn.model_selection import StratifiedKFold

from sembench.core.errors import SembenchError
from sembench.evaluation.pairs import Pairs
from sembench.evaluation.transfer import (
    Job,
    Settings,
    f1_score,
    fit,
    fold_jobs,
    held_out_job,
    pair_features,
    predict,
    read_mrpc,
    sorted_as_senteval,
    stratified_folds,
    train_test,
    transfer_records,
)
from sembench.registry.models import Dataset

MRPC = Dataset.model_validate(
    {
        "title": "MRPC",
        "licence": "l",
        "files": [{"name": f"msr_paraphrase_{part}.txt", "header": True} for part in ("train", "test")],
        "sources": [{"kind": "fixture"}],
    }
)
HEADER = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n"


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
        held_out_job(19, Settings())


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


def noisy(rows: int, width: int, classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(rows, width))
    labels = (features @ rng.normal(size=(width, classes)) + rng.normal(0, 2, (rows, classes))).argmax(axis=1)
    return features, labels


@pytest.mark.parametrize(
    ("rows", "classes", "settings"),
    [
        # 61 rows in 5 folds: training sides of 48 and 49 rows, so with batches of 16 only some jobs have a fourth batch.
        (61, 2, Settings(folds=5, batch_size=16, learning_rate=0.02, tenacity=2, epoch_size=2, max_epoch=60)),
        (50, 3, Settings(folds=3, batch_size=7, learning_rate=0.1, tenacity=0, epoch_size=1, max_epoch=200)),
        (90, 2, Settings(folds=2, batch_size=64, learning_rate=0.001, tenacity=5, epoch_size=4, max_epoch=12)),
    ],
)
def test_fits_together_equal_fits_one_by_one(rows: int, classes: int, settings: Settings) -> None:
    features, labels = noisy(rows, 6, classes)
    l2 = (1e-4, 1e-1, 1.0)
    found = fit(features, labels, fold_jobs(labels, settings), l2, settings)
    for place, strength in enumerate(l2):
        # Jobs made anew for every strength: SentEval sets the seed for every fit.
        for number, job in enumerate(fold_jobs(labels, settings)):
            weights, best, checks = one_fit(features, labels, job, strength, settings)
            torch.testing.assert_close(found.weights[number, place], weights, rtol=1e-9, atol=1e-11)
            assert found.accuracy[number, place] == pytest.approx(best, abs=1e-12)
            assert found.checks[number, place] == checks
    assert len(set(found.checks.ravel().tolist())) > 1 or settings.max_epoch == 12


def test_the_held_out_job_splits_and_orders_as_senteval() -> None:
    settings = Settings(batch_size=16, epoch_size=1, max_epoch=5)
    features, labels = noisy(100, 4, 2)
    generator = np.random.RandomState(1111)
    order = generator.permutation(100)
    weights, best, _ = one_fit(features, labels, Job(order[5:], order[:5], generator), 1e-3, settings)
    found = fit(features, labels, [held_out_job(100, settings)], [1e-3], settings)
    torch.testing.assert_close(found.weights[0, 0], weights, rtol=1e-9, atol=1e-11)
    assert found.accuracy[0, 0] == pytest.approx(best)


def test_the_count_of_bad_checks_is_never_reset() -> None:
    # With a step of nearly nothing every check but the first is bad: one good and tenacity + 1 bad ones.
    settings = Settings(folds=2, learning_rate=1e-30, tenacity=3)
    features, labels = noisy(40, 3, 2)
    assert set(fit(features, labels, fold_jobs(labels, settings), (1e-5,), settings).checks.ravel()) == {5}


def test_no_check_beyond_the_last_epoch() -> None:
    # Rounds begin at epochs 0, 4 and 8; that at 12 would be beyond 10.
    settings = Settings(folds=2, tenacity=99, epoch_size=4, max_epoch=10)
    features, labels = noisy(40, 3, 2)
    assert set(fit(features, labels, fold_jobs(labels, settings), (1e-5,), settings).checks.ravel()) == {3}


def test_the_global_generators_stay_untouched() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    features, labels = noisy(40, 3, 2)
    train_test((features, labels), features, Settings(folds=2, max_epoch=0))
    torch.testing.assert_close(torch.rand(3), expected)


# ------------------------------------------------------------------------------------------------- the protocol


def test_the_scheme_equals_a_plain_run() -> None:
    settings = Settings(folds=3, batch_size=16, learning_rate=0.01, tenacity=1, epoch_size=1, max_epoch=20)
    features, labels = noisy(120, 5, 2, seed=3)
    test, _ = noisy(50, 5, 2, seed=4)
    means = []
    for strength in settings.l2:
        split = StratifiedKFold(3, shuffle=True, random_state=1111).split(features, labels)
        jobs = [Job(train, dev, np.random.RandomState(1111)) for train, dev in split]
        means.append(round(100 * np.mean([one_fit(features, labels, job, strength, settings)[1] for job in jobs]), 2))
    strength = settings.l2[int(np.argmax(means))]
    weights, _, _ = one_fit(features, labels, held_out_job(120, settings), strength, settings)
    found = train_test((features, labels), test, settings)
    assert found.l2 == strength
    assert found.dev_accuracy == pytest.approx(max(means) / 100, abs=1e-4)
    np.testing.assert_array_equal(found.predicted, predict(weights, test))


def test_pair_features_by_hand() -> None:
    u, v = np.array([[1.0, -2.0]], dtype=np.float32), np.array([[3.0, 0.5]], dtype=np.float32)
    np.testing.assert_allclose(pair_features(u, v), [[2.0, 2.5, 3.0, -1.0]])


def test_rows_are_sorted_by_lengths_then_label() -> None:
    pairs = Pairs("train", ["a b", "c", "d", "e", "f"], ["g", "h i", "j k", "l m", "n"], np.array([1.0, 1, 0, 1, 1]))
    found = sorted_as_senteval(pairs)
    assert found.first == ["f", "d", "c", "e", "a b"]
    assert found.gold.tolist() == [1, 0, 1, 1, 1]


def toy(shuffled: bool) -> tuple[Pairs, Pairs]:
    """Pairs of equal words (paraphrases) and of different ones; shuffled: with labels that say nothing."""
    rng = np.random.default_rng(0)
    parts = []
    for subset, rows in (("train", 300), ("test", 200)):
        gold = (rng.random(rows) < 0.6).astype(float)
        first = [f"w{i}" for i in rng.integers(0, 40, rows)]
        second = [
            a if g else f"w{(int(a[1:]) + 1 + i) % 40}"
            for a, g, i in zip(first, gold, rng.integers(0, 39, rows), strict=True)
        ]
        parts.append(Pairs(subset, first, second, rng.permutation(gold) if shuffled else gold))
    return parts[0], parts[1]


def vectors(sentences) -> np.ndarray:
    rows = [np.random.default_rng(int(sentence[1:])).normal(size=16) for sentence in sentences]
    return np.array(rows, dtype=np.float32)


@pytest.mark.parametrize("shuffled", [False, True])
def test_a_separable_task_is_solved_and_a_shuffled_one_is_not(shuffled: bool) -> None:
    train, test = toy(shuffled)
    records, predictions = transfer_records("mrpc", train, test, vectors, Settings(folds=3, learning_rate=0.02))
    found = {(r["split"], r["metric"]): r["value"] for r in records}
    gold = np.array([p["gold"] for p in predictions])
    predicted = np.array([p["predicted"] for p in predictions])
    assert gold.tolist() == test.gold.tolist()
    assert found["test", "accuracy"] == pytest.approx((predicted == gold).mean())
    assert found["test", "f1"] == pytest.approx(sklearn_f1(gold, predicted))
    assert found["test", "majority"] == pytest.approx(max(gold.mean(), 1 - gold.mean()))
    assert {r["n"] for r in records} == {300, 200}
    assert len({r["sample_hash"] for r in records}) == 1
    if shuffled:
        assert abs(found["test", "accuracy"] - found["test", "majority"]) < 0.15
    else:
        assert found["test", "accuracy"] == found["test", "f1"] == 1.0
    assert transfer_records("mrpc", train, test, vectors, Settings(folds=3, learning_rate=0.02))[0] == records


# --------------------------------------------------------------------------------------------------- the reader


def write(folder: Path, text: str, part: str = "train") -> Path:
    (folder / f"msr_paraphrase_{part}.txt").write_bytes(text.encode())
    return folder


def test_the_reader_keeps_case_and_quotes_and_joins_blanks(tmp_path: Path) -> None:
    text = HEADER + '1\t7\t8\tHe  said " Stop .\tHe said stop .\r\n0\t9\t10\t"A" left\u2028late .\tB \'s "\r\n'
    pairs = read_mrpc(MRPC, write(tmp_path, text), "train")
    assert pairs.first == ['He said " Stop .', '"A" left late .']
    assert pairs.second == ["He said stop .", "B 's \""]
    assert pairs.gold.tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", r"msr_paraphrase_train\.txt is empty"),
        (HEADER, "holds no sentence pair"),
        ("Quality\t#1 ID\t#2 ID\t#1 String\n1\t7\t8\tA\n", "line 1: the column '#2 String' is missing"),
        (HEADER + "1\t7\t8\tA b .\tC d .\n1\t7\t8\tA b .\n", "line 3: 4 tab-separated columns where 5 are needed"),
        (HEADER + "2\t7\t8\tA\tB\n", "line 2: the label '2' is neither 0 nor 1"),
    ],
)
def test_broken_files_are_named(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(SembenchError, match=told):
        read_mrpc(MRPC, write(tmp_path, text), "train")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SembenchError, match=r"msr_paraphrase_test\.txt is missing"):
        read_mrpc(MRPC, tmp_path, "test")


@pytest.mark.realdata
def test_the_real_corpus_has_its_published_size() -> None:
    folder = Path(os.environ["SEMBENCH_MIRROR"]) / "senteval/downstream/MRPC"
    train, test = (read_mrpc(MRPC, folder, part) for part in ("train", "test"))
    assert (len(train), len(test)) == (4076, 1725)
    # Two thirds are paraphrases: 2,753 of training and 1,147 of test.
    assert (int(train.gold.sum()), int(test.gold.sum())) == (2753, 1147)
    assert any('"' in text for text in train.first)
    assert any(text != text.lower() for text in train.first)
