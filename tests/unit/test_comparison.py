"""Tests and intervals of two systems: against naive loops, numbers worked out by hand, papers' examples, and the null."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from sklearn.metrics import accuracy_score, f1_score

from sembench.results.comparison import Part, bootstrap_test, compare
from sembench.results.resampling import (
    Statistic,
    accuracy,
    accuracy_tests,
    correlation_tests,
    f1,
    interval,
    pearson,
    resamples,
    spearman,
)
from sembench.results.significance import holm, mcnemar, min_f, p_text, steiger, williams

Values = NDArray[np.float64]
SPEARMAN = Statistic("cosine", spearman, correlation_tests(spearman))
ACCURACY = Statistic("predicted", accuracy, accuracy_tests)


# ---------------------------------------------------------------------------------------------- scores of resamples


def graded(generator: np.random.Generator, items: int) -> tuple[Values, Values]:
    """Predictions and gold scores with many ties on both sides."""
    gold = generator.integers(0, 6, items).astype(float)
    return (gold + generator.normal(0, 3, items)).round(0), gold


@pytest.mark.parametrize(("score", "naive"), [(spearman, stats.spearmanr), (pearson, stats.pearsonr)])
def test_a_correlation_under_counts_is_that_of_the_items_repeated(
    score: Callable[..., Values], naive: Callable[..., tuple[float, float]]
) -> None:
    predicted, gold = graded(np.random.default_rng(0), 40)
    [counts] = resamples(40, 25, np.random.default_rng(1))
    for row, found in zip(counts.astype(int), score(predicted[None], gold, counts)[0], strict=True):
        assert found == pytest.approx(naive(np.repeat(predicted, row), np.repeat(gold, row))[0], abs=1e-12)


@pytest.mark.parametrize(("score", "naive"), [(accuracy, accuracy_score), (f1, f1_score)])
def test_a_rate_under_counts_is_that_of_the_items_repeated(
    score: Callable[..., Values], naive: Callable[..., float]
) -> None:
    generator = np.random.default_rng(2)
    predicted, gold = generator.integers(0, 2, (2, 30))
    [counts] = resamples(30, 25, generator)
    for row, found in zip(counts.astype(int), score(predicted[None], gold, counts)[0], strict=True):
        assert found == pytest.approx(naive(np.repeat(gold, row), np.repeat(predicted, row)), abs=1e-12)


def test_a_correlation_without_variation_is_undefined_and_left_out() -> None:
    # Means of 0.1 differ from it in the last bit.
    [counts] = resamples(7, 50, np.random.default_rng(0))
    assert np.isnan(spearman(np.full((1, 7), 0.1), np.arange(7.0), counts)).all()
    assert np.isnan(pearson(np.full((1, 7), 0.1), np.arange(7.0), counts)).all()
    # Of three items one in nine resamples holds a single one.
    low, high = interval(SPEARMAN, np.array([1.0, 2, 3]), np.array([1.0, 2, 3]))
    assert (low, high) == pytest.approx((1, 1))
    values = np.array([1.0, 2, 3])
    said = compare([Part(SPEARMAN, values, values[None], -values[None])], [(1.0, -1.0)])
    assert (said.low, said.high) == pytest.approx((2, 2))


def test_f1_of_a_class_that_is_nowhere_is_0() -> None:
    assert f1(np.zeros((1, 3)), np.zeros(3), np.ones((1, 3))).tolist() == [[0]]


def test_an_interval_is_that_of_a_naive_loop_over_the_same_draws() -> None:
    predicted, gold = graded(np.random.default_rng(3), 50)
    generator, naive = np.random.default_rng(7), []
    for _ in range(400):
        rows = generator.integers(50, size=50)
        naive.append(stats.spearmanr(predicted[rows], gold[rows])[0])
    assert interval(SPEARMAN, predicted, gold, 400, 7) == pytest.approx(np.quantile(naive, [0.025, 0.975]), abs=1e-12)


def test_blocks_of_resamples_are_one_stream() -> None:
    sizes = [len(block) for block in resamples(100_000, 5, np.random.default_rng(0))]
    assert sizes == [2, 2, 1]
    whole = np.concatenate(list(resamples(100_000, 3, np.random.default_rng(0))))
    generator = np.random.default_rng(0)
    rows = [np.bincount(generator.integers(100_000, size=100_000), minlength=100_000) for _ in range(3)]
    assert np.array_equal(whole, rows)


# ------------------------------------------------------------------------------------------------------------- tests


def test_williams_and_steiger_on_the_example_of_steiger_1980() -> None:
    """Table 1 of the paper, N = 103: r(M1, V1) = .40, r(F1, V1) = .50, r(M1, F1) = .10; worked out by hand.

    |R| = 1 - .16 - .25 - .01 + 2 (.4)(.5)(.1) = .62, mean r = .45, so t = -.1 sqrt(102 (1.1) /
    (2 (102 / 100) .62 + .2025 (.9)^3)) = -.1 sqrt(112.2 / 1.4124225) = -.8913 on 100 degrees of freedom. Pooled:
    psi = .1 (.595) - .10125 (.585) = .00026875, s = psi / .7975^2 = .00042256, z = 10 (atanh .4 - atanh .5) /
    sqrt(2 - 2 s) = -1.256572 / 1.413915 = -.8887.
    """
    t, z = williams(0.4, 0.5, 0.1, 103), steiger(0.4, 0.5, 0.1, 103)
    assert (t.statistic, t.df) == (pytest.approx(-0.8913, abs=5e-5), (100,))
    assert t.p == pytest.approx(2 * stats.t.cdf(-0.8913, 100), abs=1e-4) == pytest.approx(0.375, abs=1e-3)
    assert z.statistic == pytest.approx(-0.8887, abs=5e-5)
    assert z.p == pytest.approx(math.erfc(0.8887 / math.sqrt(2)), abs=1e-4)
    assert str(t) == "Williams t(100) = -0.8913, p = 0.375"


def test_two_systems_that_agree_in_everything_do_not_differ() -> None:
    for test in (williams, steiger):
        same = test(0.7, 0.7, 1.0, 50)
        assert (same.statistic, same.p) == (0, 1)
        assert test(0.5, 0.7, 0.9, 50).statistic == -test(0.7, 0.5, 0.9, 50).statistic < 0
    # Correlations of 1 have no Fisher transform of their own.
    assert steiger(1.0, 0.5, 0.5, 50).p < 1e-9


@pytest.mark.parametrize(("score", "naive"), [(spearman, stats.spearmanr), (pearson, stats.pearsonr)])
def test_two_systems_are_tested_by_their_three_correlations(
    score: Callable[..., Values], naive: Callable[..., tuple[float, float]]
) -> None:
    generator = np.random.default_rng(4)
    first, gold = graded(generator, 30)
    second = first + generator.normal(size=30)
    three = [naive(*pair)[0] for pair in ((first, gold), (second, gold), (first, second))]
    t, z = correlation_tests(score)(first, second, gold)
    assert (t.p, z.p) == pytest.approx((williams(*three, 30).p, steiger(*three, 30).p))
    assert correlation_tests(score)(first[:3], second[:3], gold[:3]) == ()


def false_positives(test: Callable[[Values, Values, Values], list[float]], rounds: int) -> Values:
    """Rates at which two systems with equally large errors are told apart at 5%; they share half of their errors."""
    generator, found = np.random.default_rng(11), []
    for _ in range(rounds):
        gold, shared, *own = generator.normal(size=(4, 60))
        found.append([p < 0.05 for p in test(*(gold + shared + each for each in own), gold)])
    return np.mean(found, axis=0)


@pytest.mark.parametrize("score", [spearman, pearson])
def test_the_null_is_rejected_in_one_of_twenty_cases(score: Callable[..., Values]) -> None:
    tests = correlation_tests(score)
    # 600 rounds at a rate of 5%: three standard errors are 2.7 points.
    rates = false_positives(lambda *given: [each.p for each in tests(*given)], 600)
    assert rates == pytest.approx([0.05, 0.05], abs=0.027)


def test_the_paired_bootstrap_rejects_the_null_in_one_of_twenty_cases() -> None:
    def outside(first: Values, second: Values, gold: Values) -> list[float]:
        seen = float(np.subtract(*spearman(np.stack([first, second]), gold, np.ones((1, 60)))[:, 0]))
        said = compare([Part(SPEARMAN, gold, first[None], second[None])], [(seen, 0.0)], draws=200)
        return [1.0 if said.finding == "open" else 0.0]

    [rate] = false_positives(outside, 200)
    assert 0.01 < rate < 0.05 + 0.046


def naive_mcnemar(first: int, second: int) -> tuple[float, float]:
    """Exact p: the chance of all splits of the discordant items at most as likely as this one; mid-p: half of it."""
    total = first + second
    chance = [math.comb(total, k) / 2**total for k in range(total + 1)]
    exact = sum(each for each in chance if each <= chance[first] + 1e-15)
    if not total:
        return 1.0, 1.0
    ties = sum(each for each in chance if abs(each - chance[first]) < 1e-15)
    return exact - ties / 2, exact


@pytest.mark.parametrize(("first", "second"), [(1, 8), (8, 1), (5, 5), (0, 3), (0, 0), (40, 61)])
def test_mcnemar_counts_all_splits_of_the_discordant_items(first: int, second: int) -> None:
    middle, exact = mcnemar(first, second)
    assert (middle.p, exact.p) == pytest.approx(naive_mcnemar(first, second))
    assert exact.p == pytest.approx(stats.binomtest(first, first + second).pvalue if first + second else 1)


def test_mcnemar_by_hand() -> None:
    """Of 9 items 1 to 8: exact 2 (1 + 9) / 512 = .0390625; mid-p takes off half of both tails' last terms, 9 / 512."""
    middle, exact = mcnemar(1, 8)
    assert (exact.p, middle.p) == pytest.approx((0.0390625, 0.021484375))
    right, wrong = np.array([1, 1, 0, 1]), np.array([1, 0, 1, 0])
    assert [each.statistic for each in accuracy_tests(right, wrong, np.ones(4))] == [2, 2]


