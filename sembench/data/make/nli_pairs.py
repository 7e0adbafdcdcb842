"""Judged pairs of SNLI and MultiNLI, for Sentence-BERT's classification objective (Reimers and Gurevych 2019)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from sembench.core.errors import SembenchError
from sembench.core.frames import write_parquet
from sembench.core.lazy import pd
from sembench.core.schema import Strict
from sembench.data.maker import Maker, Say
from sembench.data.readers.nli import read_inference


class NliPairs(Maker):
    """A row for each pair with a gold label: premise, hypothesis, and the label's name."""

    class Config(Strict):
        """Which parts of the data are used."""

        splits: tuple[str, ...] = Field(("train",), min_length=1)

    roles = ("snli",)
    optional_roles = ("mnli",)
    files = ("pairs.parquet",)
    examples = "pairs.parquet"
    columns = ("first", "second", "label")

    @classmethod
    def make(cls, config: Config, inputs: Mapping[str, Path], target: Path, root: Path, say: Say) -> dict[str, Any]:
        """Read the judged pairs and write them, those of the role ``snli`` first.

        Returns:
            ``rows``, pairs of each label, ``unlabelled`` and ``blank`` (left out).

        Raises:
            SembenchError: a file is not as it should be, or no pair has a gold label.
        """
        found = read_inference([inputs[role] for role in ("snli", "mnli") if role in inputs], config.splits)
        if not found.pairs:
            raise SembenchError(f"{inputs['snli']} has no pair with a gold label; check 'splits'")
        rows = [(pair.premise, pair.hypothesis, pair.label) for pair in found.pairs]
        write_parquet(pd.DataFrame(rows, columns=list(cls.columns)), target / cls.examples)
        facts = {"rows": len(rows), **found.facts}
        say(", ".join(f"{name} {value}" for name, value in facts.items()))
        return facts


PLUGIN = NliPairs
