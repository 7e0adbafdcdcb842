"""Turning fetched files into an ordinary model folder, once."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pandas as pd
import torch
import transformers  # each class is loaded when it is first named; loading all takes seconds
from numpy.typing import NDArray
from onnx import numpy_helper
from safetensors import safe_open
from safetensors.numpy import save_file
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from sembench.core.errors import SembenchError
from sembench.core.files import atomic_path, write_json
from sembench.registry.models import Backbone

Array = NDArray[Any]


def build_backbone(key: str, backbone: Backbone, source: Path | None, target: Path) -> None:
    """Convert a backbone's files in ``source`` into the model folder ``target``; ``encoder.json`` is written last.

    Raises:
        SembenchError: the files are not what the conversion expects.
    """
    target.mkdir(parents=True, exist_ok=True)
    extra = _CONVERTERS[backbone.convert](source or Path(), target, backbone.options)
    entry = {"kind": backbone.kind, "name": key, "title": backbone.title, "readout": backbone.readout}
    write_json(target / "encoder.json", {**entry, "package": backbone.package, **extra})


def _copy(source: Path, target: Path, _options: dict[str, Any]) -> dict[str, Any]:
    """Take an ordinary transformers folder as it is; hard links where the file system has them."""
    for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
        if not (source / name).is_file():
            if name == "tokenizer_config.json":
                continue
            raise SembenchError(f"{source / name} is missing; fetch the data set again")
        with atomic_path(target / name) as temporary:
            temporary.unlink()
            try:
                os.link(source / name, temporary)
            except OSError:
                shutil.copyfile(source / name, temporary)
    with safe_open(target / "model.safetensors", framework="numpy") as weights:
        pooler = any(name.endswith("pooler.dense.weight") for name in weights.keys())  # noqa: SIM118
    return {"head": None, "pooler": pooler}


# --------------------------------------------------------------------------------------- DistilBERT from int8 ONNX


def _distilbert_onnx(source: Path, target: Path, _options: dict[str, Any]) -> dict[str, Any]:
    """Dequantise a DistilBERT tagger's graph into ``DistilBertModel``; its classifier is left behind."""
    state = distilbert_state(onnx.load(str(source / "tagger.onnx")))
    size = {"vocab_size": len(state["embeddings.word_embeddings.weight"])}
    model = transformers.DistilBertModel(transformers.DistilBertConfig(**size))
    model.load_state_dict({name: torch.tensor(value) for name, value in state.items()})
    save_transformer(model, target)
    _copy_tokenizer(source / "tokenizer.json", target)
    return {"head": None, "pooler": False}


def distilbert_state(graph: onnx.ModelProto) -> dict[str, NDArray[np.float32]]:
    """Return the encoder's weights by their transformers names.

    The graph keeps layer norms and biases as floats under their own names, embeddings as int8 under theirs, and the
    weights of linear layers as int8 under numbers, transposed; the multiplication that uses one tells its name.
    """
    tensors = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.graph.initializer}
    found = {name: value for name, value in tensors.items() if value.dtype == np.float32 and value.ndim == 1}
    for name in ("word_embeddings", "position_embeddings"):
        key = f"distilbert.embeddings.{name}.weight"
        found[key] = _dequantised(tensors, key)
    for node in graph.graph.node:
        if node.op_type == "MatMul" and node.input[1].endswith("_DequantizeLinear_Output"):
            quantised = node.input[1].removesuffix("_DequantizeLinear_Output")
            if f"{quantised}_quantized" in tensors:
                layer = node.name.strip("/").removesuffix("/MatMul").replace("/", ".")
                found[f"{layer}.weight"] = _dequantised(tensors, quantised).T
    prefix = "distilbert."
    return {name.removeprefix(prefix): value for name, value in found.items() if name.startswith(prefix)}


def _dequantised(tensors: dict[str, Array], name: str) -> NDArray[np.float32]:
    try:
        values, zero, scale = (tensors[f"{name}_{part}"] for part in ("quantized", "zero_point", "scale"))
    except KeyError as error:
        raise SembenchError(f"the ONNX graph lacks the tensor {error}; is it the pinned file?") from None
    return ((values.astype(np.float32) - np.float32(zero)) * np.float32(scale)).astype(np.float32)


def save_transformer(model: Any, target: Path) -> None:
    """Write config.json and model.safetensors atomically."""
    temporary = target / ".partial"
    try:
        model.save_pretrained(temporary)
        for path in sorted(temporary.iterdir()):
            path.replace(target / path.name)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _copy_tokenizer(source: Path, target: Path) -> None:
    with atomic_path(target / "tokenizer.json") as temporary:
        shutil.copyfile(source, temporary)
    names = {
        "pad_token": "[PAD]",
        "unk_token": "[UNK]",
        "cls_token": "[CLS]",
        "sep_token": "[SEP]",
        "mask_token": "[MASK]",
    }
    write_json(target / "tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast", **names})


