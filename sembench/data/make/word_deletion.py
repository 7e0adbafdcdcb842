"""Word deletion: a sentence beside itself without some words (SimCSE, Table 1: k % of them, or one)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from sembench.core.schema import Strict
from sembench.data.augment import Augmenter, Change, share

if TYPE_CHECKING:
    from numpy.random import Generator


class WordDeletion(Augmenter):
    """Leaves words out; every choice of them is as likely as another."""

    class Config(Strict):
        """How many words go."""

        percent: int = Field(10, gt=0, lt=100, description="of the words: k of the table's 'word deletion k %'")
        words: int | None = Field(
            None, gt=0, description="so many of each sentence instead, but never its last one; 'percent' is not used"
        )
        seed: int = Field(0, ge=0)

    @classmethod
    def change(cls, config: Config, inputs: Mapping[str, Path]) -> Change:
        """Return what leaves words out; those that stay keep their order."""

        def change(words: list[str], random: Generator) -> list[str]:
            gone = min(config.words, len(words) - 1) if config.words else share(len(words), config.percent)
            out = set(random.choice(len(words), size=gone, replace=False).tolist())
            return [word for place, word in enumerate(words) if place not in out]

        return change


PLUGIN = WordDeletion