def test_holm_by_hand() -> None:
    """.01 x 4, .02 x 3 = .06, .03 x 2 = .06, and .04 x 1, which is lifted to what came before it."""
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.9, 0.8]) == [1, 1]
    assert holm([0.03]) == [0.03]
    assert holm([]) == []


@pytest.mark.parametrize(("p", "text"), [(0.0004, "p < 0.001"), (0.0314, "p = 0.031"), (1.0, "p = 1.000")])
def test_how_p_is_printed(p: float, text: str) -> None:
    assert p_text(p) == text


# -------------------------------------------------------------------------------------------------- items with seeds


def test_min_f_by_hand() -> None:
    """Difference 2; variances .25 over 101 items and .15 over 4 seeds: F1 = 16, F2 = 26.667.

    min F' = F1 F2 / (F1 + F2) = 10, df = .4^2 / (.25^2 / 100 + .15^2 / 3) = .16 / .008125 = 19.692.
    """
    found = min_f(2.0, 0.25, 101, 0.15, 4)
    f1_, f2 = 4 / 0.25, 4 / 0.15
    assert found.statistic == pytest.approx(10) == pytest.approx(f1_ * f2 / (f1_ + f2))
    assert found.df == (1, pytest.approx(19.6923, abs=1e-4))
    # Clark's own formula for the degrees of freedom.
    assert found.df[1] == pytest.approx((f1_ + f2) ** 2 / (f1_**2 / 3 + f2**2 / 100))
    assert found.p == pytest.approx(2 * stats.t.sf(math.sqrt(10), found.df[1]))