# ----------------------------------------------------------------------------------------------------- word vectors


def _glove_npy(source: Path, target: Path, options: dict[str, Any]) -> dict[str, Any]:
    vectors = np.load(source / "glove_6B_50d_emb.npy", allow_pickle=False)
    words = pd.read_parquet(source / "glove_6B_index.parquet")["index"].tolist()
    return _save_vectors(target, words, np.asarray(vectors, dtype=np.float32), options)


def _glove_text(source: Path, target: Path, options: dict[str, Any]) -> dict[str, Any]:
    """Read GloVe's text format; a few of its "words" contain spaces, so the numbers are counted from the right."""
    [path] = sorted(source.glob("glove.*.txt"))
    with path.open(encoding="utf-8", newline="\n") as stream:
        width = len(stream.readline().split(" ")) - 1
    words: list[str] = []
    vectors = np.fromiter(_glove_rows(path, width, words), dtype=np.dtype((np.float32, width)))
    return _save_vectors(target, words, np.asarray(vectors, dtype=np.float32), options)


def _glove_rows(path: Path, width: int, words: list[str]) -> Iterator[NDArray[np.float32]]:
    with path.open(encoding="utf-8", newline="\n") as stream:
        for number, line in enumerate(stream, start=1):
            word, *numbers = line.rstrip("\n").rsplit(" ", width)
            if len(numbers) != width:
                raise SembenchError(
                    f"{path}, line {number}: {len(numbers)} numbers where {width} are expected; fetch it again"
                )
            words.append(word)
            yield np.array(numbers, dtype=np.float32)


def _save_vectors(
    target: Path, words: list[str], vectors: NDArray[np.float32], options: dict[str, Any]
) -> dict[str, Any]:
    if len(words) != len(vectors):
        raise SembenchError(f"{len(words)} words but {len(vectors)} vectors; fetch the word vectors again")
    with atomic_path(target / "vectors.safetensors") as temporary:
        save_file({"vectors": np.ascontiguousarray(vectors)}, temporary)
    with atomic_path(target / "vocab.txt") as temporary:
        temporary.write_text("".join(f"{word}\n" for word in words), encoding="utf-8", newline="\n")
    return {"lowercase": bool(options.get("lowercase"))}


# -------------------------------------------------------------------------------------- random encoders (smoke scale)


def _random(source: Path, target: Path, options: dict[str, Any]) -> dict[str, Any]:
    """Make a random two-layer encoder over the project's word list, always the same one."""
    words = (source / "words.txt").read_text(encoding="utf-8").split()
    torch.manual_seed(0)
    if options["architecture"] == "static":
        return _save_vectors(target, words, torch.randn(len(words), 16).numpy(), options)
    roberta = options["architecture"] == "roberta"
    specials = (
        ["<s>", "<pad>", "</s>", "<unk>", "<mask>"] if roberta else ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    )
    vocabulary = {token: index for index, token in enumerate([*specials, *_pieces(words)])}
    shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    size = {"vocab_size": len(vocabulary), "max_position_embeddings": 130}
    model = (
        transformers.RobertaModel(transformers.RobertaConfig(**shape, **size, pad_token_id=1), add_pooling_layer=False)
        if roberta
        else transformers.BertModel(transformers.BertConfig(**shape, **size, pad_token_id=0), add_pooling_layer=True)
    )
    save_transformer(model, target)
    _word_pieces(vocabulary, specials, roberta).save(str(target / "tokenizer.json"))
    return {"head": None, "pooler": not roberta}


def _pieces(words: list[str]) -> list[str]:
    letters = sorted({letter for word in words for letter in word} | set("0123456789.,!?'-"))
    return [*dict.fromkeys([*letters, *(f"##{letter}" for letter in letters), *words])]


def _word_pieces(vocabulary: dict[str, int], specials: list[str], roberta: bool) -> Tokenizer:
    first, last, unknown = ("<s>", "</s>", "<unk>") if roberta else ("[CLS]", "[SEP]", "[UNK]")
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=unknown))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.add_special_tokens(specials)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{first} $A {last}", special_tokens=[(token, vocabulary[token]) for token in (first, last)]
    )
    return tokenizer


def _package(_source: Path, _target: Path, _options: dict[str, Any]) -> dict[str, Any]:
    """Nothing to convert: the encoder is an installed package, which encoder.json pins."""
    return {}


_CONVERTERS: dict[str, Callable[[Path, Path, dict[str, Any]], dict[str, Any]]] = {
    "copy": _copy,
    "distilbert_onnx": _distilbert_onnx,
    "glove_npy": _glove_npy,
    "glove_text": _glove_text,
    "random": _random,
    "package": _package,
}
