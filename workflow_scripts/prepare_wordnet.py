"""Lay the fetched WordNet 3.0 database out for nltk's reader."""

from __future__ import annotations

from sembench.analogy.inventory.wordnet import prepare_wordnet
from sembench.errors import explained
from sembench.registry.layout import DATA, wordnet_root


@explained
def main() -> None:
    """Prepare the folder."""
    prepare_wordnet(DATA / "sets" / "wordnet", wordnet_root())


if __name__ == "__main__":
    main()
