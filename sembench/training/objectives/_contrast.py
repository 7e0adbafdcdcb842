"""The step of all objectives that compare vectors of columns of sentences, with the MLM loss besides where it is on."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from sembench.training.objectives._heads import LM, encode_columns
from sembench.training.objectives._mlm import masked, mlm_loss
from sembench.training.objectives.base import Encode, Facts, Objective, Rows

if TYPE_CHECKING:
    from torch import Tensor

    from sembench.encoders.lm_head import LMHead


class ContrastObjective(Objective):
    """Base of the objectives whose parameters are a ``HeadConfig`` and whose ``own`` is made by ``own_modules``."""

    in_batch_negatives = True

    @abc.abstractmethod
    def sentences(self, batch: Sequence[int]) -> list[Rows]:
        """Return the word pieces of each column's sentences in N rows."""

    @abc.abstractmethod
    def contrast(self, vectors: Sequence[Tensor]) -> Tensor:
        """Return the contrastive loss of the vectors of each column, (N, width) each, a scalar."""

    def loss(self, batch: Sequence[int], encode: Encode) -> tuple[Tensor, Facts]:
        """Return the loss of N rows, a scalar; with ``mlm_weight`` plus so many times the MLM loss, which is a fact."""
        config, columns = self.config, self.sentences(batch)
        if not config.mlm_weight:
            return self.contrast(encode_columns(columns, encode, config.view, self.own)), {}
        head = cast("LMHead", self.own[LM])
        hidden = masked([row for column in columns for row in column], head, config.mlm_probability)
        if config.mlm_leak:
            n = len(batch)
            columns = [hidden.rows[start : start + n] for start in range(0, len(hidden.rows), n)]
        loss = self.contrast(encode_columns(columns, encode, config.view, self.own))
        mlm = mlm_loss(hidden, head, encode)
        return loss + config.mlm_weight * mlm, {"mlm_loss": float(mlm.detach())}

    @classmethod
    def exports(cls, config: Any) -> tuple[str, ...]:
        """Return the head, if there is one."""
        heads: tuple[str, ...] = config.heads
        return heads
