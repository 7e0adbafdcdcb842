"""The contrastive objective against a naive loop in float64 and against sentence-transformers."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

from sembench.encoders.transformer import load_transformer, read_entry
from sembench.registry.models import Recipe
from sembench.training.batches import encode_rows, step_rows, steps_per_epoch
from sembench.training.objectives import info_nce
from sembench.training.tasks import SentenceViews

SENTENCES = [
    "The cook peels seven onions in the kitchen.",
    "A gardener waters the tall sunflowers.",
    "My aunt counts.",
    "The old sailor mends a torn net near the harbour before the wind and the water and the road.",
    "Our neighbour paints the garden gate.",
    "The beekeeper sells a basket of plums at the market every year.",
]


def batch_loss(recipe: Recipe, encoder) -> torch.Tensor:
    return SentenceViews(recipe, encoder, SENTENCES).loss(range(len(SENTENCES)), "fp32")[0]


def naive_loss(anchors: list[list[float]], positives: list[list[float]], temperature: float) -> float:
    def cos(a: list[float], b: list[float]) -> float:
        dot = sum(x * y for x, y in zip(a, b, strict=True))
        return dot / math.sqrt(sum(x * x for x in a)) / math.sqrt(sum(y * y for y in b))

    total = 0.0
    for i, anchor in enumerate(anchors):
        scores = [math.exp(cos(anchor, other) / temperature) for other in positives]
        total -= math.log(scores[i] / sum(scores))
    return total / len(anchors)


@pytest.mark.parametrize("temperature", [0.05, 0.5, 1.0])
def test_equals_a_naive_loop(temperature: float) -> None:
    generator = torch.Generator().manual_seed(3)
    a = torch.randn(7, 5, generator=generator, dtype=torch.float64)
    b = torch.randn(7, 5, generator=generator, dtype=torch.float64)
    assert info_nce(a, b, temperature).item() == pytest.approx(
        naive_loss(a.tolist(), b.tolist(), temperature), abs=1e-12
    )


def test_known_value_by_hand() -> None:
    # Orthonormal rows: cosine 1 with the own positive, 0 with the other; loss = log(1 + exp(-1/T)).
    eye = torch.eye(2, dtype=torch.float64)
    assert info_nce(eye, eye, 0.5).item() == pytest.approx(math.log(1 + math.exp(-2)), abs=1e-12)


def test_only_anchors_look_for_positives() -> None:
    # The objective has one direction: exchanging the sides gives another value.
    a = torch.tensor([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]])
    b = torch.tensor([[1.0, 0.0], [1.0, 0.0], [1.0, 0.2]])
    assert abs(info_nce(a, b, 0.05).item() - info_nce(b, a, 0.05).item()) > 0.1


@pytest.fixture
def encoder(smoke_backbones: Path):
    folder = smoke_backbones / "smoke_bert"
    return load_transformer(folder, {**read_entry(folder), "pooler": False}, dropout=0.0)


def gradients(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: p.grad.clone() for name, p in module.named_parameters() if p.grad is not None}


def test_loss_and_gradients_equal_sentence_transformers(smoke_backbones: Path, encoder) -> None:
    """Same weights, same batch, dropout off: MultipleNegativesRankingLoss at scale 20 is temperature 0.05."""
    recipe = Recipe(head="none", readout="mean", select_by="mean", temperature=0.05)
    encoder.train()
    loss = batch_loss(recipe, encoder)
    loss.backward()
    ours = gradients(encoder.model)

    from sentence_transformers.models import Pooling, Transformer

    words = Transformer(str(smoke_backbones / "smoke_bert"), max_seq_length=32)
    peer = SentenceTransformer(modules=[words, Pooling(32, pooling_mode="mean")], device="cpu")
    for part in peer.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
    peer.eval()
    objective = MultipleNegativesRankingLoss(peer, scale=20.0)
    features = [peer.tokenize(SENTENCES), peer.tokenize(SENTENCES)]
    reference = objective(features, labels=None)
    reference.backward()
    theirs = gradients(peer[0].auto_model)

    assert loss.item() == pytest.approx(reference.item(), abs=1e-5)
    compared = 0
    for name, gradient in ours.items():
        torch.testing.assert_close(gradient, theirs[name], atol=1e-5, rtol=1e-4)
        compared += int(gradient.abs().max() > 1e-6)
    assert compared > 20


@pytest.mark.parametrize("readout", ["cls", "mean", "last2", "first_last", "embed_last"])
@pytest.mark.parametrize("chunk_rows", [1, 4, 5, 100])
def test_chunked_batch_equals_the_whole(encoder, readout: str, chunk_rows: int) -> None:
    rows = encoder.tokens(SENTENCES, 32)
    whole = encode_rows(encoder, rows, readout, 0)
    chunked = encode_rows(encoder, rows, readout, chunk_rows)
    torch.testing.assert_close(chunked, whole, atol=2e-6, rtol=1e-5)


def test_chunked_gradients_equal_the_whole(encoder) -> None:
    recipe = Recipe(head="none", readout="first_last", select_by="first_last")
    encoder.train()
    found = []
    for chunk_rows in (0, 4):
        encoder.zero_grad()
        batch_loss(recipe.model_copy(update={"chunk_rows": chunk_rows}), encoder).backward()
        found.append(gradients(encoder.model))
    for name, gradient in found[0].items():
        torch.testing.assert_close(found[1][name], gradient, atol=1e-6, rtol=1e-4)


def test_two_views_differ_by_dropout_alone(smoke_backbones: Path) -> None:
    folder = smoke_backbones / "smoke_bert"
    encoder = load_transformer(folder, {**read_entry(folder), "pooler": False}, dropout=0.3)
    encoder.train()
    rows = encoder.tokens(SENTENCES, 32)
    vectors = encode_rows(encoder, [*rows, *rows], "cls", 0)
    first, second = vectors[: len(rows)], vectors[len(rows) :]
    assert (first - second).abs().max() > 1e-3
    encoder.eval()
    vectors = encode_rows(encoder, [*rows, *rows], "cls", 0)
    torch.testing.assert_close(vectors[: len(rows)], vectors[len(rows) :], atol=1e-6, rtol=1e-5)


def test_an_epoch_shows_every_row_once() -> None:
    batches = list(step_rows(rows=10, batch_size=4, seed=5, first_step=0, last_step=6))
    assert [len(batch) for batch in batches] == [4, 4, 2, 4, 4, 2]
    assert sorted(i for batch in batches[:3] for i in batch) == list(range(10))
    assert sorted(i for batch in batches[3:] for i in batch) == list(range(10))
    assert batches[:3] != batches[3:]
    assert steps_per_epoch(10, 4) == 3


def test_a_resumed_order_continues_the_old_one() -> None:
    whole = list(step_rows(23, 4, seed=1, first_step=0, last_step=15))
    assert list(step_rows(23, 4, seed=1, first_step=7, last_step=15)) == whole[7:]
    assert list(step_rows(23, 4, seed=2, first_step=0, last_step=15)) != whole
