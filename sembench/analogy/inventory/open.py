"""Opening the sense inventory that config.yaml names."""

from __future__ import annotations

from pathlib import Path

from sembench.analogy.inventory.base import Inventory
from sembench.analogy.inventory.wordnet import WordNetInventory
from sembench.core.errors import SembenchError


def open_inventory(name: str, wordnet: Path, cache: Path, dump: Path | None, source: str | None) -> Inventory:
    """Return an inventory; none of them uses the network.

    Args:
        name: ``wordnet``; ``babelnet`` for the answers crawled so far; ``dump``.
        wordnet: prepared folder of WordNet, which also gives the lexicographer files of BabelNet's senses.
        cache: folder with BabelNet's answers.
        dump: file of a dump.
        source: the one resource whose senses were crawled; None: of all.

    Raises:
        SembenchError: a dump is wanted and none is named, or the inventory cannot be read.
    """
    senses = WordNetInventory(wordnet / "corpora" / "wordnet")
    if name == "wordnet":
        return senses
    if name == "babelnet":
        from sembench.analogy.inventory.babelnet import BabelNetInventory
        from sembench.analogy.inventory.cache import AnswerCache

        return BabelNetInventory(AnswerCache(cache), senses.lexfile, source=source)
    if dump is None:
        raise SembenchError("config.yaml: 'inventory: dump' needs the file of the dump under 'dump'")
    from sembench.analogy.inventory.dump import DumpInventory

    return DumpInventory(dump, senses.lexfile)
