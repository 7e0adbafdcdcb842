"""Build DSBATS4CL from DSBATS-sn, and once more without the word pairs that SRSD holds out."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from sembench.analogy.dsbats import FRAME_COLUMNS, build_dsbats4cl
from sembench.analogy.folds import HELD_OUT
from sembench.analogy.rules import AugmentOptions, load_rules
from sembench.core.errors import explained
from sembench.core.schema import parse
from sembench.registry import project_root
from sembench.results.records import read_frame, write_parquet


@explained
def main() -> None:
    """Read the command line, build, and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--job", required=True, help="canonical JSON of words, senses, rules and options")
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, help="parquet with rows of all word pairs")
    parser.add_argument("--held-out", type=Path, required=True, help="parquet with rows of those not held out")
    given = parser.parse_args()
    options = parse(AugmentOptions, json.loads(given.job)["augment"], "registry/analogy.yaml, augment")
    rules = load_rules(project_root() / "registry" / "relations.yaml")
    pairs = read_frame(given.pairs, FRAME_COLUMNS)
    for path, kept in ((given.out, pairs), (given.held_out, pairs[pairs["fold"] != HELD_OUT])):
        rows = build_dsbats4cl(kept, rules, options)
        write_parquet(rows, path)
        print(f"{path.name}: {len(rows)} rows over {rows['relation'].nunique()} relations", file=sys.stderr)


if __name__ == "__main__":
    main()
