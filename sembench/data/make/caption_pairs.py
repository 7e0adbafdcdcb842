"""Captions of the same image as pairs: Flickr30k in SimCSE's Table 4.

"Any two captions" (Section 4.1) of 31,783 images with five each are 317,830 pairs: the 318k of the table are all of
them. The files read here leave the rest of the images out and have 310,140.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from sembench.core.schema import Strict
from sembench.data.chance import generator
from sembench.data.maker import Say
from sembench.data.pairs import Pair, PairMaker, write_pairs
from sembench.data.readers.captions import read_captions


class CaptionPairs(PairMaker):
    """Rows in the order of the images."""

    class Config(Strict):
        """Which pairs are taken."""

        splits: tuple[Annotated[str, Field(pattern=r"^\w+$")], ...] = Field(("train",), min_length=1)
        pairs: Literal["all", "one"] = Field("all", description="all ten pairs of an image's captions, or one of them")
        seed: int = Field(0, ge=0, description="of the choice of one")

    roles = ("captions",)

    @classmethod
    def make(cls, config: Config, inputs: Mapping[str, Path], target: Path, root: Path, say: Say) -> dict[str, Any]:
        """Read the captions of the splits and write their pairs; those of one image keep the order of its captions.

        Returns:
            What ``write_pairs`` says of the rows, and ``images``.

        Raises:
            SembenchError: a file is not as it should be, or there is no image.
        """
        images = [
            (split, number, captions)
            for split in config.splits
            for number, captions in enumerate(read_captions(inputs["captions"], split))
        ]
        pairs = (pair for image in images for pair in _pairs(*image, config))
        nothing = f"{inputs['captions']} has no caption; fetch the set again"
        facts = {**write_pairs(pairs, target / cls.examples, nothing), "images": len(images)}
        say(", ".join(f"{name} {value}" for name, value in facts.items()))
        return facts


def _pairs(split: str, number: int, captions: Sequence[str], config: CaptionPairs.Config) -> Iterator[Pair]:
    found = [Pair(*two) for two in itertools.combinations(captions, 2)]
    if config.pairs == "one":
        found = [found[int(generator(config.seed, split, number).integers(len(found)))]]
    yield from found


PLUGIN = CaptionPairs
