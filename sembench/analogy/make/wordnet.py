"""WordNet's database, laid out as nltk's reader wants it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from sembench.analogy.inventory.wordnet_files import DATA_NOUN_SHA256, WORDNET_FILES, prepare_wordnet
from sembench.core.schema import Strict
from sembench.data.maker import Maker, Say


class WordNet(Maker):
    """The database's files with line feeds alone, in ``corpora/wordnet``, writable by this user only."""

    class Config(Strict):
        """Whether it must be Princeton's database."""

        princeton: bool = Field(True, description="check that it is WordNet 3.0; false: any database of that format")

    roles = ("files",)
    files = tuple(f"corpora/wordnet/{name}" for name in (*WORDNET_FILES, "LICENSE", "README"))

    @classmethod
    def make(cls, config: Config, inputs: Mapping[str, Path], target: Path, root: Path, say: Say) -> dict[str, Any]:
        """Copy the files of the role ``files`` without carriage returns.

        Raises:
            SembenchError: a file is missing, or ``data.noun`` is not that of WordNet 3.0.
        """
        folder = prepare_wordnet(inputs["files"], target, DATA_NOUN_SHA256 if config.princeton else None)
        facts = {"bytes": sum((target / name).stat().st_size for name in cls.files)}
        say(f"{len(cls.files)} files in {folder}")
        return facts


PLUGIN = WordNet
