"""Score records and their aggregation, against hand-computed numbers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from sembench.core.errors import SembenchError
from sembench.registry.models import Metric
from sembench.results.aggregate import seed_summary, select
from sembench.results.records import RECORD_DTYPES, read_scores, records_frame, write_parquet


def record(**given: Any) -> dict[str, Any]:
    line = {
        "run": "minilm.s0.01234567", "variant": "minilm", "seed": 0, "readout": "mean", "suite": "sts", "task": "stsb",
        "subset": "", "split": "test", "aggregation": "all", "metric": "spearman", "value": 0.7685, "n": 1379,
        "sample_hash": "ab" * 16, "protocol": 1, "stage": 1, "device": "cpu", "precision": "fp32", "seconds": 1,
        "created": "2025-01-02T03:04:05+00:00",
    }  # fmt: skip
    return line | given


def test_frame_has_the_columns_in_order_and_their_types():
    frame = records_frame([record()])
    assert list(frame.columns) == list(RECORD_DTYPES)
    assert frame["seconds"].dtype == "float64"
    assert frame["n"].dtype == "int64"
    assert frame.loc[0, "value"] == 0.7685


def test_an_empty_frame_keeps_columns_and_types():
    frame = records_frame([])
    assert list(frame.columns) == list(RECORD_DTYPES)
    assert len(frame) == 0
    assert frame["value"].dtype == "float64"


@pytest.mark.parametrize("value", [math.nan, math.inf, None, "much"])
def test_a_value_that_is_no_number_names_run_and_task(value: Any):
    with pytest.raises(SembenchError, match=r"minilm\.s0\.01234567.*stsb.*'value'"):
        records_frame([record(), record(task="stsb", value=value)])


def test_missing_and_unknown_columns_are_named():
    short = record()
    del short["sample_hash"]
    with pytest.raises(SembenchError, match="missing column 'sample_hash'"):
        records_frame([short])
    with pytest.raises(SembenchError, match="unknown column 'colour'"):
        records_frame([record(colour=1)])


def test_records_survive_the_disk(tmp_path: Path):
    first, second = tmp_path / "a" / "sts.parquet", tmp_path / "b" / "sts.parquet"
    write_parquet(records_frame([record()]), first)
    write_parquet(records_frame([record(run="other.s1.76543210", seed=1)]), second)
    both = read_scores([first, second])
    pd.testing.assert_frame_equal(both, records_frame([record(), record(run="other.s1.76543210", seed=1)]))
    assert sorted(path.name for path in first.parent.iterdir()) == ["sts.parquet"]


def test_no_files_are_no_scores():
    assert read_scores([]).empty


def test_an_unreadable_file_is_named_with_the_remedy(tmp_path: Path):
    broken = tmp_path / "sts.parquet"
    broken.write_bytes(b"PAR1 and then nothing")
    with pytest.raises(SembenchError, match=r"sts\.parquet .*delete it and run again"):
        read_scores([broken])
    with pytest.raises(SembenchError, match=r"absent\.parquet"):
        read_scores([tmp_path / "absent.parquet"])


def test_a_file_that_lacks_a_column_is_named_with_the_remedy(tmp_path: Path):
    path = tmp_path / "sts.parquet"
    records_frame([record()]).drop(columns="protocol").to_parquet(path)
    with pytest.raises(SembenchError, match=r"sts\.parquet lacks the column 'protocol'; delete it and run again"):
        read_scores([path])


def test_the_same_score_in_two_files_is_refused(tmp_path: Path):
    paths = [tmp_path / "one.parquet", tmp_path / "two.parquet"]
    for path, value in zip(paths, (0.5, 0.6), strict=True):
        write_parquet(records_frame([record(value=value)]), path)
    with pytest.raises(SembenchError, match=r"scored twice in .*one\.parquet and .*two\.parquet"):
        read_scores(paths)
    # The same path named twice is one file.
    assert len(read_scores([paths[0], paths[0]])) == 1


def test_seed_summary_is_mean_and_sample_deviation():
    # Deviations -1, 0, 1: the sum of squares 2 over n - 1 = 2 is 1.
    assert seed_summary([75.0, 76.0, 77.0]) == (76.0, 1.0, 3)
    assert seed_summary([2.0, 4.0]) == (3.0, pytest.approx(math.sqrt(2)), 2)
    assert seed_summary([76.5]) == (76.5, None, 1)
    with pytest.raises(SembenchError):
        seed_summary([])


def test_select_takes_one_metric_and_the_named_runs():
    frame = records_frame(
        [
            record(),
            record(run="other.s0.00000000"),
            record(metric="pearson"),
            record(split="dev"),
            record(aggregation="subset", subset="images"),
        ]
    )
    found = select(frame, Metric(suite="sts", task="stsb"), {"minilm.s0.01234567"})
    assert found.index.tolist() == [0]


def test_select_refuses_scores_from_different_data():
    frame = records_frame([record(), record(run="other.s0.00000000", sample_hash="cd" * 16)])
    metric = Metric(suite="sts", task="stsb")
    with pytest.raises(SembenchError, match=r"sts/stsb/test.*cells from different data \(abababab and cdcdcdcd\)"):
        select(frame, metric, set(frame["run"]))
    assert len(select(frame, metric, {"other.s0.00000000"})) == 1
