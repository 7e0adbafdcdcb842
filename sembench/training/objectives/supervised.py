"""Supervised SimCSE (Gao et al. 2021, section 4): entailments are positives, contradictions hard negatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from sembench.training.losses import hard_negative_info_nce
from sembench.training.objectives._heads import HeadConfig
from sembench.training.objectives.pairs import PairsObjective

if TYPE_CHECKING:
    from torch import Tensor


class Supervised(PairsObjective):
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

    def contrast(self, vectors: Sequence[Tensor]) -> Tensor:
        """Return Equation 5 of SimCSE on N rows, a scalar."""
        config = self.config
        anchors, positives, *negatives = vectors
        weight = config.hard_negative_weight
        return hard_negative_info_nce(anchors, positives, negatives, config.temperature, weight, config.similarity)

    @classmethod
    def default_readout(cls, config: Supervised.Config) -> str:
        """Return the read-out behind the head."""
        return config.view


PLUGIN = Supervised
