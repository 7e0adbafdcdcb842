"""Stopping and going on: the state of an unfinished run, written every few minutes and when a signal ends it."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import signal
import threading
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sembench.core.errors import SembenchError, sentence_of
from sembench.core.files import atomic_path, sha256_of
from sembench.core.progress import StepProgress
from sembench.training import ranks
from sembench.training.objectives.base import Facts

# With optimiser and best weights a checkpoint is four times the model, 5 GB for BERT large: by time, not by steps.
SECONDS_BETWEEN = 600.0
# The batch systems' "temporary failure": the same command goes on where this one stopped.
EXIT_CODE = 75
STOPPING = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT, signal.SIGHUP)
# Seconds within which several signals count as one: a workflow that passes one on may have been sent it with its jobs.
TOGETHER = 2.0
# Why a state is written, among processes that must agree: this, or this and the number of a signal.
_TIME_IS_OVER = 1
Weights = dict[str, Tensor]
# Bytes of the checksum that ends a state; the checksums within torch's own format do not cover its every byte.
_DIGEST = 64


class UnusableStateError(SembenchError):
    """A state that is damaged or does not fit the code: nothing can go on from it."""


class Interrupted(SystemExit):
    """A signal ended the run after a whole step, and its state is written; the process leaves with code 75."""

    def __init__(self, message: str) -> None:
        super().__init__(EXIT_CODE)
        self.message = message

    def __str__(self) -> str:
        return self.message


@dataclass
class State:
    """Where a run stands; the defaults are those of a new one.

    Attributes:
        step: optimiser steps taken.
        best: step and dev score of the best weights so far.
        curve: a point for each dev score.
        losses: the loss of each step.
        recent: facts of the steps since the last dev score.
        segments: a record for each uninterrupted stretch of steps.
    """

    step: int = 0
    best: dict[str, float] = field(default_factory=dict)
    curve: list[dict[str, Any]] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    recent: list[Facts] = field(default_factory=list)
    segments: list[dict[str, Any]] = field(default_factory=list)

    def note(self, loss: float, facts: Facts) -> None:
        """Keep the loss and the facts of a step."""
        self.losses.append(loss)
        self.recent.append({"loss": loss, **facts})

    def recent_means(self) -> Facts:
        """Return the means of the facts since the last dev score, and begin to gather anew."""
        means = {name: float(np.mean([facts[name] for facts in self.recent])) for name in self.recent[0]}
        self.recent = []
        return means


class Weighted(nn.ModuleDict):
    """Everything that a run trains, with the weights of its best step."""

    def __init__(self, **modules: nn.Module) -> None:
        super().__init__(modules)
        self.best: Weights = {}

    def weights(self) -> Weights:
        """Return each weight once, under its first name: a head may be both the encoder's and the objective's."""
        found: dict[int, tuple[str, Tensor]] = {}
        for name, value in self.state_dict(keep_vars=True).items():
            found.setdefault(id(value), (name, value.detach()))
        return dict(found.values())

    def keep_best(self) -> None:
        """Remember the present weights, outside the GPU."""
        self.best = {name: value.cpu().clone() for name, value in self.weights().items()}

    def load(self, weights: Weights) -> None:
        """Take the values of ``weights``.

        Raises:
            KeyError, RuntimeError: a weight is missing or has another shape.
        """
        with torch.no_grad():
            for name, value in self.weights().items():
                value.copy_(weights[name])


class Checkpoint:
    """One file in a folder outside the run's outputs, since Snakemake removes the outputs of a failed job.

    The run id names the folder and ends with the run's key, so another recipe never continues this state. Without a
    folder nothing is kept, and signals do what they always do.

    Args:
        folder: where states of unfinished runs lie, or None.
        run_id: of the run.
        every: seconds between two writes.
        content: digest of what the run trains on; a data set fetched again may hold something else under the same key.
    """

    def __init__(self, folder: Path | None, run_id: str, every: float = SECONDS_BETWEEN, *, content: str = "") -> None:
        self.path = folder / run_id / "state.pt" if folder else None
        self.run_id = run_id
        self.every = every
        self.content = content
        self.signal: signal.Signals | None = None
        self._signalled = 0.0
        self._written = time.monotonic()
        self._handlers: dict[signal.Signals, Any] = {}

    # ------------------------------------------------------------------------------------------------------ signals

    def __enter__(self) -> Checkpoint:
        """Start the clock, and listen to signals; only a main thread can."""
        self._written = time.monotonic()
        if self.path is not None and threading.current_thread() is threading.main_thread():
            # What is ignored stays so, as SIGHUP below nohup.
            heard = [number for number in STOPPING if signal.getsignal(number) != signal.SIG_IGN]
            self._handlers = {number: signal.signal(number, self._note) for number in heard}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._unlisten()

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if self.signal is None:
            self.signal, self._signalled = signal.Signals(number), time.monotonic()
        elif time.monotonic() - self._signalled >= TOGETHER:
            self._unlisten()
            signal.raise_signal(number)  # A second one ends the process at once.

    def _unlisten(self) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._handlers = {}

    # -------------------------------------------------------------------------------------------- writing and reading

    def visit(self, state: State, model: Weighted, precision: str, progress: StepProgress, *parts: Any) -> None:
        """Write the state after a step if it is time or a signal came; ``parts`` as in ``restore``.

        Of several processes that train together the first writes, and a signal to one of them stops them all.

        Raises:
            Interrupted: a signal came.
        """
        if self.path is None or not self._is_due():
            return
        if ranks.is_first():
            self._save(self.path, state, model, precision, progress, *parts)
        self._written = time.monotonic()
        if self.signal:
            ranks.largest(0)  # Nobody leaves before the state is written.
            raise Interrupted(f"{self.run_id} was stopped by {self.signal.name} after step {state.step}")

    def _is_due(self) -> bool:
        """Tell whether the first process finds it time, or any has got a signal, which is then that of all."""
        time_is_over = ranks.is_first() and time.monotonic() - self._written >= self.every
        reason = ranks.largest(_TIME_IS_OVER + self.signal if self.signal else _TIME_IS_OVER * time_is_over)
        if reason > _TIME_IS_OVER:
            self.signal = signal.Signals(reason - _TIME_IS_OVER)
        return bool(reason)

    def _save(
        self, path: Path, state: State, model: Weighted, precision: str, progress: StepProgress, *parts: Any
    ) -> None:
        saved = "which is saved"
        try:
            self._write(path, state, model, precision, progress, *parts)
        except Exception as error:
            if not (sentence := sentence_of(error)):
                raise
            # The disk may have room by the next time; what was trained so far is worth more than stopping now.
            saved = f"which is not saved ({sentence.partition(';')[0]})"
            progress.say(f"step {state.step}, {saved}; the older state stays as it is")
        if self.signal:
            what = f"{self.signal.name} after step {state.step}"
            progress.say(f"stopped by {what}, {saved}; run the same command again to go on")

    def _write(
        self, path: Path, state: State, model: Weighted, precision: str, progress: StepProgress, *parts: Any
    ) -> None:
        saved = {
            "run": self.run_id,
            "content": self.content,
            "precision": precision,
            "weights": model.weights(),
            "best_weights": model.best,
            "parts": [part.state_dict() for part in parts],
            "rng": torch.get_rng_state(),
            "cuda_rng": torch.cuda.get_rng_state() if torch.cuda.is_available() else None,
            "state": {**asdict(state), "segments": [*state.segments, segment(state, progress)]},
        }
        with atomic_path(path) as temporary:
            # Through Python's own file: torch's writer does not say that a disk is full.
            with temporary.open("wb") as stream:
                torch.save(saved, stream)
            digest = sha256_of(temporary)
            with temporary.open("ab") as stream:
                stream.write(digest.encode())
                stream.flush()
                os.fsync(stream.fileno())  # The older state goes now: a power cut must not take both.

    def restore(self, model: Weighted, precision: str, *parts: Any) -> State:
        """Load the saved state into the model, its best weights and ``parts``; a new run if there is none.

        Args:
            model: encoder and what the objective owns.
            precision: number formats in which the run goes on, in words.
            *parts: optimiser, schedule and scaler.

        Raises:
            UnusableStateError: the file is damaged or does not fit the run; the model may have taken a part of it.
            SembenchError: it belongs to another run, or the run went on other data or in another precision.
        """
        if self.path is None or not self.path.is_file():
            return State()
        anew = f"delete {self.path} to start the run anew"
        if not _is_whole(self.path):
            raise UnusableStateError(f"{self.path} is damaged")
        try:
            saved = torch.load(self.path, weights_only=True, map_location="cpu")
        except Exception as error:  # torch raises many kinds, with pages of text
            raise UnusableStateError(f"{self.path} cannot be read ({type(error).__name__})") from None
        try:
            if (run := saved["run"]) != self.run_id:
                raise SembenchError(f"{self.path} belongs to {run}, not {self.run_id}; {anew}")
            # A state that an earlier version wrote does not say.
            if saved.get("content", self.content) != self.content:
                raise SembenchError(
                    f"{self.path} was trained on other content of its inputs than they hold now; {anew}"
                )
            if (before := saved["precision"]) != precision:
                raise SembenchError(
                    f"{self.path} was trained in {before} but would go on in {precision}; go on where the hardware "
                    f"offers {before}, or {anew}"
                )
            return _loaded(saved, model, *parts)
        except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            raise UnusableStateError(f"{self.path} does not fit the run ({type(error).__name__})") from None

    def remove(self) -> None:
        """Forget the state: the run is complete."""
        if self.path is not None:
            shutil.rmtree(self.path.parent, ignore_errors=True)


def _is_whole(path: Path) -> bool:
    """Tell whether a state ends with the checksum of what is before it."""
    left = path.stat().st_size - _DIGEST
    found = hashlib.sha256()
    with path.open("rb") as stream:
        while left > 0 and (piece := stream.read(min(left, 1 << 20))):
            found.update(piece)
            left -= len(piece)
        return left == 0 and stream.read() == found.hexdigest().encode()


def _loaded(saved: dict[str, Any], model: Weighted, *parts: Any) -> State:
    model.load(saved["weights"])
    model.best = saved["best_weights"]
    for part, state in zip(parts, saved["parts"], strict=True):
        part.load_state_dict(state)
    torch.set_rng_state(saved["rng"])
    cuda_rng = saved["cuda_rng"]
    if torch.cuda.is_available() and cuda_rng is not None:
        torch.cuda.set_rng_state(cuda_rng)
    return State(**saved["state"])


def segment(state: State, progress: StepProgress) -> dict[str, Any]:
    """Return the record of the stretch of steps from the last segment to where the run stands."""
    return {
        "start_step": state.segments[-1]["end_step"] if state.segments else 0,
        "end_step": state.step,
        "seconds": round(progress.seconds, 1),
        "sentences_per_second": round(progress.rate, 2),
        "host": platform.node(),
    }
