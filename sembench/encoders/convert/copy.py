"""An ordinary transformers folder, taken as it is."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from pydantic import Field

from sembench.core.errors import SembenchError
from sembench.core.files import atomic_path, write_json
from sembench.core.schema import Strict
from sembench.encoders.convert.base import POOLER, TransformerConverter

_NEEDED = ("config.json", "model.safetensors", "tokenizer.json")
_SETTINGS = "tokenizer_config.json"


class Copy(TransformerConverter):
    """Hard links where the file system has them, else copies."""

    class Config(Strict):
        """What the checkpoint holds besides its hidden layers."""

        pooler: bool = Field(False, description="offer the checkpoint's own pooler; its weights must be in the file")

    @classmethod
    def offers(cls, config: Any) -> tuple[str, ...]:
        """Return the read-outs of hidden states, and the pooler where the checkpoint has one."""
        return (*super().offers(config), *([POOLER] if config.pooler else []))

    @classmethod
    def convert(cls, config: Any, source: Path | None, target: Path) -> dict[str, Any]:
        """Take the files of a transformers folder.

        Raises:
            SembenchError: a file is missing, or there is no pooler although ``pooler: true`` says so.
        """
        from sembench.encoders.heads import save_heads
        from sembench.encoders.weights import has_pooler, tensor_names

        source = source or Path()
        for name in _NEEDED:
            if not (source / name).is_file():
                raise SembenchError(f"{source / name} is missing; fetch the data set again")
            _link(source / name, target / name)
        if (source / _SETTINGS).is_file():
            _link(source / _SETTINGS, target / _SETTINGS)
        else:
            write_json(target / _SETTINGS, {})  # an empty one says the same as none
        if config.pooler and not has_pooler(tensor_names(target)):
            raise SembenchError(
                f"{source / 'model.safetensors'} holds no pooler; remove 'pooler: true' from its entry in "
                "registry/backbones.yaml"
            )
        return {"heads": save_heads({}, target), "pooler": config.pooler}


def _link(source: Path, target: Path) -> None:
    with atomic_path(target) as temporary:
        temporary.unlink()
        try:
            os.link(source, temporary)
        except OSError:
            shutil.copyfile(source, temporary)


PLUGIN = Copy
