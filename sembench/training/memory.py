"""How much memory of a GPU a training step takes at its peak, from shapes alone.

At its peak a step holds weights, gradients, Adam's two moments, and what the forward pass kept for the backward pass.
The formula is that of BERT and its kin with fused attention (transformers' default on GPUs), which keeps no matrix of
attention weights. A test compares it with what torch keeps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from sembench.core.progress import StepProgress
from sembench.encoders.transformer import TransformerEncoder
from sembench.registry.models import Recipe
from sembench.training import ranks
from sembench.training.objectives.base import Encode, Objective, Rows

FP32 = 4
GIB = 2**30
# Copies of the logits: products, divided by the temperature, their softmax, its gradient.
_LOGITS = 4
_CHUNKS = (512, 256, 128, 64, 32, 16, 8)


@dataclass(frozen=True)
class Shape:
    """What decides the memory of an encoder: layers, sizes of hidden states and between, attention heads, weights."""

    layers: int
    width: int
    inner: int
    heads: int
    parameters: int

    @classmethod
    def of(cls, encoder: TransformerEncoder, parameters: int) -> Shape:
        """Return the shape of an encoder with so many trained parameters, those of the objective included."""
        config: Any = encoder.config
        # DistilBERT has another name for it.
        inner = getattr(config, "intermediate_size", getattr(config, "hidden_dim", 4 * encoder.width))
        return cls(config.num_hidden_layers, encoder.width, inner, config.num_attention_heads, parameters)


@dataclass(frozen=True)
class Peak:
    """Bytes at the peak of a step."""

    weights: int
    gradients: int
    moments: int
    activations: int
    logits: int

    @property
    def total(self) -> int:
        """Sum of all."""
        return self.weights + self.gradients + self.moments + self.activations + self.logits

    def __str__(self) -> str:
        parts = {"weights": self.weights, "gradients": self.gradients, "moments": self.moments}
        parts |= {"activations": self.activations, "logits": self.logits}
        return f"{_gib(self.total)} ({', '.join(f'{name} {_gib(value)}' for name, value in parts.items())})"


def _gib(number: int) -> str:
    return f"{number / GIB:.2f} GiB"


def activation_bytes(shape: Shape, rows: int, length: int, precision: str, mask_bytes: int = 1) -> int:
    """Return the bytes that the forward pass of a batch of ``rows`` times ``length`` tokens keeps.

    Args:
        shape: of the encoder.
        rows: sentences.
        length: of the longest, to which all are padded.
        precision: fp32, bf16 or fp16, under autocast.
        mask_bytes: of an element of a dropout mask; a GPU keeps one, torch on a processor those of the values.
    """
    low = FP32 if precision == "fp32" else 2
    # Inputs of both layer norms in fp32; query, key, value, their result; the input of the feed-forward part; and the
    # layer's own input, which autocast rounds for query, key and value each; two dropout masks; two numbers for each
    # layer norm, and one for each head, in fp32.
    inputs = 1 if precision == "fp32" else 3
    layer = shape.width * (2 * FP32 + (5 + inputs) * low + 2 * mask_bytes) + 2 * shape.inner * low
    layer += (4 + shape.heads) * FP32
    embeddings = shape.width * (FP32 + mask_bytes) + 2 * 8
    tokens = rows * length
    # The attention mask is spread over all pairs of a row's tokens, once for all layers.
    return tokens * (shape.layers * layer + embeddings + length * low)


def cast_bytes(shape: Shape, precision: str) -> int:
    """Return the bytes of the rounded weights that autocast keeps during a step."""
    return 0 if precision == "fp32" else 2 * shape.layers * (4 * shape.width**2 + 2 * shape.width * shape.inner)


def predicted(shape: Shape, lengths: Sequence[int], examples: int, precision: str, chunk_rows: int, keep: str) -> Peak:
    """Return the peak of a step.

    Args:
        shape: of the encoder.
        lengths: of the rows that pass the encoder in this process, in tokens.
        examples: of the batch; each is compared with all rows.
        precision: as of ``activation_bytes``.
        chunk_rows: as in a recipe.
        keep: as in a recipe.
    """
    ordered, size = sorted(lengths), chunk_rows or len(lengths)
    chunks = [ordered[start : start + size] for start in range(0, len(ordered), size)]
    passes = [activation_bytes(shape, len(chunk), chunk[-1], precision) for chunk in chunks]
    tokens = max(len(chunk) * chunk[-1] for chunk in chunks)
    # One layer's gradients are there beside the activations; vectors stay until the loss has a gradient.
    working = tokens * 2 * shape.inner * (FP32 if precision == "fp32" else 2)
    vectors = 2 * len(lengths) * shape.width * FP32
    held = max(passes) if keep == "vectors" else sum(passes)
    weights = shape.parameters * FP32
    return Peak(
        weights=weights + cast_bytes(shape, precision),
        gradients=weights,
        moments=2 * weights,
        activations=held + working + vectors,
        logits=_LOGITS * FP32 * examples * len(lengths),
    )


def advice(
    shape: Shape, lengths: Sequence[int], examples: int, precision: str, available: int
) -> tuple[int, Peak] | None:
    """Return the largest ``chunk_rows`` that fits ``available`` bytes with ``keep: vectors``, and its peak."""
    for chunk_rows in _CHUNKS:
        peak = predicted(shape, lengths, examples, precision, chunk_rows, "vectors")
        if chunk_rows < len(lengths) and peak.total <= available:
            return chunk_rows, peak
    return None


def report(
    recipe: Recipe, shape: Shape, lengths: Sequence[int], examples: int, precision: str, available: int
) -> list[str]:
    """Return sentences about a run on a GPU with so many bytes: the peak, and how it fits if it does not."""
    peak = predicted(shape, lengths, examples, precision, recipe.chunk_rows, recipe.keep)
    said = [f"predicted peak of GPU memory: {peak}"]
    if peak.total > available:
        better = advice(shape, lengths, examples, precision, available)
        remedy = (
            f"set 'chunk_rows: {better[0]}' and 'keep: vectors' in the recipe, for the same gradient in "
            f"{_gib(better[1].total)}"
            if better
            else "no chunk is small enough; share the batch among more 'processes', or take a smaller encoder"
        )
        said.append(f"the GPU has {_gib(available)}, less than that; {remedy}")
    return said


def announce(
    recipe: Recipe,
    task: Objective,
    batch: Sequence[int],
    encoder: TransformerEncoder,
    model: nn.Module,
    precision: str,
    progress: StepProgress,
) -> None:
    """Say before the first step, on a GPU, what a step will take there; ``batch`` is the first one's examples."""
    if encoder.device.type != "cuda":
        return
    lengths = lengths_of(task, batch, encoder)
    own = [lengths[i] for i in ranks.shares(len(lengths))[ranks.rank()]]
    shape = Shape.of(encoder, sum(each.numel() for each in model.parameters()))
    available = torch.cuda.get_device_properties(encoder.device).total_memory
    for sentence in report(recipe, shape, own, len(batch), precision, available):
        progress.say(sentence)


def lengths_of(task: Objective, batch: Sequence[int], trained: TransformerEncoder) -> list[int]:
    """Return the lengths of all rows that an objective has encoded for a batch; nothing is encoded or drawn."""
    found: list[int] = []

    class Counting(Encode):
        def __call__(self, rows: Rows, readout: str, encoder: TransformerEncoder | None = None) -> Tensor:
            found.extend(len(row) for row in rows)
            return torch.ones(len(rows), (encoder or trained).width_of(readout), device=trained.device)

        def at(self, rows: Rows, places: Sequence[Sequence[int]]) -> Tensor:
            found.extend(len(row) for row in rows)
            return torch.ones(sum(map(len, places)), trained.width, device=trained.device)

    with torch.random.fork_rng(), torch.no_grad():
        task.loss(batch, Counting())
    return found
