"""The real Snakefile under trouble: kills, no network, broken files, a full disk."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import run_snakemake

pytestmark = pytest.mark.workflow
SMOKE = ("--cores", "2", "--config", "scale=smoke")

# Loaded by every Python process of the run: anything but a local socket is refused.
NO_NETWORK = """
import socket
_connect = socket.socket.connect
def connect(self, address):
    if self.family != socket.AF_UNIX:
        raise OSError(101, "network access in a compute step: %r" % (address,))
    return _connect(self, address)
socket.socket.connect = connect
socket.getaddrinfo = lambda *a, **k: (_ for _ in ()).throw(socket.gaierror("network access in a compute step"))
"""


def outputs(folder: Path, pattern: str) -> list[Path]:
    return sorted(folder.glob(f"results/{pattern}"))


def test_after_fetching_everything_works_without_a_network(project: Path, tmp_path: Path) -> None:
    fetched = run_snakemake(project, "fetch", *SMOKE)
    assert fetched.returncode == 0, fetched.stderr[-2000:]
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(NO_NETWORK)
    path = f"{site}{os.pathsep}{project}"
    blocked = subprocess.run(
        [sys.executable, "-c", "import socket; socket.create_connection(('127.0.0.1', 9))"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert "network access" in blocked.stderr, "the guard itself does not work"
    result = run_snakemake(project, "simcse_table_5", *SMOKE, PYTHONPATH=path)
    assert result.returncode == 0, (result.stdout + result.stderr)[-3000:]
    assert outputs(project, "smoke/tables/simcse_table_5.csv")


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
    process = start_training(project, steps=120)
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
    assert len(story["losses"]) == 120
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
    result = run_snakemake(project, "simcse_figure_3", *SMOKE)
    text = result.stdout + result.stderr
    assert result.returncode != 0
    [*_, said] = [line for line in text.splitlines() if line.startswith("error: ")]
    assert sentence in said, said
    assert "Traceback (most recent call last)" not in text
    assert not outputs(project, "smoke/figures/*")
    assert not outputs(project, "smoke/runs/*/run.json")


def test_one_failed_run_is_shown_as_failed_and_the_rest_is_built(project: Path) -> None:
    path = project / "registry/variants.yaml"
    path.write_text(path.read_text().replace("readout: first_last, head: none,", "readout: first_last, head: mlp,"))
    result = run_snakemake(project, "simcse_table_5", "--keep-going", *SMOKE)
    assert result.returncode != 0
    assert "error: recipe: the head 'mlp' belongs on read-out 'cls'" in result.stdout + result.stderr
    result = run_snakemake(project, "simcse_table_5", *SMOKE, "partial=true")
    assert result.returncode == 0, result.stderr[-3000:]
    table = (project / "results/smoke/tables/simcse_table_5.csv").read_text()
    lines = [line for line in table.splitlines() if ",unsup_distilbert_first_last," in line]
    assert lines
    assert any(",failed," in line for line in lines)
    assert ",measured," in table


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
