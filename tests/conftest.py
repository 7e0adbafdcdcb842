"""Shared fixtures. Tests marked `realdata` need SEMBENCH_MIRROR; those that run Snakefile work in a copy of the project."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from sembench.core.plugin import CONVERTERS
from sembench.encoders.backbones import build_backbone
from sembench.registry import load_registry

# The encoders of the tests are tiny: a second thread only waits.
torch.set_num_threads(1)

ROOT = Path(__file__).parents[1]
DATA = ("Snakefile", "config.yaml", "registry", "tests/fixtures")
TREES = (*DATA, "rules", "workflow_scripts", "sembench", "profiles", "report")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("realdata") and not os.environ.get("SEMBENCH_MIRROR"):
            item.add_marker(pytest.mark.skip(reason="needs real data: set SEMBENCH_MIRROR"))
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    """What needs the whole workflow comes late, as it is built beside the others; real encoders, with all cores, last."""
    return 2 if item.path.name == "test_real.py" else int("finished" in getattr(item, "fixturenames", ()))


@pytest.fixture(scope="session")
def smoke_backbones(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the random encoders of scale smoke, each in its own model folder."""
    target = tmp_path_factory.mktemp("backbones")
    entries = yaml.safe_load((ROOT / "registry/backbones.yaml").read_text())
    for name in ("smoke_bert", "smoke_roberta", "smoke_glove"):
        entry = entries[name]
        chosen = CONVERTERS.parse(entry["convert"], name)
        words = ROOT / "tests/fixtures/words"
        build_backbone(name, entry["title"], chosen, None, entry.get("readout", "mean"), words, target / name)
    return target


# ---------------------------------------------------------------------------------------------- copies of the project


def copy_project(target: Path, trees: tuple[str, ...] = TREES) -> Path:
    """Copy what the workflow needs into ``target``, so that a test may edit it."""
    for name in trees:
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


@pytest.fixture
def registry_copy(tmp_path: Path):
    """A private copy of the registry, for plans in this process."""
    yield copy_project(tmp_path / "project", DATA)
    load_registry.cache_clear()


def edit(project: Path, name: str, change: Callable[[Any], object]) -> None:
    """Change a registry file of a private copy through its parsed form."""
    path = project / "registry" / name
    value = yaml.safe_load(path.read_text())
    change(value)
    path.write_text(yaml.safe_dump(value, sort_keys=False))
    load_registry.cache_clear()


# ------------------------------------------------------------------------------------------- the workflow, once for all

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


def snakemake(*arguments: str, python: Path | str = sys.executable) -> list[str]:
    """Return the command that runs the workflow of a copy of the project."""
    # The default profile grants one GPU and so one job at a time; tiny encoders need none, two jobs at once are faster.
    return [str(python), "-m", "snakemake", "--resources", "gpu=2", "--max-threads", "1", *arguments]


def environment(folder: Path, **more: str) -> dict[str, str]:
    """Return the environment in which a copy's own library is imported, not the installed one."""
    return {**os.environ, "PYTHONPATH": str(folder), "SEMBENCH_ROOT": str(folder), **more}


def run_snakemake(
    folder: Path, *arguments: str, python: Path | str = sys.executable, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run snakemake in a copy of the project."""
    command = snakemake(*arguments, python=python)
    return subprocess.run(
        command, cwd=folder, env=environment(folder, **more), capture_output=True, text=True, timeout=900
    )


@pytest.fixture(scope="session")
def _building(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    """Begin to build scale smoke in a private copy, in processes of its own and without a network."""
    base = tmp_path_factory.mktemp("finished")
    folder = copy_project(base / "project")
    (base / "site").mkdir()
    (base / "site" / "sitecustomize.py").write_text(NO_NETWORK)
    most = shlex.join([sys.executable, str(ROOT / "tests/smoke.py")])
    rest = shlex.join(snakemake("all", "--cores", "2", "--config", "scale=smoke"))
    with (base / "log").open("w") as log:
        process = subprocess.Popen(
            ["bash", "-c", f"{most} && exec {rest}"],
            cwd=folder,
            env=environment(folder, PYTHONPATH=f"{base / 'site'}{os.pathsep}{folder}", SEMBENCH_MIRROR=""),
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    yield folder, process
    process.kill()


@pytest.fixture(scope="session", autouse=True)
def _begin(request: pytest.FixtureRequest) -> None:
    """Begin the workflow before the first test where some test needs it, so that both cores have work."""
    if any("finished" in getattr(item, "fixturenames", ()) for item in request.session.items):
        request.getfixturevalue("_building")


@pytest.fixture(scope="session")
def finished(_building: tuple[Path, subprocess.Popen[bytes]]) -> Path:
    """A private copy in which scale smoke is complete."""
    folder, process = _building
    assert process.wait(timeout=900) == 0, (folder.parent / "log").read_text()[-4000:]
    return folder
