"""Loading any encoder from its model folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sembench.core.errors import SembenchError, unknown
from sembench.encoders.door import door
from sembench.encoders.static import load_static, load_use
from sembench.encoders.transformer import TransformerEncoder, load_transformer, read_entry
from sembench.plan.layout import ENTRY

_TRIED = 512  # words of the text that a folder of others is tried with, at most
_BATCH = 1e-4  # relative; what rounding in other batches explains is far below


class Encoder(Protocol):
    """Anything that turns sentences into vectors.

    Attributes:
        kind: transformer, static or use.
        notes: what whoever uses it should know.
    """

    kind: str
    notes: tuple[str, ...]

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
    with door(folder):
        entry = read_entry(folder)
        kind = str(entry.get("kind"))
        if kind not in _LOADERS:
            raise unknown("encoder kind", kind, _LOADERS, str(folder / ENTRY))
        encoder = _LOADERS[kind](folder, entry)
        if isinstance(encoder, TransformerEncoder) and entry.get("foreign"):
            encoder.notes += _tried(folder, encoder)
        return encoder


def _tried(folder: Path, encoder: TransformerEncoder) -> tuple[str, ...]:
    """Encode a short text, alone and beside a long one: what fails fails before any work.

    Raises:
        SembenchError: the vectors are no numbers.
    """
    short, long = "a short text", " ".join(["a"] * min(encoder.tokens.limit, _TRIED))
    alone, beside = encoder.encode([short], encoder.readouts), encoder.encode([short, long], encoder.readouts)
    if wrong := [name for name, vectors in beside.items() if not np.isfinite(vectors).all()]:
        raise SembenchError(f"{folder}: its {wrong[0]} vectors are not finite; its weights are damaged, restore them")
    apart = max(float(np.abs(alone[name][0] - beside[name][0]).max() / np.abs(alone[name]).max()) for name in alone)
    if apart < _BATCH:
        return ()
    return (f"its vectors depend on what is encoded beside a text (by {apart:.1%} in a try): it reads padding",)
