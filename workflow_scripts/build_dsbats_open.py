"""Build what SRSD is tested on: DSBATS-open, a stand-in for the paper's hand-made DSBATS-dic, or a set of one's own."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from sembench.analogy.bats import read_bats, read_corrections
from sembench.analogy.dictionary import Gcide, OpenOptions, build_dsbats_open, read_sentence_pairs, wordnet_letters
from sembench.analogy.folds import with_folds
from sembench.analogy.rules import BuildOptions, load_rules
from sembench.core.errors import SembenchError, explained
from sembench.core.files import atomic_path
from sembench.core.schema import parse
from sembench.registry import project_root
from sembench.registry.layout import dataset_folder, wordnet_root
from sembench.results.records import write_parquet


@explained
def main() -> None:
    """Read the command line, build, and write both files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--job", required=True, help="canonical JSON of words, senses, rules and options")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sizes", type=Path, required=True)
    parser.add_argument("--wordnet", required=True, help="key of the WordNet to take")
    parser.add_argument("--dictionary", required=True, help="key of the dictionary to take")
    parser.add_argument("--own", nargs="?", default="", const="", help="TSV of pairs to take instead of all that")
    given = parser.parse_args()
    job, registry = json.loads(given.job), project_root() / "registry"
    relations = parse(BuildOptions, job["build"], "registry/analogy.yaml, build").relations
    pairs = read_bats(dataset_folder(job["bats"]["key"]), relations, read_corrections(registry / "corrections.tsv"))
    rules = load_rules(registry / "relations.yaml")
    written = read_sentence_pairs(Path(given.own or registry / "dsbats_open.tsv"), "own" if given.own else "sembench")
    written = written[written["relation"].isin(relations)]
    if given.own and not len(written):
        raise SembenchError(f"{given.own} has no pair of the relations {', '.join(relations)}; add some to 'relations'")
    if given.own:
        frame = with_folds(written, pairs)
    else:
        letters = wordnet_letters(wordnet_root(given.wordnet) / "corpora" / "wordnet")
        dictionary = Gcide(dataset_folder(given.dictionary), letters)
        frame = build_dsbats_open(pairs, dictionary, written, rules, OpenOptions(relations=relations))
    sizes = frame.groupby(["relation", "origin"], sort=False).size().unstack(fill_value=0)
    sizes = sizes.assign(definition_pairs=sizes.sum(axis=1)).reset_index()
    sizes.insert(1, "name", [rules[key].name for key in sizes["relation"]])
    with atomic_path(given.sizes) as temporary:
        sizes.to_csv(temporary, index=False)
    write_parquet(frame, given.out)
    print(f"{len(frame)} definition pairs in {frame['relation'].nunique()} clusters", file=sys.stderr)


if __name__ == "__main__":
    main()
