"""What the protocols over scored sentence pairs share: splits that join subsets of a data set."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

from pydantic import Field

from sembench.core.schema import Strict
from sembench.evaluation.protocol import Protocol, Source, sample_hash

if TYPE_CHECKING:
    from sembench.data.readers.pairs import Pairs


class SplitConfig(Strict):
    """Parameters of a task."""

    splits: dict[str, list[str]] = Field(min_length=1, description="split -> subsets in it, as their reader names them")


S = TypeVar("S", bound=SplitConfig)


class PairsProtocol(Protocol[S]):
    """A protocol whose data are the subsets of a data set of sentence pairs.

    Attributes:
        parts: the subsets' pairs of each split.
    """

    readers = ("sts", "stsb", "sick")

    def __init__(self, config: S, data: Source) -> None:
        from sembench.data.readers.pairs import read_pairs

        super().__init__(config, data)
        self.parts: dict[str, list[Pairs]] = {
            split: [read_pairs(data.fetched(), data.folder, subset) for subset in subsets]
            for split, subsets in config.splits.items()
        }

    @classmethod
    def splits(cls, config: S) -> tuple[str, ...]:
        """Return the splits of the task."""
        return tuple(config.splits)

    @property
    def sentences(self) -> Iterable[str]:
        """All sentences of all splits, duplicates kept."""
        return (sentence for split in self.parts for sentence in self.sentences_of(split))

    def sentences_of(self, split: str) -> list[str]:
        """Return all sentences of a split, duplicates kept."""
        return [sentence for pairs in self.parts[split] for sentence in pairs.sentences]

    def hash_of(self, split: str) -> str:
        """Return the sample hash of a split."""
        return sample_hash(chain.from_iterable(pairs.rows() for pairs in self.parts[split]))
