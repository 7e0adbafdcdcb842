"""Semantic textual similarity: every aggregation and every subset, Spearman and Pearson (SimCSE, Appendix B)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sembench.core.errors import SembenchError
from sembench.evaluation.protocol import Prediction, Score, VectorsOf
from sembench.evaluation.protocols._pairs import PairsProtocol, SplitConfig

if TYPE_CHECKING:
    from sembench.evaluation.sts import Floats
    from sembench.results.resampling import Statistic


class Sts(PairsProtocol[SplitConfig]):
    """Cosine of each pair against the gold scores, without a regressor."""

    Config = SplitConfig
    metrics = ("spearman", "pearson")
    aggregations = ("all", "mean", "wmean", "subset")

    @classmethod
    def statistics(cls) -> Mapping[str, Statistic]:
        """Return both correlations, computed from the cosines."""
        from sembench.results.resampling import Statistic, correlation_tests, pearson, spearman

        scores = {"spearman": spearman, "pearson": pearson}
        return {name: Statistic("cosine", score, correlation_tests(score)) for name, score in scores.items()}

    def score(self, vectors: VectorsOf) -> tuple[list[Score], list[Prediction]]:
        """Return correlations, and for each pair its cosine beside the gold score.

        Raises:
            SembenchError: all cosines of a subset are equal.
        """
        from sembench.evaluation.sts import cosine

        scores: list[Score] = []
        predictions: list[Prediction] = []
        for split, parts in self.parts.items():
            cosines = [cosine(vectors(pairs.first), vectors(pairs.second)) for pairs in parts]
            try:
                scores += self._correlations(split, cosines)
            except SembenchError as error:
                raise SembenchError(f"split {split}: {error}") from None
            predictions += self._predictions(split, cosines)
        return scores, predictions

    def _correlations(self, split: str, cosines: list[Floats]) -> list[Score]:
        from sembench.evaluation.sts import aggregate, correlation

        parts, hashed = self.parts[split], self.hash_of(split)
        total, golds = sum(map(len, parts)), [pairs.gold for pairs in parts]
        found: list[Score] = []
        for metric in self.metrics:
            whole = aggregate(metric, cosines, golds)
            found += [Score(split, metric, value, total, hashed, aggregation=name) for name, value in whole.items()]
            found += [
                Score(
                    split, metric, correlation(metric, values, pairs.gold), len(pairs), hashed, pairs.subset, "subset"
                )
                for pairs, values in zip(parts, cosines, strict=True)
            ]
        return found

    def _predictions(self, split: str, cosines: list[Floats]) -> list[Prediction]:
        return [
            {"split": split, "subset": pairs.subset, "index": index, "cosine": float(value), "gold": float(gold)}
            for pairs, values in zip(self.parts[split], cosines, strict=True)
            for index, (value, gold) in enumerate(zip(values, pairs.gold, strict=True))
        ]


PLUGIN = Sts
