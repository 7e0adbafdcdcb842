"""Kernels against scipy, naive loops, and numbers worked out by hand; protocols over pairs; the engine."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from sembench.core.errors import SembenchError
from sembench.core.plugin import PROTOCOLS, TRANSFORMS
from sembench.evaluation.engine import Fitting, MemoryFits, Request, Scored, score
from sembench.evaluation.geometry import alignment, counted, uniformity
from sembench.evaluation.protocol import Source
from sembench.evaluation.spectrum import effective_rank, largest_share, singular_values
from sembench.evaluation.sts import aggregate, correlation, cosine
from sembench.registry.models import Dataset

ROOT = Path(__file__).parents[2]


def test_cosine_by_hand_and_zero_vectors() -> None:
    a = np.array([[3.0, 4.0], [1.0, 0.0], [0.0, 0.0]], dtype=np.float32)
    b = np.array([[4.0, 3.0], [0.0, 2.0], [1.0, 1.0]], dtype=np.float32)
    np.testing.assert_allclose(cosine(a, b), [24 / 25, 0.0, 0.0], atol=1e-12)


def test_equal_sentences_tie() -> None:
    rows = np.random.default_rng(0).normal(size=(200, 384)).astype(np.float32)
    assert set(cosine(rows, rows)) == {1.0}


def test_spearman_with_ties_by_hand() -> None:
    # Ranks 1, 2.5, 2.5, 4 against 1, 3, 2, 4: Pearson of the ranks is 4.5 / sqrt(4.5 * 5).
    predicted, gold = np.array([0.1, 0.5, 0.5, 0.9]), np.array([0.0, 3.0, 2.0, 5.0])
    assert correlation("spearman", predicted, gold) == pytest.approx(4.5 / math.sqrt(4.5 * 5), abs=1e-12)


def test_pearson_by_hand() -> None:
    # Centred: (-4/3, -1/3, 5/3) and (-1, 1, 0); products 4/3 - 1/3 = 1; squares 42/9 and 2.
    found = correlation("pearson", np.array([1.0, 2.0, 4.0]), np.array([1.0, 3.0, 2.0]))
    assert found == pytest.approx(1 / math.sqrt(42 / 9 * 2), abs=1e-12)


def test_aggregations_differ_and_equal_scipy() -> None:
    rng = np.random.default_rng(0)
    gold = [rng.uniform(0, 5, 40), rng.uniform(0, 5, 10)]
    predicted = [gold[0] + rng.normal(0, 1, 40), 3 * gold[1] + rng.normal(0, 9, 10) - 20]
    parts = [stats.spearmanr(p, g).statistic for p, g in zip(predicted, gold, strict=True)]
    found = aggregate("spearman", predicted, gold)
    assert found["mean"] == pytest.approx((parts[0] + parts[1]) / 2)
    assert found["wmean"] == pytest.approx((40 * parts[0] + 10 * parts[1]) / 50)
    assert found["all"] == pytest.approx(stats.spearmanr(np.concatenate(predicted), np.concatenate(gold)).statistic)
    assert len({round(value, 6) for value in found.values()}) == 3


def test_constant_predictions_are_an_error_not_nan() -> None:
    with pytest.raises(SembenchError, match="undefined"):
        correlation("spearman", np.ones(5), np.arange(5.0))


def test_alignment_by_hand() -> None:
    # Unit vectors at a right angle are sqrt(2) apart, opposite ones 2, equal ones 0: (2 + 4 + 0) / 3.
    a = np.array([[2, 0], [1, 0], [5, 0]], dtype=np.float32)
    b = np.array([[0, 3], [-1, 0], [1, 0]], dtype=np.float32)
    assert alignment(a, b) == pytest.approx(2.0)


def test_uniformity_by_hand_counts_self_pairs() -> None:
    # Two opposite unit vectors: of the four ordered pairs two are selves (exp 0) and two are at squared distance 4.
    a = np.array([[1, 0], [-1, 0]], dtype=np.float32)
    assert uniformity(a) == pytest.approx(math.log((2 + 2 * math.exp(-8)) / 4))


def test_uniformity_equals_a_naive_loop_over_blocks_and_repeats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sembench.evaluation.geometry._BLOCK", 4)
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(11, 3)).astype(np.float32)
    counts = np.array([1, 3, 1, 1, 2, 1, 1, 1, 1, 1, 4])
    full = [rows[i].astype(float) / np.linalg.norm(rows[i].astype(float)) for i in range(11) for _ in range(counts[i])]
    total = sum(math.exp(-2 * sum((x - y) ** 2)) for x, y in itertools.product(full, full))
    assert uniformity(rows, counts) == pytest.approx(math.log(total / len(full) ** 2), abs=1e-9)


def test_sentences_are_counted_in_their_order() -> None:
    unique, counts = counted(["b", "a", "b", "c", "b"])
    assert (unique, counts.tolist()) == (["b", "a", "c"], [3, 1, 1])


def test_singular_values_of_axes_by_hand() -> None:
    # Three unit vectors along one axis and one along another: the Gram matrix is diag(3, 1).
    rows = np.array([[5, 0], [2, 0], [1, 0], [0, 7]], dtype=np.float32)
    values = singular_values(rows)
    np.testing.assert_allclose(values, [math.sqrt(3), 1.0])
    np.testing.assert_allclose(singular_values(rows[[0, 3]], np.array([3, 1])), values)
    assert largest_share(values) == pytest.approx(3 / 4)
    p = math.sqrt(3) / (math.sqrt(3) + 1)
    assert effective_rank(values) == pytest.approx(math.exp(-p * math.log(p) - (1 - p) * math.log(1 - p)))


def test_singular_values_of_isotropic_and_of_equal_vectors() -> None:
    even = singular_values(np.eye(6, dtype=np.float32))
    np.testing.assert_allclose(even, np.ones(6))
    assert (largest_share(even), effective_rank(even)) == (pytest.approx(1 / 6), pytest.approx(6))
    one = singular_values(np.ones((5, 8), dtype=np.float32))
    np.testing.assert_allclose(one, [math.sqrt(5), 0, 0, 0, 0], atol=1e-7)
    assert largest_share(one) == pytest.approx(1)
    with pytest.raises(SembenchError, match="all sentence vectors are zero"):
        singular_values(np.zeros((3, 2), dtype=np.float32))


@pytest.mark.parametrize("shape", [(40, 7), (5, 9)])
def test_singular_values_equal_numpy_on_repeated_rows(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=shape).astype(np.float32)
    counts = rng.integers(1, 4, shape[0])
    full = np.repeat(rows.astype(float) / np.linalg.norm(rows.astype(float), axis=1, keepdims=True), counts, axis=0)
    expected = np.linalg.svd(full, compute_uv=False)[: min(shape)]
    np.testing.assert_allclose(singular_values(rows, counts), expected, atol=1e-7)


# ------------------------------------------------------------------------------------------- protocols over pairs


def source(folder: str, reader: str, *names: str) -> Source:
    files = [{"name": name} for name in names]
    entry = {"title": folder, "licence": "l", "reader": reader, "files": files, "sources": [{"kind": "fixture"}]}
    return Source(ROOT / "tests/fixtures" / folder, Dataset.model_validate(entry))


STSB = source("stsb", "stsb", "sts-train.csv", "sts-dev.csv", "sts-test.csv")
STS16 = source(
    "sts16", "sts", *(f"STS.{kind}.{name}.txt" for kind in ("input", "gs") for name in ("kitchen", "garden"))
)
SICK = source("sick", "sick", "SICK_test_annotated.txt")


def request(task: str, data: Source, readout: str = "mean", fitting: Fitting | None = None, **raw: object) -> Request:
    chosen = PROTOCOLS.parse({"kind": "sts", **raw}, task)
    return Request(readout, str(raw.get("suite", "any")), task, chosen.plugin(chosen.config, data), fitting)


def requests() -> list[Request]:
    return [
        request("stsb", STSB, splits={"dev": ["dev"], "test": ["test"]}),
        request("sts16", STS16, splits={"test": ["kitchen", "garden"]}),
        request("sickr", SICK, splits={"test": ["test_annotated"]}),
        request("space", STSB, kind="geometry", splits={"all": ["train", "dev", "test"]}),
        request("values", STSB, kind="spectrum", splits={"all": ["train", "dev", "test"]}),
    ]


class CountingEncoder:
    """Random vectors that belong to a sentence; counts what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.readouts: list[str] = []

    def encode(self, sentences, readouts):
        self.asked += sentences
        self.readouts += readouts
        rows = [np.random.default_rng(list(s.encode())).normal(size=8) for s in sentences]
        return {name: np.array(rows, dtype=np.float32) + (name == "cls") for name in readouts}


