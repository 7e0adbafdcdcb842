"""Sentence relations from word analogies: pairs of one relation attract, exchanged pairs repel (DSBATS4CL)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import Field

from sembench.analogy.columns import ROLES
from sembench.core.errors import SembenchError
from sembench.core.lazy import functional, np, pd, torch
from sembench.core.schema import Strict
from sembench.training.losses import (
    Negatives,
    RelationEncoder,
    relation_facts,
    relation_info_nce,
    relation_vectors,
)
from sembench.training.objectives._texts import Texts
from sembench.training.objectives.base import Encode, Facts, Objective, TrainReadout

if TYPE_CHECKING:
    from torch import Tensor

    from sembench.encoders.transformer import TransformerEncoder

SIDES = ("source", "target")
_GLOSSES = tuple(f"{role}_{side}_gloss" for role in ROLES for side in SIDES)
_RELATIONS = tuple(f"{role}_directed" for role in ROLES)


class Relation(Objective):
    """Rows of an anchor pair, a positive pair of the same directed relation, and an exchanged third pair."""

    class Config(Strict):
        """Parameters; what the paper does not say is a key here."""

        relation_encoder: RelationEncoder = Field("diff", description="vector of a sentence pair; figure 2: e1 - e2")
        negatives: Negatives = Field(
            "third_pairs", description="what the denominator sums over; Equation 2: third_pairs"
        )
        mask_false_negatives: bool = Field(
            True, description="leave out third pairs of the anchor's own directed relation"
        )
        readout: TrainReadout = Field("cls", description="vector of a sentence")
        temperature: float = Field(0.05, gt=0)

    columns = (*_GLOSSES, *_RELATIONS)

    def __init__(
        self, config: Relation.Config, encoder: TransformerEncoder, examples: pd.DataFrame, max_length: int
    ) -> None:
        self.config = config
        self.own = torch.nn.ModuleDict()
        self.texts = Texts(encoder, examples, _GLOSSES, max_length)
        # (rows, 3 roles, 2 sides): which sentence stands where.
        self.places = self.texts.places.reshape(-1, len(ROLES), len(SIDES))
        labels = pd.factorize(pd.concat([examples[name] for name in _RELATIONS], ignore_index=True))[0]
        # (3 roles, rows): number of the directed relation.
        self.relation = torch.from_numpy(labels.reshape(len(ROLES), -1))
        self.rows = len(examples)
        if config.mask_false_negatives and config.negatives == "third_pairs":
            self._check_negatives()

    def _check_negatives(self) -> None:
        anchors, _, thirds = (set(row.tolist()) for row in self.relation)
        if len(anchors) == 1 and thirds == anchors:
            raise SembenchError(
                "every third pair has the relation of every anchor, so no negative is left; train on more relations, "
                "or set mask_false_negatives: false or negatives: third_pairs_plus_positive"
            )

    def loss(self, batch: Sequence[int], encode: Encode) -> tuple[Tensor, Facts]:
        """Return the objective on N rows, a scalar, and the cosines that tell whether relations collapse into one."""
        config = self.config
        places = self.places[list(batch)]
        unique, back = np.unique(places, return_inverse=True)
        # A sentence that stands in several rows is encoded once: the objective has no use for a second dropout mask.
        vectors = encode([self.texts.tokens[i] for i in unique], config.readout)
        sides = at_places(vectors, torch.from_numpy(back.reshape(places.shape)).to(vectors.device))
        anchors, positives, thirds = (
            relation_vectors(sides[:, role, 0], sides[:, role, 1], config.relation_encoder) for role in range(3)
        )
        anchor, positive, third = (self.relation[role, list(batch)].to(vectors.device) for role in range(3))
        false = (anchor.unsqueeze(1) == third) & config.mask_false_negatives
        same = anchor.unsqueeze(1) == positive
        loss = relation_info_nce(anchors, positives, thirds, config.temperature, config.negatives, same, false)
        return loss, relation_facts(anchors.detach(), positives.detach(), same)


def at_places(vectors: Tensor, places: Tensor) -> Tensor:
    """Return (..., width): the row of ``vectors`` (rows, width) that stands in each of ``places`` (...).

    Not ``vectors[places]``: torch would sum the gradients of a repeated row in whatever order its threads come by, and
    two runs would differ.
    """
    return functional.embedding(places, vectors)


PLUGIN = Relation
