"""Which sentences of a corpus are nearest to a query by cosine, exactly (SimCSE, Table 8)."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sembench.core.errors import SembenchError
from sembench.evaluation.geometry import normalised

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Vectors = NDArray[np.float32]

# Rows of the corpus that are compared at once.
_BLOCK = 4096
# Hits that faiss is asked for beyond those that are wanted.
_SPARE = 32


def nearest(
    queries: Vectors, corpus: Vectors, count: int, own: Ints | None = None, engine: Literal["exact", "faiss"] = "exact"
) -> tuple[Ints, Floats]:
    """Return the nearest rows of a corpus and their cosines, both (queries, count), best first.

    Of equal cosines the row that comes first in the corpus is the nearer one; cosines are float64, rounded to 12
    decimals as those of STS are. What cannot be had (a corpus smaller than ``count``) is row -1 at cosine -inf.

    Args:
        queries: (queries, width).
        corpus: (rows, width).
        count: how many rows are wanted of each query.
        own: (queries,), a row of the corpus that is no answer to the query, such as the query itself; -1: none.
        engine: ``faiss`` looks for candidates with its flat index, which is judged and corrected here, so that the
            answers are the same; it needs the package faiss-cpu or faiss-gpu.

    Raises:
        SembenchError: ``faiss`` is asked for and not installed, or ``count`` is below 1.
    """
    if count < 1:
        raise SembenchError(f"{count} nearest sentences are asked for; ask for 1 at least")
    unit, barred = normalised(queries), np.full(len(queries), -1) if own is None else own
    if engine == "faiss":
        return _by_faiss(unit, corpus, count, barred)
    return _exactly(unit, corpus, count, barred)


def _exactly(unit: Floats, corpus: Vectors, count: int, barred: Ints) -> tuple[Ints, Floats]:
    """Compare each query (queries, width) of length 1 with the whole corpus, block by block."""
    rows, cosines = np.full((len(unit), count), -1), np.full((len(unit), count), -np.inf)
    for start in range(0, len(corpus), _BLOCK):
        found = (unit @ normalised(corpus[start : start + _BLOCK]).T).round(12)
        inside = np.flatnonzero((barred >= start) & (barred < start + found.shape[1]))
        found[inside, barred[inside] - start] = -np.inf
        # Ties with the last kept one lose, since they come later; those within a block are settled by their rows.
        least = np.partition(found, -min(count, found.shape[1]), axis=1)[:, -min(count, found.shape[1])]
        query, column = np.nonzero((found >= least[:, None]) & (found > cosines[:, -1:]))
        rows, cosines = _best(
            np.concatenate([np.repeat(np.arange(len(unit)), count), query]),
            np.concatenate([rows.ravel(), start + column]),
            np.concatenate([cosines.ravel(), found[query, column]]),
            count,
        )
    return rows, cosines


def _best(query: Ints, row: Ints, cosine: Floats, count: int) -> tuple[Ints, Floats]:
    """Return the best ``count`` of each query among pairs of a query and a row (pairs,), both (queries, count).

    Each query must have as many pairs at least.
    """
    order = np.lexsort((row, -cosine, query))
    place = np.arange(len(order)) - np.searchsorted(query[order], query[order])
    kept = order[place < count]
    return row[kept].reshape(-1, count), cosine[kept].reshape(-1, count)


def _by_faiss(unit: Floats, corpus: Vectors, count: int, barred: Ints) -> tuple[Ints, Floats]:
    """Let faiss propose in float32, judge its proposals in float64, and search anew where they may lack one."""
    try:
        import faiss
    except ImportError:
        raise SembenchError("the package faiss is not installed; pip install faiss-cpu, or search exactly") from None
    index: Any = faiss.IndexFlatIP(corpus.shape[1])
    for start in range(0, len(corpus), _BLOCK):
        index.add(normalised(corpus[start : start + _BLOCK]).astype(np.float32))
    asked = min(count + _SPARE, len(corpus))
    scores, proposed = index.search(unit.astype(np.float32), asked)
    rows, cosines = np.empty((len(unit), count), dtype=np.int64), np.empty((len(unit), count))
    for query, candidates in enumerate(np.sort(proposed, axis=1)):
        own = np.flatnonzero(candidates == barred[query])
        place = own if len(own) else np.array([-1])
        found, best = _exactly(unit[query : query + 1], corpus[candidates], count, place)
        rows[query], cosines[query] = np.where(found < 0, -1, candidates[found]), best
    if asked < len(corpus):
        # Twice the width times eps bounds the error of a float32 product of two vectors of length 1.
        unsure = cosines[:, -1] <= scores[:, -1] + 2 * corpus.shape[1] * np.finfo(np.float32).eps
        rows[unsure], cosines[unsure] = _exactly(unit[unsure], corpus, count, barred[unsure])
    return rows, cosines
