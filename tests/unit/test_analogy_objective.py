"""The analogy paper's objective against naive loops, the collapse it rewards, and the task built on it."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch.nn import functional

from sembench.core.errors import SembenchError
from sembench.encoders.transformer import TransformerEncoder, load_transformer, read_entry
from sembench.registry.models import Recipe, StudyLine
from sembench.training.objectives import relation_info_nce, relation_vectors
from sembench.training.study import BATCH, TEMPERATURE, free_vectors
from sembench.training.tasks import Definitions, RelationRows, at_places, build_task


def cos(a: list[float], b: list[float]) -> float:
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    return dot / math.sqrt(sum(x * x for x in a)) / math.sqrt(sum(y * y for y in b))


def naive(h, plus, minus, temperature, negatives, relations, third_relations) -> float:
    """The loss written out as sums of exponentials."""
    total = 0.0
    for i in range(len(h)):
        own = math.exp(cos(h[i], plus[i]) / temperature)
        below = sum(
            math.exp(cos(h[i], minus[j]) / temperature) for j in range(len(h)) if third_relations[j] != relations[i]
        )
        if negatives == "cross_relation":
            below += sum(
                math.exp(cos(h[i], plus[j]) / temperature) for j in range(len(h)) if relations[j] != relations[i]
            )
        if negatives != "third_pairs":
            below += own
        total -= math.log(own / below)
    return total / len(h)


@pytest.mark.parametrize("negatives", ["third_pairs", "third_pairs_plus_positive", "cross_relation"])
def test_equals_a_naive_loop_with_masks(negatives: str) -> None:
    generator = torch.Generator().manual_seed(2)
    h, plus, minus = (torch.randn(6, 4, generator=generator, dtype=torch.float64) for _ in range(3))
    relations, third_relations = torch.tensor([0, 0, 1, 1, 2, 2]), torch.tensor([5, 1, 6, 0, 7, 1])
    same = relations.unsqueeze(1) == relations
    false = relations.unsqueeze(1) == third_relations
    found = relation_info_nce(h, plus, minus, 0.3, negatives, same, false)
    expected = naive(
        h.tolist(), plus.tolist(), minus.tolist(), 0.3, negatives, relations.tolist(), third_relations.tolist()
    )
    assert found.item() == pytest.approx(expected, abs=1e-12)


def no_mask(n: int) -> torch.Tensor:
    return torch.zeros(n, n, dtype=torch.bool)


def loss_of(vectors: torch.Tensor, negatives: str, relations: torch.Tensor) -> float:
    """Loss where every pair sits on its relation's vector and every third pair is an exchanged pair (negated)."""
    same = relations.unsqueeze(1) == relations
    return relation_info_nce(vectors, vectors, -vectors, 0.05, negatives, same, no_mask(len(vectors))).item()


def test_the_papers_objective_rewards_collapse() -> None:
    """All relations on one vector reach -2/T + log N; a perfect separation of 16 relations stays far above."""
    relations = torch.arange(64) % 16
    collapsed = torch.ones(64, 16, dtype=torch.float64)
    separate = functional.one_hot(relations, 16).double()
    assert loss_of(collapsed, "third_pairs", relations) == pytest.approx(-2 / 0.05 + math.log(64), abs=1e-9)
    # 60 third pairs at cosine 0 and 4 at -1: log(60 + 4 exp(-20)) - 20.
    assert loss_of(separate, "third_pairs", relations) == pytest.approx(math.log(60 + 4 * math.exp(-20)) - 20, abs=1e-9)
    assert loss_of(collapsed, "third_pairs", relations) < loss_of(separate, "third_pairs", relations)


def test_cross_relation_negatives_turn_the_order_round() -> None:
    relations = torch.arange(64) % 16
    collapsed = torch.ones(64, 16, dtype=torch.float64)
    separate = functional.one_hot(relations, 16).double()
    assert loss_of(separate, "cross_relation", relations) < loss_of(collapsed, "cross_relation", relations)
    # With the positive alone in the denominator both are close to 0: nothing is gained by separating.
    assert loss_of(collapsed, "third_pairs_plus_positive", relations) == pytest.approx(0.0, abs=1e-6)


def test_an_anchor_without_negatives_is_an_error() -> None:
    h = torch.randn(2, 3)
    false = torch.tensor([[True, True], [False, True]])
    with pytest.raises(ValueError, match="false negative"):
        relation_info_nce(h, h, h, 0.05, "third_pairs", no_mask(2), false)


def test_relation_vectors_by_hand() -> None:
    a, b = torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 5.0]])
    assert relation_vectors(a, b, "diff").tolist() == [[-2.0, -3.0]]
    assert relation_vectors(a, b, "concat").tolist() == [[1.0, 2.0, 3.0, 5.0]]
    assert relation_vectors(a, b, "concat_diff").tolist() == [[1.0, 2.0, 3.0, 5.0, -2.0, -3.0]]


# ------------------------------------------------------------------------------------------------------------- tasks


@pytest.fixture
def encoder(smoke_backbones: Path) -> TransformerEncoder:
    folder = smoke_backbones / "smoke_bert"
    return load_transformer(folder, {**read_entry(folder), "pooler": False}, dropout=0.0)


