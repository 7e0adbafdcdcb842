"""Read-outs against naive loops over the layers that transformers itself returns."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModel, BertModel

from sembench.core.errors import SembenchError
from sembench.encoders.folder import load_encoder
from sembench.encoders.heads import save_heads
from sembench.encoders.readouts import MLPHead, masked_mean
from sembench.encoders.transformer import TransformerEncoder, budgeted, load_transformer, read_entry

SENTENCES = [
    "The cook peels seven onions.",
    "Stone.",
    "A gardener waters the tall sunflowers behind the barn, and the road.",
]


def layers(folder: Path, encoder: TransformerEncoder, sentence: str) -> list[np.ndarray]:
    """Hidden states (length, width) of one sentence alone, from transformers, in float64."""
    model = AutoModel.from_pretrained(folder).eval()
    with torch.inference_mode():
        ids = torch.tensor([encoder.tokens([sentence])[0]])
        return [h[0].double().numpy() for h in model(input_ids=ids, output_hidden_states=True).hidden_states]


NAIVE = {
    "cls": lambda h: h[-1][0],
    "mean": lambda h: sum(h[-1][t] for t in range(len(h[-1]))) / len(h[-1]),
    "last2": lambda h: sum((h[-1][t] + h[-2][t]) / 2 for t in range(len(h[-1]))) / len(h[-1]),
    "first_last": lambda h: sum((h[1][t] + h[-1][t]) / 2 for t in range(len(h[-1]))) / len(h[-1]),
    "embed_last": lambda h: sum((h[0][t] + h[-1][t]) / 2 for t in range(len(h[-1]))) / len(h[-1]),
}


@pytest.mark.parametrize("backbone", ["smoke_bert", "smoke_roberta"])
def test_readouts_equal_naive_loops(smoke_backbones: Path, backbone: str) -> None:
    folder = smoke_backbones / backbone
    encoder = load_encoder(folder)
    assert isinstance(encoder, TransformerEncoder)
    found = encoder.encode(SENTENCES, list(NAIVE))
    for name, naive in NAIVE.items():
        for row, sentence in enumerate(SENTENCES):
            np.testing.assert_allclose(found[name][row], naive(layers(folder, encoder, sentence)), atol=2e-6)


def test_padding_changes_nothing(smoke_backbones: Path) -> None:
    encoder = load_encoder(smoke_backbones / "smoke_bert")
    together = encoder.encode(SENTENCES, ["first_last", "cls"])
    for row, sentence in enumerate(SENTENCES):
        alone = encoder.encode([sentence], ["first_last", "cls"])
        for name in together:
            np.testing.assert_allclose(together[name][row], alone[name][0], atol=1e-6)


def test_masked_mean_counts_specials_and_no_padding() -> None:
    states = torch.tensor([[[1.0], [2.0], [9.0]], [[1.0], [3.0], [5.0]]])
    mask = torch.tensor([[1, 1, 0], [1, 1, 1]])
    assert masked_mean(states, mask).tolist() == [[1.5], [3.0]]


def test_pooler_equals_the_checkpoints_own(smoke_backbones: Path) -> None:
    folder = smoke_backbones / "smoke_bert"
    encoder = load_encoder(folder)
    model = BertModel.from_pretrained(folder).eval()
    with torch.inference_mode():
        ids = torch.tensor([encoder.tokens([SENTENCES[0]])[0]])
        expected = model(input_ids=ids).pooler_output[0].numpy()
    np.testing.assert_allclose(encoder.encode(SENTENCES[:1], ["pooler"])["pooler"][0], expected, atol=1e-6)


def test_head_is_linear_then_tanh_of_cls() -> None:
    torch.manual_seed(0)
    head = MLPHead(4)
    assert head.dense.bias.abs().max() == 0
    assert 0.005 < head.dense.weight.std() < 0.05
    x = torch.randn(3, 4)
    expected = np.tanh(x.numpy() @ head.dense.weight.detach().numpy().T)
    np.testing.assert_allclose(head(x).detach().numpy(), expected, atol=1e-6)


def with_entry(folder: Path, target: Path, **changes: Any) -> Path:
    """Copy a model folder and change its encoder.json."""
    copy = shutil.copytree(folder, target)
    entry = json.loads((copy / "encoder.json").read_text())
    (copy / "encoder.json").write_text(json.dumps({**entry, **changes}))
    return copy


def test_a_head_survives_the_model_folder(smoke_backbones: Path, tmp_path: Path) -> None:
    torch.manual_seed(3)
    head = MLPHead(32)
    folder = with_entry(smoke_backbones / "smoke_roberta", tmp_path / "model", heads={"cls_mlp": "mlp"})
    assert save_heads({"cls_mlp": head}, folder) == {"cls_mlp": "mlp"}
    assert sorted(load_file(folder / "heads.safetensors")) == ["cls_mlp.dense.bias", "cls_mlp.dense.weight"]
    before = torch.random.get_rng_state()
    encoder = load_encoder(folder)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert encoder.readouts == ("cls", "mean", "last2", "first_last", "embed_last", "cls_mlp")
    found = encoder.encode(SENTENCES, ["cls", "cls_mlp"])
    weight, bias = head.dense.weight.detach().numpy(), head.dense.bias.detach().numpy()
    np.testing.assert_allclose(found["cls_mlp"], np.tanh(found["cls"] @ weight.T + bias), atol=1e-6)


def test_a_module_that_cannot_be_loaded_again_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(SembenchError, match="head 'Linear' is not in what 'cls_mlp' may be"):
        save_heads({"cls_mlp": torch.nn.Linear(2, 2)}, tmp_path)


NO_HEAD: dict[str, torch.Tensor] = {}
HALF_A_HEAD = {"cls_mlp.dense.weight": torch.zeros(32, 32)}
NARROW = {"cls_mlp.dense.weight": torch.zeros(16, 16), "cls_mlp.dense.bias": torch.zeros(16)}
STRAY = {"other.dense.bias": torch.zeros(32)}


@pytest.mark.parametrize(
    ("heads", "tensors", "sentence"),
    [
        ({"cls_mlp": "mlp"}, None, r"heads\.safetensors is missing"),
        ({"cls_mlp": "mlp"}, NO_HEAD, "holds no tensor for a head of kind 'mlp'"),
        ({"cls_mlp": "mlp"}, HALF_A_HEAD, r"dense\.bias"),
        ({"cls_mlp": "mlp"}, NARROW, r"\(16, 16\)"),
        ({}, STRAY, r"\['other\.dense\.bias'\], which belong to no head"),
        ({"cls_mlp": "mpl"}, NARROW, "kind of head 'mpl'.*did you mean 'mlp'"),
    ],
)
def test_a_head_is_never_initialised_anew(
    smoke_backbones: Path, tmp_path: Path, heads: dict[str, str], tensors: dict[str, torch.Tensor] | None, sentence: str
) -> None:
    folder = with_entry(smoke_backbones / "smoke_bert", tmp_path / "model", heads=heads)
    if tensors is None:
        (folder / "heads.safetensors").unlink()
    else:
        save_file(tensors, folder / "heads.safetensors")
    with pytest.raises(SembenchError, match=sentence):
        load_encoder(folder)


def test_a_missing_weight_is_an_error_not_a_random_layer(smoke_backbones: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(smoke_backbones / "smoke_bert", tmp_path / "model")
    weights = load_file(folder / "model.safetensors")
    weights.pop("bert.encoder.layer.1.output.dense.weight")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(SembenchError, match=r"lacks the weights \['encoder.layer.1.output.dense.weight'\]"):
        load_encoder(folder)


def test_a_missing_pooler_is_an_error(smoke_backbones: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(smoke_backbones / "smoke_bert", tmp_path / "model")
    weights = {k: v for k, v in load_file(folder / "model.safetensors").items() if not k.startswith("bert.pooler.")}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(SembenchError, match="lacks the weights"):
        load_encoder(folder)


def test_unknown_readout_names_the_nearest(smoke_backbones: Path) -> None:
    encoder = load_encoder(smoke_backbones / "smoke_bert")
    with pytest.raises(SembenchError, match="did you mean 'first_last'"):
        encoder.encode(SENTENCES, ["firstlast"])


def test_dropout_override_reaches_every_layer(smoke_backbones: Path) -> None:
    folder = smoke_backbones / "smoke_bert"
    encoder = load_transformer(folder, read_entry(folder), dropout=0.25)
    rates = {module.p for module in encoder.modules() if isinstance(module, torch.nn.Dropout)}
    assert rates == {0.25}


def test_batches_stay_within_the_budget_and_lose_nothing() -> None:
    lengths = [3, 50, 7, 7, 120, 1, 33, 64, 2]
    batches = budgeted(lengths, 128)
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        assert max(lengths[i] for i in batch) * len(batch) <= 128 or len(batch) == 1


def test_training_length_includes_the_specials(smoke_backbones: Path) -> None:
    encoder = load_encoder(smoke_backbones / "smoke_bert")
    long = " ".join(["stone"] * 60)
    [row] = encoder.tokens([long], 32)
    assert len(row) == 32
    assert row[0] == encoder.tokens(["stone"])[0][0]
    assert row[-1] == encoder.tokens(["stone"])[0][-1]
    assert len(encoder.tokens([long])[0]) == 62


def test_static_mean_by_hand(smoke_backbones: Path) -> None:
    encoder = load_encoder(smoke_backbones / "smoke_glove")
    vectors = load_file(smoke_backbones / "smoke_glove" / "vectors.safetensors")["vectors"].numpy()
    words = (smoke_backbones / "smoke_glove" / "vocab.txt").read_text().split()
    expected = (vectors[words.index("stone")] + vectors[words.index("bread")]) / 2
    found = encoder.encode(["Stone, unheardof bread!", "qqq zzz"], ["mean"])["mean"]
    np.testing.assert_allclose(found[0], expected, atol=1e-6)
    assert not found[1].any()
