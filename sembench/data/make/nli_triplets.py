"""Triplets from SNLI and MultiNLI: a premise with a hypothesis that it entails and one that it contradicts.

SimCSE, Section 4.1. The authors' file has 275,601 rows, and how it was made is not published. Known (issue 238):
training splits, premises without a contradiction are left out, one of several contradictions is sampled (paper,
footnote 7). SNLI and MultiNLI have 314,315 pairs with the label entailment, the 314k of the paper's Table 4, but fewer
premises that have both labels. The parameters are the candidate rules; with the authors' file as the role ``official``
the record says how many of its rows these data explain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from sembench.core.errors import SembenchError
from sembench.core.frames import write_parquet
from sembench.core.lazy import np
from sembench.core.schema import Strict
from sembench.data.maker import Maker, Say, only_file
from sembench.data.premises import KEYS, NORMALISE, Choice, Normalise, Premise, choose, group
from sembench.data.readers.nli import read_inference
from sembench.data.readers.nli_csv import read_triplets
from sembench.data.triplets import COLUMNS, Triplet, anchor_facts, triplet_frame


class NliTriplets(Maker):
    """Triplets in the order in which their premises first occur."""

    class Config(Strict):
        """Rules by which judged pairs become triplets."""

        splits: tuple[str, ...] = Field(("train",), min_length=1)
        per_premise: Literal["one", "all"] = Field(
            "one", description="one: a triplet for each premise; all: one for each hypothesis that it entails"
        )
        contradictions: Literal["one", "all"] = Field("one", description="all: a triplet for each of them")
        choose: Choice = Field("random", description="which one, where one of several is used")
        seed: int = Field(0, ge=0)
        require_all_labels: bool = Field(False, description="leave out premises that have no neutral hypothesis")
        normalise: Normalise = Field("none", description=NORMALISE)

    roles = ("snli",)
    optional_roles = ("mnli", "official")
    files = ("triplets.parquet",)
    examples = "triplets.parquet"
    columns = COLUMNS

    @classmethod
    def make(cls, config: Config, inputs: Mapping[str, Path], target: Path, root: Path, say: Say) -> dict[str, Any]:
        """Read the judged pairs, group them by premise, and write triplets.

        Returns:
            Pairs of each label, ``unlabelled``, ``blank``, ``premises``, those ``with_both`` labels and ``with_all``
            three, ``rows``, ``anchors``, ``duplicate_anchors``, and with the role ``official`` also ``official_rows``
            and ``official_explained``: rows of the authors' file of which both pairs are in the data.

        Raises:
            SembenchError: a file is not as it should be, or no premise has both labels.
        """
        found = read_inference([inputs[role] for role in ("snli", "mnli") if role in inputs], config.splits)
        premises = group(found.pairs, config.normalise)
        rows = list(_triplets(premises, config))
        if not rows:
            raise SembenchError(f"{inputs['snli']} has no premise with both labels of a triplet; check 'splits'")
        write_parquet(triplet_frame(rows), target / cls.examples)
        facts = {**found.facts, **_premise_facts(premises), "rows": len(rows), **anchor_facts(rows)}
        if "official" in inputs:
            facts |= _explained(premises, only_file(inputs["official"], (".csv",)), config.normalise)
        say(", ".join(f"{name} {value}" for name, value in facts.items()))
        return facts


def _triplets(premises: Mapping[str, Premise], config: NliTriplets.Config) -> Iterator[Triplet]:
    generator = np.random.Generator(np.random.PCG64(config.seed))
    for premise in premises.values():
        if not premise.has_both or (config.require_all_labels and not premise.hypotheses["neutral"]):
            continue
        entailed, opposed = premise.hypotheses["entailment"], premise.hypotheses["contradiction"]
        for positive in entailed if config.per_premise == "all" else [choose(entailed, config.choose, generator)]:
            for negative in opposed if config.contradictions == "all" else [choose(opposed, config.choose, generator)]:
                yield Triplet(premise.text, positive, negative)


def _premise_facts(premises: Mapping[str, Premise]) -> dict[str, int]:
    both = [premise for premise in premises.values() if premise.has_both]
    complete = sum(bool(premise.hypotheses["neutral"]) for premise in both)
    return {"premises": len(premises), "with_both": len(both), "with_all": complete}


def _explained(premises: Mapping[str, Premise], official: Path, normalise: Normalise) -> dict[str, int]:
    key = KEYS[normalise]
    rows = explained = 0
    for row in read_triplets(official):
        rows += 1
        premise = premises.get(key(row.anchor.strip()))
        explained += (
            premise is not None
            and row.positive.strip() in premise.hypotheses["entailment"]
            and row.negative.strip() in premise.hypotheses["contradiction"]
        )
    return {"official_rows": rows, "official_explained": explained}


PLUGIN = NliTriplets
