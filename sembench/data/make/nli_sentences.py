"""The different sentences of SNLI and MultiNLI: what whitening and flow are fitted on where they are fitted on NLI."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from sembench.core.errors import SembenchError
from sembench.core.frames import write_parquet
from sembench.core.lazy import pd
from sembench.core.schema import Strict
from sembench.data.frames import sample
from sembench.data.maker import Maker, Say
from sembench.data.readers.nli import read_inference


class NliSentences(Maker):
    """Premises and hypotheses of pairs with a gold label, each sentence once, in order of first occurrence."""

    class Config(Strict):
        """Which parts of the data are used."""

        splits: tuple[str, ...] = Field(("train",), min_length=1)
        rows: int | None = Field(None, gt=0, description="a random sample of so many sentences; none: all")
        seed: int = Field(0, ge=0, description="of the sample")

    roles = ("snli",)
    optional_roles = ("mnli",)
    files = ("sentences.parquet",)
    examples = "sentences.parquet"
    columns = ("sentence",)

    @classmethod
    def make(cls, config: Config, inputs: Mapping[str, Path], target: Path, root: Path, say: Say) -> dict[str, Any]:
        """Read the judged pairs and write their sentences.

        Returns:
            ``rows``, ``unique`` (sentences before the sample), pairs of each label, ``unlabelled``, ``blank``.

        Raises:
            SembenchError: a file is not as it should be, there is no sentence, or fewer than the sample asks for.
        """
        found = read_inference([inputs[role] for role in ("snli", "mnli") if role in inputs], config.splits)
        unique = list(dict.fromkeys(text for pair in found.pairs for text in (pair.premise, pair.hypothesis)))
        if not unique:
            raise SembenchError(f"{inputs['snli']} has no pair with a gold label; check 'splits'")
        kept = sample(unique, config.rows, config.seed)
        write_parquet(pd.DataFrame({"sentence": kept}), target / cls.examples)
        facts = {"rows": len(kept), "unique": len(unique), **found.facts}
        say(f"{len(kept)} of {len(unique)} different sentences")
        return facts


PLUGIN = NliSentences
