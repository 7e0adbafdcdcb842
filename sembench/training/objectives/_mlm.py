"""The auxiliary masked-language-model loss of SimCSE (Section 6, Appendix D): masks, and the loss at their places."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sembench.core.errors import SembenchError
from sembench.core.lazy import functional, torch
from sembench.training.objectives.base import Encode, Rows

if TYPE_CHECKING:
    from torch import Tensor

    from sembench.encoders.lm_head import LMHead
    from sembench.encoders.transformer import TransformerEncoder


class Masked(NamedTuple):
    """Rows of word-piece ids of which some are hidden.

    Attributes:
        rows: with [MASK], another piece, or the old one at the chosen places.
        places: the chosen positions of each row.
        targets: the old ids at these places, row by row: (places,).
    """

    rows: list[list[int]]
    places: list[list[int]]
    targets: Tensor


def masked(rows: Rows, head: LMHead, probability: float) -> Masked:
    """Choose each token that is no special with a probability, and hide it as BERT does (official code).

    Of the chosen ones 80 % become [MASK], 10 % a piece drawn from the whole vocabulary, 10 % stay. The numbers come
    from torch's generator on the processor, whose state a checkpoint keeps.
    """
    old = torch.tensor([number for row in rows for number in row])
    chosen = torch.rand(len(old)) < probability
    chosen &= ~torch.isin(old, torch.tensor(head.specials))
    fate, pieces = torch.rand(len(old)), torch.randint(head.words, (len(old),))
    new = torch.where(chosen & (fate < 0.8), head.mask, old)
    new = torch.where(chosen & (fate >= 0.9), pieces, new)
    lengths = [len(row) for row in rows]
    places = [part.nonzero().flatten().tolist() for part in torch.split(chosen, lengths)]
    return Masked([part.tolist() for part in torch.split(new, lengths)], places, old[chosen])


def mlm_loss(hidden: Masked, head: LMHead, encode: Encode) -> Tensor:
    """Return the mean cross-entropy of the old pieces at all chosen places of a batch, a scalar.

    The masked rows pass the encoder once more, under dropout masks of their own. Scores of the whole vocabulary are
    computed at the chosen places alone. A batch in which no place was chosen has the loss 0.
    """
    if not len(hidden.targets):
        return torch.zeros(())
    scores = head(encode.at(hidden.rows, hidden.places))
    return functional.cross_entropy(scores, hidden.targets.to(scores.device))


def new_lm_head(encoder: TransformerEncoder) -> LMHead:
    """Return the head of the checkpoint that an encoder was loaded from.

    Raises:
        SembenchError: there is none.
    """
    from sembench.encoders.lm_head import load_lm_head

    if encoder.folder is None:
        raise SembenchError("the encoder is from no folder, so that it has no masked-language-model head to train with")
    return load_lm_head(encoder.folder)
