"""Stopping and going on: the state of an interrupted run, written whenever its dev score was taken."""

from __future__ import annotations

import platform
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from sembench.core.errors import SembenchError
from sembench.core.files import atomic_path
from sembench.training.progress import StepProgress

if TYPE_CHECKING:
    from sembench.training.loop import Trained


@dataclass
class State:
    """Where a run stands; the defaults are those of a new one."""

    step: int = 0
    best: dict[str, float] = field(default_factory=dict)
    best_weights: dict[str, Tensor] = field(default_factory=dict)
    curve: list[dict[str, Any]] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    segments: list[dict[str, Any]] = field(default_factory=list)


class Checkpoint:
    """One file in a folder outside the run's outputs, since Snakemake removes the outputs of a failed job.

    The run id names the folder and holds the recipe's hash, so another recipe never continues this state. Without a
    folder nothing is kept.
    """

    def __init__(self, folder: Path | None, run_id: str) -> None:
        self.path = folder / run_id / "state.pt" if folder else None
        self.run_id = run_id

    def restore(self, encoder: nn.Module, *parts: Any) -> State:
        """Load the saved state into encoder, optimiser, schedule and scaler; a new run if there is none."""
        if self.path is None or not self.path.is_file():
            return State()
        try:
            saved = torch.load(self.path, weights_only=True, map_location="cpu")
        except Exception as error:  # torch raises many kinds, with pages of text
            kind = type(error).__name__
            raise SembenchError(f"{self.path} cannot be read ({kind}); delete it to start the run anew") from None
        if saved["run"] != self.run_id:
            raise SembenchError(f"{self.path} belongs to {saved['run']}, not {self.run_id}; delete it to start anew")
        encoder.load_state_dict(saved["encoder"])
        for part, state in zip(parts, saved["parts"], strict=True):
            part.load_state_dict(state)
        torch.set_rng_state(saved["rng"])
        if torch.cuda.is_available() and saved["cuda_rng"] is not None:
            torch.cuda.set_rng_state(saved["cuda_rng"])
        return State(**saved["state"])

    def save(
        self, run: Trained, step: int, best_weights: dict[str, Tensor], progress: StepProgress, *parts: Any
    ) -> None:
        """Write the state after ``step``; ``parts`` are optimiser, schedule and scaler, as in ``restore``."""
        if self.path is None:
            return
        segments = [*run.segments, self.segment(run.segments[-1]["end_step"] if run.segments else 0, step, progress)]
        state = {
            "step": step,
            "best": run.best,
            "best_weights": best_weights,
            "curve": run.curve,
            "losses": run.losses,
            "segments": segments,
        }
        # Through Python's own file: torch's writer does not say that a disk is full.
        with atomic_path(self.path) as temporary, temporary.open("wb") as stream:
            torch.save(
                {
                    "run": self.run_id,
                    "encoder": run.encoder.state_dict(),
                    "parts": [part.state_dict() for part in parts],
                    "rng": torch.get_rng_state(),
                    "cuda_rng": torch.cuda.get_rng_state() if torch.cuda.is_available() else None,
                    "state": state,
                },
                stream,
            )

    def segment(self, first: int, last: int, progress: StepProgress) -> dict[str, Any]:
        """Return the record of one uninterrupted stretch of steps."""
        return {
            "start_step": first,
            "end_step": last,
            "seconds": round(progress.seconds, 1),
            "sentences_per_second": round(progress.rate, 2),
            "host": platform.node(),
        }

    def remove(self) -> None:
        """Forget the state: the run is complete."""
        if self.path is not None:
            shutil.rmtree(self.path.parent, ignore_errors=True)
