"""Writing a trained run: an ordinary model folder that describes itself."""

from __future__ import annotations

import platform
import shutil
from importlib.metadata import version
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from sembench import __version__
from sembench.core.files import atomic_path, write_json
from sembench.encoders.backbones import save_transformer
from sembench.encoders.devices import hardware
from sembench.encoders.transformer import read_entry
from sembench.registry.plan import RunSpec
from sembench.training.loop import Trained

# Read-outs that sentence-transformers can express; a folder with another one loads in transformers alone.
_ST_POOLING = {"cls": "cls", "mean": "mean"}


def save_run(run: Trained, spec: RunSpec, start: Path, readout: str, target: Path, facts: dict[str, Any]) -> None:
    """Write weights, config, tokenizer, head, encoder.json and, last, run.json into ``target``.

    Args:
        run: what training left.
        spec: the run's resolved spec, kept in run.json.
        start: model folder it started from, for the tokenizer.
        readout: the read-out the run is used with.
        target: the run's folder.
        facts: more to keep in run.json (corpus and dev data).
    """
    target.mkdir(parents=True, exist_ok=True)
    encoder = run.encoder
    save_transformer(encoder.model, target)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        if (start / name).is_file():
            with atomic_path(target / name) as temporary:
                shutil.copyfile(start / name, temporary)
    head = "mlp" if "cls_mlp" in encoder.heads else None
    if head:
        with atomic_path(target / "head.safetensors") as temporary:
            save_file(encoder.heads["cls_mlp"].state_dict(), temporary)
    if readout in _ST_POOLING:
        _write_sentence_transformers(target, encoder.width, _ST_POOLING[readout])
    title = f"{read_entry(start).get('title', start.name)}, {spec.variant}, seed {spec.seed}"
    entry = {"kind": "transformer", "name": spec.id, "title": title, "readout": readout, "head": head}
    write_json(target / "encoder.json", {**entry, "pooler": "pooler" in encoder.heads})
    write_json(target / "run.json", {**_story(run, spec), **facts})


def _story(run: Trained, spec: RunSpec) -> dict[str, Any]:
    return {
        "run": spec.id,
        "spec": spec.model_dump(mode="json"),
        "precision": run.precision,
        "eval_precision": run.eval_precision,
        "steps": run.steps,
        "best": run.best,
        "curve": run.curve,
        "losses": [round(loss, 6) for loss in run.losses],
        "segments": run.segments,
        "hardware": hardware(run.encoder.device),
        "versions": {
            "python": platform.python_version(),
            "sembench": __version__,
            **{name: version(name) for name in ("torch", "transformers", "tokenizers", "numpy")},
        },
    }


def _write_sentence_transformers(target: Path, width: int, mode: str) -> None:
    """Describe the read-out to sentence-transformers; without it that library silently takes the mean."""
    modules = [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    ]
    modes = {"cls": "pooling_mode_cls_token", "mean": "pooling_mode_mean_tokens"}
    pooling = {"word_embedding_dimension": width, **{key: name == mode for name, key in modes.items()}}
    write_json(target / "modules.json", modules)
    write_json(target / "1_Pooling" / "config.json", pooling)
