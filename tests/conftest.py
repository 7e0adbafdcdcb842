"""Shared fixtures. Tests marked `realdata` need SEMBENCH_MIRROR; those that run Snakefile work in a copy of the project."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sembench.encoders.backbones import build_backbone
from sembench.registry import load_registry

ROOT = Path(__file__).parents[1]
TREES = (
    "Snakefile",
    "config.yaml",
    "rules",
    "workflow_scripts",
    "sembench",
    "registry",
    "profiles",
    "report",
    "tests/fixtures",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.environ.get("SEMBENCH_MIRROR"):
        return
    for item in items:
        if item.get_closest_marker("realdata"):
            item.add_marker(pytest.mark.skip(reason="needs real data: set SEMBENCH_MIRROR"))


@pytest.fixture(scope="session")
def smoke_backbones(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the random encoders of scale smoke, each in its own model folder."""
    target = tmp_path_factory.mktemp("backbones")
    for key in ("smoke_bert", "smoke_roberta", "smoke_glove"):
        build_backbone(key, load_registry(ROOT).backbones[key], ROOT / "tests/fixtures/words", target / key)
    return target


def copy_project(target: Path) -> Path:
    """Copy what the workflow needs into ``target``, so that a test may edit it."""
    for name in TREES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name)
    return target


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A private copy of the project."""
    return copy_project(tmp_path / "project")


Snakemake = Callable[..., subprocess.CompletedProcess[str]]


def run_snakemake(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run snakemake in a copy of the project; the copy's own library is imported, not the installed one."""
    env = {**os.environ, "PYTHONPATH": str(folder), "SEMBENCH_ROOT": str(folder), **environment}
    command = [sys.executable, "-m", "snakemake", *arguments]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=900)
