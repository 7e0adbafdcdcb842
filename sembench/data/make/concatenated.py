"""Two sets of triplets, one behind the other, such as those of NLI and of ANLI in SimCSE's Table 4."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sembench.core.frames import write_parquet
from sembench.core.lazy import pd
from sembench.data.frames import read_examples
from sembench.data.maker import Maker, Say
from sembench.data.triplets import COLUMNS, Triplet, anchor_facts


class Concatenated(Maker):
    """All triplets of the role ``first``, then all of ``second``."""

    roles = ("first", "second")
    files = ("triplets.parquet",)
    examples = "triplets.parquet"
    columns = COLUMNS

    @classmethod
    def make(cls, config: Any, inputs: Mapping[str, Path], target: Path, root: Path, say: Say) -> dict[str, Any]:
        """Read both sets and write them as one.

        Returns:
            ``rows``, those of the ``first`` and the ``second``, ``anchors`` and ``duplicate_anchors``.

        Raises:
            SembenchError: a set has no triplets.
        """
        frames = {role: read_examples(inputs[role] / "triplets.parquet", COLUMNS)[list(COLUMNS)] for role in cls.roles}
        whole = pd.concat(frames.values(), ignore_index=True)
        write_parquet(whole, target / cls.examples)
        sizes = {role: len(frame) for role, frame in frames.items()}
        facts = {"rows": len(whole), **sizes, **anchor_facts([Triplet(*row) for row in whole.itertuples(index=False)])}
        say(", ".join(f"{name} {value}" for name, value in facts.items()))
        return facts


PLUGIN = Concatenated
