"""Pairs of a table as they are, such as ParaNMT's back-translations (5m in SimCSE's Table 4, used raw: issue 236)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sembench.data.maker import Say, only_file
from sembench.data.pairs import Pair, PairMaker, write_pairs
from sembench.data.readers.paraphrases import read_scored


class Paraphrases(PairMaker):
    """A row for each line, in the order of the file; scores are read past."""

    roles = ("text",)
    # Millions of lines.
    local = False

    @classmethod
    def make(cls, config: Any, inputs: Mapping[str, Path], target: Path, root: Path, say: Say) -> dict[str, Any]:
        """Read the one file ``.txt`` or ``.tsv`` of the role ``text`` and write its pairs.

        Returns:
            What ``write_pairs`` says of the rows, and those that are ``blank`` on one side and were left out.

        Raises:
            SembenchError: a line is not as it should be, or there is none.
        """
        source = only_file(inputs["text"], (".txt", ".tsv"))
        counts: Counter[str] = Counter(blank=0)
        facts = write_pairs(_whole(source, counts), target / cls.examples, f"{source} holds no pair; fetch it again")
        facts |= counts
        say(", ".join(f"{name} {value}" for name, value in facts.items()))
        return facts


def _whole(source: Path, counts: Counter[str]) -> Iterator[Pair]:
    for pair in read_scored(source):
        if all(pair):
            yield pair
        counts["blank"] += not all(pair)


PLUGIN = Paraphrases
