"""Retrieval among captions: which are nearest to a query, and are they of the same image (SimCSE, Table 8)?"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING

from pydantic import Field

from sembench.core.errors import SembenchError
from sembench.core.lazy import np
from sembench.core.schema import Strict
from sembench.evaluation.protocol import Prediction, Protocol, Score, Source, VectorsOf, sample_hash

if TYPE_CHECKING:
    from sembench.evaluation.retrieval import Ints


class RetrievalConfig(Strict):
    """Parameters of a task."""

    split: str = Field("captions", description="what the corpus is called in the scores")
    parts: list[str] = Field(min_length=1, description="splits of the data set that make the corpus")
    queries: list[str] = Field(min_length=1, description="any sentences; whether they are captions makes no difference")
    top: int = Field(3, gt=0, description="sentences that are shown for each query")
    judged: int = Field(1000, gt=0, description="images whose first caption is a query for the number; all if fewer")


class Retrieval(Protocol[RetrievalConfig]):
    """Cosine search in all different captions of a corpus.

    A query never finds itself: a sentence of just its text is left out. The paper shows sentences alone; the number
    beside them, ``same_image``, is how often the caption nearest to an image's first one was written for that image.
    """

    Config = RetrievalConfig
    metrics = ("same_image",)
    readers = ("captions",)

    def __init__(self, config: RetrievalConfig, data: Source) -> None:
        from sembench.data.readers.captions import read_captions

        super().__init__(config, data)
        self.images = [captions for part in config.parts for captions in read_captions(data.folder, part)]
        self.corpus = list(dict.fromkeys(chain.from_iterable(self.images)))

    @classmethod
    def splits(cls, config: RetrievalConfig) -> tuple[str, ...]:
        """Return the corpus's name."""
        return (config.split,)

    @property
    def sentences(self) -> Iterable[str]:
        """The different captions, and the queries."""
        return (*self.corpus, *self.config.queries)

    def score(self, vectors: VectorsOf) -> tuple[list[Score], list[Prediction]]:
        """Return how often the nearest caption is of the same image, and what is nearest to each query.

        Predictions: ``split``, ``query``, ``rank`` from 1, ``sentence`` and ``cosine``.

        Raises:
            SembenchError: the corpus has fewer captions than are to be shown.
        """
        from sembench.evaluation.retrieval import nearest

        config, queries = self.config, list(dict.fromkeys(self.config.queries))
        if len(self.corpus) <= config.top:
            raise SembenchError(f"the corpus has {len(self.corpus)} captions for the nearest {config.top}; lower 'top'")
        judged = self.images[: config.judged]
        asked = [*queries, *(captions[0] for captions in judged)]
        rows, cosines = nearest(vectors(asked), vectors(self.corpus), config.top, self._own(asked))
        shown = [
            {"split": config.split, "query": query, "rank": rank + 1, "sentence": self.corpus[row], "cosine": cosine}
            for query, places, values in zip(queries, rows[: len(queries)], cosines[: len(queries)], strict=True)
            for rank, (row, cosine) in enumerate(zip(places.tolist(), values.tolist(), strict=True))
        ]
        hits = [self.corpus[row] in captions for row, captions in zip(rows[len(queries) :, 0], judged, strict=True)]
        hashed = sample_hash(self.images)
        return [Score(config.split, "same_image", float(np.mean(hits)), len(hits), hashed)], shown

    def _own(self, queries: list[str]) -> Ints:
        """Return the row of each query in the corpus, -1 where it is no caption, (queries,)."""
        row = {sentence: place for place, sentence in enumerate(self.corpus)}
        return np.array([row.get(query, -1) for query in queries])


PLUGIN = Retrieval
