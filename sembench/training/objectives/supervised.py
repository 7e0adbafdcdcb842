"""Supervised SimCSE (Gao et al. 2021, section 4): entailments are positives, contradictions hard negatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from sembench.training.losses import hard_negative_info_nce
from sembench.training.objectives._heads import HeadConfig, encode_columns, own_modules
from sembench.training.objectives._texts import Texts
from sembench.training.objectives.base import Encode, Facts, Objective

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor

    from sembench.encoders.transformer import TransformerEncoder


class Supervised(Objective):
    """Triplets of anchor, positive and hard negative; all 3N sentences of a batch pass the encoder together.

    Unlike in unsupervised training the head stays at test time (official code: pooler ``cls``), so ``cls_mlp`` is the
    read-out of a run.
    """

    class Config(HeadConfig):
        """Parameters; the defaults are the paper's."""

        hard_negative_weight: float = Field(
            1.0, ge=0, description="alpha of Table 7: weight of the own hard negative; 0 leaves it out"
        )

    columns: ClassVar[tuple[str, ...]] = ("anchor", "positive", "negative")

    def __init__(
        self, config: Supervised.Config, encoder: TransformerEncoder, examples: pd.DataFrame, max_length: int
    ) -> None:
        self.config = config
        self.own = own_modules(config, encoder)
        self.texts = Texts(encoder, examples, self.columns, max_length)
        self.rows = len(examples)

    def loss(self, batch: Sequence[int], encode: Encode) -> tuple[Tensor, Facts]:
        """Return Equation 5 of SimCSE on N rows, a scalar; there are no facts."""
        config = self.config
        columns = [self.texts.column(place, batch) for place in range(len(self.columns))]
        anchors, positives, *negatives = encode_columns(columns, encode, config.view, self.own)
        weight = config.hard_negative_weight
        return hard_negative_info_nce(anchors, positives, negatives, config.temperature, weight, config.similarity), {}

    @classmethod
    def exports(cls, config: Supervised.Config) -> tuple[str, ...]:
        """Return the head, if there is one."""
        return config.heads

    @classmethod
    def default_readout(cls, config: Supervised.Config) -> str:
        """Return the read-out behind the head."""
        return config.view


PLUGIN = Supervised
