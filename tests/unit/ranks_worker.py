"""What each of two processes of test_ranks.py does: `python ranks_worker.py FOLDER`, with a file of tasks in the folder."""

from __future__ import annotations

import faulthandler
import os
import pickle
import signal
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from sembench.core.plugin import OBJECTIVES
from sembench.training import ranks
from sembench.training.checkpoint import Checkpoint, Interrupted
from sembench.training.trainer import build_task, encoding, load_start, train

# Encoders give vectors in float32, whatever their weights are.
IN_FLOAT64 = patch.object(torch.Tensor, "float", torch.Tensor.double)


def gradients(start: Path, objective: dict[str, Any], examples: Any, batch: list[int], gradient: Any) -> dict[str, Any]:
    """Return the loss of a batch in float64 without dropout, and the gradient of every weight."""
    torch.manual_seed(0)
    chosen = OBJECTIVES.parse(objective, "test")
    encoder = load_start(start, chosen, 0.0).double()
    task = build_task(chosen, encoder, examples, 32)
    model = torch.nn.ModuleDict({"encoder": encoder, "own": task.own}).double()
    with IN_FLOAT64:
        loss, facts = task.loss(batch, encoding(encoder, "fp32", 3, "vectors", gradient))
        return {"facts": facts, **backward(loss, model)}


def of_one_row(start: Path) -> dict[str, Any]:
    """Return the same of a loss on a single row, which leaves one process without a row."""
    encoder = load_start(start, OBJECTIVES.parse({"kind": "contrastive"}, "test"), 0.0).double()
    with IN_FLOAT64:
        return {"facts": {}, **backward(encoding(encoder, "fp32", 0)([[2, 5, 6, 3]], "cls")[0, 0], encoder)}


def backward(loss: torch.Tensor, model: torch.nn.Module) -> dict[str, Any]:
    """Return the value of a loss, and its gradient for every weight."""
    loss.backward()  # type: ignore[no-untyped-call]
    ranks.average_gradients(model)
    found = {name: each.grad for name, each in model.named_parameters() if each.grad is not None}
    return {"loss": loss.detach(), "gradients": found}


def masks(start: Path, objective: dict[str, Any]) -> dict[str, Any]:
    """Return the vectors of equal rows under dropout, and what every process draws afterwards."""
    torch.manual_seed(0)
    encoder = load_start(start, OBJECTIVES.parse(objective, "test"), 0.5).train()
    vectors = encoding(encoder, "fp32", 0)([[2, 5, 6, 3]] * 2, "cls").detach()
    return {"vectors": vectors, "drawn": torch.rand(2)}


def trained(given: dict[str, Any], recipe: Any, checkpoint: Checkpoint) -> dict[str, Any]:
    """Return losses, curve and weights of a run."""
    found = train(recipe, OBJECTIVES.parse(recipe.objective, "test"), 1, **given, checkpoint=checkpoint, title="test")
    curve = [{name: value for name, value in point.items() if name != "seconds"} for point in found.state.curve]
    return {"losses": found.state.losses, "curve": curve, "weights": found.encoder.state_dict()}


def stopped(given: dict[str, Any], recipe: Any, folder: Path) -> dict[str, Any]:
    """Send a signal to the last process in the third step, and go on from the state that the first one writes."""
    plugin = OBJECTIVES.parse(recipe.objective, "test").plugin
    plain, calls = plugin.loss, []

    def signalled(self: Any, batch: Any, encode: Any) -> Any:
        calls.append(batch)
        if len(calls) == 3 and ranks.rank() == ranks.count() - 1:
            os.kill(os.getpid(), signal.SIGTERM)
        return plain(self, batch, encode)

    plugin.loss = signalled
    try:
        trained(given, recipe, Checkpoint(folder, "test"))
    except Interrupted as stop:
        reason = f"{stop} {stop.code}"
    there = (folder / "test" / "state.pt").is_file()
    plugin.loss = plain
    return {"reason": reason, "there": there, "steps": len(calls), **trained(given, recipe, Checkpoint(folder, "test"))}


def main(folder: Path) -> None:
    """Do all tasks and write what came out."""
    faulthandler.dump_traceback_later(120, exit=True)
    torch.set_num_threads(1)
    tasks = pickle.loads((folder / "tasks").read_bytes())
    with ranks.joined(torch.device("cpu")):
        ranks.check(2)
        found = {name: gradients(*given) for name, given in tasks["gradients"].items()}
        found["one row"] = of_one_row(tasks["start"])
        found["masks"] = masks(*tasks["masks"])
        found["plain"] = trained(tasks["given"], tasks["plain"], Checkpoint(None, "test"))
        found["whole"] = trained(tasks["given"], tasks["dropout"], Checkpoint(None, "test"))
        found["resumed"] = stopped(tasks["given"], tasks["dropout"], folder)
        torch.save(found, folder / f"found{ranks.rank()}.pt")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
