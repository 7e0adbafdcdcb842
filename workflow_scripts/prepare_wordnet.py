"""Lay a fetched database of WordNet out for nltk's reader."""

from __future__ import annotations

import argparse

from sembench.analogy.inventory.wordnet import DATA_NOUN_SHA256, prepare_wordnet
from sembench.core.errors import explained
from sembench.registry.layout import dataset_folder, wordnet_root


@explained
def main() -> None:
    """Read the command line and prepare the folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("key", help="data set that holds the database's files")
    key = parser.parse_args().key
    # Scale smoke has an invented database, of which nothing is to be checked.
    prepare_wordnet(dataset_folder(key), wordnet_root(key), DATA_NOUN_SHA256 if key == "wordnet" else None)


if __name__ == "__main__":
    main()
