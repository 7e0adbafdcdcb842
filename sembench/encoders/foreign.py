"""Model folders that other programs saved: plain transformers folders and those of sentence-transformers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from sembench.core.errors import SembenchError, shortened
from sembench.encoders.weights import has_pooler, tensor_names, tensors_below

# The read-out of a folder that does more than pool by [CLS] or the mean.
FOLDERS_OWN = "sentence_transformers"
_MODULES = "modules.json"
_ADAPTER = "adapter_config.json"
# Why a folder that names no read-out is read out as it is, by what its weights hold.
_WHY = {
    "mlp": "its weights hold SimCSE's head (mlp.dense), which supervised SimCSE keeps; unsupervised SimCSE drops it: "
    "--readout cls",
    "pooler": "the folder names no read-out; SimCSE's released models are read out by --readout pooler (supervised) or "
    "--readout cls (unsupervised)",
    "": "the folder names no read-out; --readout takes another",
}
# What to do about a folder whose vectors need more than its transformer.
_WITHOUT = f"a copy without {_MODULES} is scored by --readout, as any transformer"
_OWN_SETTINGS = "config_sentence_transformers.json"
# Settings of the Transformer module, under the names that they have had.
_SETTINGS = tuple(
    f"sentence_{kind}_config.json"
    for kind in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)
_FOLLOWED = ("max_seq_length", "do_lower_case", "unpad_inputs", "query_length", "document_length", "query_expansion")
_HARMLESS = {"add_pooling_layer", "attn_implementation", "dtype", "torch_dtype", "trust_remote_code"}
_USUAL = {
    "transformer_task": "feature-extraction",
    "modality_config": {"text": {"method": "forward", "method_output_name": "last_hidden_state"}},
    "module_output_name": "token_embeddings",
}
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
    if (folder / "config.json").is_file() or (folder / _ADAPTER).is_file():
        return _plain(folder)
    raise SembenchError(
        f"{folder} is not a model folder: it has neither encoder.json nor {_MODULES} nor config.json; name the folder "
        "that has one"
    )


def _plain(folder: Path) -> dict[str, Any]:
    if (folder / _ADAPTER).is_file():
        raise SembenchError(
            f"{folder / _ADAPTER}: adapters are not supported; merge them into the encoder (merge_and_unload of peft) "
            "and save that"
        )
    _check_code(folder / "config.json")
    names = tensor_names(folder)
    # SimCSE's training script leaves its head there, under this name; its released models have it as their pooler.
    heads = {"cls_mlp": "mlp"} if "mlp.dense.weight" in names else {}
    pooler = has_pooler(names)
    return {
        "kind": "transformer",
        "foreign": True,
        "transformer": "",
        "pooler": pooler,
        "heads": heads,
        "readout": "cls_mlp" if heads else "mean",
        "why": _WHY["mlp" if heads else "pooler" if pooler else ""],
    }


def _check_code(path: Path) -> None:
    from transformers import CONFIG_MAPPING

    config = _mapping(path)
    if config.get("auto_map") and config.get("model_type") not in CONFIG_MAPPING:
        raise SembenchError(
            f"{path}: models of type '{config.get('model_type')}' need the code in their folder, which is never run; "
            "take a model that transformers itself knows"
        )


# --------------------------------------------------------------------------------------------- sentence-transformers


def _sentence_transformers(folder: Path) -> dict[str, Any]:
    modules = _modules(folder)
    if [kind for kind, _ in modules[:2]] != ["Transformer", "Pooling"]:
        found = " + ".join(kind for kind, _ in modules[:2]) or "nothing"
        raise SembenchError(f"{folder / _MODULES}: {shortened(found)} is not supported; Transformer + Pooling is")
    inner, pooling = modules[0][1], _pooling(folder, modules[1][1])
    layers = [*(_layer(folder, kind, path) for kind, path in modules[2:]), *_cut(folder)]
    simple = pooling in ("cls", "mean") and not layers
    names = [pooling, *(layer["kind"] for layer in layers)]
    text = _text(folder, inner)
    return {
        **_plain(folder / inner),
        "transformer": inner,
        "readout": pooling if simple else FOLDERS_OWN,
        "why": f"{_MODULES} says {' + '.join(names)}{''.join(f', {each}' for each in text.pop('said'))}",
        **({} if simple else {"pooling": pooling, "layers": layers}),
        **text,
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
            raise SembenchError(f"{path}: the path '{place}' leaves the folder; restore the file")
    return [(kind.rpartition(".")[2], place) for kind, place in found]


def _pooling(folder: Path, place: str) -> str:
    path = folder / place / "config.json"
    config = _mapping(path)
    legacy = [name for key, name in _LEGACY_POOLING.items() if config.get(key)]
    modes = config.get("pooling_mode", legacy or ["mean"])
    modes = modes if isinstance(modes, list) else [modes]
    if len(modes) != 1 or modes[0] not in ("cls", "mean", "max"):
        named = shortened(" + ".join(map(str, modes)))
        raise SembenchError(f"{path}: pooling by {named} is not supported; cls, mean and max are; {_WITHOUT}")
    if not config.get("include_prompt", True) and _prompt(folder):
        raise SembenchError(f"{path}: 'include_prompt': false is not supported beside a default prompt; {_WITHOUT}")
    return str(modes[0])


def _layer(folder: Path, kind: str, place: str) -> dict[str, Any]:
    """Return what describes a module after the pooling."""
    path = folder / place / "config.json"
    if kind not in ("Dense", "Normalize"):
        raise SembenchError(
            f"{folder / _MODULES}: a module of kind '{kind}' is not supported; Dense and Normalize are; {_WITHOUT}"
        )
    config = _mapping(path) if kind == "Dense" or path.is_file() else {}
    for key in ("module_input_name", "module_output_name"):
        if config.get(key) not in (None, "sentence_embedding"):
            raise SembenchError(f"{path}: '{key}': {shortened(config[key])!r} is not supported; {_WITHOUT}")
    if kind == "Normalize":
        return {"kind": "normalize"}
    activation = str(config.get("activation_function", "torch.nn.modules.activation.Tanh"))
    if activation not in _ACTIVATIONS:
        raise SembenchError(f"{path}: the activation '{activation}' is not supported; {_WITHOUT}")
    if config.get("use_residual"):
        raise SembenchError(f"{path}: 'use_residual' is not supported; {_WITHOUT}")
    return {"kind": "dense", "place": place, "activation": activation}


def _text(folder: Path, inner: str) -> dict[str, Any]:
    """Return how texts are prepared, and that in words, from the folder's settings."""
    path = next((path for name in _SETTINGS if (path := folder / inner / name).is_file()), None)
    settings = _mapping(path) if path else {}
    if odd := [key for key, value in settings.items() if not _followed(key, value)]:
        raise SembenchError(f"{path}: '{odd[0]}': {shortened(settings[odd[0]])} is not supported; remove it if you can")
    length = settings.get("max_seq_length")
    if length is not None and (not isinstance(length, int) or length < 1):
        raise SembenchError(f"{path}: 'max_seq_length': {shortened(length)} is not a number of tokens; correct it")
    lowercase, prompt = bool(settings.get("do_lower_case")), _prompt(folder)
    others = sorted(name for name, text in (_own_settings(folder).get("prompts") or {}).items() if text)
    said = [f"at most {length} tokens"] if length else []
    said += ["lower-cased"] if lowercase else []
    said += [f"after the prompt {prompt!r}"] if prompt else []
    said += [f"without the prompts {', '.join(others)}, none of which is its default"] if others and not prompt else []
    return {"max_length": length, "lowercase": lowercase, "prompt": prompt, "said": said}


