"""DSBATS-sn: word pairs of BATS become pairs of definitions (analogy paper, Section 3)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from sembench.analogy.bats import read_bats, read_corrections
from sembench.analogy.columns import FRAME_COLUMNS
from sembench.analogy.dsbats import build_dsbats_sn
from sembench.analogy.inventory import cache
from sembench.analogy.rules import BuildOptions, check_relations, load_rules
from sembench.core.errors import SembenchError
from sembench.core.frames import write_parquet, write_table
from sembench.data.maker import Maker, Say

RULES = "registry/relations.yaml"
CORRECTIONS = "registry/corrections.tsv"


class DsbatsSn(Maker):
    """Definition pairs; beside them their numbers by relation, a reason for each rejected sense, and unknown words."""

    class Config(BuildOptions):
        """Where senses come from, and which of them are used."""

        inventory: Literal["wordnet", "babelnet", "dump"] = Field(
            "wordnet", description="babelnet: the answers crawled so far; dump: the file under 'dump'"
        )
        dump: str = Field("", description="file of a dump: absolute, or relative to the project's folder")

        @model_validator(mode="after")
        def _dump_belongs_to_its_inventory(self) -> DsbatsSn.Config:
            if (self.inventory == "dump") != bool(self.dump):
                raise ValueError("'inventory: dump' and 'dump: FILE' belong together; set both or neither")
            return self

        @property
        def options(self) -> BuildOptions:
            """The options of the build: only WordNet is asked for every part of speech, elsewhere asking costs."""
            return self.model_copy(update={"every_pos": self.every_pos and self.inventory == "wordnet"})

    roles = ("bats", "wordnet")
    files = ("dsbats_sn.parquet", "sizes.csv", "filter_report.tsv", "not_found.tsv")
    examples = "dsbats_sn.parquet"
    columns = tuple(FRAME_COLUMNS)

    @classmethod
    def reads(cls, config: Config) -> tuple[str, ...]:
        """Return the rules of the filter, the corrections of BATS, and a dump."""
        return (RULES, CORRECTIONS, *([config.dump] if config.dump else []))

    @classmethod
    def extra(cls, config: Config, root: Path) -> str:
        """Return a digest of which answers of BabelNet are stored, where they are the inventory."""
        return cache.stored(root / cache.FOLDER) if config.inventory == "babelnet" else ""

    @classmethod
    def check(cls, config: Config, root: Path) -> None:
        """Look for the rules of every relation, and for the dump.

        Raises:
            SembenchError: a relation has no rules, or there is no such dump.
        """
        check_relations(config.relations, load_rules(root / RULES))
        if config.dump and not (root / config.dump).is_file():
            raise SembenchError(f"config.yaml: there is no file '{root / config.dump}'; correct the key 'dump'")

    @classmethod
    def make(cls, config: Config, inputs: Mapping[str, Path], target: Path, root: Path, say: Say) -> dict[str, Any]:
        """Look the words of the role ``bats`` up and write four files.

        Returns:
            ``rows`` (definition pairs), ``relations``, ``word_pairs``, ``not_found`` (words).

        Raises:
            SembenchError: a file is not as it should be, a sense was not crawled yet, or a relation stays empty.
        """
        from sembench.analogy.inventory.open import open_inventory

        pairs = read_bats(inputs["bats"], config.relations, read_corrections(root / CORRECTIONS))
        dump = root / config.dump if config.dump else None
        inventory = open_inventory(config.inventory, inputs["wordnet"], root / cache.FOLDER, dump, config.source)
        build = build_dsbats_sn(pairs, inventory, load_rules(root / RULES), config.options)
        for warning in build.warnings:
            say(f"warning: {warning}")
        write_table(build.sizes.reset_index(), target / "sizes.csv")
        write_table(build.report, target / "filter_report.tsv")
        write_table(build.not_found, target / "not_found.tsv")
        write_parquet(build.frame, target / cls.examples)
        say(f"{len(build.frame)} definition pairs in {build.frame['relation'].nunique()} clusters")
        return {
            "rows": len(build.frame),
            "relations": int(build.frame["relation"].nunique()),
            "word_pairs": int(build.sizes["word_pairs"].sum()),
            "not_found": len(build.not_found),
        }


PLUGIN = DsbatsSn
