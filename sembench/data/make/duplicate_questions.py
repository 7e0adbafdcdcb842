"""Questions that people judged duplicates: Quora Question Pairs, 134k pairs in SimCSE's Table 4."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from sembench.core.schema import Strict
from sembench.data.maker import Say, only_file
from sembench.data.pairs import Pair, PairMaker, write_pairs
from sembench.data.readers.paraphrases import read_questions


class DuplicateQuestions(PairMaker):
    """A row for each pair that is marked as a duplicate, in the order of the files."""

    class Config(Strict):
        """Which files are read and how."""

        splits: tuple[Annotated[str, Field(pattern=r"^\w+$")], ...] = Field(
            ("train",), min_length=1, description="names of the files without .tsv"
        )
        quoted: bool = Field(False, description="cells may be in quotation marks, as in Quora's own file")

    roles = ("questions",)

    @classmethod
    def make(cls, config: Config, inputs: Mapping[str, Path], target: Path, root: Path, say: Say) -> dict[str, Any]:
        """Read the files of the role ``questions`` and write their duplicates.

        Returns:
            What ``write_pairs`` says of the rows; ``judged`` pairs, and duplicates that are ``blank`` on one side and
            were left out.

        Raises:
            SembenchError: a file is missing or not as it should be, or has no duplicates.
        """
        counts: Counter[str] = Counter(judged=0, blank=0)
        paths = [only_file(inputs["questions"], (f"{split}.tsv",)) for split in config.splits]
        nothing = f"{paths[0]} has no duplicates; check 'splits'"
        pairs = (pair for path in paths for pair in _duplicates(path, config.quoted, counts))
        facts = {**write_pairs(pairs, target / cls.examples, nothing), **counts}
        say(", ".join(f"{name} {value}" for name, value in facts.items()))
        return facts


def _duplicates(path: Path, quoted: bool, counts: Counter[str]) -> Iterator[Pair]:
    for pair, duplicate in read_questions(path, quoted):
        counts["judged"] += 1
        if duplicate and all(pair):
            yield pair
        counts["blank"] += duplicate and not all(pair)


PLUGIN = DuplicateQuestions
