"""docs/extending.md keeps its word: its blocks, written into a copy of the project, are planned, made and rendered."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import DATA, ROOT, copy_project, environment

BLOCK = re.compile(r"^```(python|yaml) (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Runs in the copy, whose library is imported: everything that the new entries need at scale smoke, in one process.
BUILD = """
from sembench.plan import Plan
from sembench.training.job import train_run
from tests.smoke import build

plan = Plan('smoke')
views = [plan.view('beyond_table_short'), plan.view('beyond_figure_length')]
build(plan, views)
train_run(plan, plan.runs_of('still_distilbert')[0])
print(*(path.name for view in views for path in view.outputs))
"""


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str], list[str]]:
    """A copy of the project with everything that the page adds: the folder, the new files, the files added to."""
    folder = copy_project(tmp_path_factory.mktemp("extended") / "project", (*DATA, "sembench", "report"))
    new, touched = [], []
    for language, name, body in BLOCK.findall((ROOT / "docs/extending.md").read_text()):
        path = folder / name
        (touched if path.exists() else new).append(name)
        before = path.read_text() if path.exists() else ""
        assert not (before and language == "python"), f"{name} is there already"
        path.write_text(before + ("\n" if before else "") + body)
    return folder, new, touched


def test_each_is_one_new_file_and_yaml(extended: tuple[Path, list[str], list[str]]) -> None:
    _, new, touched = extended
    assert sorted(name for name in new if name.endswith(".py")) == [
        "sembench/data/make/short.py",
        "sembench/encoders/transforms/centring.py",
        "sembench/evaluation/protocols/length.py",
        "sembench/reporting/views/bars.py",
        "sembench/training/objectives/still.py",
    ]
    assert all(name.startswith("registry/") for name in (*touched, *new) if name.endswith(".yaml"))
    assert not [name for name in touched if not name.endswith(".yaml")]


def test_all_of_it_is_made_and_shown(extended: tuple[Path, list[str], list[str]]) -> None:
    folder, _, _ = extended
    done = subprocess.run(
        [sys.executable, "-c", BUILD],
        cwd=folder,
        env=environment(folder, PYTHONPATH=f"{folder}{os.pathsep}{ROOT}", SEMBENCH_MIRROR=""),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert {"beyond_table_short.csv", "beyond_figure_length.png"} <= set(done.stdout.split())
    table = (folder / "results/smoke/tables/beyond_table_short.md").read_text()
    assert table.count("failed") == 0
    assert re.search(r"\[CLS\\?\].*\d+\.\d\d.*\d+\.\d\d.*\d+\.\d\d", table)
