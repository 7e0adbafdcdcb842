"""What an objective is: its training examples, its loss on some of them, and what it trains besides the encoder."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, get_args

from sembench.core.schema import Strict
from sembench.encoders.convert.base import POOLER

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor, nn

    from sembench.encoders.transformer import TransformerEncoder

Rows = Sequence[Sequence[int]]
Facts = dict[str, float]


class Encode(Protocol):
    """How an objective sees an encoder; how rows are cut into chunks, and the precision, are the trainer's concern."""

    def __call__(self, rows: Rows, readout: str, encoder: TransformerEncoder | None = None) -> Tensor:
        """Return (rows, width) in float32, with gradient.

        Args:
            rows: word-piece ids.
            readout: one that the encoder offers.
            encoder: the objective's own; none: the one that is trained.
        """

    def at(self, rows: Rows, places: Sequence[Sequence[int]]) -> Tensor:
        """Return last hidden states of single tokens, (places, width) in float32, with gradient.

        Args:
            rows: word-piece ids.
            places: for each row the positions of the tokens that are wanted; the states come in this order.
        """


# What an encoder offers to train through; `pooler` where the checkpoint has one.
TrainReadout = Literal["cls", "pooler", "mean", "last2", "first_last", "embed_last"]
# What describes a read-out to sentence-transformers, for those that it can express: [CLS] or the mean, and after [CLS]
# a linear layer with tanh. Without these files that library silently takes the mean.
_POOLING = ("modules.json", "1_Pooling/config.json")
_LAYER = ("2_Dense/config.json", "2_Dense/model.safetensors")
SENTENCE_TRANSFORMERS = {
    "cls": _POOLING,
    "mean": _POOLING,
    "cls_mlp": (*_POOLING, *_LAYER),
    POOLER: (*_POOLING, *_LAYER),
}


class Objective(abc.ABC):
    """Training examples with their loss. A kind is a file of this folder that ends with ``PLUGIN = TheClass``.

    The trainer steps, clips, checkpoints and keeps the best weights of the encoder and of ``own`` alike. Modules that
    ``exported`` names belong to ``own`` as well; they are read-outs of the encoder from the first step on, so
    that ``encode(rows, name)`` and the dev score can use them, and they go into the model folder.

    Attributes:
        Config: parameters, the keys beside ``kind`` in YAML.
        version: raised whenever runs of this kind come out differently.
        columns: columns of the examples that it reads.
        in_batch_negatives: the rows of a batch are each other's negatives, so that one alone teaches nothing and two
            with the same sentence in the first of ``columns`` are false negatives.
        config: the parameters given.
        own: what is trained besides the encoder; may be empty.
        rows: number of examples of an epoch.
    """

    Config: ClassVar[type[Strict]]
    version: ClassVar[int] = 1
    columns: ClassVar[tuple[str, ...]]
    in_batch_negatives: ClassVar[bool] = False
    config: Any
    own: nn.ModuleDict
    rows: int

    @abc.abstractmethod
    def __init__(self, config: Any, encoder: TransformerEncoder, examples: pd.DataFrame, max_length: int) -> None:
        """Tokenise the examples, once, and make ``own``.

        Args:
            config: checked parameters.
            encoder: what is trained.
            examples: a frame with at least ``columns``, rows numbered from 0.
            max_length: word pieces of a training sentence, the specials included.

        Raises:
            SembenchError: the examples do not fit the objective.
        """

    @abc.abstractmethod
    def loss(self, batch: Sequence[int], encode: Encode) -> tuple[Tensor, Facts]:
        """Return the loss of the examples with these numbers, a scalar in float32, and facts worth keeping."""

    def exported(self) -> dict[str, nn.Module]:
        """Return the modules of ``own`` that belong into the model folder, by the name of their read-out."""
        return {name: self.own[name] for name in self.exports(self.config)}

    # What a run will be, known without making anything.

    @classmethod
    def trains_through(cls, config: Any) -> str:
        """Return the read-out of the encoder, below any head, that training goes through."""
        return str(config.readout)

    @classmethod
    def exports(cls, config: Any) -> tuple[str, ...]:  # noqa: ARG003 - for those that export something
        """Return the names of ``exported``."""
        return ()

    @classmethod
    def default_readout(cls, config: Any) -> str:
        """Return the read-out that a trained run is used with unless somebody asks for another."""
        return cls.trains_through(config)

    @classmethod
    def offers(cls, config: Any) -> tuple[str, ...]:
        """Return the base read-outs that a trained run offers; a pooler only if training went through it."""
        pooler = (POOLER,) if cls.trains_through(config) == POOLER else ()
        hidden = tuple(name for name in get_args(TrainReadout) if name != POOLER)
        return (*hidden, *pooler, *cls.exports(config))
