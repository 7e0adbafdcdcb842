"""SBERT's classifier on NLI (Reimers and Gurevych 2019, section 3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import Field

from sembench.core.errors import SembenchError
from sembench.core.lazy import functional, nn, torch
from sembench.core.schema import Strict
from sembench.training.losses import pair_features
from sembench.training.objectives._texts import Texts
from sembench.training.objectives.base import Encode, Facts, Objective, TrainReadout

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor

    from sembench.encoders.transformer import TransformerEncoder

# Numbers as in SBERT's code, or names as in the corpora.
LABELS = {"contradiction": 0, "entailment": 1, "neutral": 2, 0: 0, 1: 1, 2: 2}
CLASSES = 3


class Softmax(Objective):
    """Sentence pairs with one of three labels, told apart by a linear layer over (u, v, |u - v|).

    The layer is trained with the encoder and left behind: vectors are compared by cosine afterwards.
    """

    class Config(Strict):
        """Parameters; the default is the paper's."""

        readout: TrainReadout = Field("mean", description="vector of a sentence")

    columns = ("first", "second", "label")

    def __init__(
        self, config: Softmax.Config, encoder: TransformerEncoder, examples: pd.DataFrame, max_length: int
    ) -> None:
        self.config = config
        self.own = nn.ModuleDict({"classifier": nn.Linear(3 * encoder.width, CLASSES)})
        labels = examples["label"].tolist()
        if wrong := sorted({str(label) for label in labels if label not in LABELS}):
            raise SembenchError(
                f"the column 'label' holds '{wrong[0]}'; it must hold contradiction, entailment and neutral, or 0, 1, 2"
            )
        self.labels = torch.tensor([LABELS[label] for label in labels])
        self.texts = Texts(encoder, examples, ("first", "second"), max_length)
        self.rows = len(examples)

    def loss(self, batch: Sequence[int], encode: Encode) -> tuple[Tensor, Facts]:
        """Return the cross-entropy of N pairs' labels, a scalar, and the share that comes out right."""
        rows = [*self.texts.column(0, batch), *self.texts.column(1, batch)]
        first, second = encode(rows, self.config.readout).chunk(2)
        scores = self.own["classifier"](pair_features(first, second))
        labels = self.labels[list(batch)].to(scores.device)
        right = float((scores.detach().argmax(-1) == labels).float().mean())
        return functional.cross_entropy(scores, labels), {"label_accuracy": right}


PLUGIN = Softmax
