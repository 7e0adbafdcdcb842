"""The fast layers and packed rows of training on a processor against transformers' own layers on padded rows."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import AutoConfig, AutoModel

from sembench.encoders.devices import autocast
from sembench.encoders.readouts import MLPHead
from sembench.encoders.tokens import Tokens
from sembench.encoders.transformer import TransformerEncoder, save_transformer
from sembench.training.batches import encode_rows
from sembench.training.kernels import FAST, FastDropout, kept, kept_factors, quicken
from sembench.training.packing import AFTER_PADDING, FROM_ZERO, Packed, attention, packs, prepare

ARCHITECTURES = sorted(FROM_ZERO | AFTER_PADDING)
SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 24}
SIZES |= {"dim": 16, "n_layers": 2, "n_heads": 4, "hidden_dim": 24, "embedding_size": 12, "vocab_size": 40}


def tiny(kind: str, dropout: float = 0.0) -> TransformerEncoder:
    torch.manual_seed(0)
    config = AutoConfig.for_model(kind, max_position_embeddings=24, **SIZES)
    for name in ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "attention_dropout"):
        if hasattr(config, name):
            setattr(config, name, dropout)
    options = {} if kind in {"distilbert", "electra"} else {"add_pooling_layer": False}
    model = AutoModel.from_config(config, **options)
    return TransformerEncoder(
        model, Tokens(lambda *_: [], 20, config.pad_token_id or 0), {"cls_mlp": MLPHead(16)}
    ).train()


def some_rows() -> list[list[int]]:
    draw = torch.Generator().manual_seed(1)
    lengths = [5, 2, 9, 5, 7, 2, 1, 9, 9]
    return [torch.randint(4, 40, (length,), generator=draw).tolist() for length in lengths]


# --------------------------------------------------------------------------------------------------- packed rows


@pytest.mark.parametrize("chunk_rows", [0, 4])
@pytest.mark.parametrize("readout", ["cls", "mean", "last2", "first_last", "embed_last", "cls_mlp"])
@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_packed_rows_give_the_vectors_and_gradients_of_padded_ones(kind: str, readout: str, chunk_rows: int) -> None:
    plain = tiny(kind)
    plain.model.double()  # read-outs and heads are float32
    fast = copy.deepcopy(plain)
    prepare(fast)
    assert packs(fast) and not packs(plain)
    rows = some_rows()
    found = [encode_rows(plain, rows, readout, 0), encode_rows(fast, rows, readout, chunk_rows)]
    torch.testing.assert_close(found[1], found[0], rtol=0, atol=1e-6)
    weights = torch.randn_like(found[0])
    for vectors in found:
        (vectors * weights).sum().backward()
    for (name, one), other in zip(plain.named_parameters(), fast.parameters(), strict=True):
        assert (one.grad is None) == (other.grad is None), name
        if one.grad is not None:
            torch.testing.assert_close(other.grad, one.grad, rtol=0, atol=1e-5, msg=name)


def test_the_gradient_of_packed_attention_with_dropout_equals_differences() -> None:
    packed = Packed([[7, 8, 9], [7], [9, 8], [8, 9]])
    draw = torch.Generator().manual_seed(2)
    tokens = packed.ids.shape[1]
    states = [torch.randn(1, 2, tokens, 3, dtype=torch.float64, generator=draw, requires_grad=True) for _ in range(3)]

    def attend(*states: Tensor) -> Tensor:
        torch.manual_seed(5)  # the same masks at every call
        return attention(nn.Identity(), *states, None, dropout=0.4, scaling=0.7, packed=packed)[0]

    assert torch.autograd.gradcheck(attend, states)


def test_attention_drops_what_its_masks_say() -> None:
    """Against a loop over rows and heads, whose weights are multiplied by the same factors."""
    rows = some_rows()
    packed = Packed(rows)
    tokens = packed.ids.shape[1]
    query, key, value = torch.randn(3, 1, 2, tokens, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    torch.manual_seed(6)
    found = attention(nn.Identity(), query, key, value, None, dropout=0.3, packed=packed)[0]
    torch.manual_seed(6)
    factors = iter(kept_factors(2 * sum(len(row) ** 2 for row in rows), 0.3, torch.float64).tolist())
    assert {len(row) for row in rows} == {length for _, length in packed.groups}
    start = 0
    for length in sorted(len(row) for row in rows):
        for head in range(2):
            q, k, v = (states[0, head, start : start + length] for states in (query, key, value))
            weights = (q @ k.T / 3**0.5).softmax(-1)
            for cell in range(length**2):
                weights.view(-1)[cell] *= next(factors)
            torch.testing.assert_close(found[0, start : start + length, head], weights @ v)
        start += length
    assert next(factors, None) is None


def test_rows_of_other_architectures_are_padded_as_before() -> None:
    config = AutoConfig.for_model("mpnet", max_position_embeddings=24, **SIZES)
    encoder = TransformerEncoder(AutoModel.from_config(config), Tokens(lambda *_: [], 20, 1), {}).train()
    prepare(encoder)
    assert not packs(encoder)
    assert encode_rows(encoder, some_rows(), "cls", 0).shape == (9, 16)


def test_evaluation_is_untouched(tmp_path: Path) -> None:
    """A prepared encoder scores as the plain one does, bit for bit, and its model folder tells nothing of it."""
    plain = tiny("bert", dropout=0.2)
    fast = copy.deepcopy(plain)
    prepare(fast)
    ids, mask = plain.tokens.padded(some_rows(), plain.device)
    for precision in ("fp32", "bf16"):
        with torch.inference_mode(), autocast(precision, plain.device):
            one, other = (encoder.eval()(ids, mask, ["mean"])["mean"] for encoder in (plain, fast))
        assert torch.equal(one, other)
    for name, encoder in (("plain", plain), ("fast", fast)):
        save_transformer(encoder.model, tmp_path / name) if (tmp_path / name).mkdir() is None else None
    one, other = (json.loads((tmp_path / name / "config.json").read_text()) for name in ("plain", "fast"))
    assert one == other


# ------------------------------------------------------------------------------------------------------- dropout


@pytest.mark.parametrize("p", [0.01, 0.1, 0.5])
def test_masks_keep_their_share_and_are_independent(p: float) -> None:
    torch.manual_seed(3)
    rows = torch.stack([kept(20_000, p)[0] for _ in range(50)]).double()
    spread = (p * (1 - p)) ** 0.5
    # Five deviations; a share that is met to 1 in 65,536 besides.
    assert abs(rows.mean().item() - (1 - p)) < 5 * spread / 1e3 + 2**-16
    assert (rows.mean(1) - (1 - p)).abs().max() < 5 * spread / 20_000**0.5 + 2**-16
    standard = (rows - (1 - p)) / spread
    for one, other in (
        (standard[:-1], standard[1:]),
        (standard[:, :-1], standard[:, 1:]),
        (standard[:, :-4], standard[:, 4:]),
    ):
        assert abs((one * other).mean().item()) < 5e-3  # from mask to mask, neighbour to neighbour, draw to draw
    _, factor = kept(10, p)
    assert factor * (1 - p) == pytest.approx(1, abs=2**-15)


def test_masks_follow_torch_alone() -> None:
    torch.manual_seed(4)
    first, second = kept(100, 0.5)[0], kept(100, 0.5)[0]
    assert not torch.equal(first, second)
    torch.manual_seed(4)
    state = torch.get_rng_state()
    assert torch.equal(kept(100, 0.5)[0], first)
    torch.set_rng_state(state)
    assert torch.equal(kept(100, 0.5)[0], first) and torch.equal(kept(100, 0.5)[0], second)


def test_dropout_scales_what_stays() -> None:
    layer = FastDropout(0.25)
    values = torch.full((1000,), 3.0)
    found = layer(values)
    assert set(found.unique().tolist()) == {0.0, 4.0}
    assert torch.equal(layer.eval()(values), values)
    assert torch.equal(FastDropout(1.0)(values), torch.zeros(1000))
    assert torch.equal(FastDropout(0.0)(values), values)


def test_two_views_of_a_sentence_differ_by_dropout() -> None:
    encoder = tiny("bert", dropout=0.1)
    prepare(encoder)
    rows = some_rows()
    one, other = encode_rows(encoder, [*rows, *rows], "cls", 0).chunk(2)
    assert (one - other).abs().amax(1).min() > 1e-3


def test_views_differ_by_as_much_as_with_torchs_masks() -> None:
    """The same rates at the same places: cosines between two views of rows have the same mean and spread."""
    plain = tiny("bert", dropout=0.2)
    fast = copy.deepcopy(plain)
    prepare(fast)
    row = some_rows()[2]
    torch.manual_seed(9)
    drawn = []
    for encoder in (plain, fast):
        one, other = encode_rows(encoder, [row] * 6000, "cls", 0).detach().chunk(2)
        drawn.append(functional.cosine_similarity(one, other))
    error = (sum(cosines.var() for cosines in drawn) / 3000).sqrt()
    assert abs(drawn[0].mean() - drawn[1].mean()) < 4 * error < 0.03
    assert drawn[0].std() == pytest.approx(drawn[1].std().item(), rel=0.1)


# --------------------------------------------------------------------------------------------------- bf16 layers


def test_bf16_layers_are_as_near_to_float64_as_autocast() -> None:
    torch.manual_seed(7)
    plain = nn.Sequential(nn.LayerNorm(64), nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 64), nn.LayerNorm(64))
    fast, exact = copy.deepcopy(plain), copy.deepcopy(plain).double()
    quicken(fast)
    assert [type(layer) in FAST.values() for layer in fast] == [True, True, False, True, True]
    values, weights = torch.randn(5, 7, 64), torch.randn(5, 7, 64)
    errors = {}
    (exact(values.double()) * weights).sum().backward()
    for name, model in (("plain", plain), ("fast", fast)):
        with autocast("bf16", torch.device("cpu")):
            found = model(values).float()
        (found * weights).sum().backward()
        errors[name] = [
            ((one.grad - other.grad).norm() / other.grad.norm()).item()
            for one, other in zip(model.parameters(), exact.parameters(), strict=True)
        ]
        assert all(parameter.grad.dtype == torch.float32 for parameter in model.parameters())
    assert max(errors["fast"]) < 0.02
    assert max(errors["fast"]) < 2 * max(errors["plain"])


def test_a_linear_layer_without_bias_and_in_fp32() -> None:
    layer = nn.Sequential(nn.Linear(8, 6, bias=False))
    values = torch.randn(3, 8)
    expected = functional.linear(values, layer[0].weight)
    quicken(layer)
    assert torch.equal(layer(values), expected)
    with autocast("bf16", torch.device("cpu")):
        layer(values).sum().backward()
    torch.testing.assert_close(layer[0].weight.grad, values.sum(0).expand(6, 8), rtol=0.02, atol=0.02)
