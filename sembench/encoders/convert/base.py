"""What a converter is, and the files and read-outs that all of one sort of encoder have."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from sembench.core.schema import Strict
from sembench.plan.layout import ENTRY, TRANSFORMER_FILES

STATIC_FILES = (ENTRY, "vectors.safetensors", "vocab.txt")
# Read-outs that every transformer offers, since they need its hidden states alone.
HIDDEN = ("cls", "mean", "last2", "first_last", "embed_last")
POOLER = "pooler"


class NoOptions(Strict):
    """Parameters of a converter that takes none."""


class Converter:
    """Makes a model folder; ``encoder.json`` is left to :func:`sembench.encoders.backbones.build_backbone`."""

    Config: ClassVar[type[Strict]] = NoOptions
    version: ClassVar[int] = 1
    encoder: ClassVar[str]  # transformer, static or use: which loader takes the folder
    files: ClassVar[tuple[str, ...]]

    @classmethod
    def offers(cls, config: Any) -> tuple[str, ...]:  # noqa: ARG003
        """Return the base read-outs that the encoder will offer; known before anything is fetched."""
        return ("mean",)

    @classmethod
    def convert(cls, config: Any, source: Path | None, target: Path) -> dict[str, Any]:
        """Write all of ``files`` but ``encoder.json`` into ``target`` and return further entries of that file.

        Args:
            config: the converter's own parameters.
            source: folder of the fetched files; none for the code of an installed package.
            target: the model folder, which exists.

        Raises:
            SembenchError: the files are not what the conversion expects.
        """
        raise NotImplementedError


class TransformerConverter(Converter):
    """A converter whose encoder is a transformer without a pooler."""

    encoder = "transformer"
    files = TRANSFORMER_FILES

    @classmethod
    def offers(cls, config: Any) -> tuple[str, ...]:  # noqa: ARG003
        """Return the read-outs of hidden states."""
        return HIDDEN


class StaticConverter(Converter):
    """A converter whose encoder is a table of word vectors."""

    class Config(Strict):
        """How words are looked up."""

        lowercase: bool

    encoder = "static"
    files = STATIC_FILES
