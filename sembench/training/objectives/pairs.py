"""Contrastive learning on given pairs: augmented, neighbouring or judged sentences (SimCSE, Tables 1, 2 and 4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from sembench.training.losses import info_nce
from sembench.training.objectives._contrast import ContrastObjective
from sembench.training.objectives._heads import HeadConfig, own_modules
from sembench.training.objectives._texts import Texts
from sembench.training.objectives.base import Rows

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor

    from sembench.encoders.transformer import TransformerEncoder


class PairsObjective(ContrastObjective):
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

    def sentences(self, batch: Sequence[int]) -> list[Rows]:
        """Return the sentences of each column."""
        return [self.texts.column(place, batch) for place in range(len(self.columns))]

    def contrast(self, vectors: Sequence[Tensor]) -> Tensor:
        """Return Equation 1 of SimCSE on N pairs, a scalar."""
        first, second = vectors
        return info_nce(first, second, self.config.temperature, self.config.similarity)


PLUGIN = PairsObjective
