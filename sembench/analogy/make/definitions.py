"""The different definitions of DSBATS-sn with the words that they define: what DefSent trains on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sembench.analogy.columns import FRAME_COLUMNS
from sembench.analogy.dsbats import definitions
from sembench.core.frames import write_parquet
from sembench.data.frames import read_examples
from sembench.data.maker import Maker, Say


class Definitions(Maker):
    """A row for each different word and definition of either side of a pair."""

    roles = ("pairs",)
    files = ("definitions.parquet",)
    examples = "definitions.parquet"
    columns = ("word", "gloss")

    @classmethod
    def make(cls, config: Any, inputs: Mapping[str, Path], target: Path, root: Path, say: Say) -> dict[str, Any]:
        """Take the definitions of the DSBATS-sn in the role ``pairs`` and write them.

        Returns:
            ``rows``.

        Raises:
            SembenchError: the pairs cannot be read.
        """
        frame = definitions(read_examples(inputs["pairs"] / "dsbats_sn.parquet", FRAME_COLUMNS))
        write_parquet(frame, target / cls.examples)
        say(f"{len(frame)} definitions")
        return {"rows": len(frame)}


PLUGIN = Definitions
