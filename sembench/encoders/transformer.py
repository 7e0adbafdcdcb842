"""Transformer encoders: tokens in batches without padding waste, hidden states out, read-outs on top."""

from __future__ import annotations

import inspect
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel
from transformers.utils import logging as transformers_logging

from sembench.core.errors import SembenchError, unknown
from sembench.core.files import atomic_path
from sembench.encoders.convert.base import HIDDEN, POOLER
from sembench.encoders.devices import autocast, pick_device, resolve_precision
from sembench.encoders.door import door
from sembench.encoders.foreign import FOLDERS_OWN, folders_own, foreign_entry
from sembench.encoders.heads import head_from, load_heads
from sembench.encoders.readouts import NEEDS_ALL_LAYERS, read_out
from sembench.encoders.tokens import Tokens, foreign_tokens, own_tokens
from sembench.encoders.weights import tensors_below
from sembench.plan.layout import ENTRY

# Its load report calls a pooler that nobody asked for "unexpected"; what matters, missing weights, is checked below.
transformers_logging.set_verbosity_error()
transformers_logging.disable_progress_bar()

Vectors = NDArray[np.float32]
_UNSUPPORTED = ", which is not supported; take an encoder such as BERT, RoBERTa, MPNet or ModernBERT"
# What checkpoints as published hold besides their encoder: heads of pre-training (see ``lm_head`` for those of words).
_PRETRAINING = ("cls.predictions.", "cls.seq_relationship.", "lm_head.", "vocab_")
# Tokens of a forward pass, padding included. Larger batches gain nothing on a processor; a GPU wants more.
TOKEN_BUDGET = {"cpu": 4096, "cuda": 65536}


