"""Names and tensors of the weights that a model folder holds, in whichever of the usual files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from sembench.core.errors import SembenchError

_SAFE, _INDEX, _PICKLED = "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"


def tensor_names(folder: Path) -> list[str]:
    """Return the names of all tensors, without reading their numbers; none where the folder has no known file.

    Raises:
        SembenchError: the file of weights cannot be read.
    """
    if (folder / _SAFE).is_file():
        try:
            with safe_open(folder / _SAFE, framework="pt") as weights:
                return list(weights.keys())
        except (SafetensorError, OSError) as error:
            raise _unreadable(folder / _SAFE, error) from None
    if (folder / _INDEX).is_file():
        try:
            return list(json.loads((folder / _INDEX).read_text(encoding="utf-8"))["weight_map"])
        except (ValueError, KeyError, TypeError) as error:
            raise _unreadable(folder / _INDEX, error) from None
    return list(_pickled(folder)) if (folder / _PICKLED).is_file() else []


def tensors_below(folder: Path, prefix: str) -> dict[str, Tensor]:
    """Return the tensors whose names begin with ``prefix``, by what follows it; read from a single file.

    Raises:
        SembenchError: the file of weights is missing or cannot be read.
    """
    if (folder / _SAFE).is_file():
        try:
            with safe_open(folder / _SAFE, framework="pt") as weights:
                names = [name for name in weights.keys() if name.startswith(prefix)]  # noqa: SIM118
                return {name.removeprefix(prefix): weights.get_tensor(name) for name in names}
        except (SafetensorError, OSError) as error:
            raise _unreadable(folder / _SAFE, error) from None
    if not (folder / _PICKLED).is_file():
        raise SembenchError(f"{folder} holds neither {_SAFE} nor {_PICKLED}; restore the file")
    return {name.removeprefix(prefix): value for name, value in _pickled(folder).items() if name.startswith(prefix)}


def has_pooler(folder: Path) -> bool:
    """Return whether the weights hold BERT's pooling layer, under whatever prefix."""
    return any(name.split(".")[-3:] == ["pooler", "dense", "weight"] for name in tensor_names(folder))


def _pickled(folder: Path) -> dict[str, Any]:
    try:
        # Tensors only: a pickle that would run code is refused by torch.
        return dict(torch.load(folder / _PICKLED, map_location="cpu", weights_only=True))
    except Exception as error:  # whatever a damaged pickle raises
        raise _unreadable(folder / _PICKLED, error) from None


def _unreadable(path: Path, error: Exception) -> SembenchError:
    reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return SembenchError(f"{path} cannot be read ({reason}); restore the file")
