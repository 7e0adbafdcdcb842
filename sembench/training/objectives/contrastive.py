"""Unsupervised SimCSE (Gao et al. 2021, section 3): a sentence looks for itself under another dropout mask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import model_validator

from sembench.core.schema import later
from sembench.training.losses import info_nce
from sembench.training.objectives._contrast import ContrastObjective
from sembench.training.objectives._heads import HeadConfig, own_modules
from sembench.training.objectives.base import Rows

if TYPE_CHECKING:
    from typing import Self

    import pandas as pd
    from torch import Tensor

    from sembench.encoders.transformer import TransformerEncoder


class Contrastive(ContrastObjective):
    """Each sentence passes twice in the same batch of 2N rows, so that only the dropout masks differ (official code).

    The head is skipped whenever vectors are read out, also for the dev score (``mlp_only_train`` of the official
    code), but it is exported, since Table 6 of the paper compares both.
    """

    class Config(HeadConfig):
        """Parameters; the defaults are the paper's."""

        masks: Literal["two", "one"] = later(
            "two", was="two", description="one: the same dropout mask for both views (Table 3, Fixed 0.1)"
        )

        @model_validator(mode="after")
        def _mask_fits(self) -> Self:
            if self.masks == "one" and self.encoders == "two":
                raise ValueError("with one mask a sentence is encoded once; set encoders: one")
            return self

    columns = ("sentence",)

    def __init__(
        self, config: Contrastive.Config, encoder: TransformerEncoder, examples: pd.DataFrame, max_length: int
    ) -> None:
        self.config = config
        self.own = own_modules(config, encoder)
        self.tokens = encoder.tokens(examples["sentence"].tolist(), max_length)
        self.rows = len(self.tokens)

    def sentences(self, batch: Sequence[int]) -> list[Rows]:
        """Return the sentences, twice unless both views have the same dropout mask."""
        tokens = [self.tokens[i] for i in batch]
        return [tokens] if self.config.masks == "one" else [tokens, tokens]

    def contrast(self, vectors: Sequence[Tensor]) -> Tensor:
        """Return Equation 1 of SimCSE on N sentences, a scalar."""
        return info_nce(vectors[0], vectors[-1], self.config.temperature, self.config.similarity)


PLUGIN = Contrastive
