"""Names and tensors of the weights that a model folder holds, in whichever of the usual files."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from sembench.core.errors import SembenchError

# The usual files, in the order in which transformers looks for them: whole, or an index of pieces.
_SAFE, _PICKLED = "model.safetensors", "pytorch_model.bin"


def tensor_names(folder: Path) -> list[str]:
    """Return the names of all tensors, without reading their numbers; none where the folder has no known file.

    Raises:
        SembenchError: a file of weights cannot be read.
    """
    return [name for path in _files(folder) for name in _names(path)]


def tensors_below(folder: Path, prefix: str) -> dict[str, Tensor]:
    """Return the tensors whose names begin with ``prefix``, by what follows it.

    Raises:
        SembenchError: a file of weights is missing or cannot be read.
    """
    files = _files(folder)
    if not files:
        raise SembenchError(f"{folder} holds neither {_SAFE} nor {_PICKLED}; restore the file")
    found = {name: tensor for path in files for name, tensor in _tensors(path, prefix).items()}
    return {name.removeprefix(prefix): tensor for name, tensor in found.items()}


def has_pooler(names: Iterable[str]) -> bool:
    """Return whether there is BERT's pooling layer among names of weights, under whatever prefix."""
    return any(name.split(".")[-3:] == ["pooler", "dense", "weight"] for name in names)


def _files(folder: Path) -> list[Path]:
    for name in (_SAFE, _PICKLED):
        if (folder / name).is_file():
            return [folder / name]
        if (folder / f"{name}.index.json").is_file():
            return _pieces(folder / f"{name}.index.json")
    return []


def _pieces(index: Path) -> list[Path]:
    try:
        names = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
        pieces = [index.parent / Path(name).name for name in names]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _unreadable(index, error) from None
    for piece in pieces:
        if not piece.is_file():
            raise SembenchError(f"{piece} is missing, a piece of the weights; restore the file")
    return pieces


def _names(path: Path) -> list[str]:
    if path.suffix != ".safetensors":
        return list(_pickled(path))
    try:
        with safe_open(path, framework="pt") as weights:
            return list(weights.keys())
    except (SafetensorError, OSError) as error:
        raise _unreadable(path, error) from None


def _tensors(path: Path, prefix: str) -> dict[str, Tensor]:
    if path.suffix != ".safetensors":
        return {name: value for name, value in _pickled(path).items() if name.startswith(prefix)}
    try:
        with safe_open(path, framework="pt") as weights:
            return {name: weights.get_tensor(name) for name in weights.keys() if name.startswith(prefix)}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise _unreadable(path, error) from None


def _pickled(path: Path) -> dict[str, Any]:
    try:
        # Tensors only: a pickle that would run code is refused by torch.
        return {str(name): value for name, value in torch.load(path, map_location="cpu", weights_only=True).items()}
    except Exception as error:  # whatever a damaged pickle raises
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> SembenchError:
    reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return SembenchError(f"{path} cannot be read ({reason}); restore the file")
