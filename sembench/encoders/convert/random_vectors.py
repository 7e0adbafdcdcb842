"""Random word vectors over the project's word list: always the same, and without any meaning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sembench.core.lazy import torch
from sembench.encoders.convert.base import StaticConverter

_WIDTH = 16


class RandomVectors(StaticConverter):
    """Vectors of 16 numbers."""

    @classmethod
    def convert(cls, config: Any, source: Path | None, target: Path) -> dict[str, Any]:
        """Draw a vector for each word of ``words.txt``."""
        from sembench.encoders.static import save_vectors

        words = ((source or Path()) / "words.txt").read_text(encoding="utf-8").split()
        torch.manual_seed(0)
        save_vectors(target, words, torch.randn(len(words), _WIDTH).numpy())
        return {"lowercase": config.lowercase}


PLUGIN = RandomVectors
