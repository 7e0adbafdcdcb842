"""Protocols against scipy, naive loops, and numbers worked out by hand."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from sembench.core.errors import SembenchError
from sembench.evaluation.geometry import alignment, uniformity
from sembench.evaluation.pairs import read_pairs, sample_hash
from sembench.evaluation.score import Part, read_parts, score
from sembench.evaluation.sts import aggregate, correlation, cosine
from sembench.registry import Plan, load_registry
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


# --------------------------------------------------------------------------------------------------------- readers


def dataset(reader: str, *names: str, header: bool = False) -> Dataset:
    files = [{"name": name, "header": header} for name in names]
    return Dataset.model_validate(
        {"title": "t", "licence": "l", "reader": reader, "files": files, "sources": [{"kind": "fixture"}]}
    )


STS = dataset("sts", "STS.input.part.txt", "STS.gs.part.txt")


def write(folder: Path, name: str, text: str) -> None:
    (folder / name).write_bytes(text.encode())


def test_sts_reader_skips_pairs_without_a_gold_score(tmp_path: Path) -> None:
    write(tmp_path, "STS.input.part.txt", "A b.\tC d.\tsource\nE\tF\nG\tH\r\n")
    write(tmp_path, "STS.gs.part.txt", "4\n\n0.5\n")
    pairs = read_pairs(STS, tmp_path, "part")
    assert (pairs.first, pairs.second, pairs.gold.tolist()) == (["A b.", "G"], ["C d.", "H"], [4.0, 0.5])


def test_only_line_feeds_end_a_line(tmp_path: Path) -> None:
    write(tmp_path, "STS.input.part.txt", "A\u2028b.\tC\u0085d.\nE\tF\n")
    write(tmp_path, "STS.gs.part.txt", "4\n1\n")
    assert read_pairs(STS, tmp_path, "part").first == ["A\u2028b.", "E"]


@pytest.mark.parametrize(
    ("inputs", "golds", "message"),
    [
        ("A\tB\n", "", r"STS\.gs\.part\.txt is empty"),
        ("", "1\n", r"STS\.input\.part\.txt is empty"),
        ("A\tB\nC\tD\n", "1\n", "has 2 lines but"),
        ("A\tB\nC\n", "1\n2\n", "line 2: 1 tab-separated columns where 2 are needed"),
        ("A\tB\nC\tD\n", "1\nnan\n", "line 2: the gold score 'nan' is no finite number"),
        ("A\tB\nC\tD\n", "1\nhigh\n", "line 2: the gold score 'high'"),
        ("A\tB\n", "\n \n", r"STS\.gs\.part\.txt is empty"),
    ],
)
def test_broken_sts_files_are_named(tmp_path: Path, inputs: str, golds: str, message: str) -> None:
    write(tmp_path, "STS.input.part.txt", inputs)
    write(tmp_path, "STS.gs.part.txt", golds)
    with pytest.raises(SembenchError, match=message):
        read_pairs(STS, tmp_path, "part")


def test_stsb_reader_takes_columns_five_to_seven(tmp_path: Path) -> None:
    write(tmp_path, "sts-dev.csv", 'main\tf\ty\t1\t2.5\tHe said "no.\tShe, too.\textra\n')
    pairs = read_pairs(dataset("stsb", "sts-dev.csv"), tmp_path, "dev")
    assert (pairs.first, pairs.second, pairs.gold.tolist()) == (['He said "no.'], ["She, too."], [2.5])


def test_sick_reader_goes_by_the_header(tmp_path: Path) -> None:
    sick = dataset("sick", "SICK_test_annotated.txt", header=True)
    write(tmp_path, "SICK_test_annotated.txt", "pair_ID\trelatedness_score\tsentence_B\tsentence_A\n1\t3.5\tB b\tA a\n")
    pairs = read_pairs(sick, tmp_path, "test_annotated")
    assert (pairs.first, pairs.second, pairs.gold.tolist()) == (["A a"], ["B b"], [3.5])
    write(tmp_path, "SICK_test_annotated.txt", "pair_ID\tsentence_A\tsentence_B\n1\tA\tB\n")
    with pytest.raises(SembenchError, match="column 'relatedness_score' is missing"):
        read_pairs(sick, tmp_path, "test_annotated")


def test_sample_hash_sees_texts_and_scores(tmp_path: Path) -> None:
    def hashed(text: str, gold: str) -> str:
        write(tmp_path, "STS.input.part.txt", text)
        write(tmp_path, "STS.gs.part.txt", gold)
        return sample_hash([read_pairs(STS, tmp_path, "part")])

    base = hashed("A\tB\n", "1\n")
    assert base == hashed("A\tB\tignored\n", "1.0\n")
    assert len({base, hashed("A\tC\n", "1\n"), hashed("A\tB\n", "2\n")}) == 3


# ----------------------------------------------------------------------------------------------------------- scoring


class CountingEncoder:
    """Vectors from a table; counts the sentences it is asked for."""

    kind = "static"
    readouts = ("mean",)

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(self, sentences, readouts):
        self.asked += sentences
        rng = [np.random.default_rng(sum(map(ord, s))).normal(size=8) for s in sentences]
        return dict.fromkeys(readouts, np.array(rng, dtype=np.float32))


def smoke_parts() -> list[Part]:
    plan = Plan("smoke", root=ROOT)
    folders = {"smoke_stsb": "stsb", "smoke_sts16": "sts16", "smoke_sick": "sick"}
    return read_parts(
        plan.job_suites("sts"), plan.registry.datasets, lambda key: ROOT / "tests/fixtures" / folders[key]
    )


def test_every_sentence_is_encoded_once_for_all_suites() -> None:
    encoder, parts = CountingEncoder(), smoke_parts()
    score(encoder, parts)
    assert len(encoder.asked) == len(set(encoder.asked))
    assert set(encoder.asked) == {s for part in parts for s in part.sentences}


def test_scores_equal_a_plain_recomputation() -> None:
    encoder, parts = CountingEncoder(), smoke_parts()
    scored = score(encoder, parts)
    [part] = [p for p in parts if p.task == "sts16"]
    vector = lambda s: encoder.encode([s], ["mean"])["mean"][0].astype(float)  # noqa: E731
    cosines, golds = [], []
    for pairs in part.pairs:
        for a, b, g in zip(pairs.first, pairs.second, pairs.gold, strict=True):
            x, y = vector(a), vector(b)
            cosines.append(round(float(x @ y / np.linalg.norm(x) / np.linalg.norm(y)), 12))
            golds.append(float(g))
    [record] = [
        r for r in scored.records if r["task"] == "sts16" and r["aggregation"] == "all" and r["metric"] == "spearman"
    ]
    assert record["value"] == pytest.approx(stats.spearmanr(cosines, golds).statistic, abs=1e-9)
    assert record["n"] == len(golds) == 15
    kept = [p["cosine"] for p in scored.predictions if p["task"] == "sts16"]
    np.testing.assert_allclose(kept, cosines, atol=1e-6)


def test_geometry_uses_pairs_strictly_above_four() -> None:
    parts = smoke_parts()
    records = score(CountingEncoder(), parts).records
    [aligned] = [r for r in records if r["metric"] == "alignment"]
    [part] = [p for p in parts if p.suite == "geometry"]
    assert aligned["n"] == sum(int((pairs.gold > 4.0).sum()) for pairs in part.pairs) > 0
    [uniform] = [r for r in records if r["metric"] == "uniformity"]
    assert uniform["n"] == 72


def test_a_vector_that_is_not_finite_stops_the_scoring() -> None:
    class Broken(CountingEncoder):
        def encode(self, sentences, readouts):
            found = super().encode(sentences, readouts)
            found["mean"][3, 2] = np.nan
            return found

    with pytest.raises(SembenchError, match="not finite under read-out 'mean'"):
        score(Broken(), smoke_parts())


@pytest.mark.realdata
@pytest.mark.parametrize(
    ("task", "sizes"),
    [
        ("sts12", [750, 750, 459, 750, 399]),
        ("sts13", [189, 750, 561]),
        ("sts14", [450, 300, 750, 750, 750, 750]),
        ("sts15", [375, 750, 375, 750, 750]),
        ("sts16", [254, 249, 230, 244, 209]),
    ],
)
@pytest.mark.parametrize("form", ["", "_senteval"])
def test_real_subsets_have_the_published_sizes(task: str, sizes: list[int], form: str) -> None:
    import os

    registry = load_registry(ROOT)
    entry = registry.datasets[task + form]
    mirror = Path(os.environ["SEMBENCH_MIRROR"])
    folder = (mirror / entry.sources[0].member("x")).parent
    subsets = registry.suites["sts"]["tasks"][task]["splits"]["test"]
    assert [len(read_pairs(entry, folder, subset)) for subset in subsets] == sizes
