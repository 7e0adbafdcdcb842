"""Premises of natural language inference with what was judged of them, from which triplets are made."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from sembench.data.readers.nli import Judged, Label

if TYPE_CHECKING:
    from numpy.random import Generator

Normalise = Literal["none", "spaces", "case", "letters"]
NORMALISE = (
    "premises are the same if equal: none: as they are; spaces: but for white space; case: and for capitals; "
    "letters: in letters and digits"
)
Choice = Literal["random", "first"]


@dataclass
class Premise:
    """A premise as it first occurs, and its hypotheses by label, in the order of the data."""

    text: str
    hypotheses: dict[Label, list[str]] = field(
        default_factory=lambda: {"entailment": [], "neutral": [], "contradiction": []}
    )

    @property
    def has_both(self) -> bool:
        """Whether a triplet can be made."""
        return bool(self.hypotheses["entailment"] and self.hypotheses["contradiction"])


def group(pairs: Sequence[Judged], normalise: Normalise) -> dict[str, Premise]:
    """Return the premises of judged pairs, in order of first occurrence, by their normalised text."""
    key = KEYS[normalise]
    premises: dict[str, Premise] = {}
    for pair in pairs:
        premise = premises.setdefault(key(pair.premise), Premise(pair.premise))
        premise.hypotheses[pair.label].append(pair.hypothesis)
    return premises


KEYS: Mapping[Normalise, Callable[[str], str]] = {
    "none": str,
    "spaces": lambda text: " ".join(text.split()),
    "case": lambda text: " ".join(text.lower().split()),
    "letters": lambda text: re.sub(r"[\W_]+", "", text.lower()),
}


def choose(texts: list[str], how: Choice, generator: Generator) -> str:
    """Return one of the texts; where there is no choice, nothing is drawn."""
    return texts[0] if how == "first" or len(texts) == 1 else texts[int(generator.integers(len(texts)))]
