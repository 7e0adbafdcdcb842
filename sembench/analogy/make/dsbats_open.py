"""DSBATS-open, on which SRSD is tested: a stand-in for the paper's hand-made DSBATS-dic, or a set of one's own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from sembench.analogy.bats import SEMANTIC, read_bats, read_corrections
from sembench.analogy.columns import OPEN_COLUMNS
from sembench.analogy.dictionary import Gcide, OpenOptions, build_dsbats_open, read_sentence_pairs, wordnet_letters
from sembench.analogy.folds import with_folds
from sembench.analogy.rules import RelationRule, Relations, check_relations, load_rules
from sembench.core.errors import SembenchError
from sembench.core.frames import write_parquet, write_table
from sembench.data.maker import Maker, Say

if TYPE_CHECKING:
    from pandas import DataFrame

RULES = "registry/relations.yaml"
CORRECTIONS = "registry/corrections.tsv"
WRITTEN = "registry/dsbats_open.tsv"


class DsbatsOpen(Maker):
    """Definition pairs from a dictionary that is not the inventory, and pairs that people wrote; with their numbers."""

    class Config(OpenOptions):
        """Which definitions are used, or a file with a test set of one's own."""

        relations: Relations = Field(SEMANTIC, min_length=1)
        own: str = Field("", description="TSV with the columns of registry/dsbats_open.tsv; replaces all other pairs")

    roles = ("bats", "wordnet", "dictionary")
    files = ("dsbats_open.parquet", "open_sizes.csv")
    examples = "dsbats_open.parquet"
    columns = (*OPEN_COLUMNS, "fold")
    version = 2

    @classmethod
    def reads(cls, config: Config) -> tuple[str, ...]:
        """Return the rules of the filter, the corrections of BATS, and the written pairs."""
        return (RULES, CORRECTIONS, config.own or WRITTEN)

    @classmethod
    def check(cls, config: Config, root: Path) -> None:
        """Look for the rules of every relation, and for a test set of one's own.

        Raises:
            SembenchError: a relation has no rules, or there is no such file.
        """
        check_relations(config.relations, load_rules(root / RULES))
        if config.own and not (root / config.own).is_file():
            raise SembenchError(f"config.yaml: there is no file '{root / config.own}'; correct the key 'srsd_pairs'")

    @classmethod
    def make(cls, config: Config, inputs: Mapping[str, Path], target: Path, root: Path, say: Say) -> dict[str, Any]:
        """Look the words of the role ``bats`` up in the dictionary, add written pairs, and write both files.

        Returns:
            ``rows`` (definition pairs), ``relations``, and ``written`` (pairs that people wrote).

        Raises:
            SembenchError: a file is not as it should be, or a set of one's own has no pair of the relations.
        """
        pairs = read_bats(inputs["bats"], config.relations, read_corrections(root / CORRECTIONS))
        rules = load_rules(root / RULES)
        written = _written(config, root)
        if config.own:
            frame = with_folds(written, pairs)
        else:
            dictionary = Gcide(inputs["dictionary"], wordnet_letters(inputs["wordnet"] / "corpora" / "wordnet"))
            frame = build_dsbats_open(pairs, dictionary, written, rules, config)
        write_table(_sizes(frame, rules), target / "open_sizes.csv")
        write_parquet(frame, target / cls.examples)
        facts = {"rows": len(frame), "relations": int(frame["relation"].nunique()), "written": len(written)}
        say(f"{facts['rows']} definition pairs in {facts['relations']} clusters")
        return facts


def _written(config: DsbatsOpen.Config, root: Path) -> DataFrame:
    path = root / (config.own or WRITTEN)
    found = read_sentence_pairs(path, "own" if config.own else "sembench")
    kept = found[found["relation"].isin(config.relations)]
    if config.own and kept.empty:
        raise SembenchError(
            f"{path} has no pair of the relations {', '.join(config.relations)}; add some to 'relations'"
        )
    return kept


def _sizes(frame: DataFrame, rules: Mapping[str, RelationRule]) -> DataFrame:
    """Return the number of definition pairs by relation and origin."""
    sizes = frame.groupby(["relation", "origin"], sort=False).size().unstack(fill_value=0)
    sizes = sizes.assign(definition_pairs=sizes.sum(axis=1)).reset_index()
    sizes.insert(1, "name", [rules[key].name for key in sizes["relation"]])
    return sizes


PLUGIN = DsbatsOpen
