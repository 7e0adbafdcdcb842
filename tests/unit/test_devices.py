"""Borrowing GPUs, with names instead of hardware; threads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits

from sembench.encoders import devices
from sembench.encoders.devices import lent_device, pick_device, use_threads

CODE = (
    "import sys; from pathlib import Path; from sembench.encoders.devices import lent_device\n"
    "print(lent_device(['one', 'two'], Path(sys.argv[1])), flush=True); sys.stdin.read()\n"
)


@pytest.fixture(autouse=True)
def nothing_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_held", [])


def test_no_gpu_and_one_gpu_need_no_lock(tmp_path: Path) -> None:
    assert lent_device([], tmp_path) == torch.device("cpu")
    assert lent_device(["one"], tmp_path) == torch.device("cuda:0")
    assert list(tmp_path.iterdir()) == []


def test_each_call_takes_the_next_free_gpu_and_then_shares(tmp_path: Path) -> None:
    names = ["one", "two", "three"]
    assert [lent_device(names, tmp_path).index for _ in names] == [0, 1, 2]
    assert lent_device(names, tmp_path).index == os.getpid() % 3
    # Another process may see fewer, under other numbers.
    devices._held.pop(1).release()
    assert lent_device(["three", "two"], tmp_path) == torch.device("cuda:1")


def test_a_gpu_is_ours_until_the_process_ends(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CODE, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "cuda:0\n"
        assert lent_device(["one", "two"], tmp_path) == torch.device("cuda:1")
        other.kill()
    assert lent_device(["one", "two"], tmp_path) == torch.device("cuda:0")


def test_a_process_keeps_its_device(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    chosen: list[torch.device] = []
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    monkeypatch.setattr("torch.cuda.set_device", chosen.append)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(devices, "_gpu_name", str)
    pick_device.cache_clear()
    try:
        assert pick_device() == pick_device() == torch.device("cuda:0")
        assert chosen == [torch.device("cuda:0")]
    finally:
        pick_device.cache_clear()


def test_threads_are_as_many_as_asked_for_in_every_library() -> None:
    """Snakemake lowers those of the environment to `--cores`; the last bits of scores would follow."""
    before = torch.get_num_threads()
    with threadpool_limits(1):  # puts all of them back
        use_threads(2)
        assert torch.get_num_threads() == 2
        assert {pool["num_threads"] for pool in threadpool_info()} == {2}
    torch.set_num_threads(before)