def scored(asked: list[Request], encoder: CountingEncoder | None = None) -> dict[str, Scored]:
    return {found.request.task: found for found in score(encoder or CountingEncoder(), asked)}


def test_every_sentence_is_encoded_once_for_all_tasks() -> None:
    encoder, asked = CountingEncoder(), requests()
    assert list(scored(asked, encoder)) == [each.task for each in asked]
    assert len(encoder.asked) == len(set(encoder.asked))
    assert set(encoder.asked) == {sentence for each in asked for sentence in each.protocol.sentences}
    assert encoder.readouts == ["mean"]
    assert list(score(encoder, [])) == []


def test_sts_equals_a_plain_recomputation() -> None:
    encoder = CountingEncoder()
    found = scored(requests(), encoder)["sts16"]
    vector = lambda s: encoder.encode([s], ["mean"])["mean"][0].astype(float)  # noqa: E731
    cosines, golds, by_subset = [], [], {}
    for pairs in found.request.protocol.parts["test"]:
        start = len(cosines)
        for a, b, g in zip(pairs.first, pairs.second, pairs.gold, strict=True):
            x, y = vector(a), vector(b)
            cosines.append(round(float(x @ y / np.linalg.norm(x) / np.linalg.norm(y)), 12))
            golds.append(float(g))
        by_subset[pairs.subset] = stats.pearsonr(cosines[start:], golds[start:]).statistic
    records = {(r["subset"], r["aggregation"], r["metric"]): r for r in found.records}
    assert len(records) == len(found.records) == 2 * (3 + 2)
    assert records["", "all", "spearman"]["value"] == pytest.approx(stats.spearmanr(cosines, golds).statistic, abs=1e-9)
    assert records["", "all", "spearman"]["n"] == len(golds) == 15
    for subset, value in by_subset.items():
        assert records[subset, "subset", "pearson"]["value"] == pytest.approx(value, abs=1e-9)
    np.testing.assert_allclose(found.predictions["cosine"], cosines, atol=1e-6)
    assert found.predictions["gold"].tolist() == golds
    assert {(r["suite"], r["task"], r["readout"], r["protocol"]) for r in found.records} == {
        ("any", "sts16", "mean", 1)
    }


