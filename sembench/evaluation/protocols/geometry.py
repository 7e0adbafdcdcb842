"""Alignment of positive pairs and uniformity of all sentences (SimCSE, Equations 2 and 3, footnote 3)."""

from __future__ import annotations

from pydantic import Field

from sembench.core.errors import SembenchError
from sembench.core.lazy import np
from sembench.evaluation.protocol import Prediction, Score, VectorsOf
from sembench.evaluation.protocols._pairs import PairsProtocol, SplitConfig


class GeometryConfig(SplitConfig):
    """Parameters of a task."""

    positives_above: float = Field(4.0, description="gold score above which a pair is positive (strict)")


class Geometry(PairsProtocol[GeometryConfig]):
    """Alignment over the positive pairs and uniformity over all sentences of a split's subsets together."""

    Config = GeometryConfig
    metrics = ("alignment", "uniformity")

    def score(self, vectors: VectorsOf) -> tuple[list[Score], list[Prediction]]:
        """Return the two metrics of each split; there is nothing to predict.

        Raises:
            SembenchError: a split has no positive pair.
        """
        return [score for split in self.parts for score in self._split_scores(split, vectors)], []

    def _split_scores(self, split: str, vectors: VectorsOf) -> list[Score]:
        from sembench.evaluation.geometry import alignment, counted, uniformity

        above = self.config.positives_above
        chosen = [(pairs, np.flatnonzero(pairs.gold > above)) for pairs in self.parts[split]]
        first = [pairs.first[row] for pairs, rows in chosen for row in rows]
        second = [pairs.second[row] for pairs, rows in chosen for row in rows]
        if not first:
            raise SembenchError(
                f"split {split}: no pair is scored above {above}, so alignment is undefined; lower 'positives_above'"
            )
        unique, counts = counted(self.sentences_of(split))
        aligned, uniform = alignment(vectors(first), vectors(second)), uniformity(vectors(unique), counts)
        hashed = self.hash_of(split)
        return [
            Score(split, "alignment", aligned, len(first), hashed),
            Score(split, "uniformity", uniform, int(counts.sum()), hashed),
        ]


PLUGIN = Geometry
