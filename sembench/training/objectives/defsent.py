"""DefSent (Tsukagoshi et al. 2021): predict the defined word from its definition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import Field

from sembench.core.errors import SembenchError
from sembench.core.lazy import functional, nn, torch
from sembench.core.schema import Strict
from sembench.training.objectives.base import Encode, Facts, Objective, TrainReadout

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor

    from sembench.encoders.transformer import TransformerEncoder


class DefSent(Objective):
    """Definitions and their words, predicted through frozen word embeddings.

    DefSent uses the checkpoint's masked-language-model layer; a backbone without one has its word embeddings, to which
    that layer is tied. Only words that are one word piece can be predicted; the other rows are left out.
    """

    class Config(Strict):
        """Parameters."""

        readout: TrainReadout = Field("cls", description="vector of a definition")

    columns = ("word", "gloss")

    def __init__(
        self, config: DefSent.Config, encoder: TransformerEncoder, examples: pd.DataFrame, max_length: int
    ) -> None:
        self.config = config
        self.own = nn.ModuleDict()
        pieces = encoder.tokens(examples["word"].tolist())
        kept = [number for number, ids in enumerate(pieces) if len(ids) == 3]
        if not kept:
            raise SembenchError(
                "no defined word is a single word piece of this encoder, so DefSent has nothing to predict; "
                "choose other definitions or another encoder"
            )
        self.words = torch.tensor([pieces[number][1] for number in kept])
        self.tokens = encoder.tokens([examples["gloss"].iloc[number] for number in kept], max_length)
        self.rows = len(kept)
        # (vocabulary, width), as it is before training.
        self.output: Tensor = encoder.model.get_input_embeddings().weight.detach().clone()

    def loss(self, batch: Sequence[int], encode: Encode) -> tuple[Tensor, Facts]:
        """Return the cross-entropy of the words of N definitions, a scalar, and the share that comes out right."""
        scores = encode([self.tokens[i] for i in batch], self.config.readout) @ self.output.T
        words = self.words[list(batch)].to(scores.device)
        right = float((scores.detach().argmax(-1) == words).float().mean())
        return functional.cross_entropy(scores, words), {"word_accuracy": right}


PLUGIN = DefSent
