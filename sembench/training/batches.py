"""Which examples a step sees, and how its rows are cut so that no time goes into padding."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Literal

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from sembench.data.frames import sample
from sembench.encoders.devices import sent
from sembench.encoders.readouts import NEEDS_ALL_LAYERS, read_out
from sembench.encoders.transformer import TransformerEncoder
from sembench.training.objectives.base import Rows
from sembench.training.packing import packed_states, packs

Keep = Literal["activations", "vectors"]


def sampled(examples: pd.DataFrame, rows: int | None, seed: int) -> pd.DataFrame:
    """Draw ``rows`` examples uniformly without replacement, in their old order; none: all of them.

    Raises:
        SembenchError: there are fewer examples.
    """
    return examples.iloc[sample(range(len(examples)), rows, seed)].reset_index(drop=True)


def order(rows: int, seed: int, epoch: int) -> list[int]:
    """Return the order of an epoch: a function of seed and epoch alone, so that a resumed run continues exactly."""
    return [int(i) for i in np.random.Generator(np.random.PCG64([seed, epoch])).permutation(rows)]


def step_rows(rows: int, batch_size: int, seed: int, first_step: int, last_step: int) -> Iterator[list[int]]:
    """Yield the row numbers of each step from ``first_step`` (0-based) up to but excluding ``last_step``.

    The last batch of an epoch may be short, as in the official code (``drop_last`` is off).
    """
    per_epoch = steps_per_epoch(rows, batch_size)
    epoch, shuffled = -1, []
    for step in range(first_step, last_step):
        if step // per_epoch != epoch:
            epoch = step // per_epoch
            shuffled = order(rows, seed, epoch)
        start = step % per_epoch * batch_size
        yield shuffled[start : start + batch_size]


def steps_per_epoch(rows: int, batch_size: int) -> int:
    """Return the number of batches of an epoch."""
    return math.ceil(rows / batch_size)


def encode_rows(
    encoder: TransformerEncoder, rows: Rows, readout: str, chunk_rows: int, keep: Keep = "activations"
) -> Tensor:
    """Return (rows, width) vectors of tokenised rows, in the order given, with gradient.

    With ``chunk_rows`` the rows are sorted by length and pass the encoder in chunks. The vectors are the same and the
    loss still sees the whole batch; 0 means a single forward pass.

    With ``keep="vectors"`` the forward pass keeps nothing of a chunk but its vectors; the backward pass computes each
    chunk again, under the same dropout masks. Loss and gradient are those of the whole batch in the memory of one
    chunk, for a second forward pass (gradient caching: Gao et al. 2021, "Scaling Deep Contrastive Learning Batch Size
    under Memory Limited Setup").
    """
    chunks = chunks_of(rows, chunk_rows)
    heads, every = dict(encoder.heads.items()), readout in NEEDS_ALL_LAYERS

    def vectors(chunk: Sequence[int]) -> Tensor:
        return read_out(readout, *states(encoder, [rows[i] for i in chunk], every), heads)

    found = [_passed(partial(vectors, chunk), encoder.device, keep) for chunk in chunks]
    return torch.cat(found)[_back([i for chunk in chunks for i in chunk], encoder.device)]


def encode_places(
    encoder: TransformerEncoder,
    rows: Rows,
    places: Sequence[Sequence[int]],
    chunk_rows: int,
    keep: Keep = "activations",
) -> Tensor:
    """Return last hidden states of single tokens, (places, width), row by row in the order given, with gradient.

    Args:
        encoder: of the states.
        rows: word-piece ids.
        places: the positions that are wanted of each row.
        chunk_rows: as of ``encode_rows``.
        keep: as of ``encode_rows``.
    """
    chunks, first = chunks_of(rows, chunk_rows), np.cumsum([0, *map(len, places)])

    def hidden_at(chunk: Sequence[int]) -> Tensor:
        (hidden,), _ = states(encoder, [rows[i] for i in chunk])
        at = [(number, place) for number, i in enumerate(chunk) for place in places[i]]
        return hidden[sent(torch.tensor(at, dtype=torch.long).reshape(-1, 2), encoder.device).unbind(1)]

    found = [_passed(partial(hidden_at, chunk), encoder.device, keep) for chunk in chunks]
    numbers = [int(first[i]) + k for chunk in chunks for i in chunk for k in range(len(places[i]))]
    return torch.cat(found)[_back(numbers, encoder.device)]


def _passed(compute: Callable[[], Tensor], device: torch.device, keep: Keep) -> Tensor:
    """Return what a pass of the encoder gives, and keep of it what ``encode_rows`` says."""
    if keep == "activations":
        return compute()
    # The random state is kept of the devices of the tensors that are given, hence one.
    again: Tensor = checkpoint(lambda _: compute(), torch.empty(0, device=device), use_reentrant=False)
    return again


def states(encoder: TransformerEncoder, rows: Rows, every: bool = False) -> tuple[tuple[Tensor, ...], Tensor]:
    """Return hidden states from one pass, (rows, longest row, width) each, and the mask of real tokens.

    Args:
        encoder: of the states.
        rows: word-piece ids.
        every: also the embedding output and all blocks' but the last.
    """
    if packs(encoder):
        return packed_states(encoder, rows, every)
    ids, mask = encoder.tokens.padded(rows, encoder.device)
    return encoder.states(ids, mask, every), mask


def chunks_of(rows: Rows, chunk_rows: int) -> list[list[int]]:
    """Return the numbers of the rows in chunks of similar length, or all together where one chunk holds them."""
    if not chunk_rows or len(rows) <= chunk_rows:
        return [list(range(len(rows)))]
    by_length = sorted(range(len(rows)), key=lambda i: len(rows[i]))
    return [by_length[start : start + chunk_rows] for start in range(0, len(rows), chunk_rows)]


def _back(numbers: Sequence[int], device: torch.device) -> Tensor:
    """Return what brings things that lie in the order of these numbers back into that of 0, 1, 2 ..."""
    return sent(torch.tensor(numbers, dtype=torch.long).argsort(), device)
