"""Build DSBATS-sn, with its sizes, the filter's report, and the words that no inventory knows."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import pandas as pd

from sembench.analogy.bats import read_bats, read_corrections
from sembench.analogy.dsbats import build_dsbats_sn
from sembench.analogy.inventory.base import Inventory
from sembench.analogy.inventory.open import open_inventory
from sembench.analogy.rules import BuildOptions, load_rules
from sembench.core.errors import explained
from sembench.core.files import atomic_path
from sembench.core.schema import parse
from sembench.registry import project_root
from sembench.registry.layout import babelnet_cache, dataset_folder, wordnet_root
from sembench.results.records import write_parquet


@explained
def main() -> None:
    """Read the command line, build, and write four files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--job", required=True, help="canonical JSON of words, senses, rules and options")
    parser.add_argument("--out", type=Path, required=True, help="parquet to write; its companions go beside it")
    parser.add_argument("--wordnet", required=True, help="key of the WordNet to take")
    parser.add_argument("--dump", nargs="?", default="", const="", help="dump of BabelNet, where the inventory is one")
    given = parser.parse_args()
    job = json.loads(given.job)
    options = parse(BuildOptions, job["build"], "registry/analogy.yaml, build")
    corrections = read_corrections(project_root() / "registry" / "corrections.tsv")
    pairs = read_bats(dataset_folder(job["bats"]["key"]), options.relations, corrections)
    dump = Path(given.dump) if given.dump else None
    senses = wordnet_root(given.wordnet)
    inventory: Inventory = open_inventory(job["inventory"], senses, babelnet_cache(), dump, options.source)
    build = build_dsbats_sn(pairs, inventory, load_rules(project_root() / "registry" / "relations.yaml"), options)
    for warning in build.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    _write(build.sizes.reset_index(), given.out.with_name("sizes.csv"), ",")
    _write(build.report, given.out.with_name("filter_report.tsv"), "\t")
    _write(build.not_found, given.out.with_name("not_found.tsv"), "\t")
    write_parquet(build.frame, given.out)
    print(f"{len(build.frame)} definition pairs in {build.frame['relation'].nunique()} clusters", file=sys.stderr)


def _write(frame: pd.DataFrame, path: Path, separator: str) -> None:
    with atomic_path(path) as temporary:
        frame.to_csv(temporary, sep=separator, index=False)


if __name__ == "__main__":
    main()
