"""What contrastive objectives share: parameters, heads, and the second encoder of a dual one."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, cast

from pydantic import Field, model_validator

from sembench.core.lazy import nn
from sembench.core.schema import Strict, later
from sembench.training.losses import Similarity
from sembench.training.objectives._mlm import new_lm_head
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

    mlm_weight: float = later(
        0.0, was=0.0, ge=0, description="lambda of Table D.2: weight of the auxiliary MLM loss; 0: none, paper 0.1"
    )
    mlm_probability: float = later(0.15, was=0.15, gt=0, lt=1, description="with which a word piece is hidden")
    mlm_leak: bool = later(
        False,
        was=False,
        description="the contrastive loss sees the masked pieces too, as in the official code before 23 November 2021",
    )

    @model_validator(mode="after")
    def _head_fits(self) -> Self:
        if self.head == "mlp" and self.readout != "cls":
            raise ValueError(f"the head 'mlp' belongs on read-out 'cls', not '{self.readout}'; set head: none")
        return self

    @model_validator(mode="after")
    def _mlm_fits(self) -> Self:
        if self.mlm_weight and self.encoders == "two":
            raise ValueError("the MLM loss is that of one encoder; set encoders: one, or mlm_weight: 0")
        if self.mlm_leak and not self.mlm_weight:
            raise ValueError("without the MLM loss no mask can leak; give mlm_weight a value, or drop mlm_leak")
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


# Names in ``own`` besides those of read-outs.
SECOND = "second"
LM = "lm_head"


def own_modules(config: HeadConfig, encoder: TransformerEncoder) -> nn.ModuleDict:
    """Return what is trained besides the encoder: its new heads, and what ``encoders: two`` and the MLM loss need.

    The second encoder starts from the same weights, but for its heads, and shares nothing with the first, which alone
    is saved: the paper does not say which of the two it scores. The LM head is the checkpoint's and is not saved.

    Raises:
        SembenchError: the checkpoint has no LM head.
    """
    from sembench.encoders.transformer import TransformerEncoder

    own = new_heads(config, encoder.width)
    if config.encoders == "two":
        heads = {**copy.deepcopy(dict(encoder.heads.items())), **new_heads(config, encoder.width)}
        own[SECOND] = TransformerEncoder(copy.deepcopy(encoder.model), encoder.tokens, heads)
    if config.mlm_weight:
        own[LM] = new_lm_head(encoder)
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
