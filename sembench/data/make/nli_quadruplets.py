"""Triplets of natural language inference with a neutral hypothesis as second hard negative: SimCSE, Table 7.

The code of the paper cannot train on them (it takes three sentences at most), and how the rows were made is not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from sembench.core.errors import SembenchError
from sembench.core.frames import write_parquet
from sembench.core.lazy import np, pd
from sembench.core.schema import Strict
from sembench.data.maker import Maker, Say
from sembench.data.premises import NORMALISE, Choice, Normalise, choose, group
from sembench.data.readers.nli import Label, read_inference

# Of the positive, the negative and the neutral column.
LABELS: tuple[Label, ...] = ("entailment", "contradiction", "neutral")


class NliQuadruplets(Maker):
    """A row for each premise that has all three labels, in the order in which they first occur."""

    class Config(Strict):
        """Rules by which judged pairs become rows."""

        splits: tuple[str, ...] = Field(("train",), min_length=1)
        choose: Choice = Field("random", description="which one, where one of several is used")
        seed: int = Field(0, ge=0)
        normalise: Normalise = Field("none", description=NORMALISE)

    roles = ("corpus",)
    optional_roles = ("second_corpus",)
    files = ("quadruplets.parquet",)
    examples = "quadruplets.parquet"
    columns = ("anchor", "positive", "negative", "neutral")

    @classmethod
    def make(cls, config: Config, inputs: Mapping[str, Path], target: Path, root: Path, say: Say) -> dict[str, Any]:
        """Read the judged pairs, group them by premise, and write rows.

        Returns:
            Pairs of each label, ``unlabelled``, ``blank``, ``premises`` and ``rows``; no anchor is repeated.

        Raises:
            SembenchError: a file is not as it should be, or no premise has all labels.
        """
        found = read_inference([inputs[role] for role in ("corpus", "second_corpus") if role in inputs], config.splits)
        premises = group(found.pairs, config.normalise)
        complete = [premise for premise in premises.values() if all(premise.hypotheses.values())]
        if not complete:
            raise SembenchError(f"{inputs['corpus']} has no premise with all three labels; check 'splits'")
        generator = np.random.Generator(np.random.PCG64(config.seed))
        rows = [
            (premise.text, *(choose(premise.hypotheses[label], config.choose, generator) for label in LABELS))
            for premise in complete
        ]
        write_parquet(pd.DataFrame(rows, columns=list(cls.columns)), target / cls.examples)
        facts = {**found.facts, "premises": len(premises), "rows": len(rows)}
        say(", ".join(f"{name} {value}" for name, value in facts.items()))
        return facts


PLUGIN = NliQuadruplets
