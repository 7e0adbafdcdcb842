"""The command line, through its real entry point."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, copy_project
from tests.unit.fake_babelnet import KEY, running


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_project(tmp_path_factory.mktemp("cli") / "project")


def sembench(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "SEMBENCH_ROOT": str(folder), "PYTHONPATH": str(folder), "SEMBENCH_MIRROR": "", **environment}
    return subprocess.run([sys.executable, "-m", "sembench", *arguments], env=env, capture_output=True, text=True)


@pytest.mark.parametrize("what", ["variants", "tables", "figures", "datasets", "backbones", "suites", "scales"])
def test_ls_lists_everything(home: Path, what: str) -> None:
    result = sembench(home, "ls", what, "--scale", "demo")
    assert result.returncode == 0, result.stderr
    assert len(result.stdout.splitlines()) > 1


def test_show_prints_the_recipe_and_run_ids(home: Path) -> None:
    result = sembench(home, "show", "unsup_simcse_distilbert", "--scale", "demo")
    assert result.returncode == 0, result.stderr
    assert "unsup_simcse_distilbert.s42." in result.stdout
    canonical = json.loads(result.stdout.split("canonical: ")[1])
    assert canonical["recipe"]["learning_rate"] == 3e-4


def test_plan_tells_open_runs_and_missing_rows(home: Path) -> None:
    result = sembench(home, "plan", "simcse_table_5", "--scale", "demo")
    assert result.returncode == 0, result.stderr
    assert "unsup_simcse_distilbert_first_last.s42." in result.stdout
    assert "normalising flows are not built yet" in result.stdout


def test_score_prints_records_and_nothing_else(home: Path) -> None:
    result = sembench(home, "score", "smoke_bert", "--scale", "smoke", "--suite", "sts", "--readout", "mean", "--json")
    assert result.returncode == 0, result.stderr
    records = [json.loads(line) for line in result.stdout.splitlines()]
    keys = {"run", "readout", "suite", "task", "subset", "split", "aggregation", "metric", "value", "n"}
    assert records
    assert all(keys <= set(record) for record in records)
    assert {record["readout"] for record in records} == {"mean"}
    assert {record["task"] for record in records} == {"sts16", "stsb", "sickr"}


def test_score_takes_a_folder(home: Path, smoke_backbones: Path) -> None:
    folder = smoke_backbones / "smoke_roberta"
    result = sembench(home, "score", str(folder), "--scale", "smoke", "--suite", "geometry", "--json")
    assert result.returncode == 0, result.stderr
    assert {json.loads(line)["metric"] for line in result.stdout.splitlines()} == {"alignment", "uniformity"}


def test_datasets_tells_what_is_here(home: Path) -> None:
    result = sembench(home, "datasets", "--scale", "smoke")
    assert result.returncode == 0, result.stderr
    assert "sts-dev.csv" in result.stdout
    assert "pypi" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("score", "minilmm"), "model 'minilmm' is not in the registry, nor a folder; did you mean 'minilm'?"),
        (("score", "smoke_bert", "--scale", "smoke", "--suite", "stss"), "suite 'stss' is not in registry/suites.yaml"),
        (
            ("score", "smoke_bert", "--scale", "smoke", "--readout", "men"),
            "read-out 'men' is not in what this encoder offers",
        ),
        (("show", "unsup_simcse_distilbrt"), "did you mean 'unsup_simcse_distilbert'?"),
        (("show", "unsup_simcse"), "'unsup_simcse' is only a base for others"),
        (("ls", "variant"), "listing 'variant' is not in sembench ls; did you mean 'variants'?"),
        (("plan", "simcse_table_55"), "did you mean 'simcse_table_5'?"),
        (("plan", "--scale", "ful"), "did you mean 'full'?"),
        (
            ("score", "unsup_simcse_distilbert", "--scale", "demo"),
            "is not trained yet at scale demo; train it with: snakemake",
        ),
        (("relock", "trian", "--why", "x"), "did you mean 'train'?"),
        (("babelnet", "crawl", "--scale", "smoke"), "BABELNET_KEY"),
    ],
)
def test_mistakes_are_one_sentence_and_exit_code_2(home: Path, arguments: tuple[str, ...], sentence: str) -> None:
    result = sembench(home, *arguments)
    assert result.returncode == 2, result.stdout + result.stderr
    assert sentence in result.stderr
    assert "Traceback" not in result.stderr
    assert len([line for line in result.stderr.splitlines() if line.startswith("error: ")]) == 1


def test_babelnet_plan_counts_requests_and_asks_nothing(home: Path) -> None:
    result = sembench(home, "babelnet", "plan", "--scale", "smoke", BABELNET_URL="http://127.0.0.1:9")
    assert result.returncode == 0, result.stderr
    assert "at least " in result.stdout
    assert "requests remain" in result.stdout


def test_babelnet_crawl_and_export_over_a_local_server(home: Path, tmp_path: Path) -> None:
    """The whole chain on the command line: a daily limit, going on, an export; the key is nowhere."""
    with running() as server:
        server.limit = 40
        options = {"BABELNET_KEY": KEY, "BABELNET_URL": server.url}
        first = sembench(home, "babelnet", "crawl", "--scale", "smoke", **options)
        assert first.returncode == 0, first.stderr
        assert "stopped at the daily limit" in first.stdout
        server.new_day()
        second = sembench(home, "babelnet", "crawl", "--budget", "10", "--scale", "smoke", **options)
        assert "stopped at the own limit after 10 requests" in second.stdout
        assert set(server.counts.values()) == {1}
    results = [path for path in (home / "results").rglob("*") if path.is_file()]
    assert len(results) > 40
    assert not [path for path in results if KEY in path.read_text(errors="ignore")]
    assert KEY not in first.stdout + first.stderr + second.stdout + second.stderr
    exported = sembench(home, "babelnet", "export", str(tmp_path / "dump.jsonl.gz"))
    assert exported.returncode == 0, exported.stderr


def test_planning_loads_no_torch() -> None:
    code = "import sys; from sembench.cli import _plan; _plan('full').all_scores(); print('torch' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert result.stdout.strip() == "False", result.stderr