def test_correlations_are_computed_anew_from_predictions() -> None:
    found = scored(requests(), CountingEncoder())["sts16"]
    records = {(r["aggregation"], r["metric"]): r["value"] for r in found.records}
    statistics = found.request.protocol.statistics()
    assert set(statistics) == {"spearman", "pearson"}
    once = np.ones((1, len(found.predictions)))
    for metric, each in statistics.items():
        values, gold = (found.predictions[name].to_numpy() for name in (each.column, "gold"))
        assert each.score(values[None], gold, once)[0, 0] == pytest.approx(records["all", metric], abs=1e-12)


def test_the_protocol_knows_neither_suite_nor_task() -> None:
    one = request("sts16", STS16, splits={"test": ["kitchen"]})
    other = Request("mean", "another_suite", "another_task", one.protocol)
    first, second = score(CountingEncoder(), [one, other])
    assert [{**r, "suite": "any", "task": "sts16"} for r in second.records] == first.records
    assert {r["suite"] for r in second.records} == {"another_suite"}


def test_geometry_uses_pairs_strictly_above_four_and_repeats() -> None:
    encoder = CountingEncoder()
    found = scored(requests(), encoder)["space"]
    records = {r["metric"]: r for r in found.records}
    parts = found.request.protocol.parts["all"]
    above = [(a, b) for pairs in parts for a, b, g in zip(pairs.first, pairs.second, pairs.gold, strict=True) if g > 4]
    vector = lambda s: encoder.encode([s], ["mean"])["mean"].astype(float)  # noqa: E731
    unit = lambda s: vector(s)[0] / np.linalg.norm(vector(s))  # noqa: E731
    expected = np.mean([np.sum((unit(a) - unit(b)) ** 2) for a, b in above])
    assert records["alignment"]["n"] == len(above) > 0
    assert records["alignment"]["value"] == pytest.approx(expected)
    units = np.array([unit(s) for s in found.request.protocol.sentences])
    kernel = np.exp(-2 * ((units[:, None] - units[None]) ** 2).sum(axis=2))
    assert records["uniformity"]["n"] == len(units) == 72
    assert records["uniformity"]["value"] == pytest.approx(math.log(kernel.mean()))
    assert len(found.predictions) == 0
    with pytest.raises(
        SembenchError, match=r"suite any, task x, read-out mean: split all: no pair is scored above 5\.0"
    ):
        scored([request("x", STSB, kind="geometry", splits={"all": ["dev"]}, positives_above=5.0)])


