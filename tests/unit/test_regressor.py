"""SentEval's regressor against a plain float64 loop of its own, numbers worked out by hand, and SentEval's order of pairs."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats

from sembench.core.errors import SembenchError
from sembench.core.plugin import PROTOCOLS
from sembench.evaluation.protocol import Source
from sembench.evaluation.regressor import Settings, level_targets, regress, senteval_order
from sembench.registry.models import Dataset

ROOT = Path(__file__).parents[2]


def test_levels_by_hand() -> None:
    found = level_targets(np.array([1.0, 3.4, 5.0, 0.25, 0.0]))
    expected = [[1, 0, 0, 0, 0], [0, 0, 0.6, 0.4, 0], [0, 0, 0, 0, 1], [0.25, 0, 0, 0, 0], [0, 0, 0, 0, 0]]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_the_order_is_by_words_and_then_gold() -> None:
    first, second = ["a b", "a", "c d", "a b", "e"], ["x", "x y", "x", "x", "x y"]
    assert senteval_order(first, second, np.array([3.0, 1.0, 2.0, 2.0, 0.5])).tolist() == [4, 1, 2, 3, 0]


def pairs(rows: int, seed: int, width: int = 6) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(rows, width)).astype(np.float32)
    return features, np.clip(2.5 + features[:, 0] - features[:, 1] + rng.normal(0, 0.8, rows), 0, 5)


def plain(train, dev, test, settings: Settings) -> tuple[np.ndarray, float, int]:
    """Fit pair by pair and number by number: softmax, squared error, Adam, early stopping."""
    torch.manual_seed(settings.seed)
    layer = torch.nn.Linear(train[0].shape[1], 5)
    weights = np.hstack([layer.weight.detach().numpy(), layer.bias.detach().numpy()[:, None]]).astype(np.float64)
    mean, square, step = np.zeros_like(weights), np.zeros_like(weights), 0
    targets = np.zeros((len(train[1]), 5))
    for row, gold in enumerate(train[1]):
        low = math.floor(gold)
        for level in range(1, 6):
            if level == low + 1:
                targets[row, level - 1] = gold - low
            if level == low:
                targets[row, level - 1] = low - gold + 1

    def say(features):
        logits = np.hstack([features, np.ones((len(features), 1))]) @ weights.T
        shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        return shares, shares @ [1, 2, 3, 4, 5]

    order = np.random.RandomState(settings.seed)
    best, kept, epoch, bad, checks = -1.0, None, 0, 0, 0
    while epoch <= settings.max_epoch:
        for _ in range(settings.epoch_size):
            permutation = order.permutation(len(train[0]))
            for start in range(0, len(permutation), settings.batch_size):
                rows = permutation[start : start + settings.batch_size]
                shares, _ = say(train[0][rows])
                gradient = np.zeros_like(weights)
                for share, target, features in zip(shares, targets[rows], train[0][rows], strict=True):
                    error = 2 * (share - target) / (5 * len(rows))
                    inner = np.array([share[k] * (error[k] - error @ share) for k in range(5)])
                    gradient += np.outer(inner, [*features, 1])
                step += 1
                mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
                weights -= 1e-3 * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
        epoch, checks = epoch + settings.epoch_size, checks + 1
        found = stats.pearsonr(say(dev[0])[1], dev[1]).statistic
        if found > best:
            best, kept = found, say(test)[1]
        else:
            bad += 1
            if bad > settings.tenacity:
                break
    return kept, best, checks


@pytest.mark.parametrize(
    "settings",
    [
        Settings(batch_size=16, epoch_size=2, max_epoch=20, tenacity=1),
        Settings(batch_size=7, epoch_size=1, max_epoch=3),
    ],
)
def test_a_fit_equals_a_plain_loop(settings: Settings) -> None:
    train, dev, (test, _) = pairs(40, 0), pairs(30, 1), pairs(20, 2)
    found, (predicted, best, checks) = regress(train, dev, test, settings), plain(train, dev, test, settings)
    np.testing.assert_allclose(found.predicted, predicted, atol=2e-5)
    assert found.dev == pytest.approx(best, abs=1e-5)
    assert found.checks == checks


def test_the_count_of_bad_checks_is_never_reset() -> None:
    # Two dev pairs correlate at 1 or -1, so that no check but the first at 1 is better: all after it are bad.
    train, dev = pairs(50, 0), pairs(30, 1)
    two = dev[0][[3, 8]], np.sort(dev[1][[3, 8]])[:: 1 if dev[0][3, 0] < dev[0][8, 0] else -1]
    found = regress(train, two, dev[0], Settings(epoch_size=40, max_epoch=4000, tenacity=2))
    assert found.dev == pytest.approx(1)
    assert found.checks == 4


def test_the_global_generator_stays_untouched() -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    regress(pairs(20, 0), pairs(9, 1), pairs(5, 2)[0], Settings(epoch_size=1, max_epoch=1))
    assert torch.equal(torch.get_rng_state(), before)


def test_what_cannot_be_learned_is_named() -> None:
    train, dev = pairs(20, 0), pairs(9, 1)
    with pytest.raises(SembenchError, match="says the same of all dev pairs"):
        regress(train, (np.zeros_like(dev[0]), dev[1]), dev[0], Settings(epoch_size=1, max_epoch=1))
    broken = dev[0].copy()
    broken[4, 2] = np.nan
    with pytest.raises(SembenchError, match="a vector of the test pairs is not finite"):
        regress(train, dev, broken)


def protocol(**raw: object):
    dataset = Dataset.model_validate(
        {"title": "t", "licence": "none", "reader": "stsb", "sources": [{"kind": "fixture"}],
         "files": [{"name": f"sts-{name}.csv"} for name in ("train", "dev", "test")]}
    )  # fmt: skip
    chosen = PROTOCOLS.parse({"kind": "regressor", **raw}, "test")
    return chosen.plugin(chosen.config, Source(ROOT / "tests/fixtures/stsb", dataset))


SPLITS = {"train": ["train"], "dev": ["dev"], "test": ["test"]}


def test_the_protocol_learns_from_train_keeps_by_dev_and_scores_test() -> None:
    asked = protocol(splits=SPLITS, batch_size=4, epoch_size=2, max_epoch=4)
    table = {text: np.random.default_rng(i).normal(size=4).astype(np.float32) for i, text in enumerate(asked.sentences)}

    def features(split):
        first, second, gold = asked._columns(split)
        u, v = (np.array([table[text] for text in side]) for side in (first, second))
        return np.hstack([abs(u - v), u * v]), gold

    settings = Settings(batch_size=4, epoch_size=2, max_epoch=4)
    (train, gold), dev, test = features("train"), features("dev"), features("test")
    columns = asked._columns("train")
    rows = sorted(range(len(gold)), key=lambda i: (len(columns[0][i].split()), len(columns[1][i].split()), gold[i]))
    predicted, best, _ = plain((train[rows], gold[rows]), dev, test[0], settings)
    scores, predictions = asked.score(lambda sentences: np.array([table[text] for text in sentences]))
    found = {(score.split, score.metric): score.value for score in scores}
    assert found["test", "pearson"] == pytest.approx(stats.pearsonr(predicted, test[1]).statistic, abs=1e-5)
    assert found["test", "spearman"] == pytest.approx(stats.spearmanr(predicted, test[1]).statistic, abs=1e-5)
    assert found["dev", "pearson"] == pytest.approx(best, abs=1e-5)
    assert [line["gold"] for line in predictions] == test[1].tolist()


def test_another_split_is_refused() -> None:
    with pytest.raises(SembenchError, match="needs the splits train, dev, test, no other"):
        protocol(splits={"test": ["test"]})
