"""All ways to read one vector per sentence out of a transformer, in one place.

``hidden`` is the tuple that ``output_hidden_states`` gives: the embedding output, then one tensor a block, each of
shape (batch, length, width). Index 1 is the *first block's* output; the SimCSE paper meant it by "first-last" but ran
index 0 (its code was changed in January 2022), hence two read-outs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn

from sembench.encoders.convert.base import HIDDEN


class MLPHead(nn.Module):
    """The head of SimCSE: Linear(H, H) and tanh, freshly initialised; BERT's own pooler is deliberately not used."""

    base: ClassVar[str] = "cls"  # the read-out that it takes

    def __init__(self, width: int) -> None:
        super().__init__()
        self.dense = nn.Linear(width, width)
        # As the official code initialises new BERT layers: normal with deviation 0.02, zero bias.
        nn.init.normal_(self.dense.weight, std=0.02)
        nn.init.zeros_(self.dense.bias)

    def forward(self, vectors: Tensor) -> Tensor:
        """Map (batch, width) to (batch, width)."""
        return torch.tanh(self.dense(vectors))


def masked_mean(states: Tensor, mask: Tensor) -> Tensor:
    """Average (batch, length, width) over the tokens whose mask (batch, length) is 1, [CLS] and [SEP] included."""
    weights = mask.unsqueeze(-1).to(states.dtype)
    return (states * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1)


def _cls(hidden: Sequence[Tensor], _mask: Tensor) -> Tensor:
    return hidden[-1][:, 0].float()


def _mean(hidden: Sequence[Tensor], mask: Tensor) -> Tensor:
    return masked_mean(hidden[-1].float(), mask)


def _last2(hidden: Sequence[Tensor], mask: Tensor) -> Tensor:
    return masked_mean((hidden[-1].float() + hidden[-2].float()) / 2, mask)


def _first_last(hidden: Sequence[Tensor], mask: Tensor) -> Tensor:
    return masked_mean((hidden[1].float() + hidden[-1].float()) / 2, mask)


def _embed_last(hidden: Sequence[Tensor], mask: Tensor) -> Tensor:
    return masked_mean((hidden[0].float() + hidden[-1].float()) / 2, mask)


def _max(hidden: Sequence[Tensor], mask: Tensor) -> Tensor:
    return hidden[-1].float().masked_fill(mask.unsqueeze(-1) == 0, -torch.inf).amax(dim=1)


Pooling = Callable[[Sequence[Tensor], Tensor], Tensor]
# Read-outs of hidden states alone, under the names that every transformer offers. `cls_mlp`, `pooler` and what a
# sentence-transformers folder adds after its pooling are one of these followed by a trained layer.
HIDDEN_READOUTS: dict[str, Pooling] = dict(zip(HIDDEN, (_cls, _mean, _last2, _first_last, _embed_last), strict=True))
# What a layer may stand on; the maximum is offered by no encoder by itself.
BASES: dict[str, Pooling] = {**HIDDEN_READOUTS, "max": _max}
NEEDS_ALL_LAYERS = frozenset({"last2", "first_last", "embed_last"})


def read_out(name: str, hidden: Sequence[Tensor], mask: Tensor, heads: dict[str, nn.Module]) -> Tensor:
    """Return vectors of shape (batch, width) in float32.

    Args:
        name: a base read-out that the encoder offers.
        hidden: embedding output and all blocks' outputs, each (batch, length, width); for ``cls``, ``mean`` and the
            heads the last one alone is enough.
        mask: attention mask, (batch, length).
        heads: the modules behind read-outs with a trained layer; each names in ``base`` what it takes.
    """
    if name in heads:
        vectors: Tensor = heads[name](BASES[str(heads[name].base)](hidden, mask))
        return vectors.float()
    return HIDDEN_READOUTS[name](hidden, mask)
