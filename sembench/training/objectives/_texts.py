"""Sentences of several columns, each different one tokenised once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sembench.core.lazy import np

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from sembench.encoders.transformer import TransformerEncoder


class Texts:
    """Word pieces of the sentences in some columns of a frame.

    Attributes:
        tokens: word-piece ids of each different sentence, in the order of first occurrence, column by column.
        places: (rows, columns), which of ``tokens`` stands where.
    """

    def __init__(
        self, encoder: TransformerEncoder, frame: pd.DataFrame, columns: Sequence[str], max_length: int
    ) -> None:
        texts = [frame[column].tolist() for column in columns]
        number: dict[str, int] = {}
        places = [[number.setdefault(text, len(number)) for text in column] for column in texts]
        self.tokens = encoder.tokens(list(number), max_length)
        self.places: NDArray[np.int64] = np.array(places, dtype=np.int64).T

    def column(self, place: int, batch: Sequence[int]) -> list[list[int]]:
        """Return the word pieces of a column's sentences in the rows of a batch."""
        return [self.tokens[number] for number in self.places[list(batch), place]]
