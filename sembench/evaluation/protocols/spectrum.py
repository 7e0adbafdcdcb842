"""Singular values of the matrix of sentence vectors (SimCSE, Appendix F, Figure F.1)."""

from __future__ import annotations

from sembench.evaluation.protocol import Prediction, Score, VectorsOf
from sembench.evaluation.protocols._pairs import PairsProtocol, SplitConfig


class Spectrum(PairsProtocol[SplitConfig]):
    """How evenly sentence vectors fill their space.

    The matrix has one row for each sentence of a split's subsets, repeats kept: its vector scaled to length 1, not
    centred (section 5 of the paper speaks of normalised vectors; of the figure's matrix it says no more than that it
    is that of sentence vectors). Its singular values are divided by the largest, as the figure's axis has them.
    """

    Config = SplitConfig
    version = 2
    metrics = ("largest_share", "effective_rank", "average_cosine")

    def score(self, vectors: VectorsOf) -> tuple[list[Score], list[Prediction]]:
        """Return two summaries of each split's singular values and the mean cosine, and the values as predictions.

        Predictions: ``split``, ``index`` from 0, and ``value``, the singular value over the largest.

        Raises:
            SembenchError: all vectors of a split are zero.
        """
        from sembench.evaluation.geometry import counted
        from sembench.evaluation.spectrum import average_cosine, effective_rank, largest_share, singular_values

        scores: list[Score] = []
        predictions: list[Prediction] = []
        for split in self.parts:
            unique, counts = counted(self.sentences_of(split))
            rows = vectors(unique)
            values = singular_values(rows, counts)
            hashed, size = self.hash_of(split), int(counts.sum())
            scores += [
                Score(split, "largest_share", largest_share(values), size, hashed),
                Score(split, "effective_rank", effective_rank(values), size, hashed),
                Score(split, "average_cosine", average_cosine(rows, counts), size, hashed),
            ]
            shown = (values / values[0]).tolist()
            predictions += [{"split": split, "index": index, "value": value} for index, value in enumerate(shown)]
        return scores, predictions


PLUGIN = Spectrum
