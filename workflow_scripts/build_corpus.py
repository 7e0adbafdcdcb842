"""Turn a fetched data set into a corpus, one sentence a line."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from sembench.core.errors import SembenchError, explained, unknown
from sembench.corpora.build import build_corpus
from sembench.registry import load_registry
from sembench.registry.layout import corpus, dataset_file


@explained
def main() -> None:
    """Read the command line and build."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    datasets = load_registry().datasets
    if given.dataset not in datasets:
        raise unknown("data set", given.dataset, datasets, "registry/datasets.yaml")
    entry = datasets[given.dataset]
    if entry.reader not in ("lines", "mediawiki"):
        raise SembenchError(f"the data set '{given.dataset}' holds no running text (reader: {entry.reader})")
    source = dataset_file(given.dataset, entry.files[0].name)
    facts = build_corpus(entry.reader, source, given.out or corpus(given.dataset))
    print(", ".join(f"{name} {value}" for name, value in facts.items()), file=sys.stderr)


if __name__ == "__main__":
    main()
