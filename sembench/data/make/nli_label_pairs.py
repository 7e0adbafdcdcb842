"""Pairs of chosen labels out of natural language inference, taken as positives: SimCSE, Table 4.

The training parts of SNLI and MultiNLI have 314,315 pairs of the label entailment, 313,664 neutral and 314,090 that
contradict, 942,069 in all: the paper's three times 314k and 942k.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from sembench.core.schema import Strict
from sembench.data.maker import Say
from sembench.data.pairs import Pair, PairMaker, write_pairs
from sembench.data.readers.nli import Label, read_inference


class NliLabelPairs(PairMaker):
    """A row for each pair of these labels, in the order of the data: premise and hypothesis."""

    class Config(Strict):
        """Which pairs are taken."""

        splits: tuple[str, ...] = Field(("train",), min_length=1)
        labels: tuple[Label, ...] = Field(("entailment",), min_length=1)

    roles = ("corpus",)
    optional_roles = ("second_corpus",)

    @classmethod
    def make(cls, config: Config, inputs: Mapping[str, Path], target: Path, root: Path, say: Say) -> dict[str, Any]:
        """Read the judged pairs and write those of the labels, those of the role ``corpus`` first.

        Returns:
            What ``write_pairs`` says of the rows; pairs of each label, ``unlabelled`` and ``blank`` in the data.

        Raises:
            SembenchError: a file is not as it should be, or no pair has one of the labels.
        """
        found = read_inference([inputs[role] for role in ("corpus", "second_corpus") if role in inputs], config.splits)
        pairs = (Pair(pair.premise, pair.hypothesis) for pair in found.pairs if pair.label in config.labels)
        nothing = f"{inputs['corpus']} has no pair judged {' or '.join(config.labels)}; check 'splits' and 'labels'"
        facts = {**write_pairs(pairs, target / cls.examples, nothing), **found.facts}
        say(", ".join(f"{name} {value}" for name, value in facts.items()))
        return facts


PLUGIN = NliLabelPairs
