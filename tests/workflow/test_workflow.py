"""The real Snakefile under trouble: kills, no network, broken files, a full disk."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from sembench.registry import Plan
from tests.conftest import run_snakemake

pytestmark = pytest.mark.workflow
SMOKE = ("--cores", "2", "--config", "scale=smoke")


def outputs(folder: Path, pattern: str) -> list[Path]:
    return sorted(folder.glob(f"results/{pattern}"))


def test_after_fetching_everything_works_without_a_network(finished: Path) -> None:
    """The finished copy was made with every socket blocked, once its data were fetched; see conftest."""
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
    assert "None of these relations is among those that were asked for." in examples


def test_other_words_are_other_runs_at_once(finished: Path) -> None:
    """What is remade must not hide what is missing behind it; see unless_done in rules/common.smk."""
    config = ("--config", "scale=smoke", "relations=[E06,E07,E08]")
    result = run_snakemake(finished, "analogy_table_7", "-n", "--cores", "1", *config)
    assert result.returncode == 0, result.stderr[-2000:]
    planned = (result.stdout + result.stderr).split("Job stats:")[1].split("total")[0]
    counts = dict(line.split() for line in planned.splitlines() if len(line.split()) == 2)
    # Training is for DSBATS4CL and DefSent; their scores and, as the test set is another one, that of the untouched one.
    assert (counts["train_contrastive"], counts["score_run"], counts["analogy_table_7"]) == ("2", "3", "1")


def test_an_own_test_set_is_scored_in_the_place_of_ours(finished: Path, tmp_path: Path) -> None:
    project = shutil.copytree(finished, tmp_path / "project", symlinks=True)
    pairs = pd.read_parquet(project / "results/smoke/analogy/dsbats_open.parquet")
    own = pairs.rename(columns={"source_gloss": "source_sentence", "target_gloss": "target_sentence"})
    own["source"] += "_of_mine"
    columns = ["relation", "source", "target", "source_sentence", "target_sentence"]
    own[columns].head(90).to_csv(project / "own.tsv", sep="\t", index=False)
    config = ("--config", "scale=smoke", "srsd_pairs=own.tsv")
    result = run_snakemake(project, "analogy_table_7", "--cores", "2", *config)
    assert result.returncode == 0, (result.stdout + result.stderr)[-3000:]
    [ours, mine] = outputs(project, "smoke/predictions/distilbert.*/srsd.*.parquet")
    sizes = {len(pd.read_parquet(path)) for path in (ours, mine)}
    assert len(sizes) == 2
    again = run_snakemake(project, "analogy_table_7", "-n", "--cores", "1", *config)
    assert "Nothing to be done" in again.stdout + again.stderr


def test_a_chained_run_begins_where_the_other_ended(finished: Path) -> None:
    [path] = outputs(finished, "smoke/runs/analogy_on_simcse_distilbert.*/run.json")
    story = json.loads(path.read_text())
    start = json.loads((path.parents[1] / story["spec"]["start"] / "run.json").read_text())
    assert start["spec"]["variant"] == "unsup_simcse_distilbert"
    assert story["curve"][0]["dev"] == pytest.approx(start["best"]["dev"], abs=1e-9)


def scores_of(project: Path, variant: str) -> str:
    """Return the score file of an untouched encoder, which needs all sentence pairs and nothing heavy."""
    plan = Plan("smoke", root=project)
    return str(plan.scores(plan.specs_of(variant)[0].id, "sts"))


def start_training(project: Path, steps: int) -> subprocess.Popen[str]:
    """Start the long training of one run and return the workflow's process, in its own group."""
    path = project / "registry/scales.yaml"
    path.write_text(path.read_text().replace("max_steps: 6, eval_every: 3", f"max_steps: {steps}, eval_every: 5", 1))
    env = {**os.environ, "PYTHONPATH": str(project), "SEMBENCH_ROOT": str(project)}
    command = [sys.executable, "-m", "snakemake", "simcse_figure_3", *SMOKE]
    return subprocess.Popen(
        command,
        cwd=project,
        env=env,
        text=True,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def test_a_killed_training_goes_on_where_it_was(project: Path) -> None:
    process = start_training(project, steps=40)
    deadline = time.monotonic() + 240
    while not outputs(project, "smoke/checkpoints/*/state.pt") and process.poll() is None:
        assert time.monotonic() < deadline, "no checkpoint appeared"
        time.sleep(0.2)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    [state] = outputs(project, "smoke/checkpoints/*/state.pt")
    run_id = state.parent.name
    assert not (project / f"results/smoke/runs/{run_id}/run.json").exists()
    run_snakemake(project, "--unlock", *SMOKE)
    result = run_snakemake(project, f"results/smoke/runs/{run_id}/run.json", *SMOKE)
    assert result.returncode == 0, (result.stdout + result.stderr)[-3000:]
    story = json.loads((project / f"results/smoke/runs/{run_id}/run.json").read_text())
    assert len(story["segments"]) >= 2
    assert story["segments"][-1]["start_step"] == story["segments"][-2]["end_step"] > 0
    assert len(story["losses"]) == 40
    assert not state.exists()


@pytest.mark.parametrize(
    ("file", "damage", "sentence"),
    [
        ("stsb/sts-dev.csv", lambda b: b.replace(b"\t", b" ", 6), "tab-separated columns where 7 are needed"),
        ("stsb/sts-dev.csv", lambda b: b.replace(b"5.000", b"nan", 1), "the gold score 'nan' is no finite number"),
        ("stsb/sts-dev.csv", lambda b: b"", "is empty"),
        ("stsb/sts-dev.csv", lambda b: b[: len(b) // 2], "rows"),
        ("wiki/dump.xml", lambda b: b[: len(b) // 2], "dump.xml"),
    ],
)
def test_a_broken_file_fails_its_job_with_one_sentence(project: Path, file: str, damage, sentence: str) -> None:
    path = project / "tests/fixtures" / file
    path.write_bytes(damage(path.read_bytes()))
    target = "results/data/corpora/smoke_wiki.txt" if file.startswith("wiki") else scores_of(project, "glove_6b_50d")
    result = run_snakemake(project, target, *SMOKE)
    text = result.stdout + result.stderr
    assert result.returncode != 0
    [*_, said] = [line for line in text.splitlines() if line.startswith("error: ")]
    assert sentence in said, said
    assert "Traceback (most recent call last)" not in text
    assert not (project / target).exists()


def test_one_failed_run_is_shown_as_failed_and_the_rest_is_built(finished: Path, tmp_path: Path) -> None:
    project = shutil.copytree(finished, tmp_path / "project", symlinks=True)
    path = project / "registry/variants.yaml"
    text = path.read_text()
    path.write_text(text.replace("readout: first_last, head: none,", "readout: first_last, head: mlp,"))
    assert path.read_text() != text
    result = run_snakemake(project, "simcse_table_5", "--keep-going", *SMOKE)
    assert result.returncode != 0
    assert "error: recipe: the head 'mlp' belongs on read-out 'cls'" in result.stdout + result.stderr
    result = run_snakemake(project, "simcse_table_5", *SMOKE, "partial=true")
    assert result.returncode == 0, result.stderr[-3000:]
    table = pd.read_csv(project / "results/smoke/tables/simcse_table_5.csv")
    row = table[(table["row"] == "unsup_distilbert_first_last") & (table["column"] == "stsb")].iloc[0]
    assert row["status"] == "failed"
    assert (table["status"] == "measured").any()


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_a_full_disk_is_one_sentence_and_leaves_nothing_half_written(project: Path, tmp_path: Path) -> None:
    run_snakemake(project, "fetch", *SMOKE)
    disk = tmp_path / "disk"
    disk.mkdir()
    command = (
        f"mount -t tmpfs -o size=40k none {disk} && cd {project} && "
        f"{sys.executable} workflow_scripts/build_backbone.py smoke_bert; code=$?; find {disk} -type f | wc -l; exit $code"
    )
    (project / "results/data/backbones").parent.mkdir(parents=True, exist_ok=True)
    (project / "results/data/backbones").symlink_to(disk)
    env = {**os.environ, "PYTHONPATH": str(project), "SEMBENCH_ROOT": str(project)}
    result = subprocess.run(["unshare", "-m", "bash", "-c", command], env=env, capture_output=True, text=True)
    if "Operation not permitted" in result.stderr or "permission denied" in result.stderr:
        pytest.skip("this machine does not let a test mount a file system")
    assert result.returncode == 2, result.stderr
    assert "error: the disk is full" in result.stderr
    assert "Traceback" not in result.stderr
    assert int(result.stdout.split()[-1]) == 0