def crossed(generator: np.random.Generator, of_items: float, of_seeds: float) -> tuple[Part, list[tuple[float, float]]]:
    """40 items and 4 seeds whose true difference is 0; a seed moves all items, an item all seeds."""
    right = (
        generator.normal(0, of_items, 40) + generator.normal(0, of_seeds, (4, 1)) + generator.normal(0, 0.2, (4, 40))
    )
    part = Part(Statistic("value", _mean), np.zeros(40), right, np.zeros((4, 40)))
    return part, [(float(row.mean()), 0.0) for row in right]


def _mean(predicted: Values, gold: Values, counts: Values) -> Values:
    found: Values = (predicted - gold) @ counts.T / counts.sum(axis=1)
    return found


@pytest.mark.parametrize(("of_items", "of_seeds"), [(1.0, 0.0), (0.3, 1.0), (1.0, 0.2)])
def test_an_interval_over_items_and_seeds_leaves_out_the_truth_in_at_most_one_of_twenty_cases(
    of_items: float, of_seeds: float
) -> None:
    generator = np.random.default_rng(5)
    missed = 0
    for _ in range(300):
        part, values = crossed(generator, of_items, of_seeds)
        missed += compare([part], values, draws=200).finding != "open"
    assert 0.005 < missed / 300 < 0.05 + 0.038


