"""Model folders that other programs saved: plain transformers folders and those of sentence-transformers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from sembench.core.errors import SembenchError
from sembench.encoders.weights import has_pooler, tensor_names, tensors_below

# The read-out of a folder that does more than pool by [CLS] or the mean.
FOLDERS_OWN = "sentence_transformers"
_MODULES = "modules.json"
_LEGACY_POOLING = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
_ACTIVATIONS: dict[str, type[nn.Module]] = {
    "torch.nn.modules.activation.Tanh": nn.Tanh,
    "torch.nn.modules.activation.ReLU": nn.ReLU,
    "torch.nn.modules.activation.GELU": nn.GELU,
    "torch.nn.modules.activation.Sigmoid": nn.Sigmoid,
    "torch.nn.modules.activation.SiLU": nn.SiLU,
    "torch.nn.modules.linear.Identity": nn.Identity,
}


def foreign_entry(folder: Path) -> dict[str, Any]:
    """Return what ``encoder.json`` would say of a folder that has none.

    Besides the usual keys: ``foreign`` is true; ``transformer`` is the part of the folder with the transformer;
    ``why`` says where the read-out is from; ``pooling`` and ``layers`` describe the folder's own read-out;
    ``max_length``, ``lowercase`` and ``prompt`` say how its text is prepared.

    Raises:
        SembenchError: it is not a model folder, or it does what is not supported here.
    """
    if (folder / _MODULES).is_file():
        return _sentence_transformers(folder)
    if (folder / "config.json").is_file():
        return _plain(folder)
    raise SembenchError(f"{folder} is not a model folder: it has neither encoder.json nor {_MODULES} nor config.json")


def _plain(folder: Path) -> dict[str, Any]:
    # SimCSE's training script leaves its head there, under this name.
    heads = {"cls_mlp": "mlp"} if "mlp.dense.weight" in tensor_names(folder) else {}
    return {
        "kind": "transformer",
        "foreign": True,
        "transformer": "",
        "pooler": has_pooler(folder),
        "heads": heads,
        "readout": "mean",
        "why": "the folder does not name a read-out",
    }


# --------------------------------------------------------------------------------------------- sentence-transformers


def _sentence_transformers(folder: Path) -> dict[str, Any]:
    modules = _modules(folder)
    if [kind for kind, _ in modules[:2]] != ["Transformer", "Pooling"]:
        raise SembenchError(f"{folder / _MODULES}: only a Transformer followed by Pooling is supported")
    inner, pooling = modules[0][1], _pooling(folder, modules[1][1])
    layers = [_layer(folder, kind, path) for kind, path in modules[2:]]
    simple = pooling in ("cls", "mean") and not layers
    names = [pooling, *(layer["kind"] for layer in layers)]
    return {
        **_plain(folder / inner),
        "transformer": inner,
        "readout": pooling if simple else FOLDERS_OWN,
        "why": f"{_MODULES} says {' + '.join(names)}",
        **({} if simple else {"pooling": pooling, "layers": layers}),
        **_text(folder, inner),
    }


def _modules(folder: Path) -> list[tuple[str, str]]:
    path = folder / _MODULES
    modules = _json(path)
    try:
        found = [(str(module["type"]), str(module["path"])) for module in modules]
    except (TypeError, KeyError):
        raise SembenchError(f"{path} is not a list of modules with 'type' and 'path'; restore the file") from None
    for kind, place in found:
        if not kind.startswith("sentence_transformers."):
            raise SembenchError(f"{path}: the module '{kind}' is code of its own, which is never run; remove it")
        if Path(place).is_absolute() or ".." in Path(place).parts:
            raise SembenchError(f"{path}: the path '{place}' leaves the folder")
    return [(kind.rpartition(".")[2], place) for kind, place in found]


def _pooling(folder: Path, place: str) -> str:
    path = folder / place / "config.json"
    config = _mapping(path)
    legacy = [name for key, name in _LEGACY_POOLING.items() if config.get(key)]
    modes = config.get("pooling_mode", legacy or ["mean"])
    modes = [modes] if isinstance(modes, str) else list(modes)
    if len(modes) != 1 or modes[0] not in ("cls", "mean", "max"):
        raise SembenchError(f"{path}: pooling by {' + '.join(map(str, modes))} is not supported; cls, mean and max are")
    if not config.get("include_prompt", True) and _prompt(folder):
        raise SembenchError(f"{path}: 'include_prompt': false is not supported beside a default prompt")
    return str(modes[0])


def _layer(folder: Path, kind: str, place: str) -> dict[str, Any]:
    """Return what describes a module after the pooling."""
    if kind == "Normalize":
        return {"kind": "normalize"}
    if kind != "Dense":
        raise SembenchError(f"{folder / _MODULES}: a module of kind '{kind}' is not supported; Dense and Normalize are")
    path = folder / place / "config.json"
    config = _mapping(path)
    activation = str(config.get("activation_function", "torch.nn.modules.activation.Tanh"))
    if activation not in _ACTIVATIONS:
        raise SembenchError(f"{path}: the activation '{activation}' is not supported")
    for key in ("module_input_name", "module_output_name"):
        if config.get(key) not in (None, "sentence_embedding"):
            raise SembenchError(f"{path}: '{key}': {config[key]!r} is not supported")
    if config.get("use_residual"):
        raise SembenchError(f"{path}: 'use_residual' is not supported")
    return {"kind": "dense", "place": place, "activation": activation}


def _text(folder: Path, inner: str) -> dict[str, Any]:
    path = folder / inner / "sentence_bert_config.json"
    config = _mapping(path) if path.is_file() else {}
    return {
        "max_length": config.get("max_seq_length"),
        "lowercase": bool(config.get("do_lower_case")),
        "prompt": _prompt(folder),
    }


def _prompt(folder: Path) -> str:
    path = folder / "config_sentence_transformers.json"
    config = _mapping(path) if path.is_file() else {}
    name = config.get("default_prompt_name")
    return str((config.get("prompts") or {}).get(name) or "") if name else ""


def _mapping(path: Path) -> Mapping[str, Any]:
    found = _json(path)
    if not isinstance(found, dict):
        raise SembenchError(f"{path} is not a JSON object; restore the file")
    return found


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SembenchError(f"{path} is missing; restore the file") from None
    except ValueError as error:
        raise SembenchError(f"{path} is not valid JSON ({error}); restore the file") from None


class FoldersOwn(nn.Module):
    """What a sentence-transformers folder does after its pooling: (batch, width) to (batch, width of the last Dense).

    Attributes:
        base: how it pools.
        width: of its vectors.
    """

    def __init__(self, base: str, layers: list[nn.Module], width: int) -> None:
        super().__init__()
        self.base = base
        self.layers = nn.Sequential(*layers)
        self.width = width

    def forward(self, vectors: Tensor) -> Tensor:
        """Apply all layers in turn."""
        return cast("Tensor", self.layers(vectors))


class _Normalize(nn.Module):
    def forward(self, vectors: Tensor) -> Tensor:
        return functional.normalize(vectors, p=2, dim=1)


def folders_own(folder: Path, entry: Mapping[str, Any], width: int) -> FoldersOwn:
    """Load the folder's own read-out.

    Args:
        folder: the sentence-transformers folder.
        entry: what :func:`foreign_entry` says of it, with ``pooling`` and ``layers``.
        width: of the transformer's vectors.

    Raises:
        SembenchError: weights are missing, left over, or of a shape that does not fit.
    """
    layers: list[nn.Module] = []
    for layer in entry["layers"]:
        if layer["kind"] == "normalize":
            layers.append(_Normalize())
            continue
        linear = _linear(folder / layer["place"], width)
        layers += [linear, _ACTIVATIONS[layer["activation"]]()]
        width = linear.out_features
    return FoldersOwn(str(entry["pooling"]), layers, width)


def _linear(folder: Path, width: int) -> nn.Linear:
    state = tensors_below(folder, "")
    weight = state.get("linear.weight")
    if weight is None or weight.ndim != 2 or weight.shape[1] != width or set(state) - {"linear.weight", "linear.bias"}:
        shapes = {name: tuple(value.shape) for name, value in state.items()}
        raise SembenchError(f"{folder} holds {shapes or 'no weights'}, which is not a linear layer on {width} inputs")
    with torch.device("meta"):  # no weight is drawn
        linear = nn.Linear(width, len(weight), bias="linear.bias" in state)
    linear.load_state_dict({name.removeprefix("linear."): value.float() for name, value in state.items()}, assign=True)
    return linear
