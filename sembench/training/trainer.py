"""The training loop, from top to bottom; what it minimises is an objective (see the folder ``objectives``).

As in SimCSE's official code: AdamW without weight decay, linear decay to 0 without warm-up, gradient norm clipped at
1.0, the step with the best dev score kept. Unlike it, the dev score is also taken at the last step, which the official
code misses unless it is a multiple of 125; in hppRC's study of 50 seeds the last step was always the best one for
RoBERTa-base.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR

from sembench.core.errors import SembenchError, unknown
from sembench.core.plugin import Chosen
from sembench.core.progress import StepProgress, say
from sembench.data.readers.pairs import Pairs
from sembench.encoders.convert.base import POOLER
from sembench.encoders.devices import autocast, resolve_precision
from sembench.encoders.transformer import TransformerEncoder, load_transformer, read_entry
from sembench.registry.models import Recipe
from sembench.training import memory, ranks
from sembench.training.batches import Keep, encode_places, encode_rows, sampled, step_rows, steps_per_epoch
from sembench.training.checkpoint import Checkpoint, State, UnusableStateError, Weighted, segment
from sembench.training.dev import dev_point
from sembench.training.duplicates import announce_duplicates
from sembench.training.objectives.base import Encode, Objective, Rows
from sembench.training.packing import prepare
from sembench.training.ranks import Gradient


@dataclass
class Trained:
    """What training leaves: the encoder with its best weights, and the history of the run.

    Attributes:
        encoder: with the exported heads among its read-outs.
        heads: the modules that the objective exports, by read-out.
        rows: examples of an epoch.
        precision: number format of training.
        eval_precision: number format of the dev scores.
        state: at the end: steps, losses, curve, best step, segments.
    """

    encoder: TransformerEncoder
    heads: dict[str, nn.Module]
    rows: int
    precision: str
    eval_precision: str
    state: State


def train(
    recipe: Recipe,
    objective: Chosen[Objective],
    seed: int,
    start: Path,
    examples: pd.DataFrame,
    dev: Pairs,
    checkpoint: Checkpoint,
    title: str,
) -> Trained:
    """Train an encoder and return it with the weights of its best dev score.

    A state from which nothing can go on is deleted, said so, and the run starts anew.

    Args:
        recipe: the resolved recipe.
        objective: what is minimised, with its parameters.
        seed: of the sample, data order, dropout and new modules' initial weights.
        start: model folder to start from: a backbone's or that of another run, whose heads are left behind.
        examples: a frame with the objective's columns.
        dev: pairs whose Spearman correlation selects the kept step.
        checkpoint: where an interrupted run is found and continued.
        title: of the progress lines.

    Raises:
        SembenchError: the loss stops being finite, the examples do not fit, the encoder cannot be trained so, or other
            processes take part than the recipe says.
        Interrupted: a signal ended the run; its state is written.
    """
    try:
        return _trained(recipe, objective, seed, start, examples, dev, checkpoint, title)
    except UnusableStateError as error:
        say(f"{title}: {error}; it is deleted, and the run starts anew")
        checkpoint.remove()
        return _trained(recipe, objective, seed, start, examples, dev, checkpoint, title)


def _trained(
    recipe: Recipe,
    objective: Chosen[Objective],
    seed: int,
    start: Path,
    examples: pd.DataFrame,
    dev: Pairs,
    checkpoint: Checkpoint,
    title: str,
) -> Trained:
    ranks.check(recipe.processes)
    torch.manual_seed(seed)
    encoder = load_start(start, objective, recipe.dropout)
    examples = sampled(examples, recipe.rows, seed)
    task = build_task(objective, encoder, examples, recipe.max_length)
    check_select_by(recipe, encoder)
    precision = resolve_precision(recipe.precision, encoder.device)
    encoder.precision = resolve_precision(recipe.eval_precision, encoder.device)
    encode = encoding(encoder, precision, recipe.chunk_rows, recipe.keep, recipe.gradient)
    steps = recipe.max_steps or steps_per_epoch(task.rows, recipe.batch_size) * recipe.epochs
    model = Weighted(encoder=encoder, own=task.own)
    parts = optimizer, schedule, scaler = optimisation(recipe, model, steps, precision)
    formats = number_formats(precision, encoder.precision)
    state = checkpoint.restore(model, formats, *parts)

    with checkpoint, StepProgress(title, steps, done=state.step, shown=ranks.is_first()) as progress:
        announce(recipe, task.rows, progress)
        first = next(step_rows(task.rows, recipe.batch_size, seed, 0, 1))
        memory.announce(recipe, task, first, encoder, model, precision, progress)
        if state.step == 0:
            state.curve.append({**scored(encoder, recipe.select_by, dev, 0, progress), "loss": None})
        announce_duplicates(objective, examples, recipe.batch_size, progress)
        model.train()
        for batch in step_rows(task.rows, recipe.batch_size, seed, state.step, steps):
            state.step += 1
            loss, facts = task.loss(batch, encode)
            value = reading(loss, state.step)
            optimizer.zero_grad(set_to_none=True)
            scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
            ranks.average_gradients(model)
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
            scaler.step(optimizer)
            scaler.update()
            schedule.step()
            state.note(value(), facts)
            progress.step(len(batch), f"loss {state.losses[-1]:.4f}")
            if state.step % recipe.eval_every == 0 or state.step == steps:
                point = scored(encoder, recipe.select_by, dev, state.step, progress)
                state.curve.append({**point, **state.recent_means(), "learning_rate": schedule.get_last_lr()[0]})
                # Strictly better only, as the official code: among equals the earliest step is kept.
                if point["dev"] > state.best.get("dev", -math.inf):
                    state.best = {"step": state.step, "dev": point["dev"]}
                    model.keep_best()
            if state.step < steps:
                checkpoint.visit(state, model, formats, progress, *parts)
        state.segments.append(segment(state, progress))

    model.load(model.best)
    model.eval()
    return Trained(encoder, task.exported(), task.rows, precision, encoder.precision, state)


def load_start(start: Path, objective: Chosen[Objective], dropout: float | None) -> TransformerEncoder:
    """Load the encoder of a model folder without the heads it may have.

    The checkpoint's own pooler is left behind as well, unless the objective trains through it.

    Raises:
        SembenchError: the folder holds no transformer, or no pooler although the objective needs one.
    """
    entry = read_entry(start)
    if entry.get("kind") != "transformer":
        raise SembenchError(f"{start} is not a transformer and cannot be trained; choose another backbone")
    pooler = objective.plugin.trains_through(objective.config) == POOLER
    if pooler and not entry.get("pooler"):
        raise SembenchError(f"{start} has no pooler to train through; choose another read-out")
    encoder = load_transformer(start, {**entry, "pooler": pooler}, dropout=dropout)
    encoder.heads = nn.ModuleDict({name: head for name, head in encoder.heads.items() if pooler and name == POOLER})
    prepare(encoder)
    return encoder


def build_task(
    objective: Chosen[Objective], encoder: TransformerEncoder, examples: pd.DataFrame, max_length: int
) -> Objective:
    """Return the objective on its examples, its modules beside the encoder and its heads among the read-outs.

    Raises:
        SembenchError: there is no example, a column is missing, or the objective refuses them.
    """
    for column in objective.plugin.columns:
        if column not in examples.columns:
            raise SembenchError(
                f"the training examples lack the column '{column}', which objective '{objective.kind}' reads; "
                f"choose data with the columns {', '.join(objective.plugin.columns)}"
            )
    if not len(examples):
        raise SembenchError("there is no example to train on; the data set is empty")
    task = objective.plugin(objective.config, encoder, examples, max_length)
    if task.rows == 1 and objective.plugin.in_batch_negatives:
        raise SembenchError(
            f"there is only one example to train on, but those of a batch are each other's negatives for objective "
            f"'{objective.kind}'; choose a larger data set"
        )
    task.own.to(encoder.device)
    encoder.heads.update(task.exported())
    return task


def check_select_by(recipe: Recipe, encoder: TransformerEncoder) -> None:
    """Refuse a read-out for the dev score that the encoder does not offer.

    Raises:
        SembenchError: its name and the nearest one.
    """
    if recipe.select_by not in encoder.readouts:
        raise unknown("recipe: select_by", recipe.select_by, encoder.readouts, "what the encoder offers in training")


def announce(recipe: Recipe, rows: int, progress: StepProgress) -> None:
    """Say how several processes share a batch."""
    if (processes := ranks.count()) > 1:
        batch = min(recipe.batch_size, rows)
        part = "" if recipe.gradient == "whole" else f"1/{processes} of "
        progress.say(
            f"{processes} processes share a batch of {batch} examples, each of which has the other {batch - 1} as "
            f"negatives; the gradient is {part}that of the whole batch"
        )


def scored(encoder: TransformerEncoder, readout: str, dev: Pairs, step: int, progress: StepProgress) -> dict[str, Any]:
    """Return the dev score after a step as a point of the curve; its time does not count for the training rate."""
    point = {"step": step, **ranks.from_first(lambda: dev_point(encoder, readout, dev))}
    progress.paused += point["seconds"]
    progress.say(f"step {step}, dev Spearman {point['dev'] * 100:.2f} ({readout})")
    return point


def encoding(
    encoder: TransformerEncoder,
    precision: str,
    chunk_rows: int,
    keep: Keep = "activations",
    gradient: Gradient = "whole",
) -> Encode:
    """Return how an objective sees the encoder; see ``objectives.base.Encode``."""
    return _Encoding(encoder, precision, chunk_rows, keep, gradient)


@dataclass(frozen=True)
class _Encoding(Encode):
    trained: TransformerEncoder
    precision: str
    chunk_rows: int
    keep: Keep
    gradient: Gradient

    def __call__(self, rows: Rows, readout: str, encoder: TransformerEncoder | None = None) -> Tensor:
        def vectors(share: Sequence[int]) -> Tensor:
            with autocast(self.precision, self.trained.device):
                part = [rows[i] for i in share]
                return encode_rows(encoder or self.trained, part, readout, self.chunk_rows, self.keep).float()

        return ranks.encoded([1] * len(rows), vectors, self.gradient)

    def at(self, rows: Rows, places: Sequence[Sequence[int]]) -> Tensor:
        def vectors(share: Sequence[int]) -> Tensor:
            with autocast(self.precision, self.trained.device):
                part, wanted = [rows[i] for i in share], [places[i] for i in share]
                return encode_places(self.trained, part, wanted, self.chunk_rows, self.keep).float()

        return ranks.encoded([len(wanted) for wanted in places], vectors, self.gradient)


def number_formats(training: str, dev: str) -> str:
    """Return in words what a run that goes on must keep: the formats of training and of the dev scores."""
    return training if training == dev else f"{training} with dev scores in {dev}"


def reading(loss: Tensor, step: int) -> Callable[[], float]:
    """Return what reads the value of a loss, as ``finite`` does.

    On a GPU it is read once the whole step has been handed over: it is known when the forward pass is done, while
    the GPU still has the backward pass to do, so that it never waits for the host.
    """
    if loss.device.type != "cuda":
        value = finite(loss, step)
        return lambda: value
    copy = torch.empty((), dtype=loss.dtype, pin_memory=True)
    copy.copy_(loss.detach(), non_blocking=True)
    done = torch.cuda.Event()  # type: ignore[no-untyped-call]
    done.record()

    def read() -> float:
        done.synchronize()
        return finite(copy, step)

    return read


def finite(loss: Tensor, step: int) -> float:
    """Return the value of a loss, a scalar tensor.

    Raises:
        SembenchError: it is not a finite number.
    """
    value = float(loss.detach())
    if not math.isfinite(value):
        raise SembenchError(f"the loss is {value} at step {step}; lower the learning rate or train in fp32")
    return value


def optimisation(
    recipe: Recipe, model: nn.Module, steps: int, precision: str
) -> tuple[torch.optim.Optimizer, LambdaLR, torch.amp.GradScaler]:
    """Return optimiser, learning-rate schedule and fp16's scaler, which does nothing in other precisions."""
    # A head that is the encoder's and the objective's is among the parameters once.
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay, eps=1e-8, fused=True
    )
    device = next(model.parameters()).device
    scaler = torch.amp.GradScaler(device.type, enabled=precision == "fp16")
    return optimizer, LambdaLR(optimizer, linear_decay(steps, recipe.warmup)), scaler


def linear_decay(steps: int, warmup: float) -> Callable[[int], float]:
    """Return the factor of the learning rate before each step: up over a share of the steps, then down to 0."""
    rising = round(steps * warmup)

    def factor(step: int) -> float:
        return step / rising if step < rising else max(0.0, (steps - step) / max(steps - rising, 1))

    return factor