def test_with_several_seeds_items_and_seeds_add_up() -> None:
    generator = np.random.default_rng(8)
    gold = generator.normal(size=50)
    first, second = gold + generator.normal(size=(3, 50)), gold + generator.normal(0, 2, (3, 50))
    scores = [[stats.spearmanr(row, gold)[0] for row in side] for side in (first, second)]
    said = compare([Part(SPEARMAN, gold, first, second)], list(zip(*scores, strict=True)), draws=300, seed=4)
    draws, naive = np.random.default_rng(4), []
    for _ in range(300):
        rows = draws.integers(50, size=50)
        naive.append(np.mean([stats.spearmanr(a[rows], gold[rows])[0] - stats.spearmanr(b[rows], gold[rows])[0]
                              for a, b in zip(first, second, strict=True)]))  # fmt: skip
    gains = np.subtract(*scores)
    item, seed = np.var(naive, ddof=1), np.var(gains, ddof=1) / 3
    df = (item + seed) ** 2 / (item**2 / 49 + seed**2 / 2)
    reach = stats.t.ppf(0.975, df) * math.sqrt(item + seed)
    assert (said.low, said.high) == pytest.approx((gains.mean() - reach, gains.mean() + reach), abs=1e-10)
    assert (said.seeds, said.items) == (3, 50)
    assert (said.p < 0.05) == (said.finding != "open")


def test_one_pair_of_runs_has_a_percentile_interval_around_the_given_difference() -> None:
    generator = np.random.default_rng(9)
    gold = generator.normal(size=40)
    first, second = gold + generator.normal(size=40), gold + generator.normal(size=40)
    draws, naive = np.random.default_rng(2), []
    for _ in range(300):
        rows = draws.integers(40, size=40)
        naive.append(stats.spearmanr(first[rows], gold[rows])[0] - stats.spearmanr(second[rows], gold[rows])[0])
    seen = stats.spearmanr(first, gold)[0] - stats.spearmanr(second, gold)[0]
    # Values as a table prints them: times 100, and rounded.
    part = Part(SPEARMAN, gold, first[None], second[None], weight=100)
    said = compare([part], [(round(100 * seen, 1), 0.0)], draws=300, seed=2)
    low, high = 100 * (np.quantile(naive, [0.025, 0.975]) - seen) + round(100 * seen, 1)
    assert (said.low, said.high) == pytest.approx((low, high), abs=1e-10)
    assert [test.name for test in said.tests] == ["Williams t", "Steiger z"]


def test_parts_are_resampled_apart_and_weighted() -> None:
    """The mean over two tasks: its variance is a quarter of the sum of theirs."""
    generator = np.random.default_rng(6)
    values = generator.normal(size=(2, 1, 200))
    parts = [Part(Statistic("value", _mean), np.zeros(200), row, np.zeros((1, 200)), 0.5) for row in values]
    said = compare(parts, [(0.0, 0.0)], draws=4000)
    sd = math.sqrt(sum(row.var() for row in values) / 200 / 4)
    assert (said.low, said.high) == pytest.approx((-1.96 * sd, 1.96 * sd), rel=0.06)
    assert said.items == 400
    assert [test.name for test in said.tests] == ["bootstrap draws beyond 0"]


def test_an_untouched_system_is_the_same_beside_every_seed() -> None:
    generator = np.random.default_rng(1)
    gold, plain = generator.normal(size=(2, 30))
    trained = gold + generator.normal(size=(3, 30))
    part = Part(SPEARMAN, gold, trained, np.tile(plain, (3, 1)))
    counts = next(resamples(30, 5, generator))
    naive = spearman(trained, gold, counts).mean(axis=0) - spearman(plain[None], gold, counts)[0]
    assert part.differences(counts) == pytest.approx(naive)


def test_a_system_beside_itself_is_open() -> None:
    gold = np.arange(20.0)
    predicted = gold[None, ::-1]
    for seeds, kept in product((1, 3), (SPEARMAN, ACCURACY)):
        both = np.tile(predicted, (seeds, 1))
        said = compare([Part(kept, gold, both, both)], [(0.5, 0.5)] * seeds, draws=50)
        assert (said.difference, said.low, said.high, said.finding, said.p) == (0, 0, 0, "open", 1)


def test_the_test_of_a_bootstrap_counts_the_draws_beyond_0() -> None:
    """3 of 99 draws are not above 0: 2 (3 + 1) / 100."""
    drawn = np.concatenate([np.full(96, 1.0), [0.0, -1.0, -2.0]])
    assert bootstrap_test(drawn).p == pytest.approx(0.08)
    assert bootstrap_test(np.zeros(9)).p == 1
