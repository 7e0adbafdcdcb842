"""One process at a time: locks that say who holds them, and what they guard."""

from __future__ import annotations

import fcntl
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sembench.core import locks
from sembench.core.errors import SembenchError
from sembench.core.files import write_json
from sembench.core.locks import locked
from sembench.evaluation import job as scoring
from sembench.plan import Plan, Run
from sembench.training import job as training

Hold = Callable[..., list[str]]


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Hold:
    """Hold a lock as another process would, until somebody says that it waits; return all that is said."""

    def hold(
        path: Path, meanwhile: Callable[[], object] = lambda: None, holder: str | None = "4711 elsewhere"
    ) -> list[str]:
        path.parent.mkdir(parents=True, exist_ok=True)
        other, said = path.open("w"), []
        fcntl.flock(other, fcntl.LOCK_EX)
        if holder:
            path.with_name(f"{path.name}.process").write_text(holder)

        def say(text: str) -> None:
            said.append(text)
            meanwhile()
            other.close()

        monkeypatch.setattr(locks, "say", say)
        monkeypatch.setattr(locks, "PATIENCE", 0)
        return said

    return hold


def test_a_lock_says_who_holds_it_and_leaves_no_note(tmp_path: Path) -> None:
    path = tmp_path / "new" / ".a.lock"
    with locked(path, "work on a"):
        assert path.with_name(".a.lock.process").read_text() == f"{os.getpid()} {platform.node()}"
    assert [each.name for each in path.parent.iterdir() if each != path] == []


@pytest.mark.parametrize(
    ("holder", "sentence"),
    [
        (
            f"4711 {platform.node()}",
            "work on a is under way in process 4711; wait for its end, or end it with: kill 4711",
        ),
        ("4711 node3", "work on a is under way in process 4711 on node3; wait for its end, or end it with: kill 4711"),
        (None, "work on a is under way in another process; wait for its end"),
    ],
)
def test_who_does_not_wait_is_told_whom_to_wait_for(held: Hold, tmp_path: Path, holder: str, sentence: str) -> None:
    said = held(tmp_path / ".a.lock", holder=holder)
    with pytest.raises(SembenchError) as error, locked(tmp_path / ".a.lock", "work on a", wait=False):
        pass
    assert str(error.value) == sentence
    assert not said


def test_who_waits_says_for_whom_and_goes_on(held: Hold, tmp_path: Path) -> None:
    said = held(tmp_path / ".a.lock")
    with locked(tmp_path / ".a.lock", "work on a"):
        assert said == [
            "work on a is under way in process 4711 on elsewhere; waiting for its end, or end it with: kill 4711"
        ]


def test_a_lock_dies_with_its_process(tmp_path: Path) -> None:
    path = tmp_path / ".a.lock"
    code = "import sys, time\nfrom pathlib import Path\nfrom sembench.core.locks import locked\n"
    code += "with locked(Path(sys.argv[1]), 'a'):\n print(1, flush=True)\n time.sleep(60)"
    other = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE)
    assert other.stdout is not None
    other.stdout.readline()
    with pytest.raises(SembenchError, match=f"in process {other.pid}; wait"), locked(path, "a", wait=False):
        pass
    other.send_signal(signal.SIGKILL)
    other.communicate()
    with locked(path, "a", wait=False):
        pass


@pytest.fixture
def smoke(registry_copy: Path) -> Plan:
    return Plan("smoke", root=registry_copy)


def test_a_run_that_another_process_trains_is_waited_for_and_not_trained_again(
    held: Hold, smoke: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A training outlives a workflow that is killed; the next workflow starts the same command again."""
    run, trained = smoke.runs_of("unsup_simcse_distilbert")[0], []
    monkeypatch.setattr(training, "_train", lambda plan, run: trained.append(run.id))
    lock = smoke.root / run.artifact.folder.parent / f".{run.id}.lock"
    said = held(lock)
    training.train_run(smoke, run)
    assert trained == [run.id]  # The other one stopped and left its state.
    assert said == [f"work on run '{run.artifact.name}' is under way in process 4711 on elsewhere; waiting for its end, or "
                    "end it with: kill 4711"]  # fmt: skip
    held(lock, meanwhile=lambda: write_json(smoke.root / run.artifact.record, {}))
    training.train_run(smoke, run)
    assert trained == [run.id]  # The other one finished it.


def test_what_another_process_scored_meanwhile_is_not_scored_again(
    held: Hold, smoke: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    run: Run = smoke.runs_of("glove_6b_50d")[0]
    keys = [key for key in smoke.batch("all") if key.run == run.id]
    scored: list[str] = []
    monkeypatch.setattr(scoring, "_score", lambda plan, run, missing: scored.extend(missing))
    said = held(
        smoke.root / smoke.layout.base / "scores" / f".{run.id}.lock",
        meanwhile=lambda: write_json(smoke.root / smoke.score(keys[0]).record, {}),
    )
    scoring.score_run(smoke, run, keys)
    assert scored == keys[1:]
    assert said[0].startswith(f"scoring of {run.id} is under way in process 4711")
