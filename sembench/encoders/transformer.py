"""Transformer encoders: tokens in batches without padding waste, hidden states out, read-outs on top."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel
from transformers.utils import logging as transformers_logging

from sembench.core.errors import SembenchError, unknown
from sembench.encoders.devices import autocast, pick_device, resolve_precision
from sembench.encoders.readouts import HIDDEN_READOUTS, NEEDS_ALL_LAYERS, MLPHead, read_out

# Its load report calls a pooler that nobody asked for "unexpected"; what matters, missing weights, is checked below.
transformers_logging.set_verbosity_error()
transformers_logging.disable_progress_bar()

Vectors = NDArray[np.float32]
# Tokens of a forward pass, padding included. Larger batches gain nothing on a processor; a GPU wants more.
TOKEN_BUDGET = {"cpu": 4096, "cuda": 65536}
# Encoders whose class can be built with or without the pre-trained pooler.
_WITH_POOLER = {"bert", "roberta"}


class Tokens:
    """A folder's tokenizer: sentences to word-piece ids, specials included."""

    def __init__(self, folder: Path, limit: int, pad: int) -> None:
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self.limit = limit
        self.pad = pad

    def __call__(self, sentences: Sequence[str], max_length: int | None = None) -> list[list[int]]:
        """Return the ids of each sentence, cut to ``max_length`` (the encoder's limit if none is given)."""
        self._tokenizer.enable_truncation(min(max_length or self.limit, self.limit))
        return [encoding.ids for encoding in self._tokenizer.encode_batch_fast(list(sentences))]

    def padded(self, rows: Sequence[Sequence[int]], device: torch.device) -> tuple[Tensor, Tensor]:
        """Return ids and attention mask of shape (rows, longest row)."""
        longest = max(len(row) for row in rows)
        ids = torch.full((len(rows), longest), self.pad, dtype=torch.long)
        mask = torch.zeros((len(rows), longest), dtype=torch.long)
        for index, row in enumerate(rows):
            ids[index, : len(row)] = torch.tensor(row, dtype=torch.long)
            mask[index, : len(row)] = 1
        return ids.to(device), mask.to(device)


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
    """A transformer with its tokenizer and, after SimCSE training, its head."""

    kind = "transformer"

    def __init__(self, model: Any, tokens: Tokens, heads: dict[str, nn.Module]) -> None:
        super().__init__()
        self.model = model
        self.config: Any = model.config
        self.tokens = tokens
        self.heads = nn.ModuleDict(heads)
        self.precision = "fp32"

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    @property
    def width(self) -> int:
        """Size of a sentence vector."""
        return int(self.config.hidden_size)

    @property
    def readouts(self) -> tuple[str, ...]:
        """The read-outs that this encoder offers."""
        return (*HIDDEN_READOUTS, *self.heads)

    def forward(self, ids: Tensor, mask: Tensor, readouts: Sequence[str]) -> dict[str, Tensor]:
        """Return one (batch, width) float32 tensor for each read-out asked for, from a single pass."""
        every = not NEEDS_ALL_LAYERS.isdisjoint(readouts)
        output = self.model(input_ids=ids, attention_mask=mask, output_hidden_states=every)
        hidden = output.hidden_states if every else (output.last_hidden_state,)
        return {name: read_out(name, hidden, mask, dict(self.heads.items())) for name in readouts}

    def encode(
        self, sentences: Sequence[str], readouts: Sequence[str], budget: int | None = None
    ) -> dict[str, Vectors]:
        """Encode sentences in evaluation mode.

        Returns:
            For each read-out a float32 array of shape (sentences, width), rows in the order given.

        Raises:
            SembenchError: an unknown read-out, or a vector that is not finite.
        """
        for name in readouts:
            if name not in self.readouts:
                raise unknown("read-out", name, self.readouts, "what this encoder offers")
        was_training = self.training
        self.eval()
        ids = self.tokens(sentences)
        found = {name: np.empty((len(ids), self.width), dtype=np.float32) for name in readouts}
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
        folder: model folder with config.json, model.safetensors, tokenizer.json, and head.safetensors if it has one.
        entry: what encoder.json says.
        dropout: hidden and attention dropout instead of the checkpoint's own.

    Raises:
        SembenchError: a file or a weight is missing.
    """
    config = AutoConfig.from_pretrained(folder, local_files_only=True)
    if dropout is not None:
        _set_dropout(config, dropout)
    pooler = bool(entry.get("pooler"))
    options = {"add_pooling_layer": pooler} if config.model_type in _WITH_POOLER else {}
    model, info = AutoModel.from_pretrained(
        folder, config=config, local_files_only=True, dtype=torch.float32, output_loading_info=True, **options
    )
    if missing := sorted(info["missing_keys"]):
        raise SembenchError(f"{folder / 'model.safetensors'} lacks the weights {missing[:3]}; build the folder again")
    heads: dict[str, nn.Module] = {"pooler": _Pooler(model.pooler)} if pooler else {}
    if entry.get("head"):
        heads["cls_mlp"] = _load_head(folder, config.hidden_size)
    encoder = TransformerEncoder(model, Tokens(folder, _limit(config), config.pad_token_id or 0), heads)
    return encoder.to(pick_device()).eval()


class _Pooler(nn.Module):
    """The checkpoint's pooler, applied to vectors of first tokens instead of whole sequences."""

    def __init__(self, pooler: nn.Module) -> None:
        super().__init__()
        self.pooler = pooler

    def forward(self, vectors: Tensor) -> Tensor:
        result: Tensor = self.pooler(vectors.unsqueeze(1))
        return result


def _load_head(folder: Path, width: int) -> MLPHead:
    path = folder / "head.safetensors"
    if not path.is_file():
        raise SembenchError(f"{path} is missing although encoder.json names a head; restore it or train the run again")
    head = MLPHead(width)
    head.load_state_dict(load_file(path))
    return head


def _limit(config: Any) -> int:
    """Return the longest sequence: RoBERTa numbers positions from after the padding id."""
    offset = config.pad_token_id + 1 if config.model_type == "roberta" else 0
    return int(config.max_position_embeddings) - offset


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
    """Return what ``encoder.json`` says of a model folder; a plain transformers folder has none and needs none."""
    path = folder / "encoder.json"
    if path.is_file():
        try:
            return dict(json.loads(path.read_text(encoding="utf-8")))
        except json.JSONDecodeError as error:
            raise SembenchError(
                f"{path} is no JSON ({error.msg}, line {error.lineno}); build the folder again"
            ) from None
    if (folder / "config.json").is_file():
        return {"kind": "transformer", "head": None, "pooler": False}
    raise SembenchError(f"{folder} is no model folder: it has neither encoder.json nor config.json")