def test_the_spectrum_has_its_largest_value_at_one() -> None:
    encoder = CountingEncoder()
    found = scored(requests(), encoder)["values"]
    rows = encoder.encode(list(found.request.protocol.sentences), ["mean"])["mean"].astype(float)
    values = np.linalg.svd(rows / np.linalg.norm(rows, axis=1, keepdims=True), compute_uv=False)
    assert found.predictions["index"].tolist() == list(range(8))
    np.testing.assert_allclose(found.predictions["value"], values / values[0], atol=1e-7)
    records = {r["metric"]: r["value"] for r in found.records}
    assert records["largest_share"] == pytest.approx(values[0] ** 2 / (values**2).sum())
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    assert records["average_cosine"] == pytest.approx(np.mean([a @ b for a in rows for b in rows]))


def test_a_vector_that_is_not_finite_stops_the_scoring() -> None:
    class Broken(CountingEncoder):
        def encode(self, sentences, readouts):
            found = super().encode(sentences, readouts)
            found["mean"][3, 2] = np.nan
            return found

    with pytest.raises(SembenchError, match="not finite under read-out 'mean'"):
        scored(requests(), Broken())


def test_equal_cosines_name_task_and_split() -> None:
    class Constant(CountingEncoder):
        def encode(self, sentences, readouts):
            return dict.fromkeys(readouts, np.ones((len(sentences), 3), dtype=np.float32))

    with pytest.raises(
        SembenchError, match="suite any, task stsb, read-out mean: split dev: the correlation is undefined"
    ):
        scored(requests(), Constant())


def test_data_made_here_hold_no_pairs(tmp_path: Path) -> None:
    with pytest.raises(SembenchError, match="reads a fetched data set, not one made here"):
        request("x", Source(tmp_path, examples="x.parquet"), splits={"test": ["test"]})


# -------------------------------------------------------------------------------------------- fitted read-outs

WHITENING = TRANSFORMS.parse({"kind": "whitening"}, "test")


def whitened(rows: np.ndarray, on: np.ndarray) -> np.ndarray:
    on = on.astype(np.float64)
    values, vectors = np.linalg.eigh(np.cov(on.T))
    return (rows.astype(np.float64) - on.mean(axis=0)) @ vectors / np.sqrt(values)


def spearman_of(found: Scored, split: str = "test") -> float:
    [value] = [
        r["value"] for r in found.records if (r["split"], r["aggregation"], r["metric"]) == (split, "all", "spearman")
    ]
    return value


