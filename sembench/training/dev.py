"""The dev score by which training keeps its best step: STS-B development set, Spearman (SimCSE, Appendix A)."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from sembench.data.readers.pairs import Pairs
from sembench.encoders.transformer import TransformerEncoder
from sembench.evaluation.engine import Embedded
from sembench.evaluation.geometry import alignment, uniformity
from sembench.evaluation.sts import correlation, cosine

POSITIVES_ABOVE = 4.0


def dev_point(encoder: TransformerEncoder, readout: str, dev: Pairs) -> dict[str, Any]:
    """Score the dev pairs: Spearman (-1 to 1), and alignment and uniformity of the same vectors.

    Raises:
        SembenchError: a vector is not finite, or all similarities are equal.
    """
    start = time.monotonic()
    embedded = Embedded(encoder, dev.sentences, [readout])
    first, second = embedded.of(readout, dev.first), embedded.of(readout, dev.second)
    positive = dev.gold > POSITIVES_ABOVE
    rows, counts = np.unique(embedded.rows(dev.sentences), return_counts=True)
    return {
        "dev": correlation("spearman", cosine(first, second), dev.gold),
        "alignment": alignment(first[positive], second[positive]) if positive.any() else None,
        "uniformity": uniformity(embedded.vectors[readout][rows], counts),
        "seconds": round(time.monotonic() - start, 2),
    }
