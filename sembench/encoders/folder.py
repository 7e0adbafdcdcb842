"""Loading any encoder from its model folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sembench.core.errors import SembenchError, unknown
from sembench.encoders.static import load_static, load_use
from sembench.encoders.transformer import load_transformer, read_entry
from sembench.plan.layout import ENTRY


class Encoder(Protocol):
    """Anything that turns sentences into vectors."""

    kind: str

    @property
    def readouts(self) -> tuple[str, ...]:
        """Base read-outs on offer."""

    def encode(self, sentences: Sequence[str], readouts: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """Return a float32 array of shape (sentences, width) for each read-out."""


_LOADERS: dict[str, Callable[[Path, dict[str, Any]], Encoder]] = {
    "transformer": load_transformer,
    "static": load_static,
    "use": load_use,
}


def load_encoder(folder: Path) -> Encoder:
    """Load the encoder of a model folder, whatever its kind.

    Raises:
        SembenchError: the folder is absent, is not a model folder, or misses a file or weight.
    """
    if not folder.is_dir():
        raise SembenchError(f"the model folder {folder} does not exist")
    entry = read_entry(folder)
    kind = str(entry.get("kind"))
    if kind not in _LOADERS:
        raise unknown("encoder kind", kind, _LOADERS, str(folder / ENTRY))
    return _LOADERS[kind](folder, entry)
