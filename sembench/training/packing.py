"""One pass of an encoder over rows of different lengths laid end to end: nothing is padded, and no batch is cut.

All layers but attention see each token by itself. Attention works on groups of rows of equal length, without a mask.
On a processor this saves the padding and, against passes over chunks of rows, a gradient of the whole embedding table
and a cast of every weight for each chunk. A GPU prefers few large kernels and keeps the padded form.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from sembench.encoders.transformer import TransformerEncoder
from sembench.training.kernels import kept_factors, quicken
from sembench.training.objectives.base import Rows

ATTENTION = "packed"
# Architectures whose layers see other tokens in attention alone, which they take from transformers' interface. Some
# count positions from 0, others from after the padding id.
FROM_ZERO = frozenset({"bert", "distilbert", "electra"})
AFTER_PADDING = frozenset({"camembert", "roberta", "xlm-roberta"})


class Packed:
    """Rows laid end to end, the shortest first.

    Args:
        rows: word-piece ids.

    Attributes:
        ids: (1, tokens).
        positions: of each token in its row, from 0, (1, tokens).
        groups: number and length of neighbouring rows of equal length.
    """

    def __init__(self, rows: Rows) -> None:
        order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
        lengths = [len(rows[i]) for i in order]
        self.ids = torch.tensor([list(itertools.chain.from_iterable(rows[i] for i in order))])
        self.positions = torch.tensor([list(itertools.chain.from_iterable(map(range, lengths)))])
        self.groups = tuple((len(list(same)), length) for length, same in itertools.groupby(lengths))
        self._shape = len(rows), lengths[-1]
        rows_of_tokens = torch.repeat_interleave(torch.tensor(order), torch.tensor(lengths))
        self._places = rows_of_tokens * self._shape[1] + self.positions[0]
        self._orders: dict[int, tuple[Tensor, Tensor]] = {}

    def padded(self, states: Tensor) -> Tensor:
        """Return (1, tokens, width) as (rows, longest row, width), rows in the order given, with zeros behind them."""
        rows, longest = self._shape
        wide = states.new_zeros(rows * longest, states.shape[-1]).index_copy(0, self._places, states[0])
        return wide.view(rows, longest, -1)

    def mask(self) -> Tensor:
        """Return the attention mask of the padded form, (rows, longest row)."""
        rows, longest = self._shape
        return torch.zeros(rows * longest, dtype=torch.long).index_fill_(0, self._places, 1).view(rows, longest)

    def by_group(self, heads: int) -> tuple[Tensor, Tensor]:
        """Return the order that brings (tokens * heads) vectors into groups of (rows, heads, length), and the way back.

        In it each group's products are one batch of matrices without further copies.
        """
        if heads not in self._orders:
            parts, start = [], 0
            for number, length in self.groups:
                tokens = torch.arange(start, start + number * length).view(number, 1, length)
                parts.append((tokens * heads + torch.arange(heads).view(1, heads, 1)).flatten())
                start += number * length
            order = torch.cat(parts)
            self._orders[heads] = order, torch.argsort(order)
        return self._orders[heads]

    def cut(self, vectors: Sequence[Tensor], squares: Sequence[Tensor], heads: int) -> Iterator[list[Tensor]]:
        """Yield each group's part of tensors in the order of :meth:`by_group`, as views.

        Args:
            vectors: (tokens * heads, size) each; parts are (rows * heads, length, size).
            squares: flat, of attention weights; parts are (rows * heads, length, length).
            heads: of the attention.
        """
        token = cell = 0
        for number, length in self.groups:
            batch = number * heads
            ends = token + batch * length, cell + batch * length**2
            yield [each[token : ends[0]].view(batch, length, -1) for each in vectors] + [
                each[cell : ends[1]].view(batch, length, length) for each in squares
            ]
            token, cell = ends


def attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    packed: Packed | None = None,
    **others: Any,
) -> tuple[Tensor, None]:
    """Attend within rows: (1, heads, tokens, size) each -> (1, tokens, heads, size); see transformers' interface.

    Args:
        module: the layer.
        query: of all rows, end to end.
        key: as ``query``.
        value: as ``query``.
        attention_mask: none for packed rows.
        dropout: probability, 0 in evaluation.
        scaling: factor of the products; none: one over the root of ``size``.
        packed: how the rows lie; none: they are padded, as in evaluation.
        others: what the interface passes besides.
    """
    if packed is None:
        padded: Tensor = sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **others
        )[0]
        return padded, None
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    result: Tensor = _Attention.apply(query, key, value, packed, scale, dropout)  # type: ignore[no-untyped-call]
    return result, None


class _Attention(torch.autograd.Function):
    """Attention group by group; forward and backward are written out, since every result has its place beforehand."""

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, packed: Packed, scale: float, dropout: float
    ) -> Tensor:
        heads = query.shape[1]
        order, back = packed.by_group(heads)
        query, key, value = (_flat(states).index_select(0, order) for states in (query, key, value))
        cells = heads * sum(number * length**2 for number, length in packed.groups)
        weights = query.new_empty(cells)
        factors = kept_factors(cells, dropout, query.dtype) if dropout else weights
        found = torch.empty_like(value)
        with torch.autocast("cpu", enabled=False):
            for q, k, v, out, w, f in packed.cut((query, key, value, found), (weights, factors), heads):
                torch.softmax(torch.baddbmm(w, q, k.transpose(1, 2), beta=0, alpha=scale), -1, out=w)
                torch.bmm(w * f if dropout else w, v, out=out)
        ctx.save_for_backward(query, key, value, weights, factors)
        ctx.packed, ctx.scale, ctx.dropout = packed, scale, dropout
        return found.index_select(0, back).view(1, -1, heads, value.shape[-1])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, weights, factors = ctx.saved_tensors
        heads = gradients[0].shape[2]
        order, back = ctx.packed.by_group(heads)
        above = gradients[0].reshape(-1, gradients[0].shape[-1]).index_select(0, order)
        found = [torch.empty_like(each) for each in (query, key, value)]
        vectors = (query, key, value, above, *found)
        for q, k, v, g, dq, dk, dv, w, f in ctx.packed.cut(vectors, (weights, factors), heads):
            dw = torch.bmm(g, v.transpose(1, 2))
            if ctx.dropout:
                dw.mul_(f)
            torch.bmm((w * f if ctx.dropout else w).transpose(1, 2), g, out=dv)
            ds = torch._softmax_backward_data(dw, w, -1, w.dtype)
            torch.baddbmm(dq, ds, k, beta=0, alpha=ctx.scale, out=dq)
            torch.baddbmm(dk, ds.transpose(1, 2), q, beta=0, alpha=ctx.scale, out=dk)
        shape = 1, -1, heads, query.shape[-1]
        return (*(each.index_select(0, back).view(shape).transpose(1, 2) for each in found), None, None, None)


def _flat(states: Tensor) -> Tensor:
    """Return (1, heads, tokens, size) as (tokens * heads, size)."""
    return states[0].transpose(0, 1).reshape(-1, states.shape[-1])


AttentionInterface.register(ATTENTION, attention)
AttentionMaskInterface.register(ATTENTION, sdpa_mask)


def prepare(encoder: TransformerEncoder) -> None:
    """Make training an encoder fast on a processor: its layers, and packed rows where the architecture allows them."""
    if encoder.device.type != "cpu":
        return
    quicken(encoder.model)
    if encoder.config.model_type in FROM_ZERO | AFTER_PADDING:
        encoder.model.set_attn_implementation(ATTENTION)


def packs(encoder: TransformerEncoder) -> bool:
    """Tell whether an encoder was prepared for :func:`packed_states`."""
    return bool(encoder.config._attn_implementation == ATTENTION)


def packed_states(encoder: TransformerEncoder, rows: Rows, every: bool) -> tuple[tuple[Tensor, ...], Tensor]:
    """Return what ``batches.states`` returns, from one pass over rows that are laid end to end."""
    packed = Packed(rows)
    first = encoder.config.pad_token_id + 1 if encoder.config.model_type in AFTER_PADDING else 0
    output = encoder.model(
        input_ids=packed.ids,
        position_ids=packed.positions + first,
        output_hidden_states=every,
        packed=packed,
    )
    hidden = output.hidden_states if every else (output.last_hidden_state,)
    return tuple(packed.padded(each) for each in hidden), packed.mask()
