"""Several processes that train one run: loss, gradient and weights are those of one process."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import torch

from sembench.core.errors import SembenchError
from sembench.core.plugin import OBJECTIVES
from sembench.core.schema import deciding
from sembench.registry.models import Recipe
from sembench.training import launch as launching
from sembench.training import ranks
from sembench.training.checkpoint import Checkpoint
from sembench.training.launch import launch
from tests.conftest import ROOT, environment
from tests.unit import ranks_worker
from tests.unit.test_training import KINDS, OPTIONS, dev, examples

__all__ = ["dev"]  # a fixture
Found = dict[str, Any]
# Seven rows of a batch: processes have unequal shares, and chunks of three are cut otherwise.
BATCH = list(range(7))


def objective(kind: str) -> dict[str, Any]:
    return OPTIONS.get(kind, {"kind": kind})


def recipe(**more: Any) -> Recipe:
    """The last batch of an epoch of 19 examples has three."""
    usual = {"objective": {"kind": "contrastive"}, "batch_size": 8, "max_steps": 6, "eval_every": 4}
    return Recipe(**usual, precision="fp32", dropout=0.0, **more)  # type: ignore[arg-type]


def tasks(start: Path, dev: Any) -> dict[str, Any]:
    cases = {kind: (start, objective(kind), examples(12), BATCH, "whole") for kind in KINDS}
    for kind in ("contrastive", "softmax"):
        cases[f"{kind}, share"] = (start, objective(kind), examples(12), BATCH, "share")
    return {
        "start": start,
        "gradients": cases,
        "masks": (start, objective("contrastive")),
        "given": {"start": start, "examples": examples(19), "dev": dev},
        "plain": recipe(processes=2),
        "dropout": recipe(processes=2).model_copy(update={"dropout": 0.1, "learning_rate": 1e-3}),
    }


@pytest.fixture(scope="module")
def pair(smoke_backbones: Path, dev: Any, tmp_path_factory: pytest.TempPathFactory) -> list[Found]:
    """What two processes found."""
    folder = tmp_path_factory.mktemp("pair")
    (folder / "tasks").write_bytes(pickle.dumps(tasks(smoke_backbones / "smoke_bert", dev)))
    assert launch([sys.executable, str(ROOT / "tests/unit/ranks_worker.py"), str(folder)], 2, environment(ROOT)) == 0
    return [torch.load(folder / f"found{rank}.pt") for rank in range(2)]


@pytest.fixture(scope="module")
def single(smoke_backbones: Path, dev: Any) -> dict[str, Any]:
    """The same tasks in one process."""
    return tasks(smoke_backbones / "smoke_bert", dev)


def assert_near(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor], times: float = 1.0) -> None:
    """Compare with a tolerance of 1e-9 of the largest gradient."""
    assert found.keys() == expected.keys()
    largest = max(float(value.abs().max()) for value in expected.values())
    assert largest > 0
    for name, value in expected.items():
        assert (found[name] - value * times).abs().max() < 1e-9 * largest, name


@pytest.mark.parametrize("kind", [*KINDS, "one row"])
def test_loss_and_gradient_are_those_of_one_process(pair: list[Found], single: dict[str, Any], kind: str) -> None:
    alone = ranks_worker.of_one_row, (single["start"],)
    make, given = alone if kind == "one row" else (ranks_worker.gradients, single["gradients"][kind])
    expected = make(*given)
    for found in (each[kind] for each in pair):
        torch.testing.assert_close(found["loss"], expected["loss"], rtol=1e-12, atol=0)
        assert found["facts"] == pytest.approx(expected["facts"], rel=1e-5)
        assert_near(found["gradients"], expected["gradients"])


def test_the_official_gradient_is_a_share_at_the_encoder_alone(pair: list[Found], single: dict[str, Any]) -> None:
    """SimCSE's official code gathers without gradient for the others' rows, and DDP takes the mean."""
    expected = ranks_worker.gradients(*single["gradients"]["contrastive"])["gradients"]
    assert_near(pair[0]["contrastive, share"]["gradients"], expected, 0.5)
    expected = ranks_worker.gradients(*single["gradients"]["softmax"])["gradients"]
    found = pair[0]["softmax, share"]["gradients"]
    behind = {name for name in expected if name.startswith("own.")}
    assert behind
    assert_near({name: found[name] for name in behind}, {name: expected[name] for name in behind})
    rest = expected.keys() - behind
    assert_near({name: found[name] for name in rest}, {name: expected[name] for name in rest}, 0.5)


def test_masks_differ_and_nothing_else_that_is_drawn(pair: list[Found]) -> None:
    first, second = (each["masks"] for each in pair)
    assert torch.equal(first["vectors"], second["vectors"])
    assert not torch.allclose(*first["vectors"])
    assert torch.equal(first["drawn"], second["drawn"])


def test_a_whole_run_ends_with_the_weights_of_one_process(pair: list[Found], single: dict[str, Any]) -> None:
    one = ranks_worker.trained(single["given"], recipe(), Checkpoint(None, "test"))
    start = OBJECTIVES.parse({"kind": "contrastive"}, "test"), single["given"]["start"]
    before = ranks_worker.load_start(start[1], start[0], 0.0).state_dict()
    for found in (each["plain"] for each in pair):
        assert found["losses"] == pytest.approx(one["losses"], rel=1e-5)
        assert [point["dev"] for point in found["curve"]] == pytest.approx([p["dev"] for p in one["curve"]], abs=1e-5)
        for name, value in one["weights"].items():
            torch.testing.assert_close(found["weights"][name], value, rtol=0, atol=1e-5)
    moved = [(pair[0]["plain"]["weights"][name] - value).abs().max() for name, value in before.items()]
    assert max(moved) > 5e-5


def test_a_signal_to_one_stops_all_and_they_go_on_bit_for_bit(pair: list[Found]) -> None:
    for found in pair:
        assert found["resumed"]["reason"] == "test was stopped by SIGTERM after step 3 75"
        assert found["resumed"]["there"]
        assert found["resumed"]["steps"] == 3
        for key in ("losses", "curve"):
            assert found["resumed"][key] == found["whole"][key] == pair[0]["whole"][key]
        for name, value in pair[0]["whole"]["weights"].items():
            assert torch.equal(found["resumed"]["weights"][name], value)


def test_a_recipe_says_how_many_take_part() -> None:
    with pytest.raises(SembenchError, match="the recipe says 'processes: 2', and 1 take part; start so many"):
        ranks.check(2)
    assert {"processes", "gradient"}.isdisjoint(deciding(Recipe(objective={})))


# ------------------------------------------------------------------------------------------------ starting and ending


def ended(code: str, processes: int = 2) -> int:
    return launch([sys.executable, "-S", "-c", f"import os, sys, time; rank = int(os.environ['RANK']); {code}"], processes, os.environ)  # fmt: skip


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("sys.exit(0 if rank else 75)", 75),
        ("sys.exit(2) if rank else time.sleep(600)", 2),
        ("os.kill(os.getpid(), 9) if rank else time.sleep(600)", 137),
        ("assert os.environ['WORLD_SIZE'] == '3' and int(os.environ['MASTER_PORT']) and rank < 3", 0),
    ],
)
def test_processes_end_together(code: str, expected: int) -> None:
    assert ended(code, 3 if expected == 0 else 2) == expected


def test_signals_are_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sent as soon as all are listening."""
    code = f"import signal; signal.signal(15, lambda *_: sys.exit(75)); open('{tmp_path}/' + str(rank), 'w'); time.sleep(600)"
    sent: list[int] = []

    def sleep(seconds: float) -> None:
        if len(list(tmp_path.iterdir())) == 2 and not sent:
            sent.append(1)
            os.kill(os.getpid(), signal.SIGTERM)
        threading.Event().wait(0.01)

    monkeypatch.setattr(launching.time, "sleep", sleep)
    before = signal.getsignal(signal.SIGTERM)
    assert ended(code) == 75
    assert signal.getsignal(signal.SIGTERM) == before