def budgeted(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Split indices into batches of similar length whose padded size stays within ``budget`` tokens."""
    batches: list[list[int]] = []
    # Longest first: memory peaks at once, not after an hour.
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if not batches or lengths[batches[-1][0]] * (len(batches[-1]) + 1) > budget:
            batches.append([])
        batches[-1].append(index)
    return batches


class TransformerEncoder(nn.Module):
    """A transformer with its tokenizer and the trained layers behind some of its read-outs.

    Args:
        model: a model of transformers.
        tokens: its tokenizer.
        heads: name of a read-out -> the layer that gives it; the layer's ``base`` names the read-out that it takes.
        notes: what whoever uses it should know.
        folder: that of its weights, where a masked-language-model head may lie besides.
    """

    kind = "transformer"
    folder: Path | None = None

    def __init__(self, model: Any, tokens: Tokens, heads: dict[str, nn.Module], notes: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.model = model
        self.config: Any = model.config
        self.tokens = tokens
        self.heads = nn.ModuleDict(heads)
        self.notes = notes
        self.precision = "fp32"

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    @property
    def width(self) -> int:
        """Size of a vector of hidden states."""
        return int(self.config.hidden_size)

    def width_of(self, readout: str) -> int:
        """Return the size of a sentence vector of a read-out."""
        return int(getattr(self.heads[readout], "width", self.width)) if readout in self.heads else self.width

    @property
    def readouts(self) -> tuple[str, ...]:
        """The base read-outs that this encoder offers."""
        return (*HIDDEN, *self.heads)

    def forward(self, ids: Tensor, mask: Tensor, readouts: Sequence[str]) -> dict[str, Tensor]:
        """Return one (batch, width) float32 tensor for each read-out asked for, from a single pass."""
        hidden = self.states(ids, mask, every=not NEEDS_ALL_LAYERS.isdisjoint(readouts))
        return {name: read_out(name, hidden, mask, dict(self.heads.items())) for name in readouts}

    def states(self, ids: Tensor, mask: Tensor, every: bool) -> tuple[Tensor, ...]:
        """Return the embedding output and all blocks' outputs, or the last alone, (batch, length, width) each."""
        output = self.model(input_ids=ids, attention_mask=mask, output_hidden_states=every)
        return tuple(output.hidden_states) if every else (output.last_hidden_state,)

    def encode(
        self, sentences: Sequence[str], readouts: Sequence[str], budget: int | None = None
    ) -> dict[str, Vectors]:
        """Encode sentences in evaluation mode.

        Returns:
            For each read-out a float32 array of shape (sentences, width), rows in the order given.

        Raises:
            SembenchError: an unknown read-out.
        """
        for name in readouts:
            if name not in self.readouts:
                raise unknown("read-out", name, self.readouts, "what this encoder offers")
        was_training = self.training
        self.eval()
        ids = self.tokens(sentences)
        found = {name: np.empty((len(ids), self.width_of(name)), dtype=np.float32) for name in readouts}
        with torch.inference_mode(), autocast(self.precision, self.device):
            for batch in budgeted([len(row) for row in ids], budget or TOKEN_BUDGET[self.device.type]):
                vectors = self(*self.tokens.padded([ids[i] for i in batch], self.device), readouts)
                for name, value in vectors.items():
                    found[name][batch] = value.float().cpu().numpy()
        self.train(was_training)
        return found


def load_transformer(folder: Path, entry: dict[str, Any], dropout: float | None = None) -> TransformerEncoder:
    """Load a transformer's model folder; every weight it names must be there, nothing is initialised anew.

    Args:
        folder: model folder.
        entry: what :func:`read_entry` says of it.
        dropout: hidden and attention dropout instead of the checkpoint's own.

    Raises:
        SembenchError: a file or a weight is missing or left over, or the folder is of a sort that is not supported.
    """
    place = folder / str(entry.get("transformer", ""))
    with door(folder):
        model, unused = _model(place, bool(entry.get("pooler")), dropout)
        limit = _limit(model)
        foreign = bool(entry.get("foreign"))
        tokens = foreign_tokens(place, entry, model, limit) if foreign else own_tokens(place, model.config, limit)
        pooler = getattr(model, POOLER, None) if entry.get("pooler") else None
        heads: dict[str, nn.Module] = {POOLER: _Pooler(pooler)} if pooler is not None else {}
        heads |= _heads(place, entry, model.config.hidden_size)
        if "layers" in entry:
            heads[FOLDERS_OWN] = folders_own(folder, entry, model.config.hidden_size)
        used = tuple(f"{kind}." for kind in dict(entry.get("heads") or {}).values())
        notes = _notes([name for name in unused if not name.startswith(used)])
        encoder = TransformerEncoder(model, tokens, heads, notes).to(pick_device()).eval()
        encoder.folder = place
        return encoder


def _model(folder: Path, pooler: bool, dropout: float | None) -> tuple[Any, list[str]]:
    """Return the model, and the weights of the folder that it does not use."""
    config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    if config.is_encoder_decoder:
        raise SembenchError(f"{folder}: models of type '{config.model_type}' have a decoder{_UNSUPPORTED}")
    _check_positions(folder, config)
    if getattr(config, "quantization_config", None):
        raise SembenchError(f"{folder} holds quantised weights, which are not supported; save the model dequantised")
    if dropout is not None:
        _set_dropout(config, dropout)
    kind = AutoModel._model_mapping[type(config)]
    # Classes that can be built with or without a pooler are built as asked; what others have besides is not used.
    options = {"add_pooling_layer": pooler} if "add_pooling_layer" in inspect.signature(kind).parameters else {}
    model, info = AutoModel.from_pretrained(
        folder,
        config=config,
        local_files_only=True,
        trust_remote_code=False,
        dtype=torch.float32,
        output_loading_info=True,
        ignore_mismatched_sizes=True,  # found below, with names
        **options,
    )
    needed = [name for name in info["missing_keys"] if pooler or not name.startswith("pooler.")]
    if needed:
        raise SembenchError(f"{folder} lacks the weights {sorted(needed)[:3]}; restore the file or build it again")
    if info["mismatched_keys"]:
        name, found, wanted = min(info["mismatched_keys"])
        raise SembenchError(
            f"{folder} holds {name} of shape {tuple(found)} where its config.json says {tuple(wanted)}; restore the "
            "config.json that belongs to the weights"
        )
    if lost := _lost(model, info["unexpected_keys"]):
        raise SembenchError(
            f"{folder} holds the weights {lost[:3]}, which an encoder of its config.json does not have; "
            "restore the config.json that belongs to them, or merge adapters into the encoder first"
        )
    return model, sorted(info["unexpected_keys"])


def _lost(model: Any, names: Sequence[str]) -> list[str]:
    """Return the weights of the encoder itself that were not used; those of other heads may be."""
    inner = {name for name, _ in model.named_children()} - {POOLER}
    prefix = f"{model.base_model_prefix}."
    parts = {name: name.removeprefix(prefix).split(".") for name in names}
    return sorted(
        name
        for name, path in parts.items()
        if (path[0] in inner and path[-1] != "position_ids") or any(part.startswith("lora_") for part in path)
    )


def _notes(unused: Sequence[str]) -> tuple[str, ...]:
    """Return what is to be said of weights that are there and not used: heads of other tasks."""
    names = [name for name in unused if not (name.startswith(_PRETRAINING) or name.endswith("position_ids"))]
    if not names:
        return ()
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return (f"the weights {', '.join(names[:3])}{more} belong to no part of the encoder and are not used",)


def _heads(folder: Path, entry: dict[str, Any], width: int) -> dict[str, nn.Module]:
    kinds: dict[str, str] = dict(entry.get("heads") or {})
    if not entry.get("foreign"):
        return load_heads(folder, kinds, width)
    # A head that its training left among the encoder's own weights.
    return {name: head_from(kind, tensors_below(folder, f"{kind}."), width, folder) for name, kind in kinds.items()}


class _Pooler(nn.Module):
    """The checkpoint's pooler, applied to vectors of first tokens (batch, width) instead of whole sequences."""

    base: ClassVar[str] = "cls"

    def __init__(self, pooler: nn.Module) -> None:
        super().__init__()
        self.pooler = pooler

    def forward(self, vectors: Tensor) -> Tensor:
        result: Tensor = self.pooler(vectors.unsqueeze(1))
        return result


def _check_positions(folder: Path, config: Any) -> None:
    longest = getattr(config, "max_position_embeddings", None)
    if not isinstance(longest, int) or longest < 1:
        raise SembenchError(
            f"{folder}: the config.json of a model of type '{config.model_type}' does not say how many positions it "
            f"has{_UNSUPPORTED}"
        )


def _limit(model: Any) -> int:
    """Return the longest sequence: RoBERTa and its kin number positions from after the padding id."""
    longest: int = model.config.max_position_embeddings
    table = getattr(getattr(model, "embeddings", None), "position_embeddings", None)
    first = getattr(table, "padding_idx", None)
    return longest if first is None else longest - first - 1


def _set_dropout(config: Any, p: float) -> None:
    names = [
        name
        for name in ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "attention_dropout")
        if hasattr(config, name)
    ]
    for name in names:
        setattr(config, name, p)


