"""Score records and their aggregation, against hand-computed numbers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from sembench.core.artifact import Artifact, key_of, seal
from sembench.core.errors import SembenchError
from sembench.core.frames import read_frame, write_parquet
from sembench.results.aggregate import paired, paired_gain, seed_summary
from sembench.results.records import RECORD_DTYPES, labelled, records_frame
from sembench.results.store import read_predictions, read_scores, write_scores


def record(**given: Any) -> dict[str, Any]:
    line = {
        "run": "minilm.s0.01234567", "variant": "minilm", "seed": 0, "readout": "mean", "suite": "sts", "task": "stsb",
        "subset": "", "split": "test", "aggregation": "all", "metric": "spearman", "value": 0.7685, "n": 1379,
        "sample_hash": "ab" * 16, "protocol": 1, "device": "cpu", "precision": "fp32", "seconds": 1,
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


def artifact(name: str = "minilm.s0.01234567", task: str = "stsb", inputs: tuple[Artifact, ...] = ()) -> Artifact:
    params = {"run": name, "task": task}
    key = key_of("scores", params, inputs)
    stem = f"sts.{task}.{key}"
    folder = Path("results/smoke/scores") / name / "mean"
    files = (f"{stem}.parquet", f"{stem}.predictions.parquet")
    return Artifact("scores", name, params, inputs, folder, files, f"{stem}.json")


PREDICTIONS = pd.DataFrame({"split": ["test", "test"], "index": [0, 1], "cosine": [0.25, 0.5], "gold": [1.0, 4.0]})


def write(root: Path, one: Artifact, **given: Any) -> None:
    write_scores(root, one, [record(run=one.name, task=one.params["task"], **given)], PREDICTIONS)


def test_scores_and_predictions_survive_the_disk(tmp_path: Path):
    first, second = artifact(), artifact("other.s1.76543210", "sickr")
    write(tmp_path, first)
    write(tmp_path, second, seed=1)
    both = read_scores(tmp_path, [first, second, first])
    expected = [record(), record(run="other.s1.76543210", task="sickr", seed=1)]
    pd.testing.assert_frame_equal(both, records_frame(expected))
    pd.testing.assert_frame_equal(read_predictions(tmp_path, first), PREDICTIONS)
    assert sorted(path.name for path in (tmp_path / first.folder).iterdir()) == sorted(
        [*first.files, first.record_name]
    )


def test_no_predictions_are_an_empty_table(tmp_path: Path):
    write_scores(tmp_path, artifact(), [record()], pd.DataFrame())
    assert len(read_predictions(tmp_path, artifact())) == 0
    assert len(read_scores(tmp_path, [artifact()])) == 1


def test_the_same_scores_are_the_same_bytes(tmp_path: Path):
    for side in ("a", "b"):
        write(tmp_path / side, artifact())
    for path in artifact().files:
        one, other = ((tmp_path / side / artifact().folder / path).read_bytes() for side in ("a", "b"))
        assert one == other


def test_no_artefacts_are_no_scores(tmp_path: Path):
    assert list(read_scores(tmp_path, []).columns) == list(RECORD_DTYPES)


def test_a_missing_and_a_changed_file_are_named_with_the_remedy(tmp_path: Path):
    one = artifact()
    with pytest.raises(SembenchError, match="is not made yet"):
        read_scores(tmp_path, [one])
    write(tmp_path, one)
    path = tmp_path / one.folder / one.files[0]
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(SembenchError, match=r"sts\.stsb\..*parquet was changed after it was made; delete"):
        read_scores(tmp_path, [one])
    (tmp_path / one.record).unlink()
    write(tmp_path, one)
    (tmp_path / one.folder / one.files[1]).unlink()
    with pytest.raises(SembenchError, match=r"predictions\.parquet is missing"):
        read_predictions(tmp_path, one)


def test_scores_of_changed_data_are_refused(tmp_path: Path):
    data = Artifact("dataset", "stsb", {}, (), Path("results/data/sets/stsb.0"), ("a.txt",))
    one = artifact(inputs=(data,))
    for text in ("one", "two"):
        (tmp_path / data.folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / data.folder / "a.txt").write_text(text)
        seal(tmp_path, data)
        if text == "one":
            write(tmp_path, one)
            read_scores(tmp_path, [one])
    with pytest.raises(SembenchError, match="was made from other content of dataset 'stsb'"):
        read_scores(tmp_path, [one])


def test_a_sealed_file_of_another_shape_is_named(tmp_path: Path):
    one = artifact()
    frames = {
        "lacks the column 'protocol'": records_frame([record()]).drop(columns="protocol"),
        "has other columns than a score file": records_frame([record()]).assign(stage=1),
    }
    for message, frame in frames.items():
        write(tmp_path, one)
        frame.to_parquet(tmp_path / one.folder / one.files[0])
        seal(tmp_path, one)
        with pytest.raises(SembenchError, match=f"{message}; delete it and run again"):
            read_scores(tmp_path, [one])
    (tmp_path / one.folder / one.files[0]).write_bytes(b"PAR1 and then nothing")
    seal(tmp_path, one)
    with pytest.raises(SembenchError, match=r"parquet cannot be read .*delete it and run again"):
        read_scores(tmp_path, [one])


def test_the_same_score_in_two_files_is_refused(tmp_path: Path):
    one = artifact()
    other = Artifact(
        "scores", one.name, {**one.params, "draws": 2}, (), one.folder, ("x.parquet", "x.predictions.parquet"), "x.json"
    )
    for each, value in ((one, 0.5), (other, 0.6)):
        write(tmp_path, each, value=value)
    with pytest.raises(SembenchError, match=r"'stsb' is scored twice in .*sts\.stsb\..* and .*x\.parquet"):
        read_scores(tmp_path, [one, other])


def test_labels_of_the_run_complete_a_record():
    measured = {
        key: value
        for key, value in record().items()
        if key not in ("run", "variant", "seed", "device", "precision", "created")
    }
    [found] = labelled([measured], "minilm.s3.01234567", "minilm", 3, "cpu", "bf16")
    assert records_frame([found]).loc[0, ["run", "variant", "seed", "precision"]].tolist() == [
        "minilm.s3.01234567",
        "minilm",
        3,
        "bf16",
    ]


def test_an_unreadable_table_is_named_with_the_remedy(tmp_path: Path):
    broken = tmp_path / "sts.parquet"
    broken.write_bytes(b"PAR1 and then nothing")
    with pytest.raises(SembenchError, match=r"sts\.parquet .*delete it and run again"):
        read_frame(broken)
    with pytest.raises(SembenchError, match=r"absent\.parquet"):
        read_frame(tmp_path / "absent.parquet")
    write_parquet(pd.DataFrame({"a": [1]}), tmp_path / "new/x.parquet")
    with pytest.raises(SembenchError, match="lacks the column 'b'"):
        read_frame(tmp_path / "new/x.parquet", ["a", "b"])


def test_seed_summary_is_mean_and_sample_deviation():
    # Deviations -1, 0, 1: the sum of squares 2 over n - 1 = 2 is 1.
    assert seed_summary([75.0, 76.0, 77.0]) == (76.0, 1.0, 3)
    assert seed_summary([2.0, 4.0]) == (3.0, pytest.approx(math.sqrt(2)), 2)
    assert seed_summary([76.5]) == (76.5, None, 1)
    with pytest.raises(SembenchError):
        seed_summary([])


SEEDS = {"a.s1": 1, "a.s2": 2, "a.s3": 3, "b.s1": 1, "b.s2": 2, "b.s4": 4, "untouched": None}


def test_gains_of_two_trained_rows_are_paired_by_seed():
    # Both rows vary by 10 points with the seed, and each seed gains exactly 2.
    after, before = {"a.s1": 52.0, "a.s2": 62.0, "a.s3": 70.0}, {"b.s1": 50.0, "b.s2": 60.0, "b.s4": 1.0}
    gains = paired_gain(after, before, SEEDS)
    assert gains == {"a.s1": 2.0, "a.s2": 2.0}
    assert seed_summary(list(gains.values())) == (2.0, 0.0, 2)
    assert paired_gain({"a.s1": 52.0}, {"b.s2": 60.0}, SEEDS) == {}


def test_gains_over_an_untouched_row_are_against_its_one_value():
    assert paired_gain({"a.s1": 52.0, "a.s2": 62.0}, {"untouched": 50.0}, SEEDS) == {"a.s1": 2.0, "a.s2": 12.0}
    assert paired_gain({"a.s1": 52.0}, {}, SEEDS) == {}


def test_parts_of_an_average_belong_together_by_run_and_a_failed_one_leaves_its_run_out():
    parts = [{"a.s1": 1.0, "a.s2": 2.0}, {"a.s1": 3.0, "a.s2": 4.0}, {"a.s2": 5.0}]
    assert paired(parts, SEEDS) == {"a.s2": (2.0, 4.0, 5.0)}


def test_scores_that_are_there_stay_as_they_are(tmp_path: Path):
    """A second command that scored the same must not change files whose checksums a first one has sealed."""
    one = artifact()
    write(tmp_path, one)
    before = [(tmp_path / path).read_bytes() for path in one.paths]
    write(tmp_path, one)
    assert [(tmp_path / path).read_bytes() for path in one.paths] == before
