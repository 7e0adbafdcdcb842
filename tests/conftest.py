"""Shared fixtures. Tests marked `realdata` need SEMBENCH_MIRROR; those that run Snakefile work in a copy of the project."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from sembench.encoders.backbones import build_backbone
from sembench.registry import load_registry

# The encoders of the tests are tiny: a second thread only waits.
torch.set_num_threads(1)

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
    for item in items:
        if item.get_closest_marker("realdata") and not os.environ.get("SEMBENCH_MIRROR"):
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


# Loaded by every Python process of a run: anything but a local socket is refused.
NO_NETWORK = """
import socket
_connect = socket.socket.connect
def connect(self, address):
    if self.family != socket.AF_UNIX:
        raise OSError(101, "network access in a compute step: %r" % (address,))
    return _connect(self, address)
def lookup(*arguments, **options):
    raise socket.gaierror("network access in a compute step")
socket.socket.connect, socket.getaddrinfo = connect, lookup
"""


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A private copy in which scale smoke is complete: fetched first, then built with the network blocked."""
    base = tmp_path_factory.mktemp("finished")
    folder = copy_project(base / "project")
    (base / "site").mkdir()
    (base / "site" / "sitecustomize.py").write_text(NO_NETWORK)
    path = f"{base / 'site'}{os.pathsep}{folder}"
    for target, environment in (("fetch", {}), ("all", {"PYTHONPATH": path})):
        result = run_snakemake(folder, target, "--cores", "2", "--config", "scale=smoke", **environment)
        assert result.returncode == 0, (result.stdout + result.stderr)[-4000:]
    return folder


def run_snakemake(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run snakemake in a copy of the project; the copy's own library is imported, not the installed one."""
    env = {**os.environ, "PYTHONPATH": str(folder), "SEMBENCH_ROOT": str(folder), **environment}
    # The default profile grants one GPU and so one job at a time; tiny encoders need none, and two jobs at once are faster.
    command = [sys.executable, "-m", "snakemake", "--resources", "gpu=2", "--max-threads", "1", *arguments]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=900)
