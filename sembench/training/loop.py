"""The training loop, from top to bottom; what it minimises is a task (see tasks.py).

Quirks of the official code that are kept: both views go through the encoder in one batch of 2N rows, so that only the
dropout masks differ; the head is used for the loss and skipped whenever vectors are read out, also for the dev score;
AdamW without weight decay, linear decay to 0 without warm-up, gradient norm clipped at 1.0. One that is mended: the dev
score is also taken at the last step, which the official code misses unless it is a multiple of 125 - in hppRC's study
of 50 seeds the last step was always the best one for RoBERTa-base.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR

from sembench.core.errors import SembenchError
from sembench.encoders.devices import resolve_precision
from sembench.encoders.readouts import MLPHead
from sembench.encoders.transformer import TransformerEncoder, load_transformer, read_entry
from sembench.evaluation.geometry import alignment, uniformity
from sembench.evaluation.pairs import Pairs
from sembench.evaluation.score import Embedded
from sembench.evaluation.sts import correlation, cosine
from sembench.registry.models import Recipe
from sembench.training.batches import step_rows, steps_per_epoch
from sembench.training.checkpoint import Checkpoint
from sembench.training.progress import StepProgress
from sembench.training.tasks import Examples, Facts, Task, build_task

POSITIVES_ABOVE = 4.0
Weights = dict[str, Tensor]


@dataclass
class Trained:
    """What training leaves: the encoder with its best weights, and the story of the run."""

    encoder: TransformerEncoder
    steps: int
    precision: str
    eval_precision: str
    best: dict[str, float]
    curve: list[dict[str, Any]]
    losses: list[float]
    segments: list[dict[str, Any]] = field(default_factory=list)


def train(
    recipe: Recipe, seed: int, start: Path, examples: Examples, dev: Pairs, checkpoint: Checkpoint, title: str
) -> Trained:
    """Train an encoder and return it with the weights of its best dev score.

    Args:
        recipe: the resolved recipe.
        seed: of data order, dropout and the head's initial weights.
        start: model folder to start from: a backbone's or that of another run, whose head is left behind.
        examples: sentences, or the frame that the objective asks for.
        dev: pairs whose Spearman correlation selects the kept step.
        checkpoint: where an interrupted run is found and continued.
        title: of the progress lines.

    Raises:
        SembenchError: the loss stops being finite, the corpus is empty, or the encoder cannot be trained.
    """
    torch.manual_seed(seed)
    encoder = _encoder(recipe, start)
    device = encoder.device
    precision = resolve_precision(recipe.precision, device)
    encoder.precision = resolve_precision(recipe.eval_precision, device)
    task = build_task(recipe, encoder, examples)
    steps = recipe.max_steps or steps_per_epoch(task.rows, recipe.batch_size) * recipe.epochs

    optimizer = torch.optim.AdamW(
        encoder.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay, eps=1e-8, fused=True
    )
    schedule = LambdaLR(optimizer, _linear_decay(steps, recipe.warmup))
    scaler = torch.amp.GradScaler(device.type, enabled=precision == "fp16")
    state = checkpoint.restore(encoder, optimizer, schedule, scaler)
    run = Trained(encoder, steps, precision, encoder.precision, state.best, state.curve, state.losses, state.segments)
    best_weights = state.best_weights

    with StepProgress(title, steps, done=state.step) as progress:
        if state.step == 0:
            run.curve.append({**_dev_point(encoder, recipe, dev, step=0, progress=progress), "loss": None})
        encoder.train()
        recent: list[Facts] = []
        batches = step_rows(task.rows, recipe.batch_size, seed, state.step, steps)
        for step, batch in enumerate(batches, start=state.step + 1):
            loss, facts = _step(recipe, task, encoder, optimizer, scaler, precision, batch, step)
            schedule.step()
            run.losses.append(loss)
            recent.append({"loss": loss, **facts})
            progress.step(len(batch), f"loss {loss:.4f}")
            if step % recipe.eval_every and step != steps:
                continue
            point = _dev_point(encoder, recipe, dev, step=step, progress=progress)
            means = {name: float(np.mean([facts[name] for facts in recent])) for name in recent[0]}
            run.curve.append({**point, **means, "learning_rate": schedule.get_last_lr()[0]})
            recent.clear()
            # Strictly better only, as the official code: among equals the earliest step is kept.
            if point["dev"] > run.best.get("dev", -math.inf):
                run.best = {"step": step, "dev": point["dev"]}
                best_weights = _copy(encoder)
            if step != steps:
                checkpoint.save(run, step, best_weights, progress, optimizer, schedule, scaler)
        run.segments = [*state.segments, checkpoint.segment(state.step, steps, progress)]

    encoder.load_state_dict(best_weights)
    encoder.eval()
    return run


def _encoder(recipe: Recipe, start: Path) -> TransformerEncoder:
    """Load the encoder without a head it may have and give it a fresh one where the recipe wants one.

    The checkpoint's own pooler is left behind as well, unless the recipe trains through it.
    """
    entry = read_entry(start)
    if entry.get("kind") != "transformer":
        raise SembenchError(f"{start} is no transformer and cannot be trained; choose another backbone")
    pooler = recipe.readout == "pooler"
    if pooler and not entry.get("pooler"):
        raise SembenchError(f"{start} has no pooler to train through; choose another read-out")
    encoder = load_transformer(start, {**entry, "pooler": pooler, "head": None}, dropout=recipe.dropout)
    if recipe.head == "mlp":
        encoder.heads["cls_mlp"] = MLPHead(encoder.width).to(encoder.device)
    if recipe.head == "mlp" and recipe.readout != "cls":
        raise SembenchError(f"recipe: the head 'mlp' belongs on read-out 'cls', not '{recipe.readout}'; set head: none")
    return encoder


def _step(
    recipe: Recipe,
    task: Task,
    encoder: TransformerEncoder,
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    precision: str,
    batch: list[int],
    step: int,
) -> tuple[float, Facts]:
    """Take one optimiser step on the examples of a batch and return its loss and facts."""
    loss, facts = task.loss(batch, precision)
    value = float(loss.detach())
    if not math.isfinite(value):
        raise SembenchError(f"the loss is {value} at step {step}; lower the learning rate or train in fp32")
    optimizer.zero_grad(set_to_none=True)
    scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(encoder.parameters(), recipe.clip)
    scaler.step(optimizer)
    scaler.update()
    return value, facts


def _linear_decay(steps: int, warmup: float) -> Callable[[int], float]:
    rising = round(steps * warmup)

    def factor(step: int) -> float:
        return step / rising if step < rising else max(0.0, (steps - step) / max(steps - rising, 1))

    return factor


def _dev_point(
    encoder: TransformerEncoder, recipe: Recipe, dev: Pairs, *, step: int, progress: StepProgress
) -> dict[str, Any]:
    """Score the dev pairs: Spearman, and alignment and uniformity of the same vectors."""
    start = time.monotonic()
    name = recipe.select_by
    embedded = Embedded(encoder, dev.sentences, [name])
    first, second = embedded.of(name, dev.first), embedded.of(name, dev.second)
    positive = dev.gold > POSITIVES_ABOVE
    rows, counts = np.unique(embedded.rows(dev.sentences), return_counts=True)
    seconds = time.monotonic() - start
    progress.paused += seconds
    spearman = correlation("spearman", cosine(first, second), dev.gold)
    progress.say(f"step {step}, dev Spearman {spearman * 100:.2f} ({name})")
    return {
        "step": step,
        "dev": spearman,
        "alignment": alignment(first[positive], second[positive]) if positive.any() else None,
        "uniformity": uniformity(embedded.vectors[name][rows], counts),
        "seconds": round(seconds, 2),
    }


def _copy(encoder: nn.Module) -> Weights:
    return {name: value.detach().cpu().clone() for name, value in encoder.state_dict().items()}
