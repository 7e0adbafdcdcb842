"""The analogy paper's objective against naive loops, the collapse it rewards, and DefSent on the same definitions."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch.nn import functional

from sembench.core.errors import SembenchError
from sembench.core.plugin import OBJECTIVES
from sembench.encoders.transformer import TransformerEncoder, load_transformer, read_entry
from sembench.training.losses import relation_info_nce, relation_vectors
from sembench.training.objectives.base import Objective
from sembench.training.objectives.relation import at_places
from sembench.training.study import BATCH, TEMPERATURE, free_vectors, study
from sembench.training.trainer import build_task, encoding
from tests.unit.numeric import assert_equals_loop, cos


def naive(h, plus, minus, temperature, negatives, relations, third_relations) -> float:
    """The loss written out as sums of exponentials; anchors without any term below have none."""
    losses = []
    for i in range(len(h)):
        own = math.exp(cos(h[i], plus[i]) / temperature)
        below = [
            math.exp(cos(h[i], minus[j]) / temperature) for j in range(len(h)) if third_relations[j] != relations[i]
        ]
        if negatives == "cross_relation":
            below += [math.exp(cos(h[i], plus[j]) / temperature) for j in range(len(h)) if relations[j] != relations[i]]
        if negatives != "third_pairs":
            below.append(own)
        if below:
            losses.append(-math.log(own / sum(below)))
    return sum(losses) / len(losses)


@pytest.mark.parametrize("negatives", ["third_pairs", "third_pairs_plus_positive", "cross_relation"])
@pytest.mark.parametrize("third_relations", [[5, 1, 6, 0, 7, 1], [1, 1, 1, 1, 1, 1]])
def test_equals_a_naive_loop_with_masks(negatives: str, third_relations: list[int]) -> None:
    """In the second case the anchors of relation 1 have no third pair left."""
    relations = [0, 0, 1, 1, 2, 2]
    anchor, third = torch.tensor(relations), torch.tensor(third_relations)
    same, false = anchor.unsqueeze(1) == anchor, anchor.unsqueeze(1) == third
    rng = np.random.default_rng(2)
    assert_equals_loop(
        lambda h, plus, minus: relation_info_nce(h, plus, minus, 0.3, negatives, same, false),
        lambda h, plus, minus: naive(h, plus, minus, 0.3, negatives, relations, third_relations),
        *(rng.standard_normal((6, 4)) for _ in range(3)),
    )


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


def test_a_batch_without_negatives_moves_nothing() -> None:
    """A last batch of one row whose third pair is masked: no loss is defined, so there is no gradient either."""
    h = torch.randn(1, 3, requires_grad=True)
    loss = relation_info_nce(h, h, h, 0.05, "third_pairs", torch.tensor([[True]]), torch.tensor([[True]]))
    loss.backward()
    assert loss.item() == 0
    assert h.grad.tolist() == [[0, 0, 0]]


def test_relation_vectors_by_hand() -> None:
    a, b = torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 5.0]])
    assert relation_vectors(a, b, "diff").tolist() == [[-2.0, -3.0]]
    assert relation_vectors(a, b, "concat").tolist() == [[1.0, 2.0, 3.0, 5.0]]
    assert relation_vectors(a, b, "concat_diff").tolist() == [[1.0, 2.0, 3.0, 5.0, -2.0, -3.0]]


# -------------------------------------------------------------------------------------------------------- objectives


@pytest.fixture
def encoder(smoke_backbones: Path) -> TransformerEncoder:
    folder = smoke_backbones / "smoke_bert"
    return load_transformer(folder, {**read_entry(folder), "pooler": False}, dropout=0.0)


def task_of(encoder: TransformerEncoder, examples: pd.DataFrame, kind: str, **parameters) -> Objective:
    return build_task(OBJECTIVES.parse({"kind": kind, **parameters}, "test"), encoder, examples, 32)


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
    data = frame()
    task = task_of(encoder, data, "relation", readout="mean", relation_encoder=how, mask_false_negatives=mask,
                   temperature=0.2)  # fmt: skip
    loss, facts = task.loss([0, 1, 2, 3], encoding(encoder, "fp32", 3))

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
    task = task_of(encoder, data, "defsent", readout="mean")
    assert task.rows == 2
    loss, _ = task.loss([0, 1], encoding(encoder, "fp32", 0))
    table = encoder.model.get_input_embeddings().weight.detach().double().numpy()
    expected = []
    for word, gloss in [("stone", "a small road."), ("bread", "my aunt.")]:
        scores = table @ encoder.encode([gloss], ["mean"])["mean"][0].astype(float)
        expected.append(math.log(np.exp(scores).sum()) - scores[encoder.tokens([word])[0][1]])
    assert loss.item() == pytest.approx(np.mean(expected), abs=1e-4)
    loss.backward()
    assert not task.output.requires_grad


def test_defsent_scores_words_in_full_precision(encoder: TransformerEncoder) -> None:
    """The vocabulary's logits stay outside autocast, also where the encoder runs in bf16."""
    data = pd.DataFrame({"word": ["stone", "bread"], "gloss": ["a small road.", "my aunt."]})
    task = task_of(encoder, data, "defsent", readout="mean")
    encode = encoding(encoder, "bf16", 0)
    loss, _ = task.loss([0, 1], encode)
    vectors = encode([task.tokens[0], task.tokens[1]], "mean").detach().double()
    table = encoder.model.get_input_embeddings().weight.detach().double()
    words = torch.tensor([encoder.tokens([word])[0][1] for word in ("stone", "bread")])
    assert loss.item() == pytest.approx(functional.cross_entropy(vectors @ table.T, words).item(), abs=1e-5)


