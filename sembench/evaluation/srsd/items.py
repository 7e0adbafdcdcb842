"""Items of SRSD: two definition pairs each, of the same relation or not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sembench.analogy.folds import FOLDS
from sembench.analogy.rules import RelationRule
from sembench.core.errors import SembenchError
from sembench.evaluation.folds import stratified_folds
from sembench.evaluation.srsd.definitions import DefinitionPairs

Ints = NDArray[np.int64]
Split = Literal["leak_free", "paper_like"]
SPLITS: tuple[Split, ...] = ("leak_free", "paper_like")
# both: every second item has both pairs the other way round, so that no pair alone tells that another one is
# exchanged; forward: as in the data but for the exchanged pair.
Orientation = Literal["both", "forward"]
SENTENCES = ["sentence_1", "sentence_2", "sentence_3", "sentence_4"]
ITEM_COLUMNS = [
    "relation",
    "other_relation",
    "label",
    "subset",
    "exchanged",
    *SENTENCES,
    "first_pair",
    "second_pair",
    "first_group",
    "second_group",
    *SPLITS,
]


def make_items(
    frame: pd.DataFrame,
    rules: Mapping[str, RelationRule],
    per_relation: int = 100,
    orientation: Orientation = "both",
    seed: int = 0,
) -> pd.DataFrame:
    """Draw items of SRSD from definition pairs.

    Both pairs of an item are of one fold of word pairs and share no word and no sentence. Relations of one family (L02
    and L03, L09 and L10) never make an item of two relations. A symmetric relation exchanged is the same relation, so
    it gives no exchanged negatives, and the other relations give more instead. The same items serve both splits.

    Args:
        frame: relation, source, target, source_gloss, target_gloss, fold.
        rules: families and symmetry of the relations.
        per_relation: items of the same relation at most; as many again are negative.
        orientation: see ``Orientation``.
        seed: of the draws.

    Returns:
        A frame with the columns ``ITEM_COLUMNS``: ``label`` 1 for the same relation; ``subset`` other_relation or
        exchanged, what the item tells from: half of each subset has label 1; ``exchanged`` marks the negatives of the
        latter; ``leak_free`` and ``paper_like`` the fold in which an item is tested.

    Raises:
        SembenchError: no relation has two pairs in a fold.
    """
    table = DefinitionPairs(frame, rules)
    generator = np.random.default_rng(seed)
    share = -(-per_relation // FOLDS)
    positives = {cell: _same(table, rows, share, generator) for cell, rows in sorted(table.cells.items())}
    if not any(positives.values()):
        raise SembenchError("no relation has two word pairs without a common word in a fold; give more pairs")
    exchanged = _exchanged_sizes(positives, rules)
    rows: list[dict[str, Any]] = []
    for cell, found in positives.items():
        rows += _cell_items(table, cell, found, exchanged[cell], orientation, generator)
    items = pd.DataFrame(rows, columns=ITEM_COLUMNS[:-1])
    items["paper_like"] = stratified_folds(items["label"].to_numpy(np.int64), FOLDS, seed)
    return items


def _same(
    table: DefinitionPairs, rows: Sequence[int], size: int, generator: np.random.Generator
) -> list[tuple[int, int]]:
    """Draw up to ``size`` different pairs of rows that have nothing in common, each in either order."""
    possible = [(a, b) for a, b in combinations(rows, 2) if table.apart(a, b)]
    chosen = [possible[place] for place in generator.permutation(len(possible))[:size]]
    return [(a, b) if generator.random() < 0.5 else (b, a) for a, b in chosen]


def _exchanged_sizes(
    positives: Mapping[tuple[str, int], Sequence[tuple[int, int]]], rules: Mapping[str, RelationRule]
) -> dict[tuple[str, int], int]:
    """Return how many negatives of each cell are exchanged pairs, so that half of all are as far as possible."""
    sizes = {cell: 0 if rules[cell[0]].symmetric else len(found) for cell, found in positives.items()}
    total, able = sum(map(len, positives.values())), sum(sizes.values())
    wanted = min(total // 2, able)
    ends = [done * wanted // able if able else 0 for done in np.cumsum([0, *sizes.values()]).tolist()]
    return {cell: end - start for cell, start, end in zip(sizes, ends[:-1], ends[1:], strict=True)}


def _cell_items(
    table: DefinitionPairs,
    cell: tuple[str, int],
    positives: Sequence[tuple[int, int]],
    exchanged: int,
    orientation: Orientation,
    generator: np.random.Generator,
) -> Iterator[dict[str, Any]]:
    """Yield the items of a relation and fold, a negative behind every positive."""
    negatives = _same(table, table.cells[cell], exchanged, generator)
    seen: set[tuple[int, int]] = set()
    for number, positive in enumerate(positives):
        is_exchanged = number < exchanged
        negative = negatives[number] if is_exchanged else _negative(table, cell, seen, generator)
        if negative is not None:
            subset = "exchanged" if is_exchanged else "other_relation"
            yield _item(table, positive, 1, subset, orientation, generator)
            yield _item(table, negative, 0, subset, orientation, generator)


def _negative(
    table: DefinitionPairs, cell: tuple[str, int], seen: set[tuple[int, int]], generator: np.random.Generator
) -> tuple[int, int] | None:
    rows = table.cells[cell]
    for _ in range(100):
        first = rows[generator.integers(len(rows))]
        second = table.draw_other(first, cell[1], generator)
        if second is not None and (first, second) not in seen:
            seen.add((first, second))
            return first, second
    return None


def _item(
    table: DefinitionPairs,
    rows: tuple[int, int],
    label: int,
    subset: str,
    orientation: Orientation,
    generator: np.random.Generator,
) -> dict[str, Any]:
    first, second = rows
    exchanged = subset == "exchanged" and not label
    turned = orientation == "both" and generator.random() < 0.5
    ones, others = table.glosses[first], table.glosses[second]
    ones = ones[::-1] if turned else ones
    others = others[::-1] if turned != exchanged else others
    return {
        "relation": table.relation[first],
        "other_relation": table.relation[second],
        "label": label,
        "subset": subset,
        "exchanged": exchanged,
        **dict(zip(SENTENCES, (*ones, *others), strict=True)),
        "first_pair": "|".join(table.words[first]),
        "second_pair": "|".join(table.words[second]),
        "first_group": table.group[table.words[first]],
        "second_group": table.group[table.words[second]],
        "leak_free": table.fold[first],
    }


def seen_in_training(items: pd.DataFrame, split: Split) -> dict[str, float]:
    """Return which share of the items has a word pair, and which has a sentence, that its training items have too.

    Even without common word pairs sentences recur: many things are green, and green has one definition.
    """
    pairs = items[["first_pair", "second_pair"]].to_numpy()
    texts = items[SENTENCES].to_numpy()
    fold = items[split].to_numpy()
    return {"seen_pairs": _seen(pairs, fold), "seen_sentences": _seen(texts, fold)}


def _seen(cells: NDArray[Any], fold: Ints) -> float:
    hits = 0
    for place in np.unique(fold):
        known = set(cells[fold != place].ravel())
        hits += sum(any(cell in known for cell in row) for row in cells[fold == place])
    return hits / len(cells)
