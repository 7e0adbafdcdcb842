"""DistilBERT out of an int8 ONNX graph of a tagger; its classifier is left behind."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sembench.core.errors import SembenchError
from sembench.core.files import atomic_path, write_json
from sembench.core.lazy import np, torch
from sembench.encoders.convert.base import TransformerConverter

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SPECIALS = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}


class DistilBertOnnx(TransformerConverter):
    """Dequantises the graph into transformers' ``DistilBertModel``, which has no pooler."""

    @classmethod
    def convert(cls, config: Any, source: Path | None, target: Path) -> dict[str, Any]:  # noqa: ARG003
        """Convert ``tagger.onnx`` and take ``tokenizer.json``.

        Raises:
            SembenchError: the graph lacks a tensor.
        """
        import onnx
        from transformers import DistilBertConfig, DistilBertModel

        from sembench.encoders.heads import save_heads
        from sembench.encoders.transformer import save_transformer

        source = source or Path()
        state = distilbert_state(onnx.load(str(source / "tagger.onnx")))
        model = DistilBertModel(DistilBertConfig(vocab_size=len(state["embeddings.word_embeddings.weight"])))
        model.load_state_dict({name: torch.tensor(value) for name, value in state.items()})
        save_transformer(model, target)
        with atomic_path(target / "tokenizer.json") as temporary:
            shutil.copyfile(source / "tokenizer.json", temporary)
        write_json(target / "tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast", **_SPECIALS})
        return {"heads": save_heads({}, target), "pooler": False}


def distilbert_state(model: Any) -> dict[str, NDArray[np.float32]]:
    """Return the encoder's weights by their transformers names.

    The graph keeps layer norms and biases as floats under their own names, embeddings as int8 under theirs, and the
    weights of linear layers as int8 under numbers, transposed; the multiplication that uses one has its name.

    Args:
        model: the ``onnx.ModelProto``.

    Raises:
        SembenchError: the graph lacks a tensor.
    """
    from onnx import numpy_helper

    tensors = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    found = {name: value for name, value in tensors.items() if value.dtype == np.float32 and value.ndim == 1}
    for name in ("word_embeddings", "position_embeddings"):
        key = f"distilbert.embeddings.{name}.weight"
        found[key] = _dequantised(tensors, key)
    for node in model.graph.node:
        if node.op_type == "MatMul" and node.input[1].endswith("_DequantizeLinear_Output"):
            quantised = node.input[1].removesuffix("_DequantizeLinear_Output")
            if f"{quantised}_quantized" in tensors:
                layer = node.name.strip("/").removesuffix("/MatMul").replace("/", ".")
                found[f"{layer}.weight"] = _dequantised(tensors, quantised).T
    prefix = "distilbert."
    return {name.removeprefix(prefix): value for name, value in found.items() if name.startswith(prefix)}


def _dequantised(tensors: dict[str, NDArray[Any]], name: str) -> NDArray[np.float32]:
    try:
        values, zero, scale = (tensors[f"{name}_{part}"] for part in ("quantized", "zero_point", "scale"))
    except KeyError as error:
        raise SembenchError(f"the ONNX graph lacks the tensor {error}; is it the pinned file?") from None
    return ((values.astype(np.float32) - np.float32(zero)) * np.float32(scale)).astype(np.float32)


PLUGIN = DistilBertOnnx
