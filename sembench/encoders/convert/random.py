"""Random two-layer transformers over the project's word list: always the same, and without any meaning."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sembench.core.files import atomic_path, write_json
from sembench.core.lazy import torch
from sembench.core.schema import Strict
from sembench.encoders.convert.base import POOLER, TransformerConverter

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_SHAPE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
_SPECIALS = {
    "bert": {
        "pad_token": "[PAD]",
        "unk_token": "[UNK]",
        "cls_token": "[CLS]",
        "sep_token": "[SEP]",
        "mask_token": "[MASK]",
    },
    "roberta": {
        "cls_token": "<s>",
        "pad_token": "<pad>",
        "sep_token": "</s>",
        "unk_token": "<unk>",
        "mask_token": "<mask>",
    },
}


class Random(TransformerConverter):
    """BERT with a pooler or RoBERTa without one, both with 32 units and a masked-language-model head."""

    version = 2

    class Config(Strict):
        """Which architecture."""

        architecture: Literal["bert", "roberta"]

    @classmethod
    def offers(cls, config: Any) -> tuple[str, ...]:
        """Return the read-outs of hidden states, and the pooler for BERT."""
        return (*super().offers(config), *([POOLER] if config.architecture == "bert" else []))

    @classmethod
    def convert(cls, config: Any, source: Path | None, target: Path) -> dict[str, Any]:
        """Draw the weights and make a word-piece tokenizer of ``words.txt``."""
        from sembench.encoders.heads import save_heads
        from sembench.encoders.transformer import save_transformer

        words = ((source or Path()) / "words.txt").read_text(encoding="utf-8").split()
        specials = _SPECIALS[config.architecture]
        vocabulary = {token: index for index, token in enumerate([*specials.values(), *_pieces(words)])}
        torch.manual_seed(0)
        save_transformer(_model(config.architecture, len(vocabulary)), target)
        with atomic_path(target / "tokenizer.json") as temporary:
            _word_pieces(vocabulary, specials).save(str(temporary))
        write_json(target / "tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast", **specials})
        return {"heads": save_heads({}, target), "pooler": config.architecture == "bert"}


def _model(architecture: str, words: int) -> Any:
    from transformers import BertConfig, BertForMaskedLM, BertModel, RobertaConfig, RobertaForMaskedLM, RobertaModel

    size = {"vocab_size": words, "max_position_embeddings": 130}
    if architecture == "roberta":
        shape = RobertaConfig(**_SHAPE, **size, pad_token_id=1)
        model, lm = RobertaModel(shape, add_pooling_layer=False), RobertaForMaskedLM(shape)
    else:
        shape = BertConfig(**_SHAPE, **size, pad_token_id=0)
        model, lm = BertModel(shape, add_pooling_layer=True), BertForMaskedLM(shape)
    # The published checkpoints hold both: the encoder, in BERT's case with its pooler, and the head.
    setattr(lm, lm.base_model_prefix, model)
    lm.tie_weights()
    return lm


def _pieces(words: list[str]) -> list[str]:
    letters = sorted({letter for word in words for letter in word} | set("0123456789.,!?'-"))
    return [*dict.fromkeys([*letters, *(f"##{letter}" for letter in letters), *words])]


def _word_pieces(vocabulary: dict[str, int], specials: dict[str, str]) -> Tokenizer:
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    first, last, unknown = (specials[name] for name in ("cls_token", "sep_token", "unk_token"))
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=unknown))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.add_special_tokens(list(specials.values()))
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{first} $A {last}", special_tokens=[(token, vocabulary[token]) for token in (first, last)]
    )
    return tokenizer


PLUGIN = Random
