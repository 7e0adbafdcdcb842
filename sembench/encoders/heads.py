"""Trained layers on top of a read-out, kept beside the encoder in ``heads.safetensors``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from sembench.core.errors import SembenchError, unknown
from sembench.core.files import atomic_path
from sembench.encoders.readouts import MLPHead
from sembench.plan.layout import ENTRY

HEADS_FILE = "heads.safetensors"
# Kinds of heads by the name that encoder.json gives them; each takes the width of the encoder.
HEADS: dict[str, type[nn.Module]] = {"mlp": MLPHead}


def save_heads(heads: Mapping[str, nn.Module], target: Path) -> dict[str, str]:
    """Write ``heads.safetensors`` with the keys ``<head>.<parameter>`` and return each head's kind for encoder.json.

    Args:
        heads: name of the read-out -> its module; may be empty, the file is written all the same.
        target: the model folder.

    Raises:
        SembenchError: a module is of no kind that can be loaded again.
    """
    kinds = {kind: name for name, kind in HEADS.items()}
    for name, head in heads.items():
        if type(head) not in kinds:
            raise unknown("head", type(head).__name__, [kind.__name__ for kind in kinds], f"what '{name}' may be")
    tensors = {
        f"{name}.{key}": value.detach().cpu().contiguous()
        for name, head in heads.items()
        for key, value in head.state_dict().items()
    }
    with atomic_path(target / HEADS_FILE) as temporary:
        save_file(tensors, temporary)
    return {name: kinds[type(head)] for name, head in heads.items()}


def load_heads(folder: Path, kinds: Mapping[str, str], width: int) -> dict[str, nn.Module]:
    """Load the heads that encoder.json names; none is ever initialised anew.

    Args:
        folder: the model folder.
        kinds: name of the read-out -> kind of its head.
        width: of the encoder's vectors.

    Raises:
        SembenchError: the file is missing, damaged, or holds other tensors than the heads need.
    """
    path = folder / HEADS_FILE
    if not path.is_file():
        raise SembenchError(f"{path} is missing; restore it or make the model folder again")
    try:
        tensors = load_file(path)
    except (SafetensorError, OSError) as error:
        raise SembenchError(f"{path} cannot be read ({error}); restore it or make the model folder again") from None
    heads = {}
    for name, kind in kinds.items():
        mine = [key for key in tensors if key.startswith(f"{name}.")]
        heads[name] = head_from(kind, {key.removeprefix(f"{name}."): tensors.pop(key) for key in mine}, width, path)
    if tensors:
        raise SembenchError(f"{path} holds the tensors {sorted(tensors)[:3]}, which belong to no head of encoder.json")
    return heads


def head_from(kind: str, state: Mapping[str, Tensor], width: int, path: Path) -> nn.Module:
    """Return a head with the weights given.

    Args:
        kind: key of :data:`HEADS`.
        state: all its parameters by name.
        width: of the encoder's vectors.
        path: where the weights are from, for the error.

    Raises:
        SembenchError: the kind is unknown, or a parameter is missing, left over or of another shape.
    """
    if kind not in HEADS:
        raise unknown("kind of head", kind, HEADS, str(path.with_name(ENTRY)))
    with torch.random.fork_rng(devices=[]):  # the first weights are drawn and at once replaced
        head = HEADS[kind](width)
    wanted = {key: tuple(value.shape) for key, value in head.state_dict().items()}
    found = {key: tuple(value.shape) for key, value in state.items()}
    if wanted != found:
        raise SembenchError(f"{path} holds {found or 'no tensor'} for a head of kind '{kind}', which needs {wanted}")
    head.load_state_dict(dict(state))
    return head