def _followed(key: str, value: Any) -> bool:
    """Tell whether a setting of a Transformer module is one that is followed, or changes no vector."""
    if key.endswith(("_args", "_kwargs")) and isinstance(value, dict):
        return not set(value) - _HARMLESS
    return key in _FOLLOWED or value in (None, False, _USUAL.get(key))


def _prompt(folder: Path) -> str:
    path = folder / _OWN_SETTINGS
    settings = _own_settings(folder)
    name, prompts = settings.get("default_prompt_name"), settings.get("prompts") or {}
    if not isinstance(prompts, dict):
        raise SembenchError(f"{path}: 'prompts': {shortened(prompts)} is no mapping from names to texts; correct it")
    if name is None:
        return ""
    if not isinstance(prompts.get(str(name)), str):
        raise SembenchError(f"{path}: 'default_prompt_name': {shortened(name)} is not among its prompts; correct it")
    return str(prompts[str(name)])


def _own_settings(folder: Path) -> Mapping[str, Any]:
    return _mapping(folder / _OWN_SETTINGS) if (folder / _OWN_SETTINGS).is_file() else {}


def _cut(folder: Path) -> list[dict[str, Any]]:
    """Return the cut to the first numbers of a vector, as a last layer, where the folder says so."""
    width = _own_settings(folder).get("truncate_dim")
    if width is None:
        return []
    if not isinstance(width, int) or width < 1:
        raise SembenchError(f"{folder / _OWN_SETTINGS}: 'truncate_dim': {shortened(width)} is not a width; correct it")
    return [{"kind": "truncate", "width": width}]


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
    except (ValueError, RecursionError) as error:
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


class _Truncate(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def forward(self, vectors: Tensor) -> Tensor:
        return vectors[:, : self.width]


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
        if layer["kind"] == "truncate":
            layers.append(_Truncate(layer["width"]))
            width = min(width, layer["width"])
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
        raise SembenchError(
            f"{folder} holds {shapes or 'no weights'}, which is not a linear layer on {width} inputs; restore it"
        )
    with torch.device("meta"):  # no weight is drawn
        linear = nn.Linear(width, len(weight), bias="linear.bias" in state)
    linear.load_state_dict({name.removeprefix("linear."): value.float() for name, value in state.items()}, assign=True)
    return linear
