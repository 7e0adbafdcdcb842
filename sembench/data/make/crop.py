"""Crop: a sentence beside a span of itself (SimCSE, Table 1)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from sembench.core.schema import Strict
from sembench.data.augment import Augmenter, Change, share

if TYPE_CHECKING:
    from numpy.random import Generator


class Crop(Augmenter):
    """Keeps neighbouring words; every span of that length is as likely as another."""

    class Config(Strict):
        """Parameters."""

        percent: int = Field(10, gt=0, lt=100, description="of the words that go: k of the table's 'crop k %'")
        seed: int = Field(0, ge=0)

    @classmethod
    def change(cls, config: Config, inputs: Mapping[str, Path]) -> Change:
        """Return what keeps a span of the words."""

        def change(words: list[str], random: Generator) -> list[str]:
            gone = share(len(words), config.percent)
            start = int(random.integers(gone + 1))
            return words[start : start + len(words) - gone]

        return change


PLUGIN = Crop