def set_precision(encoder: Any, asked: str) -> str:
    """Set an encoder's evaluation precision (``fp32``, ``bf16`` or ``auto``) and return what it became."""
    if not isinstance(encoder, TransformerEncoder):
        return "fp32"
    encoder.precision = resolve_precision(asked, encoder.device)
    return encoder.precision


def read_entry(folder: Path) -> dict[str, Any]:
    """Return what ``encoder.json`` says of a model folder, or what the files of a folder of others amount to.

    ``readout`` is the read-out that the folder is used with; where it is a guess or another program's choice, ``why``
    says so.

    Raises:
        SembenchError: the file is damaged, or it is not a model folder.
    """
    path = folder / ENTRY
    if not path.is_file():
        return foreign_entry(folder)
    try:
        entry = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise SembenchError(f"{path} is not valid JSON ({error}); build the folder again") from None
    if not isinstance(entry, dict):
        raise SembenchError(f"{path} is not a JSON object; build the folder again")
    return entry


def save_transformer(model: Any, target: Path) -> None:
    """Write config.json and model.safetensors, each at once and whole, readable for whom the umask lets read."""
    folder = target / ".saving"
    shutil.rmtree(folder, ignore_errors=True)  # What a process that was killed left is as large as the model.
    folder.mkdir()
    try:
        model.save_pretrained(folder)
        for path in sorted(folder.iterdir()):
            with atomic_path(target / path.name) as temporary:
                shutil.move(path, temporary)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
