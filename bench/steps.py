"""A training step beside sentence-transformers' on the same sentences, and beside the products that it consists of."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
from torch import nn

from sembench.core.plugin import OBJECTIVES
from sembench.encoders.devices import PRECISIONS, autocast
from sembench.registry.models import Recipe
from sembench.training.batches import step_rows
from sembench.training.checkpoint import Weighted
from sembench.training.trainer import build_task, encoding, load_start, optimisation

# Unsupervised SimCSE without its head, which sentence-transformers' loss does not have.
RECIPE = Recipe(objective={"kind": "contrastive", "head": "none"}, batch_size=64, learning_rate=1e-5)
CPU = torch.device("cpu")


def ours(folder: Path, sentences: Sequence[str], precision: str) -> Callable[[], object]:
    """Return a step of this project's trainer: loss, gradient, clipping and update."""
    objective = OBJECTIVES.parse(RECIPE.objective, "bench")
    encoder = load_start(folder, objective, None)
    task = build_task(objective, encoder, pd.DataFrame({"sentence": sentences}), RECIPE.max_length)
    batches = step_rows(task.rows, RECIPE.batch_size, seed=0, first_step=0, last_step=10_000)
    model = Weighted(encoder=encoder, own=task.own).train()
    encode = encoding(encoder, precision, RECIPE.chunk_rows)
    return _updating(model, precision, lambda: task.loss(next(batches), encode)[0])


def peer(folder: Path, sentences: Sequence[str], precision: str) -> Callable[[], object]:
    """Return a step of sentence-transformers' loss on the same batches, cut into word pieces beforehand.

    Its trainer cuts them in every step; optimiser and clipping are its trainer's and ours.
    """
    transformer = Transformer(str(folder))
    transformer.max_seq_length = RECIPE.max_length
    model = SentenceTransformer(
        modules=[transformer, Pooling(transformer.get_embedding_dimension(), "cls")], device="cpu"
    )
    model.train()
    loss = MultipleNegativesRankingLoss(model)
    rows = itertools.islice(step_rows(len(sentences), RECIPE.batch_size, 0, 0, 10_000), 40)
    batches = itertools.cycle([model.preprocess([sentences[i] for i in batch]) for batch in rows])
    labels = torch.zeros(RECIPE.batch_size, dtype=torch.long)

    def value() -> torch.Tensor:
        batch = next(batches)
        with autocast(precision, CPU):
            return loss([dict(batch), dict(batch)], labels)

    return _updating(model, precision, value)


def _updating(model: nn.Module, precision: str, loss: Callable[[], torch.Tensor]) -> Callable[[], object]:
    optimizer, _, _ = optimisation(RECIPE, model, 10_000, precision)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        loss().backward()
        nn.utils.clip_grad_norm_(model.parameters(), RECIPE.clip)
        optimizer.step()

    return step


def square(precision: str) -> tuple[Callable[[], object], float]:
    """Return a product of two matrices of 4,096 by 4,096, and its floating-point operations."""
    one, other = (torch.randn(4096, 4096).to(PRECISIONS[precision]) for _ in range(2))
    return lambda: one @ other, 2.0 * 4096**3


def operations(folder: Path, sentences: Sequence[str]) -> float:
    """Return the floating-point operations of a mean step's products: real tokens only, forward and both gradients."""
    objective = OBJECTIVES.parse(RECIPE.objective, "bench")
    encoder = load_start(folder, objective, None)
    weights = sum(layer.weight.numel() for layer in encoder.model.modules() if isinstance(layer, nn.Linear))
    layers: Any = encoder.config.num_hidden_layers
    lengths = [len(row) for row in encoder.tokens(sentences, RECIPE.max_length)]
    linear = 2 * weights * statistics.fmean(lengths)
    attention = 4 * layers * encoder.width * statistics.fmean(length**2 for length in lengths)
    return 3 * (linear + attention) * 2 * RECIPE.batch_size


def seconds(work: Callable[[], object]) -> float:
    """Return how long a call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
