"""The command line, through its real entry point."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, copy_project


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
    ],
)
def test_mistakes_are_one_sentence_and_exit_code_2(home: Path, arguments: tuple[str, ...], sentence: str) -> None:
    result = sembench(home, *arguments)
    assert result.returncode == 2, result.stdout + result.stderr
    assert sentence in result.stderr
    assert "Traceback" not in result.stderr
    assert len([line for line in result.stderr.splitlines() if line.startswith("error: ")]) == 1


def test_planning_loads_no_torch() -> None:
    code = "import sys; from sembench.cli import _plan; _plan('full').all_scores(); print('torch' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert result.stdout.strip() == "False", result.stderr
