"""Model folders that other programs saved, against what those programs make of them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Normalize, Transformer
from sentence_transformers.sentence_transformer.modules import Pooling

from sembench.core.errors import SembenchError
from sembench.encoders.folder import load_encoder
from sembench.encoders.transformer import TransformerEncoder, read_entry

SENTENCES = [
    "The cook peels seven onions.",
    "Stone.",
    "A gardener waters the tall sunflowers behind the barn, and the road.",
    " ".join(["the stone and the bread"] * 60),
]


@pytest.fixture(scope="module")
def plain(smoke_backbones: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A transformers folder as other programs save it: nothing of ours in it."""
    folder = shutil.copytree(smoke_backbones / "smoke_bert", tmp_path_factory.mktemp("plain") / "bert")
    (folder / "encoder.json").unlink()
    (folder / "heads.safetensors").unlink()
    transformers.AutoModel.from_pretrained(folder).save_pretrained(folder)
    return folder


def st_folder(plain: Path, target: Path, pooling: Any, *after: Any, **options: Any) -> tuple[Path, Any]:
    torch.manual_seed(5)
    words = Transformer(str(plain), **options)
    model = SentenceTransformer(modules=[words, Pooling(32, pooling_mode=pooling), *after], device="cpu")
    model.save(str(target), create_model_card=False)
    return target, SentenceTransformer(str(target), device="cpu")


def dense(width: int, size: int, activation: torch.nn.Module, bias: bool = True) -> Dense:
    return Dense(width, size, bias=bias, activation_function=activation)


def own(folder: Path) -> tuple[TransformerEncoder, str]:
    encoder = load_encoder(folder)
    assert isinstance(encoder, TransformerEncoder)
    return encoder, str(read_entry(folder)["readout"])


