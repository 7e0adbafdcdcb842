"""Contrastive learning on given pairs: augmented, neighbouring or judged sentences (SimCSE, Tables 1, 2 and 4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from sembench.training.losses import info_nce
from sembench.training.objectives._heads import HeadConfig, encode_columns, own_modules
from sembench.training.objectives._texts import Texts
from sembench.training.objectives.base import Encode, Facts, Objective

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor

    from sembench.encoders.transformer import TransformerEncoder


class PairsObjective(Objective):
    """The first sentence of a pair looks for the second among those of the batch; dropout stays on for both.

    Whether the head stays at test time is the variant's to say: it does in Table 4 (read-out ``cls_mlp``), and not in
    Tables 1 and 2, which are trained as unsupervised SimCSE.
    """

    class Config(HeadConfig):
        """Parameters; the defaults are the paper's."""

    columns: ClassVar[tuple[str, ...]] = ("first", "second")

    def __init__(self, config: Any, encoder: TransformerEncoder, examples: pd.DataFrame, max_length: int) -> None:
        self.config = config
        self.own = own_modules(config, encoder)
        self.texts = Texts(encoder, examples, self.columns, max_length)
        self.rows = len(examples)

    def loss(self, batch: Sequence[int], encode: Encode) -> tuple[Tensor, Facts]:
        """Return Equation 1 of SimCSE on N pairs, a scalar; there are no facts."""
        first, second = self.vectors(batch, encode)
        return info_nce(first, second, self.config.temperature, self.config.similarity), {}

    def vectors(self, batch: Sequence[int], encode: Encode) -> tuple[Tensor, ...]:
        """Return the vectors of each column's sentences, (N, width) each."""
        columns = [self.texts.column(place, batch) for place in range(len(self.columns))]
        return encode_columns(columns, encode, self.config.view, self.own)

    @classmethod
    def exports(cls, config: Any) -> tuple[str, ...]:
        """Return the head, if there is one."""
        heads: tuple[str, ...] = config.heads
        return heads


PLUGIN = PairsObjective
