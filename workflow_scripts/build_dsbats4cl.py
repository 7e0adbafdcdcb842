"""Build DSBATS4CL from DSBATS-sn."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import pandas as pd

from sembench.analogy.dsbats import build_dsbats4cl
from sembench.analogy.rules import AugmentOptions, load_rules
from sembench.errors import explained
from sembench.registry import project_root
from sembench.registry.load import parse
from sembench.results.records import write_parquet


@explained
def main() -> None:
    """Read the command line, build, and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--job", required=True, help="canonical JSON of words, senses, rules and options")
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    options = parse(AugmentOptions, json.loads(given.job)["augment"], "registry/analogy.yaml, augment")
    rules = load_rules(project_root() / "registry" / "relations.yaml")
    rows = build_dsbats4cl(pd.read_parquet(given.pairs), rules, options)
    write_parquet(rows, given.out)
    print(f"{len(rows)} rows over {rows['relation'].nunique()} relations", file=sys.stderr)


if __name__ == "__main__":
    main()
