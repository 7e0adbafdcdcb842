"""Model folders as people have them: what scores has the vectors of sentence-transformers, the rest is one sentence."""

from __future__ import annotations

import functools
import json
import pickle
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer

from sembench.core.errors import SembenchError
from sembench.encoders.folder import load_encoder
from sembench.encoders.transformer import TransformerEncoder, read_entry

SENTENCES = [
    "The cook peels seven onions.",
    "",
    "THE STONE AND THE BREAD",
    "The stone of a gardener, behind the [MASK] barn.",
    " ".join(["the stone and the bread"] * 60),
]
Change = Callable[[Path], object]
# The sizes of every tiny model, under the names that the architectures have for them.
SHAPE = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "intermediate_size": 64,
    "embedding_size": 32,
    "vocab_size": 400,
    "pad_token_id": 0,
    "max_position_embeddings": 130,
    "position_biased_input": True,
}
OTHER_NAMES = {
    "DistilBert": {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 64},
    "GPT2": {"n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 130},
    "XLNet": {"d_model": 32, "n_layer": 2, "n_head": 2, "d_inner": 64, "max_position_embeddings": None},
    "T5": {"d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 1, "num_heads": 2},
    "Bart": {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1},
    "ModernBert": dict.fromkeys(("bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id"), 1),
}


@pytest.fixture(scope="module")
def plain(smoke_backbones: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A transformers folder as other programs save it: nothing of ours in it."""
    folder = shutil.copytree(smoke_backbones / "smoke_bert", tmp_path_factory.mktemp("plain") / "bert")
    (folder / "encoder.json").unlink()
    (folder / "heads.safetensors").unlink()
    transformers.AutoModel.from_pretrained(folder).save_pretrained(folder)
    return folder


# ------------------------------------------------------------------------------- what is done to the folder of a BERT


def saved(kind: str, **more: Any) -> Change:
    """Put a model of another class into the folder, such as BertForMaskedLM."""

    def change(folder: Path) -> None:
        torch.manual_seed(2)
        name = re.sub(r"(EncoderModel|Model|For\w+)$", "", kind)
        sizes = {**SHAPE, **OTHER_NAMES.get(name, {}), **more}
        config = getattr(transformers, f"{name}Config")(**{k: v for k, v in sizes.items() if v is not None})
        for path in folder.glob("model*"):
            path.unlink()
        getattr(transformers, kind)(config).save_pretrained(folder)

    return change


def settings(name: str, **changes: Any) -> Change:
    """Change keys of a JSON file, or write one."""

    def change(folder: Path) -> None:
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        old = json.loads(path.read_text()) if path.is_file() else {}
        path.write_text(json.dumps({**old, **changes}))

    return change


def written(name: str, content: str | bytes) -> Change:
    def change(folder: Path) -> None:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)

    return change


def without(*names: str) -> Change:
    return lambda folder: [(folder / name).unlink() for name in names]


def weights(change: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]], name: str = "model.safetensors"):
    """Change the tensors of the folder; a name that ends with .bin makes a pickle of them."""

    def changed(folder: Path) -> None:
        tensors = change(load_file(folder / "model.safetensors"))
        (folder / "model.safetensors").unlink()
        if name.endswith(".bin"):
            torch.save(tensors, folder / name)
        else:
            save_file(tensors, folder / name, metadata={"format": "pt"})

    return changed


def prefixed(prefix: str, **more: torch.Tensor) -> Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]:
    return lambda tensors: {f"{prefix}{name}": value for name, value in tensors.items()} | more


def in_pieces(name: str) -> Change:
    """Cut the weights into two files with an index, as large models come."""

    def change(folder: Path) -> None:
        tensors = load_file(folder / "model.safetensors")
        (folder / "model.safetensors").unlink()
        stem, suffix = name.split(".")
        halves = {f"{stem}-0000{i + 1}-of-00002.{suffix}": sorted(tensors)[i::2] for i in (0, 1)}
        for piece, names in halves.items():
            part = {each: tensors[each] for each in names}
            if suffix == "bin":
                torch.save(part, folder / piece)
            else:
                save_file(part, folder / piece, metadata={"format": "pt"})
        index = {each: piece for piece, names in halves.items() for each in names}
        (folder / f"{name}.index.json").write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": index}))

    return change


def words(folder: Path) -> list[str]:
    vocabulary = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    return sorted(vocabulary, key=vocabulary.__getitem__)


def only_vocab_txt(folder: Path) -> None:
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in words(folder)))
    without("tokenizer.json", "tokenizer_config.json")(folder)


def only_merges(folder: Path) -> None:
    letters = [*"abcdefghijklmnopqrstuvwxyzTS.,", "Ġ", "th", "the", "Ġthe"]
    names = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *letters]
    (folder / "vocab.json").write_text(json.dumps({name: i for i, name in enumerate(names)}))
    (folder / "merges.txt").write_text("#version: 0.2\nt h\nth e\nĠ the\n")
    without("tokenizer.json", "tokenizer_config.json")(folder)


def slow_tokenizer(folder: Path) -> None:
    (folder / "vocab.txt").write_text("".join(f"{word} 1\n" for word in ("the", "stone", "st@@", "and", "bread")))
    (folder / "bpe.codes").write_text("t h 3\nth e</w> 3\n")
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "PhobertTokenizer"}')
    without("tokenizer.json")(folder)


def cased(folder: Path) -> None:
    """A tokenizer.json that says lower case, beside settings that say the opposite."""
    settings("tokenizer_config.json", tokenizer_class="BertTokenizer", do_lower_case=False)(folder)


MODULE = "sentence_transformers.models."


def modules(*kinds: str, inner: str = "") -> Change:
    """Make it a folder of sentence-transformers."""

    def change(folder: Path) -> None:
        places = [inner, *(f"{i}_{kind}" for i, kind in enumerate(kinds) if i)]
        entries = [
            {"idx": i, "name": str(i), "path": place, "type": kind if "." in kind else f"{MODULE}{kind}"}
            for i, (kind, place) in enumerate(zip(kinds, places, strict=True))
        ]
        (folder / "modules.json").write_text(json.dumps(entries))
        for place in places[1:]:
            (folder / place).mkdir(exist_ok=True)
        if inner:
            (folder / inner).mkdir()
            for path in [path for path in folder.iterdir() if path.is_file() and path.name != "modules.json"]:
                path.rename(folder / inner / path.name)

    return change


def pooled(mode: Any = "mean", **more: Any) -> Change:
    return settings("1_Pooling/config.json", embedding_dimension=32, pooling_mode=mode, **more)


def dense(place: str, width: int, size: int, activation: str, name: str = "model.safetensors") -> Change:
    def change(folder: Path) -> None:
        torch.manual_seed(3)
        config = {"in_features": width, "out_features": size, "bias": True, "activation_function": activation}
        settings(f"{place}/config.json", **config)(folder)
        tensors = {"linear.weight": torch.randn(size, width) / 5, "linear.bias": torch.randn(size)}
        torch.save(tensors, folder / place / name) if name.endswith(".bin") else save_file(
            tensors, folder / place / name
        )

    return change


ST = (modules("Transformer", "Pooling"), pooled())
SETTINGS = "config_sentence_transformers.json"
TANH = "torch.nn.modules.activation.Tanh"
POOLING_FLAGS = {f"pooling_mode_{name}": False for name in ("mean_tokens", "mean_sqrt_len_tokens")}
HALF = functools.partial(weights, lambda tensors: {name: value.half() for name, value in tensors.items()})


# ------------------------------------------------------------------------------------------------------ what is scored

# Name -> the read-out that is taken, and what is done to the folder of a BERT.
SCORED: dict[str, tuple[str, tuple[Change, ...]]] = {
    "BERT": ("mean", ()),
    "BERT with a head for masked words": ("mean", (saved("BertForMaskedLM"),)),
    "BERT with a head for classes": ("mean", (saved("BertForSequenceClassification"),)),
    "RoBERTa": ("mean", (saved("RobertaModel", pad_token_id=1),)),
    "RoBERTa with a head for masked words": ("mean", (saved("RobertaForMaskedLM", pad_token_id=1),)),
    "DistilBERT": ("mean", (saved("DistilBertForMaskedLM"),)),
    "XLM-R": ("mean", (saved("XLMRobertaForMaskedLM", pad_token_id=1),)),
    "CamemBERT": ("mean", (saved("CamembertForMaskedLM", pad_token_id=1),)),
    "ALBERT": ("mean", (saved("AlbertForMaskedLM"),)),
    "MPNet": ("mean", (saved("MPNetForMaskedLM", pad_token_id=1),)),
    "ELECTRA": ("mean", (saved("ElectraForPreTraining"),)),
    "DeBERTa": ("mean", (saved("DebertaModel"),)),
    "DeBERTa v2 with a pooler of its own": ("mean", (saved("DebertaV2ForSequenceClassification"),)),
    "ModernBERT": ("mean", (saved("ModernBertForMaskedLM"),)),
    "GPT-2": ("mean", (saved("GPT2Model"),)),
    "Qwen 3": ("mean", (saved("Qwen3Model"),)),
    "a pickle": ("mean", (weights(lambda tensors: tensors, "pytorch_model.bin"),)),
    "pieces": ("mean", (in_pieces("model.safetensors"),)),
    "pickled pieces": ("mean", (in_pieces("pytorch_model.bin"),)),
    "half precision": ("mean", (HALF(), settings("config.json", dtype="float16"))),
    "names of TensorFlow": (
        "mean",
        (weights(lambda t: {n.replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta"): v
                            for n, v in t.items()}),),
    ),
    "position ids among the weights": ("mean", (weights(prefixed("", **{"embeddings.position_ids": torch.arange(9)})),)),
    "vocab.txt": ("mean", (only_vocab_txt,)),
    "vocab.json and merges.txt": ("mean", (saved("RobertaModel", pad_token_id=1), only_merges)),
    "a slow tokenizer": ("mean", (saved("RobertaModel", pad_token_id=1), slow_tokenizer)),
    "cut on the left": ("mean", (settings("tokenizer_config.json", truncation_side="left"),)),
    "case kept": ("mean", (cased,)),
    "a limit of its tokenizer": ("mean", (settings("tokenizer_config.json", model_max_length=12),)),
    "mean": ("mean", ST),
    "cls": ("cls", (*ST, pooled("cls"))),
    "max": ("sentence_transformers", (*ST, pooled("max"))),
    "older flags of pooling": (
        "cls",
        (modules("Transformer", "Pooling"),
         settings("1_Pooling/config.json", word_embedding_dimension=32, pooling_mode_cls_token=True, **POOLING_FLAGS)),
    ),
    "an older layout": (
        "mean", (*ST, settings("sentence_bert_config.json", max_seq_length=16),
                 modules("Transformer", "Pooling", inner="0_Transformer")),
    ),
    "older settings": ("mean", (*ST, settings("sentence_roberta_config.json", max_seq_length=9))),
    "lower case": (
        "mean", (*ST, settings("tokenizer_config.json", tokenizer_class="BertTokenizer", do_lower_case=False),
                 settings("sentence_bert_config.json", do_lower_case=True)),
    ),
    "a default prompt": ("mean", (*ST, settings(SETTINGS, prompts={"q": "The Bread: "}, default_prompt_name="q"))),
    "prompts": ("mean", (*ST, settings(SETTINGS, prompts={"query": "The Bread: ", "document": ""}))),
    "truncate_dim": ("sentence_transformers", (*ST, settings(SETTINGS, truncate_dim=8))),
    "Normalize": ("sentence_transformers", (modules("Transformer", "Pooling", "Normalize"), pooled("cls"))),
    "Dense": (
        "sentence_transformers", (modules("Transformer", "Pooling", "Dense"), pooled(), dense("2_Dense", 32, 12, TANH)),
    ),
    "Dense, pickled, and Normalize, cut": (
        "sentence_transformers",
        (modules("Transformer", "Pooling", "Dense", "Normalize"), pooled("max"), settings(SETTINGS, truncate_dim=5),
         dense("2_Dense", 32, 40, "torch.nn.modules.activation.GELU", "pytorch_model.bin")),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SCORED)
def test_vectors_are_those_of_sentence_transformers(plain: Path, tmp_path: Path, case: str) -> None:
    readout, changes = SCORED[case]
    folder = shutil.copytree(plain, tmp_path / "model")
    for change in changes:
        change(folder)
    encoder = load_encoder(folder)
    assert isinstance(encoder, TransformerEncoder)
    assert read_entry(folder)["readout"] == readout
    peer = SentenceTransformer(str(folder), device="cpu", model_kwargs={"dtype": torch.float32})
    # Where positions begin after the padding id, it runs over the last one and stops.
    assert encoder.tokens.limit == peer.max_seq_length or (encoder.tokens.limit, peer.max_seq_length) == (128, 130)
    peer.max_seq_length = encoder.tokens.limit
    np.testing.assert_allclose(encoder.encode(SENTENCES, [readout])[readout], peer.encode(SENTENCES), atol=1e-5)


# ----------------------------------------------------------------------------------------------------- what is refused


class _Evil:
    """A pickle that would leave a mark where it is read."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return Path.touch, (self.mark,)


def evil_pickle(folder: Path) -> None:
    without("model.safetensors")(folder)
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps({"a": _Evil(folder / "ran")}, protocol=2))


def evil_module(folder: Path) -> None:
    (folder / "evil.py").write_text(f"open({str(folder / 'ran')!r}, 'w')\nclass Layer: pass\n")
    modules("Transformer", "Pooling", "evil.Layer")(folder)


def evil_model(folder: Path) -> None:
    (folder / "evil.py").write_text(f"open({str(folder / 'ran')!r}, 'w')\nclass Config: pass\nclass Model: pass\n")
    auto_map = {"AutoConfig": "evil.Config", "AutoModel": "evil.Model"}
    settings("config.json", model_type="evil", auto_map=auto_map)(folder)


def cut_weights(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def lost_piece(folder: Path) -> None:
    in_pieces("model.safetensors")(folder)
    without("model-00002-of-00002.safetensors")(folder)


def longer_vocabulary(folder: Path) -> None:
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"]["text"] = 100_000  # a word of the text that a folder is tried with
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))


def lora(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {**tensors, "encoder.layer.0.attention.self.query.lora_A.default.weight": torch.zeros(2, 32)}


LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 1\n"
LOADED = r"cannot be loaded \("
# What is said, and what is done to the folder of a BERT.
REFUSED: dict[str, tuple[str, tuple[Change, ...]]] = {
    "T5": (r"type 't5' have a decoder", (saved("T5Model", max_position_embeddings=None),)),
    "the encoder of T5": (
        r"type 't5' does not say how many", (saved("T5EncoderModel", max_position_embeddings=None),),
    ),
    "BART": (r"type 'bart' have a decoder", (saved("BartModel"),)),
    "XLNet": (r"a model of type 'xlnet' does not say how many positions it has", (saved("XLNetModel"),)),
    "an unknown type": (LOADED + r".*`nobert`", (settings("config.json", model_type="nobert"),)),
    "no type": (LOADED, (written("config.json", "{}"),)),
    "code of a model": (r"type 'evil' need the code in their folder, which is never run", (evil_model,)),
    "code of a module": (r"'evil\.Layer' is code of its own, which is never run", (evil_module,)),
    "code in a pickle": (r"pytorch_model\.bin cannot be read", (evil_pickle,)),
    "code of a tokenizer": (
        LOADED, (settings("tokenizer_config.json", tokenizer_class="Evil", auto_map={"AutoTokenizer": ["evil.T", None]}),
                 written("evil.py", "raise SystemExit"), without("tokenizer.json")),
    ),
    "no config": ("is not a model folder", (without("config.json"),)),
    "an empty config": (r"config\.json is not valid JSON", (written("config.json", ""),)),
    "a config that is a list": (r"config\.json is not a JSON object", (written("config.json", "[]"),)),
    "a deep config": (r"config\.json is not valid JSON", (written("config.json", "[" * 100_000),)),
    "a config in another encoding": (r"config\.json is not valid JSON", (written("config.json", b'{"a": "\xff"}'),)),
    "a width that does not fit": (r"holds \S+ of shape \(32,\) where its config\.json says \(16,\)", (settings("config.json", hidden_size=16),)),
    "words for a width": (LOADED, (settings("config.json", hidden_size="wide"),)),
    "another vocabulary": (r"holds embeddings\.word_embeddings\.weight of sh", (settings("config.json", vocab_size=7),)),
    "more layers than its config": (r"holds the weights .*encoder\.layer\.1\.", (settings("config.json", num_hidden_layers=1),)),
    "fewer layers than its config": (r"lacks the weights .*encoder\.layer\.2\.", (settings("config.json", num_hidden_layers=3),)),
    "no weights": (LOADED + r".*no file named model\.safetensors", (without("model.safetensors"),)),
    "weights for another library": (LOADED, (without("model.safetensors"), written("tf_model.h5", "x"))),
    "empty weights": (r"model\.safetensors cannot be read", (written("model.safetensors", ""),)),
    "cut weights": (r"model\.safetensors cannot be read", (cut_weights,)),
    "a pointer of Git LFS": (r"model\.safetensors is a Git LFS pointer.*git lfs pull", (written("model.safetensors", LFS),)),
    "a pointer for its words": (r"tokenizer\.json is a Git LFS pointer", (written("tokenizer.json", LFS),)),
    "a lost piece": (r"model-00002-of-00002\.safetensors is missing", (lost_piece,)),
    "an index of nothing": (
        r"index\.json cannot be read", (without("model.safetensors"), written("model.safetensors.index.json", "{}")),
    ),
    "weights under a prefix": (r"lacks the weights", (weights(prefixed("module.model.")),)),
    "weights of a list": (
        r"pytorch_model\.bin cannot be read",
        (without("model.safetensors"), lambda f: torch.save([torch.zeros(1)], f / "pytorch_model.bin")),
    ),
    "weights that are no numbers": (
        r"vectors are not finite", (weights(lambda t: {name: value * float("nan") for name, value in t.items()}),),
    ),
    "quantised weights": ("holds quantised weights", (settings("config.json", quantization_config={"load_in_8bit": True,
                                                      "quant_method": "bitsandbytes"}),)),
    "weights of an adapter among its own": (r"lora_A", (weights(lora),)),
    "an adapter": (r"adapter_config\.json: adapters are not supported", (settings("adapter_config.json", r=8),)),
    "an adapter alone": (
        r"adapter_config\.json: adapters", (settings("adapter_config.json", r=8), without("config.json")),
    ),
    "no tokenizer": (r"neither tokenizer\.json nor vocab\.txt", (without("tokenizer.json", "tokenizer_config.json"),)),
    "no merges": (LOADED + ".*`merges`", (saved("RobertaModel"), only_merges, without("merges.txt"))),
    "an empty vocabulary": (LOADED + r".*Missing \[UNK\]", (only_vocab_txt, written("vocab.txt", ""))),
    "a vocabulary for SentencePiece": (LOADED, (saved("XLMRobertaModel", pad_token_id=1), without("tokenizer.json", "tokenizer_config.json"), written("sentencepiece.bpe.model", "x"))),
    "a broken tokenizer": (LOADED, (written("tokenizer.json", "{"),)),
    "ids beyond the embedding": (r"gives 'text' the id 100000, but the embedding has 167 rows", (longer_vocabulary,)),
    "no length": (LOADED, (settings("tokenizer_config.json", model_max_length="long"),)),
    "no module": (r"nothing is not supported", (written("modules.json", "[]"),)),
    "words without a transformer": ("WordEmbeddings \\+ Pooling is not", (modules("WordEmbeddings", "Pooling"),)),
    "CLIP of sentence-transformers": ("CLIPModel is not supported", (modules("CLIPModel"),)),
    "two ways": ("Router is not supported", (modules("Router"),)),
    "a cross-encoder": ("modules\\.json: Transformer is not supported", (modules("Transformer"),)),
    "a mean of layers": ("WeightedLayerPooling is not", (modules("Transformer", "WeightedLayerPooling", "Pooling"),)),
    "a norm": ("kind 'LayerNorm' is not supported", (modules("Transformer", "Pooling", "LayerNorm"), pooled())),
    "the last token": ("pooling by lasttoken is not", (*ST, pooled("lasttoken"))),
    "a weighted mean": ("pooling by weightedmean is not", (*ST, pooled("weightedmean"))),
    "two poolings": (r"pooling by cls \+ mean is not", (*ST, pooled(["cls", "mean"]))),
    "a pooling that is a number": ("pooling by 5 is not", (*ST, pooled(5))),
    "a prompt left out": (
        "'include_prompt': false", (*ST, pooled(include_prompt=False), settings(SETTINGS, prompts={"q": "Q: "}, default_prompt_name="q")),
    ),
    "a prompt that is not there": ("'default_prompt_name': x is not among", (*ST, settings(SETTINGS, default_prompt_name="x"))),
    "a list of prompts": (r"'prompts': \['a'\] is no mapping", (*ST, settings(SETTINGS, prompts=["a"]))),
    "a cut to nothing": ("'truncate_dim': 0 is not a width", (*ST, settings(SETTINGS, truncate_dim=0))),
    "a length in words": ("'max_seq_length': long is not", (*ST, settings("sentence_bert_config.json", max_seq_length="long"))),
    "another task": ("'transformer_task': fill-mask is not", (*ST, settings("sentence_bert_config.json", transformer_task="fill-mask"))),
    "arguments of its tokenizer": (
        "'tokenizer_args': .* is not supported", (*ST, settings("sentence_bert_config.json", tokenizer_args={"add_eos": 1})),
    ),
    "normalised tokens": (
        "'module_input_name': 'token_embeddings' is not",
        (modules("Transformer", "Pooling", "Normalize"), pooled(), settings("2_Normalize/config.json", module_input_name="token_embeddings")),
    ),
    "an activation of its own": (
        r"activation 'os\.system' is not", (modules("Transformer", "Pooling", "Dense"), pooled(), dense("2_Dense", 32, 8, "os.system")),
    ),
    "a Dense that does not fit": (
        "is not a linear layer on 32 inputs", (modules("Transformer", "Pooling", "Dense"), pooled(), dense("2_Dense", 9, 8, TANH)),
    ),
    "a broken record of ours": (LOADED, (written("encoder.json", '{"kind": "transformer", "heads": 3}'),)),
    "word vectors of nothing": (
        LOADED, (written("encoder.json", '{"kind": "static"}'), written("vocab.txt", "a\n"), written("vectors.safetensors", "x")),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_the_rest_is_one_sentence_with_a_remedy(plain: Path, tmp_path: Path, case: str) -> None:
    sentence, changes = REFUSED[case]
    folder = shutil.copytree(plain, tmp_path / "model")
    for change in changes:
        change(folder)
    with pytest.raises(SembenchError, match=sentence) as caught:
        load_encoder(folder)
    text = str(caught.value)
    assert text.startswith(str(folder)) and "\n" not in text and len(text) < 700
    assert re.search(r"; \w[^;]*$", text), text
    assert not (folder / "ran").exists()


# ------------------------------------------------------------------------------------------------------ what is said


def simcse(head: str, kind: str = "Bert") -> Change:
    """Make it a checkpoint of SimCSE: its training script's (mlp), or as it is released (pooler)."""

    def change(folder: Path) -> None:
        saved(f"{kind}ForMaskedLM", pad_token_id=int(kind == "Roberta"))(folder)
        torch.manual_seed(4)
        more = {f"{head}.dense.weight": torch.randn(32, 32) / 9, f"{head}.dense.bias": torch.randn(32)}
        keep = "" if head == "mlp" else f"{kind.lower()}."
        weights(
            lambda tensors: {n.removeprefix(keep): v for n, v in tensors.items() if n.startswith(keep)} | more,
            "pytorch_model.bin",
        )(folder)

    return change


@pytest.mark.parametrize(
    ("head", "kind", "taken", "offered", "said"),
    [
        ("mlp", "Bert", "cls_mlp", "cls_mlp", "unsupervised SimCSE drops it: --readout cls"),
        ("mlp", "Roberta", "cls_mlp", "cls_mlp", "unsupervised SimCSE drops it: --readout cls"),
        ("pooler", "Bert", "mean", "pooler", "--readout pooler (supervised) or --readout cls (unsupervised)"),
        ("pooler", "Roberta", "mean", "pooler", "--readout pooler (supervised) or --readout cls (unsupervised)"),
    ],
)
def test_simcses_own_checkpoints_are_read_by_its_protocol(
    plain: Path, tmp_path: Path, head: str, kind: str, taken: str, offered: str, said: str
) -> None:
    folder = shutil.copytree(plain, tmp_path / "model")
    simcse(head, kind)(folder)
    encoder, entry = load_encoder(folder), read_entry(folder)
    assert entry["readout"] == taken and said in entry["why"]
    found = encoder.encode(SENTENCES, ["cls", offered])
    tensors = torch.load(folder / "pytorch_model.bin", weights_only=True)
    weight, bias = (tensors[f"{head}.dense.{name}"].numpy() for name in ("weight", "bias"))
    np.testing.assert_allclose(found[offered], np.tanh(found["cls"] @ weight.T + bias), atol=1e-5)


def test_weights_that_nothing_uses_are_named(plain: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(plain, tmp_path / "model")
    assert load_encoder(folder).notes == ()
    head = {f"cls.{name}": torch.zeros(1) for name in "abcde"}
    weights(prefixed("bert.", **head))(folder)
    (note,) = load_encoder(folder).notes
    assert note == "the weights cls.a, cls.b, cls.c and 2 more belong to no part of the encoder and are not used"


def test_a_model_that_reads_padding_is_said_to(plain: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(plain, tmp_path / "model")
    saved("FNetModel")(folder)
    (note,) = load_encoder(folder).notes
    assert re.fullmatch(r"its vectors depend on what is encoded beside a text \(by \d+\.\d% in a try\): .*", note)


def test_how_texts_are_prepared_is_said(plain: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(plain, tmp_path / "model")
    for change in (*ST, settings("sentence_bert_config.json", max_seq_length=9), settings(SETTINGS, truncate_dim=4)):
        change(folder)
    settings(SETTINGS, prompts={"query": "Q: ", "passage": "P: "})(folder)
    prompts = "without the prompts passage, query, none of which is its default"
    assert read_entry(folder)["why"] == f"modules.json says mean + truncate, at most 9 tokens, {prompts}"
    settings(SETTINGS, default_prompt_name="query")(folder)
    assert read_entry(folder)["why"] == "modules.json says mean + truncate, at most 9 tokens, after the prompt 'Q: '"
