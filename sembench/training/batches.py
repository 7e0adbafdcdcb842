"""Which examples a step sees, and how its rows are cut so that no time goes into padding."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from sembench.data.frames import sample
from sembench.encoders.transformer import TransformerEncoder
from sembench.training.objectives.base import Rows
from sembench.training.packing import packed_pass, packs


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


def encode_rows(encoder: TransformerEncoder, rows: Rows, readout: str, chunk_rows: int) -> Tensor:
    """Return (rows, width) vectors of tokenised rows, in the order given, with gradient.

    With ``chunk_rows`` the rows are sorted by length and pass the encoder in chunks. The vectors are the same and the
    loss still sees the whole batch; 0 means a single forward pass.
    """
    one_pass = packed_pass if packs(encoder) else _padded_pass
    if not chunk_rows or len(rows) <= chunk_rows:
        return one_pass(encoder, rows, readout)
    by_length = sorted(range(len(rows)), key=lambda i: len(rows[i]))
    chunks = [by_length[start : start + chunk_rows] for start in range(0, len(rows), chunk_rows)]
    vectors = [one_pass(encoder, [rows[i] for i in chunk], readout) for chunk in chunks]
    back = torch.empty(len(rows), dtype=torch.long, device=encoder.device)
    back[torch.tensor(by_length, device=encoder.device)] = torch.arange(len(rows), device=encoder.device)
    return torch.cat(vectors)[back]


def _padded_pass(encoder: TransformerEncoder, rows: Rows, readout: str) -> Tensor:
    """Return (rows, width) vectors from one pass over rows that are padded to the longest."""
    found: dict[str, Tensor] = encoder(*encoder.tokens.padded(rows, encoder.device), [readout])
    return found[readout]
