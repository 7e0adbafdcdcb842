"""The definition pairs that items and questions are drawn from."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from sembench.analogy.folds import FOLDS, pair_groups
from sembench.analogy.rules import RelationRule, load_rules
from sembench.core.frames import read_frame

COLUMNS = ("relation", "source", "target", "source_gloss", "target_gloss", "fold")


class DefinitionPairs:
    """Definition pairs by relation and fold, and what two of them may not share.

    Attributes:
        relation: of each row.
        words: source and target of each row.
        glosses: their definitions.
        group: group of each word pair.
        fold: of each row.
        cells: rows of each relation and fold.
    """

    def __init__(self, frame: pd.DataFrame, rules: Mapping[str, RelationRule]) -> None:
        self.rules = rules
        rows = list(frame[["relation", "source", "target"]].itertuples(index=False, name=None))
        self.relation = [row[0] for row in rows]
        self.words = [(row[1], row[2]) for row in rows]
        self.glosses = list(zip(frame["source_gloss"], frame["target_gloss"], strict=True))
        self.group = pair_groups(self.words)
        self.fold = frame["fold"].tolist()
        self.cells: dict[tuple[str, int], list[int]] = defaultdict(list)
        for row, (relation, place) in enumerate(zip(self.relation, self.fold, strict=True)):
            self.cells[relation, place].append(row)

    def apart(self, one: int, other: int) -> bool:
        """Whether two rows share neither word nor sentence: a common one would give the relation away."""
        return not ({*self.words[one]} & {*self.words[other]} or {*self.glosses[one]} & {*self.glosses[other]})

    def others(self, relation: str) -> list[str]:
        """Return the relations of which a pair is surely no instance of this one, not even exchanged."""
        label = self.rules[relation].directed()
        return [
            key
            for key in dict.fromkeys(self.relation)
            if label not in (self.rules[key].directed(), self.rules[key].directed(True))
        ]

    @functools.cache  # noqa: B019
    def pools(self, relation: str, fold: int | None) -> list[list[int]]:
        """Return the rows of each other relation, of one fold or (None) of all."""
        places = range(FOLDS) if fold is None else [fold]
        found = ([row for place in places for row in self.cells.get((key, place), [])] for key in self.others(relation))
        return [rows for rows in found if rows]

    def draw_other(self, row: int, fold: int | None, generator: np.random.Generator) -> int | None:
        """Return a row of another relation, each relation as likely as the next; None where the draw fails."""
        pools = self.pools(self.relation[row], fold)
        if not pools:
            return None
        rows = pools[generator.integers(len(pools))]
        found = rows[generator.integers(len(rows))]
        return found if self.apart(row, found) else None


def read_definitions(path: Path, rules: Path) -> tuple[pd.DataFrame, Mapping[str, RelationRule]]:
    """Return definition pairs (relation, source, target, source_gloss, target_gloss, fold) and the relations' rules.

    Raises:
        SembenchError: a file is missing or damaged, or lacks a column.
    """
    return read_frame(path, COLUMNS), load_rules(rules)


def text_rows(table: pd.DataFrame, columns: Sequence[str]) -> Iterator[list[str]]:
    """Yield some columns of each row of a table as text."""
    for row in table[list(columns)].itertuples(index=False, name=None):
        yield [str(cell) for cell in row]
