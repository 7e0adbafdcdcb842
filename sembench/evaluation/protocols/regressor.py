"""STS through SentEval's regressor, as papers before SBERT score STS-B and SICK-R (SimCSE, Table B.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field, model_validator

from sembench.core.lazy import np
from sembench.evaluation.protocol import Prediction, Score, VectorsOf
from sembench.evaluation.protocols._pairs import PairsProtocol, SplitConfig

if TYPE_CHECKING:
    from sembench.evaluation.regressor import Floats, Vectors

SPLITS = ("train", "dev", "test")


class RegressorConfig(SplitConfig):
    """Parameters of a task; the defaults are SentEval's."""

    batch_size: int = Field(64, gt=0)
    epoch_size: int = Field(50, gt=0, description="epochs between two checks on the dev pairs")
    max_epoch: int = Field(1000, ge=0, description="no new round of epochs begins beyond this one")
    tenacity: int = Field(3, ge=0, description="a fit ends with check number tenacity + 1 that is not better")
    seed: int = Field(1111, ge=0, description="of first weights and order of the pairs")

    @model_validator(mode="after")
    def _has_its_splits(self) -> RegressorConfig:
        if set(self.splits) != set(SPLITS):
            raise ValueError(f"the regressor needs the splits {', '.join(SPLITS)}, no other; name their subsets")
        return self


class Regressor(PairsProtocol[RegressorConfig]):
    """Relatedness learned from |u - v| and u * v of the train pairs, correlated with the gold scores of the test pairs.

    A class of its own beside ``Sts``, which learns nothing: SimCSE and SBERT score by the cosine alone.
    """

    Config = RegressorConfig
    metrics = ("spearman", "pearson")

    def score(self, vectors: VectorsOf) -> tuple[list[Score], list[Prediction]]:
        """Return both correlations on ``test``, Pearson's on ``dev``, and what was predicted of each test pair.

        Raises:
            SembenchError: a vector is not finite, or all predictions are equal.
        """
        from sembench.evaluation.regressor import Settings, regress
        from sembench.evaluation.sts import correlation

        settings = Settings(**self.config.model_dump(exclude={"splits"}))
        (test, gold), dev = self._pairs("test", vectors), self._pairs("dev", vectors)
        found = regress(self._ordered("train", vectors), dev, test, settings)
        hashed = self.hash_of("test")
        scores = [
            Score("test", metric, correlation(metric, found.predicted, gold), len(gold), hashed)
            for metric in self.metrics
        ]
        scores.append(Score("dev", "pearson", found.dev, len(dev[1]), self.hash_of("dev")))
        both = enumerate(zip(found.predicted.tolist(), gold.tolist(), strict=True))
        return scores, [{"split": "test", "index": index, "predicted": a, "gold": b} for index, (a, b) in both]

    def _pairs(self, split: str, vectors: VectorsOf) -> tuple[Vectors, Floats]:
        """Return the features (pairs, 2 * width) and gold scores (pairs,) of a split, in the order of its files."""
        from sembench.evaluation.features import pair_features

        first, second, gold = self._columns(split)
        return pair_features(vectors(first), vectors(second)), gold

    def _ordered(self, split: str, vectors: VectorsOf) -> tuple[Vectors, Floats]:
        """Return the same in the order in which SentEval draws its batches from them."""
        from sembench.evaluation.regressor import senteval_order

        features, gold = self._pairs(split, vectors)
        order = senteval_order(*self._columns(split))
        return features[order], gold[order]

    def _columns(self, split: str) -> tuple[list[str], list[str], Floats]:
        parts = self.parts[split]
        first = [sentence for pairs in parts for sentence in pairs.first]
        second = [sentence for pairs in parts for sentence in pairs.second]
        return first, second, np.concatenate([pairs.gold for pairs in parts])


PLUGIN = Regressor
