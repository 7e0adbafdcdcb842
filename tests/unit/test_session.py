"""What surrounds the jobs of a workflow: its folder's lock, time stamps, signals."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sembench.core.errors import SembenchError
from sembench.plan.session import end_in_order, hold, settle


def test_a_folder_has_one_workflow(tmp_path: Path) -> None:
    lock = tmp_path / "results" / ".workflow.lock"
    lock.parent.mkdir()
    with lock.open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        lock.with_name(".workflow.lock.process").write_text("4711")
        with pytest.raises(
            SembenchError, match=rf"^a workflow in {tmp_path} is under way in process 4711.* kill 4711$"
        ):
            hold(tmp_path)
    hold(tmp_path)


def test_a_time_stamp_in_the_future_becomes_that_of_now(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Snakemake throws away what was made from a newer file, after hours of training, every time again."""
    (tmp_path / "disk" / "sets").mkdir(parents=True)
    (tmp_path / "data").symlink_to(tmp_path / "disk")
    old, new = (tmp_path / "disk" / "sets" / name for name in ("old", "new"))
    for path, moment in ((old, 1e9), (new, time.time() + 1e6)):
        path.write_text("")
        os.utime(path, (moment, moment))
    (tmp_path / "disk" / "gone").symlink_to(tmp_path / "nowhere")
    settle(tmp_path / "data", tmp_path / "not there")
    assert old.stat().st_mtime == 1e9
    assert new.stat().st_mtime <= time.time()
    assert capsys.readouterr().err == (
        f"files with a time stamp in the future have that of now: 1, such as {tmp_path}/data/sets/new\n"
    )
    settle(tmp_path / "data")
    assert capsys.readouterr().err == ""


def test_a_signal_reaches_the_jobs_and_is_said(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A job is a script's process; the shell that started it, and tee, stay to hear its last words."""
    heard = []
    before = signal.signal(signal.SIGTERM, lambda *_: heard.append("snakemake"))
    code = "import time; print(1, flush=True); time.sleep(60)"
    try:
        end_in_order()
        job, other = (
            subprocess.Popen(
                ["bash", "-c", f"{sys.executable} -c '{code}' {name}; echo $?"], stdout=subprocess.PIPE, text=True
            )
            for name in ("workflow_scripts/train.py", "elsewhere/train.py")
        )
        assert job.stdout and other.stdout
        assert job.stdout.readline() == other.stdout.readline() == "1\n"
        signal.raise_signal(signal.SIGTERM)
        assert job.stdout.readline() == "143\n"
        assert job.wait() == 0
        assert other.poll() is None
    finally:
        signal.signal(signal.SIGTERM, before)
    assert heard == ["snakemake"]
    assert capfd.readouterr().err.startswith(
        "stopping: jobs are told to save what they have and to end; the same command"
    )
    subprocess.run(["pkill", "-P", str(other.pid)], check=True)
    other.communicate()