def frame() -> pd.DataFrame:
    """Four rows over two relations; the third pair of the last row has the directed relation of the first rows."""
    words = ["the stone house.", "a small road.", "the cook sells bread.", "water and wind.", "my aunt.", "a torn net."]
    rows = []
    for number, (relation, third) in enumerate([("a:b", "b:a"), ("a:b", "d:c"), ("c:d", "d:c"), ("c:d", "a:b")]):
        row = {"relation": relation}
        for place, (role, directed) in enumerate({"anchor": relation, "positive": relation, "third": third}.items()):
            row[f"{role}_source_gloss"] = words[(number + place) % 6]
            row[f"{role}_target_gloss"] = words[(number + 2 * place + 1) % 6]
            row[f"{role}_directed"] = directed
        rows.append(row)
    return pd.DataFrame(rows)


@pytest.mark.parametrize("how", ["diff", "concat", "concat_diff"])
@pytest.mark.parametrize("mask", [True, False])
def test_the_task_reads_the_frame_as_it_is_written(encoder: TransformerEncoder, how: str, mask: bool) -> None:
    recipe = Recipe(objective="analogy", head="none", readout="mean", relation_encoder=how, mask_false_negatives=mask,
                    temperature=0.2, chunk_rows=3)  # fmt: skip
    data = frame()
    task = build_task(recipe, encoder, data)
    assert isinstance(task, RelationRows)
    loss, facts = task.loss([0, 1, 2, 3], "fp32")

    def vector(row: pd.Series, role: str) -> list[float]:
        one, two = (encoder.encode([row[f"{role}_{side}_gloss"]], ["mean"])["mean"][0] for side in ("source", "target"))
        return {
            "diff": one - two,
            "concat": np.concatenate([one, two]),
            "concat_diff": np.concatenate([one, two, one - two]),
        }[how].tolist()

    h, plus, minus = ([vector(row, role) for _, row in data.iterrows()] for role in ("anchor", "positive", "third"))
    thirds = data["third_directed"] if mask else ["none"] * 4
    expected = naive(h, plus, minus, 0.2, "third_pairs", list(data["anchor_directed"]), list(thirds))
    assert loss.item() == pytest.approx(expected, abs=1e-4)
    assert facts["own_cosine"] == pytest.approx(np.mean([cos(a, b) for a, b in zip(h, plus, strict=True)]), abs=1e-5)
    crossed = [cos(h[i], plus[j]) for i in range(4) for j in range(4) if (i < 2) != (j < 2)]
    assert facts["cross_cosine"] == pytest.approx(np.mean(crossed), abs=1e-5)


def test_defsent_predicts_through_frozen_embeddings(encoder: TransformerEncoder) -> None:
    data = pd.DataFrame({"word": ["stone", "bread", "unheardofword"], "gloss": ["a small road.", "my aunt.", "water."]})
    recipe = Recipe(objective="defsent", head="none", readout="mean", select_by="mean")
    task = build_task(recipe, encoder, data)
    assert isinstance(task, Definitions)
    assert task.rows == 2
    loss, _ = task.loss([0, 1], "fp32")
    table = encoder.model.get_input_embeddings().weight.detach().double().numpy()
    expected = []
    for word, gloss in [("stone", "a small road."), ("bread", "my aunt.")]:
        scores = table @ encoder.encode([gloss], ["mean"])["mean"][0].astype(float)
        expected.append(math.log(np.exp(scores).sum()) - scores[encoder.tokens([word])[0][1]])
    assert loss.item() == pytest.approx(np.mean(expected), abs=1e-4)
    loss.backward()
    assert not task.output.requires_grad


def test_nothing_to_train_on(encoder: TransformerEncoder) -> None:
    with pytest.raises(SembenchError, match="no sentence to train on"):
        build_task(Recipe(), encoder, [])
    with pytest.raises(SembenchError, match="DefSent has nothing to predict"):
        build_task(Recipe(objective="defsent"), encoder, pd.DataFrame({"word": ["unheardofword"], "gloss": ["water."]}))


@pytest.mark.parametrize(
    ("encoder", "negatives", "collapses"),
    [
        ("diff", "third_pairs", True),
        ("concat", "third_pairs", True),
        ("diff", "third_pairs_plus_positive", False),
        ("diff", "cross_relation", False),
    ],
)
def test_where_free_vectors_end(encoder: str, negatives: str, collapses: bool) -> None:
    end = free_vectors(StudyLine(label="x", relation_encoder=encoder, negatives=negatives)).iloc[-1]
    if collapses:
        # One direction for all: every cosine with an exchanged pair is -1.
        assert end["loss"] == pytest.approx(-2 / TEMPERATURE + math.log(BATCH), abs=0.2)
        assert end["cross_cosine"] > 0.97
    else:
        assert end["cross_cosine"] < 0.2
        assert end["own_cosine"] > 0.5


def test_a_repeated_sentence_has_the_same_gradient_in_every_run() -> None:
    """Two threads that add to one row in their own order would differ in the last bits, as ``vectors[places]`` does."""
    generator = torch.Generator().manual_seed(0)
    vectors = torch.randn(150, 768, generator=generator).requires_grad_()
    places = torch.randint(150, (32, 3, 2), generator=generator)
    weights = torch.randn(32, 3, 2, 768, generator=generator)
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        sums = [torch.autograd.grad((at_places(vectors, places) * weights).sum(), vectors)[0] for _ in range(200)]
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(sums[0], other) for other in sums[1:])
    expected = np.zeros((150, 768))
    np.add.at(expected, places.numpy(), weights.double().numpy())
    np.testing.assert_allclose(sums[0].numpy(), expected, rtol=1e-4, atol=1e-5)
    assert torch.equal(at_places(vectors, places), vectors[places])
