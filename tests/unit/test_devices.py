"""The device of a process, with names instead of hardware; threads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits

from sembench.core.threads import waiting
from sembench.encoders import devices
from sembench.encoders.devices import pick_device, use_threads


@pytest.fixture
def cards(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[str]]:
    """Names of the visible GPUs, to be filled."""
    names: list[str] = []
    monkeypatch.setattr("torch.cuda.is_available", lambda: bool(names))
    monkeypatch.setattr("torch.cuda.device_count", lambda: len(names))
    monkeypatch.setattr("torch.cuda.set_device", lambda device: None)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(devices, "_gpu_name", lambda index: names[index])
    pick_device.cache_clear()
    yield names
    pick_device.cache_clear()


def test_no_gpu_and_one_gpu_need_no_lock(cards: list[str], tmp_path: Path) -> None:
    assert pick_device() == torch.device("cpu")
    pick_device.cache_clear()
    cards.append("one")
    assert pick_device() == torch.device("cuda:0")
    assert list(tmp_path.iterdir()) == []


def test_a_process_keeps_its_device(cards: list[str], tmp_path: Path) -> None:
    cards += ["one", "two"]
    assert pick_device() == pick_device() == torch.device("cuda:0")
    assert any("one" in path.name for path in tmp_path.iterdir())


def test_a_process_among_several_takes_the_card_of_its_number(
    cards: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cards += ["one", "two"]
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert pick_device() == torch.device("cuda:1")
    assert list(tmp_path.iterdir()) == []


def test_processes_see_the_cards_that_are_lent_to_them(
    cards: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert devices.lent_environment(2) == {}
    cards += ["one", "two", "three"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,GPU-8c,7")
    assert pick_device() == torch.device("cuda:0")
    assert devices.lent_environment(2) == {"CUDA_VISIBLE_DEVICES": "GPU-8c,7"}


def test_threads_are_as_many_as_asked_for_in_every_library() -> None:
    """Snakemake lowers those of the environment to `--cores`; the last bits of scores would follow."""
    before = torch.get_num_threads()
    with threadpool_limits(1):  # puts all of them back
        use_threads(2)
        assert torch.get_num_threads() == 2
        assert {pool["num_threads"] for pool in threadpool_info()} == {2}
    torch.set_num_threads(before)


def test_waiting_threads_give_their_core_away_unless_somebody_decided() -> None:
    assert waiting({}) == {"OMP_WAIT_POLICY": "passive"}
    assert waiting({"OMP_WAIT_POLICY": "active"}) == waiting({"GOMP_SPINCOUNT": "1000"}) == {}
    # Whoever imports the library has it, so that every job, script and command does.
    assert "OMP_WAIT_POLICY" in os.environ or "GOMP_SPINCOUNT" in os.environ
