"""Pairs of sentences that count as similar: what SimCSE trains on in its Tables 1, 2 and 4."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from sembench.core.errors import SembenchError
from sembench.core.frames import write_rows
from sembench.data.maker import Maker

COLUMNS = ("first", "second")


class Pair(NamedTuple):
    """Two sentences, of which the second is the positive of the first."""

    first: str
    second: str


class PairMaker(Maker):
    """Base of the makers of pairs: a frame with the columns ``first`` and ``second``."""

    files = ("pairs.parquet",)
    examples = "pairs.parquet"
    columns = COLUMNS


def overlap(first: str, second: str) -> float:
    """Return the F1 of two bags of words, 0 to 1: twice the words they share over the words of both.

    Words are runs of letters, digits and underscores, in lower case, counted as often as they occur. SimCSE, Section
    4.1, names 39 % for the entailment pairs of SNLI and MultiNLI, 60 % for QQP and 55 % for ParaNMT, and not how words
    were told apart; without punctuation, SNLI has the same overlap in its own form and in SentEval's.
    """
    one, other = Counter(_WORD.findall(first.lower())), Counter(_WORD.findall(second.lower()))
    total = one.total() + other.total()
    return 2 * (one & other).total() / total if total else 0.0


_WORD = re.compile(r"\w+")


def write_pairs(pairs: Iterable[Pair], path: Path, nothing: str, *, distinct: bool = False) -> dict[str, Any]:
    """Write pairs as they come, in memory that grows by 100 bytes for each different first sentence.

    Args:
        pairs: of any number.
        path: the parquet file.
        nothing: what is wrong if there is no pair.
        distinct: no first sentence repeats, so that none need be remembered.

    Returns:
        ``rows``, ``anchors`` (different first sentences), ``duplicate_anchors`` (share of the rows whose first
        sentence is in an earlier row, 0 to 1; a repeated anchor makes a false negative wherever two of its rows share
        a batch: SimCSE, issue 62), ``overlap`` (mean over the rows, see there).

    Raises:
        SembenchError: there is no pair; nothing is written.
    """
    tally = _Tally(distinct)
    if not write_rows(tally.counted(pairs), path, COLUMNS):
        raise SembenchError(nothing)
    return tally.facts


class _Tally:
    """Counts pairs as they go by."""

    def __init__(self, distinct: bool) -> None:
        self.distinct = distinct
        self.rows = 0
        self.overlap = 0.0
        self.anchors: set[bytes] = set()

    def counted(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        for pair in pairs:
            self.rows += 1
            self.overlap += overlap(*pair)
            if not self.distinct:
                self.anchors.add(hashlib.blake2b(pair.first.encode(), digest_size=12).digest())
            yield pair

    @property
    def facts(self) -> dict[str, Any]:
        anchors = self.rows if self.distinct else len(self.anchors)
        return {
            "rows": self.rows,
            "anchors": anchors,
            "duplicate_anchors": round(1 - anchors / self.rows, 6),
            "overlap": round(self.overlap / self.rows, 4),
        }
