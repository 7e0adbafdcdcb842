"""GPUs lent by locks, with names instead of hardware."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from sembench.core import cards
from sembench.core.cards import lent, visible
from sembench.core.errors import SembenchError

NAMES = ["one", "two", "three"]
CODE = (
    "import sys; from pathlib import Path; from sembench.core.cards import lent\n"
    "print(lent(['one', 'two'], 1, Path(sys.argv[1])), flush=True); sys.stdin.read()\n"
)


def test_visible_cards_are_counted_without_loading_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"):
        (tmp_path / name).touch()
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert (visible(tmp_path), visible(tmp_path / "none")) == (2, 0)
    for chosen, number in (("1", 1), ("GPU-8c,GPU-9d", 2), ("", 0), ("-1", 0), ("0,1,2", 2)):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", chosen)
        assert visible(tmp_path) == number


def test_each_job_takes_the_first_free_cards(tmp_path: Path) -> None:
    with ExitStack() as first, ExitStack() as second:
        assert lent(NAMES, 1, tmp_path, first) == [0]
        assert lent(NAMES, 2, tmp_path, second) == [1, 2]
        first.close()
        # Another process may see fewer, under other numbers.
        assert lent(["two", "one"], 1, tmp_path, first) == [1]


def test_who_finds_too_few_says_so_once_and_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(cards, "say", said.append)
    with ExitStack() as others, ExitStack() as another, ExitStack() as own:
        lent(NAMES, 2, tmp_path, others)
        lent(NAMES, 1, tmp_path, another)
        ends = iter([lambda: None, another.close, lambda: None, others.close])
        monkeypatch.setattr(time, "sleep", lambda seconds: next(ends)())
        assert lent(NAMES, 2, tmp_path, own) == [0, 2]
    assert said == ["2 of 3 GPUs are still to come free; waiting for other jobs to end"]


def test_more_cards_than_there_are_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(SembenchError, match="2 GPUs are asked for, and 1 are visible; lower 'processes' in the recipe"):
        lent(["one"], 2, tmp_path)


def test_jobs_of_several_cards_neither_share_nor_block_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cards, "AGAIN", 0.001)
    monkeypatch.setattr(cards, "say", lambda text: None)
    used: list[int] = []
    done: list[list[int]] = []
    wrong: list[str] = []

    def job(number: int) -> None:
        with ExitStack() as held:
            own = lent(NAMES, number, tmp_path, held)
            if set(own) & set(used):
                wrong.append(f"{own} beside {used}")
            used.extend(own)
            done.append(own)
            time.sleep(0.002)  # so that others meet it
            for place in own:
                used.remove(place)

    sizes = [2, 3, 1, 2, 1, 2, 1, 3]
    random.Random(0).shuffle(sizes)
    jobs = [threading.Thread(target=job, args=(size,), daemon=True) for size in sizes]
    for each in jobs:
        each.start()
    for each in jobs:
        each.join(timeout=60)
    assert sorted(map(len, done)) == sorted(sizes)
    assert not wrong


def test_a_card_is_lent_until_the_process_ends(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CODE, str(tmp_path)]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other,
        ExitStack() as own,
    ):
        assert other.stdout is not None
        assert other.stdout.readline() == "[0]\n"
        assert lent(["one", "two"], 1, tmp_path, own) == [1]
        other.kill()
        other.wait()
        assert lent(["one", "two"], 1, tmp_path, own) == [0]
