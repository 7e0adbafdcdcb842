"""Writing a trained run: an ordinary model folder that describes itself."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from safetensors.torch import save_file
from torch import nn

from sembench import __version__
from sembench.core.files import atomic_path, write_json
from sembench.encoders.convert.base import POOLER
from sembench.encoders.devices import hardware
from sembench.encoders.heads import save_heads
from sembench.encoders.transformer import TransformerEncoder, save_transformer
from sembench.plan.layout import ENTRY, HISTORY
from sembench.training.objectives.base import SENTENCE_TRANSFORMERS
from sembench.training.trainer import Trained


def save_run(
    run: Trained, start: Path, target: Path, *, name: str, title: str, readout: str, facts: Mapping[str, Any]
) -> None:
    """Write the model folder ``target`` with weights, tokenizer, exported heads and the run's history in run.json.

    Args:
        run: what training left.
        start: model folder it started from, for the tokenizer.
        target: the run's folder.
        name: of the run.
        title: for people.
        readout: the read-out that the run is used with by default: the objective's ``default_readout``.
        facts: more to keep in run.json, such as the recipe and the data.

    The caller writes the record beside it, last.
    """
    target.mkdir(parents=True, exist_ok=True)
    encoder = run.encoder
    save_transformer(encoder.model, target)
    _copy_tokenizer(start, target)
    kinds = save_heads(run.heads, target)
    entry = {"kind": "transformer", "name": name, "title": title, "readout": readout, "heads": kinds}
    write_json(target / ENTRY, {**entry, "pooler": POOLER in encoder.heads})
    if readout in SENTENCE_TRANSFORMERS:
        _describe_to_sentence_transformers(encoder, readout, target)
    write_json(target / HISTORY, {"run": name, **history(run), **facts})


def _copy_tokenizer(start: Path, target: Path) -> None:
    for name in ("tokenizer.json", "tokenizer_config.json"):
        with atomic_path(target / name) as temporary:
            if name == "tokenizer_config.json" and not (start / name).is_file():
                temporary.write_text("{}\n", encoding="utf-8")  # config.json alone says which class reads it
            else:
                shutil.copyfile(start / name, temporary)


def history(run: Trained) -> dict[str, Any]:
    """Return what is worth keeping of a run besides its weights."""
    return {
        "train_rows": run.rows,
        "precision": run.precision,
        "eval_precision": run.eval_precision,
        "steps": run.state.step,
        "best": run.state.best,
        "curve": run.state.curve,
        "losses": [round(loss, 6) for loss in run.state.losses],
        "segments": run.state.segments,
        "hardware": hardware(run.encoder.device),
        "versions": {
            "python": platform.python_version(),
            "sembench": __version__,
            **{name: version(name) for name in ("torch", "transformers", "tokenizers", "numpy")},
        },
    }


def _describe_to_sentence_transformers(encoder: TransformerEncoder, readout: str, target: Path) -> None:
    layer = _layer(encoder, readout)
    modules = ["Transformer", "Pooling", "Dense"][: 3 if layer else 2]
    write_json(
        target / "modules.json",
        [
            {
                "idx": index,
                "name": str(index),
                "path": f"{index}_{module}" if index else "",
                "type": f"sentence_transformers.models.{module}",
            }
            for index, module in enumerate(modules)
        ],
    )
    modes = {"pooling_mode_cls_token": readout != "mean", "pooling_mode_mean_tokens": readout == "mean"}
    write_json(target / "1_Pooling" / "config.json", {"word_embedding_dimension": encoder.width, **modes})
    if layer:
        _write_dense(layer, target / "2_Dense")


def _layer(encoder: TransformerEncoder, readout: str) -> nn.Linear | None:
    """Return the linear layer between [CLS] and a read-out, if there is one; tanh follows it."""
    layers: dict[str, Any] = {name: getattr(head, "dense", None) for name, head in encoder.heads.items()}
    if POOLER in layers:
        layers[POOLER] = encoder.model.pooler.dense
    return layers.get(readout)


def _write_dense(layer: nn.Linear, folder: Path) -> None:
    sizes = {"in_features": layer.in_features, "out_features": layer.out_features, "bias": True}
    write_json(folder / "config.json", {**sizes, "activation_function": "torch.nn.modules.activation.Tanh"})
    tensors = {f"linear.{name}": value.detach().cpu() for name, value in layer.state_dict().items()}
    with atomic_path(folder / "model.safetensors") as temporary:
        save_file(tensors, temporary)
