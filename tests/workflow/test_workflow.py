"""The real workflow and its scripts under trouble: signals, no network, files that were changed, a full disk."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from sembench.plan import Plan
from sembench.registry import load_registry
from sembench.reporting.render import write_view
from tests.conftest import edit, environment

pytestmark = pytest.mark.workflow


def outputs(folder: Path, pattern: str) -> list[Path]:
    return sorted(folder.glob(f"results/{pattern}"))


@pytest.fixture
def copy(finished: Path, tmp_path: Path):
    """A finished project that a test may damage."""
    yield shutil.copytree(finished, tmp_path / "project", symlinks=True)
    load_registry.cache_clear()


def script(folder: Path, name: str, *arguments: str, **config: object) -> subprocess.CompletedProcess[str]:
    """Run a script of the workflow as its rule does."""
    given = json.dumps({"scale": "smoke", **config})
    command = [sys.executable, f"workflow_scripts/{name}.py", *arguments]
    env = environment(folder, SEMBENCH_CONFIG=given, SEMBENCH_MIRROR="")
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=300)


def test_after_fetching_everything_works_without_a_network(finished: Path) -> None:
    """The finished copy, whose data are fixtures, was made with every socket blocked; see conftest."""
    assert outputs(finished, "smoke/report/index.html")
    site = finished.parent / "site"
    guard = subprocess.run(
        [sys.executable, "-c", "import socket; socket.create_connection(('127.0.0.1', 9))"],
        env={**os.environ, "PYTHONPATH": str(site)}, capture_output=True, text=True,
    )  # fmt: skip
    assert "network access in a compute step" in guard.stderr, "the guard itself does not work"


def test_the_analogy_paper_runs_from_words_to_tables(finished: Path) -> None:
    """Invented WordNet and dictionary, real rules: DSBATS-sn, DSBATS4CL, training, SRSD, tables."""
    folder = finished / "results/smoke"
    pairs = pd.read_parquet(folder / "analogy/dsbats_sn.parquet")
    assert list(pairs["relation"].unique()) == ["E06", "E07", "E08", "E09"]
    table = pd.read_csv(folder / "tables/analogy_table_7.csv").set_index(["row", "column"])
    for row in ("distilbert_cls", "distilbert_cls_tuned", "defsent_distilbert"):
        low, middle, high = (table.loc[(row, f"leak_free_{name}"), "value"] for name in ("low", "all", "high"))
        assert low < middle < high
    gain = table.loc[("distilbert_cls_tuned", "leak_free_gain"), "value"]
    before, after = (table.loc[(row, "leak_free_all"), "value"] for row in ("distilbert_cls", "distilbert_cls_tuned"))
    assert gain == pytest.approx(after - before, abs=1e-3)
    examples = (folder / "tables/analogy_table_4.md").read_text()
    assert "No row of the data set is among those that are asked for." in examples


def test_a_chained_run_begins_where_the_other_ended(finished: Path) -> None:
    [path] = outputs(finished, "smoke/runs/analogy_on_simcse_distilbert.*/run.json")
    run = json.loads(path.read_text())
    start = json.loads((path.parents[1] / run["start"] / "run.json").read_text())
    assert start["variant"] == "unsup_simcse_distilbert"
    assert run["curve"][0]["dev"] == pytest.approx(start["best"]["dev"], abs=1e-9)


def test_a_trained_head_is_where_the_objective_says(finished: Path) -> None:
    """Unsupervised SimCSE keeps its head for who wants it; an objective without one saves none."""
    found = {}
    for name in ("unsup_simcse_distilbert", "sup_simcse_distilbert", "analogy_distilbert", "sbert_softmax_distilbert"):
        [path] = outputs(finished, f"smoke/runs/{name}.s1.*/encoder.json")
        entry = json.loads(path.read_text())
        found[name] = entry["heads"], entry["readout"]
    assert found == {
        "unsup_simcse_distilbert": ({"cls_mlp": "mlp"}, "cls"),
        "sup_simcse_distilbert": ({"cls_mlp": "mlp"}, "cls_mlp"),
        "analogy_distilbert": ({}, "cls"),
        "sbert_softmax_distilbert": ({}, "mean"),
    }


def test_a_training_that_is_stopped_goes_on_where_it_was(copy: Path) -> None:
    edit(copy, "scales.yaml", lambda v: v["smoke"]["recipe"].update(max_steps=120, eval_every=60))
    run = Plan("smoke", root=copy).runs_of("unsup_simcse_distilbert")[0]
    command = [sys.executable, "workflow_scripts/train.py", run.id]
    env = environment(copy, SEMBENCH_CONFIG='{"scale": "smoke"}')
    process = subprocess.Popen(command, cwd=copy, env=env, text=True, stderr=subprocess.PIPE)
    assert process.stderr is not None
    for line in process.stderr:
        if "step 60, dev" in line:
            break
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 75
    [state] = outputs(copy, "smoke/checkpoints/*/*.pt")
    assert not (copy / run.artifact.record).exists()
    result = script(copy, "train", run.id)
    assert result.returncode == 0, result.stderr
    kept = json.loads((copy / run.artifact.folder / "run.json").read_text())
    assert len(kept["segments"]) == 2
    assert kept["segments"][1]["start_step"] == kept["segments"][0]["end_step"] >= 60
    assert len(kept["losses"]) == 120
    assert not state.exists()


def test_a_file_that_was_edited_is_never_used_unseen(copy: Path) -> None:
    """One gold score is changed after fetching: no score is made from it, and no table shows what was."""
    plan = Plan("smoke", root=copy)
    folder = plan.dataset("smoke_stsb").folder
    path = copy / folder / "sts-dev.csv"
    path.write_bytes(path.read_bytes().replace(b"5.000", b"0.000", 1))
    run = plan.runs_of("glove_6b_50d")[0]
    shutil.rmtree(copy / plan.layout.base / "scores" / run.id)
    result = script(copy, "score", run.id, "all")
    assert result.returncode == 2
    assert f"{folder}/sts-dev.csv was changed after it was made; delete {folder} and run the same" in result.stderr
    assert "Traceback" not in result.stderr
    assert not (copy / plan.layout.base / "scores" / run.id).exists()


def test_a_set_fetched_again_with_other_content_is_seen_by_all_that_read_the_first(copy: Path) -> None:
    """The words have no declared checksum, so the key of the encoders stays; their records know what was read."""
    plan = Plan("smoke", root=copy)
    words = plan.dataset("smoke_words")
    path = copy / "tests/fixtures/words/words.txt"
    path.write_text(path.read_text() + "newcomer\n")
    shutil.rmtree(copy / words.folder)
    locks = copy / "results/data/locks.json"
    locks.write_text("{}")
    assert script(copy, "fetch_dataset", "smoke_words").returncode == 0
    run = plan.runs_of("minilm")[0]
    shutil.rmtree(copy / plan.layout.base / "scores" / run.id)
    result = script(copy, "score", run.id, "all")
    assert result.returncode == 2
    assert "was made from other content of dataset 'smoke_words'" in result.stderr
    assert f"delete {run.artifact.folder} and run" in result.stderr


def test_what_has_no_score_is_failed_and_the_rest_is_shown(copy: Path) -> None:
    plan = Plan("smoke", root=copy, partial=True)
    run = plan.runs_of("unsup_simcse_distilbert_first_last")[0]
    shutil.rmtree(copy / plan.layout.base / "scores" / run.id)
    write_view(plan, "simcse_table_5")
    table = pd.read_csv(copy / "results/smoke/tables/simcse_table_5.csv").set_index(["row", "column"])
    assert table.loc[("unsup_distilbert_first_last", "stsb"), "status"] == "failed"
    # What a scale cannot score at all is missing, not failed.
    assert table.loc[("unsup_distilbert_first_last", "sts12"), "status"] == "missing"
    assert table.loc[("minilm", "stsb"), "status"] == "measured"
    result = script(copy, "collect_scores", partial=True)
    assert result.returncode == 0, result.stderr
    assert run.id not in set(pd.read_parquet(copy / plan.layout.collected)["run"])


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_a_full_disk_is_one_sentence_and_leaves_nothing_half_written(copy: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    shutil.rmtree(copy / "results/data/backbones")
    (copy / "results/data/backbones").symlink_to(disk)
    command = (
        f"mount -t tmpfs -o size=40k none {disk} && cd {copy} && "
        f"{sys.executable} workflow_scripts/build_backbone.py smoke_bert; code=$?; "
        f"find {disk} -type f -size +0 | wc -l; exit $code"
    )
    env = environment(copy, SEMBENCH_CONFIG='{"scale": "smoke"}')
    result = subprocess.run(["unshare", "-m", "bash", "-c", command], env=env, capture_output=True, text=True)
    if "Operation not permitted" in result.stderr or "permission denied" in result.stderr:
        pytest.skip("this machine does not let a test mount a file system")
    assert result.returncode == 2, result.stderr
    assert "error: the disk is full" in result.stderr
    assert "Traceback" not in result.stderr
    assert int(result.stdout.split()[-1]) == 0
