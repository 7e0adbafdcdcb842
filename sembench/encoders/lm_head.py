"""A checkpoint's masked-language-model head: what tells from a hidden state which word piece stood there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForMaskedLM, AutoTokenizer

from sembench.core.errors import SembenchError
from sembench.encoders.door import door


class LMHead(nn.Module):
    """The layers that a masked language model has above its encoder, whatever they are called in its architecture.

    They are those of transformers' own model, whose encoder is replaced by one that returns what it is given. The
    output layer is a weight of its own: transformers ties it to the word embeddings of an encoder that is not kept.

    Args:
        model: a masked language model of transformers; its encoder is taken out of it.
        tokenizer: that of transformers.

    Attributes:
        words: size of the tokenizer's vocabulary; that of the scores may be larger.
        mask: id of [MASK].
        specials: ids that stand for no text, [MASK] and the unknown piece among them.
    """

    def __init__(self, model: Any, tokenizer: Any) -> None:
        super().__init__()
        setattr(model, model.base_model_prefix, _Given())
        self.model = model
        self.tokenizer = tokenizer
        self.words = len(tokenizer)
        self.mask = int(tokenizer.mask_token_id)
        self.specials = tuple(sorted(int(number) for number in tokenizer.all_special_ids))

    def forward(self, states: Tensor) -> Tensor:
        """Return scores of all word pieces, (places, vocabulary), for last hidden states (places, width)."""
        scores: Tensor = self.model(inputs_embeds=states.unsqueeze(0)).logits
        return scores.squeeze(0)


class _Given(nn.Module):
    """An encoder that returns what it is given in place of embeddings."""

    def forward(self, *_: Any, inputs_embeds: Tensor, **__: Any) -> Any:
        from transformers.modeling_outputs import BaseModelOutput

        return BaseModelOutput(last_hidden_state=inputs_embeds)


def load_lm_head(folder: Path) -> LMHead:
    """Load the head of the checkpoint in a folder; nothing of it is initialised anew.

    Args:
        folder: with config.json, weights and tokenizer, as transformers writes them.

    Raises:
        SembenchError: the checkpoint has no such head, or its tokenizer no mask.
    """
    with door(folder):
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        if AutoModelForMaskedLM._model_mapping.get(type(config), None) is None:
            raise _no_head(folder, f"its type '{config.model_type}' is no masked language model")
        model, info = AutoModelForMaskedLM.from_pretrained(
            folder,
            config=config,
            local_files_only=True,
            trust_remote_code=False,
            dtype=torch.float32,
            output_loading_info=True,
        )
        if lacking := sorted(info["missing_keys"]):
            raise _no_head(folder, f"it lacks {', '.join(lacking[:3])}")
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        if tokenizer.mask_token_id is None:
            raise _no_head(folder, "its tokenizer_config.json names no mask_token")
        return LMHead(model, tokenizer)


def _no_head(folder: Path, why: str) -> SembenchError:
    return SembenchError(
        f"{folder} has no masked-language-model head ({why}); take a checkpoint that was saved with it, such as "
        "BERT's, RoBERTa's or BERT-tiny's"
    )