def by_hand(protocol, vectors) -> float:
    cosines, golds = [], []
    for pairs in protocol.parts["test"]:
        a, b = vectors(pairs.first), vectors(pairs.second)
        found = np.sum(a * b, axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
        # Equal sentences must tie at 1.
        cosines += found.round(12).tolist()
        golds += pairs.gold.tolist()
    return float(stats.spearmanr(cosines, golds).statistic)


def test_a_transform_fitted_on_the_task_sees_its_unique_sentences_alone() -> None:
    encoder, splits = CountingEncoder(), {"test": ["kitchen", "garden"]}
    asked = [
        request("sts16", STS16, "mean.whitening_task", Fitting(WHITENING), splits=splits),
        request("sickr", SICK, "cls.whitening_task", Fitting(WHITENING), splits={"test": ["test_annotated"]}),
    ]
    found = scored(asked, encoder)
    assert len(encoder.asked) == len(set(encoder.asked))
    for each in asked:
        base = each.readout.split(".")[0]
        plain = lambda sentences: CountingEncoder().encode(sentences, [base])[base]  # noqa: B023, E731
        unique = plain(sorted(set(each.protocol.sentences)))
        expected = by_hand(each.protocol, lambda sentences: whitened(plain(sentences), unique))  # noqa: B023
        assert spearman_of(found[each.task]) == pytest.approx(expected, abs=1e-6)
        assert {r["readout"] for r in found[each.task].records} == {each.readout}


def test_a_transform_fitted_on_given_sentences_is_fitted_once_and_kept() -> None:
    shared = list(request("x", SICK, splits={"test": ["test_annotated"]}).protocol.sentences)[:3]
    given = [*(f"sentence {i}" for i in range(30)), *shared, "sentence 3"]
    fitting = Fitting(WHITENING, lambda: given)
    asked = [
        request("sts16", STS16, "mean.nli", fitting, splits={"test": ["kitchen", "garden"]}),
        request("sickr", SICK, "mean.nli", fitting, splits={"test": ["test_annotated"]}),
        request("plain", SICK, splits={"test": ["test_annotated"]}),
    ]
    encoder, fits = CountingEncoder(), MemoryFits()
    found = {each.request.task: each for each in score(encoder, asked, fits)}
    assert len(encoder.asked) == len(set(encoder.asked))
    assert list(fits.states) == ["mean.nli"]
    plain = lambda sentences: CountingEncoder().encode(sentences, ["mean"])["mean"]  # noqa: E731
    on = plain(list(dict.fromkeys(given)))
    for task in ("sts16", "sickr"):
        expected = by_hand(found[task].request.protocol, lambda sentences: whitened(plain(sentences), on))
        assert spearman_of(found[task]) == pytest.approx(expected, abs=1e-6)
    assert spearman_of(found["plain"]) != spearman_of(found["sickr"])
    # The kept fit is used: neither fitted again nor its sentences encoded.
    again = CountingEncoder()
    repeated = {each.request.task: each for each in score(again, asked, fits)}
    assert not set(again.asked) & {"sentence 1", "sentence 2"}
    np.testing.assert_allclose(spearman_of(repeated["sts16"]), spearman_of(found["sts16"]), atol=1e-12)


def test_a_fit_without_sentences_and_one_that_fails_are_named() -> None:
    splits = {"test": ["kitchen"]}
    with pytest.raises(SembenchError, match=r"read-out 'mean\.nli': there is no sentence to fit"):
        scored([request("sts16", STS16, "mean.nli", Fitting(WHITENING, list), splits=splits)])
    with pytest.raises(
        SembenchError, match=r"read-out 'mean\.nli': whitening .* cannot be fitted on 1 vectors of width 8"
    ):
        scored([request("sts16", STS16, "mean.nli", Fitting(WHITENING, lambda: ["a"]), splits=splits)])
    with pytest.raises(ValueError, match="exactly where its name has one"):
        request("sts16", STS16, "mean.nli", splits=splits)


def test_protocols_and_transforms_load_lightly() -> None:
    code = (
        "import sys\nfrom sembench.core.plugin import PROTOCOLS, TRANSFORMS\n"
        "for family in (PROTOCOLS, TRANSFORMS):\n    [family.get(kind) for kind in family.modules]\n"
        "print(*sorted({'numpy', 'pandas', 'torch', 'scipy', 'sklearn', 'nltk', 'pyarrow'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == ""


def test_every_metric_has_a_unit() -> None:
    import yaml

    units = yaml.safe_load((ROOT / "registry/metrics.yaml").read_text(encoding="utf-8"))
    assert {metric for kind in PROTOCOLS.modules for metric in PROTOCOLS.get(kind).metrics} == set(units)
    assert all(set(unit) == {"title", "times", "digits"} for unit in units.values())