def test_examples_that_do_not_fit(encoder: TransformerEncoder) -> None:
    with pytest.raises(SembenchError, match="no example to train on"):
        task_of(encoder, pd.DataFrame({"sentence": []}), "contrastive")
    only = pd.DataFrame({"sentence": ["water."]})
    with pytest.raises(SembenchError, match="only one example to train on, but those of a batch are each other's neg"):
        task_of(encoder, only, "contrastive")
    assert task_of(encoder, pd.DataFrame({"word": ["stone"], "gloss": ["water."]}), "defsent").rows == 1
    with pytest.raises(SembenchError, match="lack the column 'sentence', which objective 'contrastive' reads"):
        task_of(encoder, frame(), "contrastive")
    with pytest.raises(SembenchError, match="DefSent has nothing to predict"):
        task_of(encoder, pd.DataFrame({"word": ["unheardofword"], "gloss": ["water."]}), "defsent")
    one = frame().assign(anchor_directed="a:a", positive_directed="a:a", third_directed="a:a")
    with pytest.raises(
        SembenchError, match="no negative is left; train on more relations, or set mask_false_negatives"
    ):
        task_of(encoder, one, "relation")
    assert task_of(encoder, one, "relation", mask_false_negatives=False).rows == 4


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
    end = free_vectors("x", encoder, negatives).iloc[-1]
    if collapses:
        # One direction for all: every cosine with an exchanged pair is -1.
        assert end["loss"] == pytest.approx(-2 / TEMPERATURE + math.log(BATCH), abs=0.2)
        assert end["cross_cosine"] > 0.97
    else:
        assert end["cross_cosine"] < 0.2
        assert end["own_cosine"] > 0.5


def test_a_study_stacks_its_lines() -> None:
    found = study([("one", "diff", "third_pairs"), ("two", "concat", "cross_relation")], steps=10)
    assert list(found["label"]) == ["one", "one", "two", "two"]
    assert list(found["step"]) == [0, 10, 0, 10]


def test_a_repeated_sentence_has_the_same_gradient_in_every_run() -> None:
    """Two threads that add to one row in their own order would differ in the last bits, as ``vectors[places]`` does."""
    generator = torch.Generator().manual_seed(0)
    vectors = torch.randn(150, 768, generator=generator).requires_grad_()
    places = torch.randint(150, (32, 3, 2), generator=generator)
    weights = torch.randn(32, 3, 2, 768, generator=generator)
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        sums = [torch.autograd.grad((at_places(vectors, places) * weights).sum(), vectors)[0] for _ in range(100)]
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(sums[0], other) for other in sums[1:])
    expected = np.zeros((150, 768))
    np.add.at(expected, places.numpy(), weights.double().numpy())
    np.testing.assert_allclose(sums[0].numpy(), expected, rtol=1e-4, atol=1e-5)
    assert torch.equal(at_places(vectors, places), vectors[places])
