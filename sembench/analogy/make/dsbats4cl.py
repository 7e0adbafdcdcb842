"""DSBATS4CL: pairs of DSBATS-sn become rows of three pairs for contrastive learning (analogy paper, Section 4)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from sembench.analogy.columns import FRAME_COLUMNS, ROW_COLUMNS
from sembench.analogy.dsbats import build_dsbats4cl
from sembench.analogy.folds import HELD_OUT
from sembench.analogy.rules import AugmentOptions, load_rules
from sembench.core.frames import write_parquet
from sembench.data.frames import read_examples
from sembench.data.maker import Maker, Say

RULES = "registry/relations.yaml"


class Dsbats4cl(Maker):
    """Rows of an anchor, a positive of the same relation, and a third pair as the negative."""

    class Config(AugmentOptions):
        """How rows are drawn, and from which word pairs."""

        held_out: bool = Field(False, description="leave out the word pairs on which SRSD's accuracy is reported apart")

    roles = ("pairs",)
    files = ("dsbats4cl.parquet",)
    examples = "dsbats4cl.parquet"
    columns = tuple(ROW_COLUMNS)

    @classmethod
    def reads(cls, config: Config) -> tuple[str, ...]:
        """Return the rules: names, families and symmetry of the relations."""
        return (RULES,)

    @classmethod
    def make(cls, config: Config, inputs: Mapping[str, Path], target: Path, root: Path, say: Say) -> dict[str, Any]:
        """Draw rows from the DSBATS-sn of the role ``pairs`` and write them.

        Returns:
            ``rows``, ``relations``, and ``definition_pairs`` from which they were drawn.

        Raises:
            SembenchError: a cluster has too few word pairs, or nowhere to take a third pair from.
        """
        pairs = read_examples(inputs["pairs"] / "dsbats_sn.parquet", FRAME_COLUMNS)
        used = pairs[pairs["fold"] != HELD_OUT] if config.held_out else pairs
        rows = build_dsbats4cl(used, load_rules(root / RULES), config)
        write_parquet(rows[ROW_COLUMNS], target / cls.examples)
        facts = {"rows": len(rows), "relations": int(rows["relation"].nunique()), "definition_pairs": len(used)}
        say(f"{facts['rows']} rows over {facts['relations']} relations")
        return facts


PLUGIN = Dsbats4cl
