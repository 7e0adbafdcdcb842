"""Sentences to rows of word-piece ids, and rows of ids to batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from tokenizers.normalizers import Lowercase
from tokenizers.normalizers import Sequence as Normalizers
from torch import Tensor

from sembench.core.errors import SembenchError
from sembench.encoders.devices import sent

# Texts and the longest row -> the ids of each text, specials included.
IdsOf = Callable[[list[str], int], list[list[int]]]


class Tokens:
    """A folder's tokenizer: sentences to word-piece ids, specials included.

    Args:
        ids_of: what cuts texts into ids.
        limit: longest row that the encoder takes.
        pad: id that fills short rows.
        prompt: text before every sentence.
    """

    def __init__(self, ids_of: IdsOf, limit: int, pad: int, prompt: str = "") -> None:
        self._ids_of = ids_of
        self.limit = limit
        self.pad = pad
        self.prompt = prompt

    def __call__(self, sentences: Sequence[str], max_length: int | None = None) -> list[list[int]]:
        """Return the ids of each sentence, cut to ``max_length`` (the encoder's limit if none is given)."""
        texts = [f"{self.prompt}{sentence}" for sentence in sentences]
        return self._ids_of(texts, min(max_length or self.limit, self.limit)) if texts else []

    def padded(self, rows: Sequence[Sequence[int]], device: torch.device) -> tuple[Tensor, Tensor]:
        """Return ids and attention mask of shape (rows, longest row)."""
        longest = max(len(row) for row in rows)
        ids = torch.full((len(rows), longest), self.pad, dtype=torch.long)
        mask = torch.zeros((len(rows), longest), dtype=torch.long)
        for index, row in enumerate(rows):
            ids[index, : len(row)] = torch.tensor(row, dtype=torch.long)
            mask[index, : len(row)] = 1
        return sent(ids, device), sent(mask, device)


def own_tokens(folder: Path, config: Any, limit: int) -> Tokens:
    """Return the tokenizer of a folder of ours, whose tokenizer.json says all."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()

    def ids_of(texts: list[str], longest: int) -> list[list[int]]:
        tokenizer.enable_truncation(longest)
        return [encoding.ids for encoding in tokenizer.encode_batch_fast(texts)]

    return Tokens(ids_of, limit, config.pad_token_id or 0)


def foreign_tokens(folder: Path, entry: Mapping[str, Any], model: Any, limit: int) -> Tokens:
    """Return the tokenizer of a folder of others, with all that their settings say.

    Args:
        folder: with the tokenizer's files; older ones have no tokenizer.json, and settings may say more than it does.
        entry: what ``foreign_entry`` says of the folder: ``max_length``, ``lowercase`` and ``prompt``.
        model: the transformer that takes the ids.
        limit: longest row that it takes.

    Raises:
        SembenchError: the tokenizer does what is not supported here, or later gives an id that the model lacks.
    """
    from transformers import AutoTokenizer

    loaded = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    _check_vocabulary(loaded, folder)
    if entry.get("lowercase"):
        _lowercase(loaded, folder)
    if any(loaded("a").get("token_type_ids") or ()):
        raise SembenchError(
            f"{folder}: its tokenizer gives single texts other types than 0, which is not supported; set the type ids "
            "of its post-processor to 0 if the model was trained so"
        )
    rows = getattr(model.config, "vocab_size", None)  # that of its embedding, or it would not have loaded

    def ids_of(texts: list[str], longest: int) -> list[list[int]]:
        found: list[list[int]] = loaded(
            texts, truncation=True, max_length=longest, return_attention_mask=False, return_token_type_ids=False
        )["input_ids"]
        highest = max(max(row, default=0) for row in found)
        if rows is not None and highest >= rows:
            raise SembenchError(
                f"{folder}: the tokenizer gives '{loaded.convert_ids_to_tokens(highest)}' the id {highest}, but the "
                f"embedding has {rows} rows; restore the tokenizer that belongs to the weights"
            )
        return found

    longest = min(limit, int(entry.get("max_length") or loaded.model_max_length))
    pad = next((each for each in (loaded.pad_token_id, model.config.pad_token_id) if each is not None), 0)
    return Tokens(ids_of, longest, int(pad), prompt=str(entry.get("prompt") or ""))


def _check_vocabulary(tokenizer: Any, folder: Path) -> None:
    """Refuse a tokenizer without its words: transformers makes an empty one of whatever is not there."""
    if (folder / "tokenizer.json").is_file():
        return
    for kind, name in tokenizer.vocab_files_names.items():
        if kind != "tokenizer_file" and not (folder / name).is_file():
            raise SembenchError(f"{folder} has neither tokenizer.json nor {name}; restore the file")


def _lowercase(tokenizer: Any, folder: Path) -> None:
    if not tokenizer.is_fast:
        raise SembenchError(
            f"{folder}: 'do_lower_case' of its sentence-transformers settings needs a fast tokenizer; save it again "
            "with a tokenizer.json"
        )
    backend = tokenizer.backend_tokenizer
    backend.normalizer = Normalizers([Lowercase(), *([backend.normalizer] if backend.normalizer else [])])