CASES: dict[str, tuple[str, list[Any], str]] = {
    "cls": ("cls", [], "cls"),
    "mean": ("mean", [], "mean"),
    "max": ("max", [], "sentence_transformers"),
    "normalize": ("mean", [Normalize()], "sentence_transformers"),
    "dense": ("cls", [dense(32, 12, torch.nn.Tanh())], "sentence_transformers"),
    "no bias": ("mean", [dense(32, 48, torch.nn.Identity(), bias=False)], "sentence_transformers"),
    "three": (
        "mean",
        [dense(32, 16, torch.nn.ReLU()), dense(16, 8, torch.nn.GELU()), Normalize()],
        "sentence_transformers",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_vectors_are_those_of_sentence_transformers(plain: Path, tmp_path: Path, case: str) -> None:
    pooling, after, expected = CASES[case]
    folder, model = st_folder(plain, tmp_path / "model", pooling, *after)
    encoder, readout = own(folder)
    assert readout == expected and readout in encoder.readouts
    found = encoder.encode(SENTENCES, [readout])[readout]
    np.testing.assert_allclose(found, model.encode(SENTENCES), atol=1e-5)
    assert found.shape == (4, encoder.width_of(readout))


def test_length_prompt_and_case_are_followed(plain: Path, tmp_path: Path) -> None:
    folder, _ = st_folder(plain, tmp_path / "model", "mean", max_seq_length=20)
    prompts = {"prompts": {"find": "Find the stone: "}, "default_prompt_name": "find"}
    settings = json.loads((folder / "config_sentence_transformers.json").read_text())
    (folder / "config_sentence_transformers.json").write_text(json.dumps({**settings, **prompts}))
    model = SentenceTransformer(str(folder), device="cpu")
    assert model.max_seq_length == 20
    encoder, readout = own(folder)
    np.testing.assert_allclose(encoder.encode(SENTENCES, [readout])[readout], model.encode(SENTENCES), atol=1e-5)


def test_older_folders_keep_their_parts_elsewhere(plain: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(plain, folder / "0_Transformer")
    (folder / "0_Transformer" / "sentence_bert_config.json").write_text('{"max_seq_length": 16, "do_lower_case": true}')
    (folder / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": 32, "pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    kinds = {"0_Transformer": "Transformer", "1_Pooling": "Pooling"}
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(kinds.items())
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    encoder, readout = own(folder)
    assert readout == "cls" and encoder.tokens.limit == 16
    assert read_entry(folder)["why"] == "modules.json says cls, at most 16 tokens, lower-cased"
    texts = [*SENTENCES, *(text.upper() for text in SENTENCES)]
    expected = SentenceTransformer(str(folder), device="cpu").encode(texts)
    np.testing.assert_allclose(encoder.encode(texts, ["cls"])["cls"], expected, atol=1e-5)


def edited(folder: Path, name: str, **changes: Any) -> None:
    path = folder / name
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def renamed_module(folder: Path, index: int, **changes: Any) -> None:
    modules = json.loads((folder / "modules.json").read_text())
    modules[index].update(changes)
    (folder / "modules.json").write_text(json.dumps(modules))


REFUSED: dict[str, tuple[Any, str]] = {
    "weighted mean": (
        lambda f: edited(f, "1_Pooling/config.json", pooling_mode="weightedmean"),
        r"1_Pooling/config\.json: pooling by weightedmean is not supported",
    ),
    "concatenation": (
        lambda f: edited(f, "1_Pooling/config.json", pooling_mode=["cls", "mean"]),
        r"pooling by cls \+ mean is not supported",
    ),
    "no pooling": (lambda f: (f / "1_Pooling/config.json").unlink(), r"1_Pooling/config\.json is missing"),
    "a broken list": (lambda f: (f / "modules.json").write_text("[{]"), r"modules\.json is not valid JSON"),
    "a list of words": (lambda f: (f / "modules.json").write_text('["a"]'), r"modules\.json is not a list of modules"),
    "another layer": (
        lambda f: renamed_module(f, 2, type="sentence_transformers.models.LayerNorm"),
        r"modules\.json: a module of kind 'LayerNorm' is not supported; Dense and Normalize are",
    ),
    "code of its own": (lambda f: renamed_module(f, 2, type="evil.Layer"), r"'evil\.Layer' is code of its own"),
    "a path outside": (lambda f: renamed_module(f, 2, path="../x"), r"the path '\.\./x' leaves the folder"),
    "an activation": (
        lambda f: edited(f, "2_Dense/config.json", activation_function="os.system"),
        r"2_Dense/config\.json: the activation 'os\.system' is not supported",
    ),
    "a residual": (lambda f: edited(f, "2_Dense/config.json", use_residual=True), "'use_residual' is not supported"),
    "tokens as input": (
        lambda f: edited(f, "2_Dense/config.json", module_input_name="token_embeddings"),
        "'module_input_name': 'token_embeddings' is not supported",
    ),
    "no weights": (lambda f: (f / "2_Dense/model.safetensors").unlink(), r"2_Dense holds neither model\.safetensors"),
    "cut weights": (
        lambda f: (f / "2_Dense/model.safetensors").write_bytes(b"\x10\x00"),
        r"2_Dense/model\.safetensors cannot be read",
    ),
    "other weights": (
        lambda f: save_file({"linear.weight": torch.zeros(4, 9)}, f / "2_Dense/model.safetensors"),
        r"2_Dense holds \{'linear\.weight': \(4, 9\)\}, which is not a linear layer on 32 inputs",
    ),
}


@pytest.fixture(scope="module")
def with_dense(plain: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dense") / "model"
    return st_folder(plain, folder, "mean", dense(32, 12, torch.nn.Tanh()))[0]


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_supported_is_one_sentence(with_dense: Path, tmp_path: Path, case: str) -> None:
    folder = shutil.copytree(with_dense, tmp_path / "model")
    damage, sentence = REFUSED[case]
    damage(folder)
    with pytest.raises(SembenchError, match=sentence) as caught:
        load_encoder(folder)
    assert "\n" not in str(caught.value)


# ------------------------------------------------------------------------------------------------ transformers folders


def test_a_plain_folder_offers_its_pooler(plain: Path, tmp_path: Path) -> None:
    assert "pooler" in load_encoder(plain).readouts
    folder = shutil.copytree(plain, tmp_path / "model")
    weights = {k: v for k, v in load_file(folder / "model.safetensors").items() if not k.startswith("pooler.")}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    encoder, readout = own(folder)
    assert "pooler" not in encoder.readouts and readout == "mean"


def test_simcses_own_checkpoint_keeps_its_head(plain: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(plain, tmp_path / "model")
    weights = {f"bert.{name}": value for name, value in load_file(folder / "model.safetensors").items()}
    torch.manual_seed(1)
    head = {"mlp.dense.weight": torch.randn(32, 32) / 9, "mlp.dense.bias": torch.randn(32)}
    save_file({**weights, **head}, folder / "model.safetensors", metadata={"format": "pt"})
    encoder, _ = own(folder)
    found = encoder.encode(SENTENCES, ["cls", "cls_mlp"])
    expected = np.tanh(found["cls"] @ head["mlp.dense.weight"].numpy().T + head["mlp.dense.bias"].numpy())
    np.testing.assert_allclose(found["cls_mlp"], expected, atol=1e-5)


SHAPE = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "vocab_size": 400,
    "embedding_size": 32,
}


@pytest.mark.parametrize(
    ("model", "pooler", "limit"),
    [
        ("Bert", False, 130),
        ("MPNet", False, 128),
        ("XLMRoberta", False, 128),
        ("Camembert", False, 128),
        ("Roberta", True, 128),
        ("Albert", False, 130),
        ("Electra", False, 130),
        ("DistilBert", False, 130),
    ],
)
def test_architectures_with_and_without_a_pooling_layer(
    plain: Path, tmp_path: Path, model: str, pooler: bool, limit: int
) -> None:
    torch.manual_seed(2)
    shape = {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 64} if model == "DistilBert" else SHAPE
    config = getattr(transformers, f"{model}Config")(
        **{**shape, "vocab_size": 400}, max_position_embeddings=130, pad_token_id=0 if limit == 130 else 1
    )
    # A masked language model is saved without a pooling layer; a bare encoder with one.
    kind = f"{model}Model" if pooler else f"{model}ForMaskedLM"
    saved = getattr(transformers, kind)(config).eval()
    saved.save_pretrained(tmp_path)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(plain / name, tmp_path / name)
    encoder, _ = own(tmp_path)
    assert ("pooler" in encoder.readouts) is pooler
    assert encoder.tokens.limit == limit
    found = encoder.encode(SENTENCES, ["cls"])["cls"]
    ids = torch.tensor([encoder.tokens([SENTENCES[3]])[0]])
    assert ids.shape == (1, limit)
    inner = saved if pooler else saved.base_model
    with torch.inference_mode():
        expected = inner(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state[0, 0]
    np.testing.assert_allclose(found[3], expected.numpy(), atol=1e-5)


def test_weights_of_the_encoder_that_nothing_uses_are_refused(plain: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(plain, tmp_path / "model")
    edited(folder, "config.json", num_hidden_layers=1)
    with pytest.raises(SembenchError, match=r"holds the weights \['encoder\.layer\.1\..*does not have"):
        load_encoder(folder)
    edited(folder, "config.json", num_hidden_layers=2)
    weights = load_file(folder / "model.safetensors")
    lora = {"encoder.layer.0.attention.self.query.lora_A.weight": torch.zeros(2, 32)}
    save_file({**weights, **lora}, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(SembenchError, match=r"lora_A"):
        load_encoder(folder)
    head = {"cls.predictions.bias": torch.zeros(7), "embeddings.position_ids": torch.arange(130)}
    save_file({**weights, **head}, folder / "model.safetensors", metadata={"format": "pt"})
    assert load_encoder(folder).readouts


def test_code_in_a_folder_never_runs(plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = shutil.copytree(plain, tmp_path / "model")
    mark = tmp_path / "ran"
    (folder / "evil.py").write_text(f"open({str(mark)!r}, 'w')\nclass Config: pass\nclass Model: pass\n")
    edited(folder, "config.json", model_type="evil", auto_map={"AutoConfig": "evil.Config", "AutoModel": "evil.Model"})
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    with pytest.raises(SembenchError, match="need the code in their folder, which is never run"):
        load_encoder(folder)
    edited(folder, "config.json", model_type="bert")
    assert load_encoder(folder).readouts
    assert not mark.exists()


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda f: (f / "config.json").write_text("{"), r"config\.json is not valid JSON"),
        (lambda f: (f / "config.json").unlink(), "is not a model folder"),
        (
            lambda f: (f / "model.safetensors").write_bytes(b"version https://git-lfs"),
            r"model\.safetensors is a Git LFS pointer, not the file; fetch it with: git lfs pull",
        ),
        (lambda f: (f / "model.safetensors").write_bytes(b"version"), r"model\.safetensors cannot be read"),
        (
            lambda f: (f / "model.safetensors").unlink(),
            r"cannot be loaded \(OSError: .*no file named model\.safetensors",
        ),
        (lambda f: (f / "config.json").write_text('{"model_type": "t5"}'), "have a decoder, which is not supported"),
        (
            lambda f: edited(f, "config.json", vocab_size=7),
            r"holds embeddings\.word_embeddings\.weight of shape \(\d+, 32\) where its config\.json says \(7, 32\)",
        ),
        (lambda f: (f / "encoder.json").write_text("[]"), r"encoder\.json is not a JSON object"),
        (lambda f: (f / "encoder.json").write_text("{"), r"encoder\.json is not valid JSON"),
        (lambda f: (f / "encoder.json").write_text('{"kind": "statik"}'), "did you mean 'static'"),
    ],
)
def test_damaged_folders_are_one_sentence(plain: Path, tmp_path: Path, damage: Any, sentence: str) -> None:
    folder = shutil.copytree(plain, tmp_path / "model")
    damage(folder)
    with pytest.raises(SembenchError, match=sentence) as caught:
        load_encoder(folder)
    assert "\n" not in str(caught.value)


def test_vocabularies_without_a_tokenizer_file(plain: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(plain, tmp_path / "model")
    vocabulary = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").unlink()
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in sorted(vocabulary, key=vocabulary.__getitem__)))
    assert load_encoder(folder).tokens(SENTENCES) == load_encoder(plain).tokens(SENTENCES)  # type: ignore[attr-defined]
