"""What contrastive objectives share: head, similarity, and the second encoder of a dual one."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, cast

from pydantic import Field, model_validator

from sembench.core.lazy import nn
from sembench.core.schema import Strict, later
from sembench.training.losses import Similarity
from sembench.training.objectives.base import Encode, Rows, TrainReadout

if TYPE_CHECKING:
    from typing import Self

    from torch import Tensor

    from sembench.encoders.transformer import TransformerEncoder


class HeadConfig(Strict):
    """Parameters of an objective that compares vectors behind a head."""

    temperature: float = Field(0.05, gt=0, description="divisor of the similarities (paper, Appendix A)")
    readout: TrainReadout = Field("cls", description="vector that the objective sees, before the head")
    head: Literal["mlp", "none"] = Field("mlp", description="mlp: new Linear(H, H) + tanh on read-out cls")
    similarity: Similarity = later("cosine", was="cosine", description="cosine, or dot: the plain product (Table D.1)")
    encoders: Literal["one", "two"] = later(
        "one", was="one", description="two: what is looked for passes an independent encoder (Table 2)"
    )

    @model_validator(mode="after")
    def _head_fits(self) -> Self:
        if self.head == "mlp" and self.readout != "cls":
            raise ValueError(f"the head 'mlp' belongs on read-out 'cls', not '{self.readout}'; set head: none")
        return self

    @property
    def heads(self) -> tuple[str, ...]:
        """Names of the read-outs that the head adds to the encoder; none without a head."""
        return ("cls_mlp",) if self.head == "mlp" else ()

    @property
    def view(self) -> str:
        """The read-out whose vectors the loss compares."""
        return self.heads[0] if self.heads else self.readout


def new_heads(config: HeadConfig, width: int) -> nn.ModuleDict:
    """Return freshly initialised heads by the names of their read-outs; vectors of size ``width`` in and out."""
    from sembench.encoders.readouts import MLPHead

    return nn.ModuleDict({name: MLPHead(width) for name in config.heads})


SECOND = "second"


def own_modules(config: HeadConfig, encoder: TransformerEncoder) -> nn.ModuleDict:
    """Return what is trained besides the encoder: its new heads and, with ``encoders: two``, the second encoder.

    That one starts from the same weights, but for its heads, and shares nothing with the first, which alone is saved:
    the paper does not say which of the two it scores.
    """
    from sembench.encoders.transformer import TransformerEncoder

    own = new_heads(config, encoder.width)
    if config.encoders == "two":
        heads = {**copy.deepcopy(dict(encoder.heads.items())), **new_heads(config, encoder.width)}
        own[SECOND] = TransformerEncoder(copy.deepcopy(encoder.model), encoder.tokens, heads)
    return own


def encode_columns(columns: Sequence[Rows], encode: Encode, view: str, own: nn.ModuleDict) -> tuple[Tensor, ...]:
    """Return the vectors of several columns of N sentences, (N, width) each.

    All of them pass the encoder together, as in the official code; with a second encoder the first column, which looks
    for the others, passes the first one and the rest the second.
    """
    together = [row for column in columns for row in column]
    if SECOND not in own:
        return encode(together, view).chunk(len(columns))
    n = len(columns[0])
    others = encode(together[n:], view, cast("TransformerEncoder", own[SECOND]))
    return encode(together[:n], view), *others.chunk(len(columns) - 1)
