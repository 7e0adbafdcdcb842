"""SimCSE's objectives and SBERT's against naive loops in float64 and against sentence-transformers."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss, SoftmaxLoss
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

from sembench.core.errors import SembenchError
from sembench.core.plugin import OBJECTIVES
from sembench.core.progress import StepProgress
from sembench.encoders.transformer import TransformerEncoder, load_transformer, read_entry
from sembench.training.batches import encode_rows, sampled, step_rows, steps_per_epoch
from sembench.training.duplicates import announce_duplicates, pairs_per_batch
from sembench.training.losses import hard_negative_info_nce, info_nce, pair_features
from sembench.training.objectives.base import Objective
from sembench.training.trainer import build_task, encoding
from tests.unit.numeric import assert_equals_loop, cos

SENTENCES = [
    "The cook peels seven onions in the kitchen.",
    "A gardener waters the tall sunflowers.",
    "My aunt counts.",
    "The old sailor mends a torn net near the harbour before the wind and the water and the road.",
    "Our neighbour paints the garden gate.",
    "The beekeeper sells a basket of plums at the market every year.",
]
POSITIVES = SENTENCES[1:] + SENTENCES[:1]
NEGATIVES = SENTENCES[3:] + SENTENCES[:3]
FRAME = pd.DataFrame(
    {
        **{"sentence": SENTENCES, "anchor": SENTENCES, "positive": POSITIVES, "negative": NEGATIVES},
        **{
            "neutral": SENTENCES[2:] + SENTENCES[:2],
            "first": SENTENCES,
            "second": POSITIVES,
            "label": [0, 1, 2, 2, 1, 0],
        },
    }
)


@pytest.fixture
def encoder(smoke_backbones: Path) -> TransformerEncoder:
    folder = smoke_backbones / "smoke_bert"
    return load_transformer(folder, {**read_entry(folder), "pooler": False}, dropout=0.0).train()


def task_of(encoder: TransformerEncoder, kind: str, **parameters) -> Objective:
    return build_task(OBJECTIVES.parse({"kind": kind, **parameters}, "test"), encoder, FRAME, 32)


def batch_loss(encoder: TransformerEncoder, task: Objective, chunk_rows: int = 0) -> torch.Tensor:
    return task.loss(range(task.rows), encoding(encoder, "fp32", chunk_rows))[0]


def gradients(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: p.grad.clone() for name, p in module.named_parameters() if p.grad is not None}


# ---------------------------------------------------------------------------------------- losses against naive loops


def dot(first, second) -> float:
    return sum(float(a) * float(b) for a, b in zip(first, second, strict=True))


def naive_loss(anchors, positives, temperature: float, *negatives, alpha: float = 1.0, like=cos) -> float:
    total = 0.0
    for i, anchor in enumerate(anchors):
        below = sum(math.exp(like(anchor, other) / temperature) for other in positives)
        for sort in negatives:
            for j, other in enumerate(sort):
                below += (alpha if i == j else 1.0) * math.exp(like(anchor, other) / temperature)
        total -= math.log(math.exp(like(anchor, positives[i]) / temperature) / below)
    return total / len(anchors)


def drawn(*shapes: tuple[int, int]) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    return [rng.standard_normal(shape) for shape in shapes]


@pytest.mark.parametrize("temperature", [0.05, 1.0])
def test_the_contrastive_loss_equals_a_naive_loop(temperature: float) -> None:
    assert_equals_loop(
        lambda a, b: info_nce(a, b, temperature),
        lambda a, b: naive_loss(a, b, temperature),
        *drawn((5, 3), (5, 3)),
        value=1e-11,
    )


@pytest.mark.parametrize("alpha", [1.0, 0.5, 2.0, 0.0])
def test_the_loss_with_hard_negatives_equals_a_naive_loop(alpha: float) -> None:
    assert_equals_loop(
        lambda a, p, n: hard_negative_info_nce(a, p, [n], 0.2, alpha),
        lambda a, p, n: naive_loss(a, p, 0.2, n, alpha=alpha),
        *drawn((4, 3), (4, 3), (4, 3)),
    )


@pytest.mark.parametrize("alpha", [1.0, 0.5])
def test_the_loss_with_two_sorts_of_hard_negatives_equals_a_naive_loop(alpha: float) -> None:
    assert_equals_loop(
        lambda a, p, n, m: hard_negative_info_nce(a, p, [n, m], 0.2, alpha),
        lambda a, p, n, m: naive_loss(a, p, 0.2, n, m, alpha=alpha),
        *drawn((4, 3), (4, 3), (4, 3), (4, 3)),
    )


def test_losses_of_dot_products_equal_a_naive_loop() -> None:
    a, p, n = drawn((4, 3), (4, 3), (4, 3))
    assert_equals_loop(lambda a, p: info_nce(a, p, 0.7, "dot"), lambda a, p: naive_loss(a, p, 0.7, like=dot), a, p)
    assert_equals_loop(
        lambda a, p, n: hard_negative_info_nce(a, p, [n], 0.7, 2.0, "dot"),
        lambda a, p, n: naive_loss(a, p, 0.7, n, alpha=2.0, like=dot),
        *(a, p, n),
    )


def test_pair_features_equal_a_naive_loop() -> None:
    """Cross-entropy of a linear layer over them, as SBERT trains it."""
    first, second, weight = drawn((4, 3), (4, 3), (9, 3))
    labels = [2, 0, 1, 1]

    def loop(u, v, w) -> float:
        total = 0.0
        for row, label in enumerate(labels):
            features = [*u[row], *v[row], *(abs(x - y) for x, y in zip(u[row], v[row], strict=True))]
            scores = [sum(f * w[i, k] for i, f in enumerate(features)) for k in range(3)]
            total += math.log(sum(math.exp(score) for score in scores)) - scores[label]
        return total / len(labels)

    def loss(u, v, w) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(pair_features(u, v) @ w, torch.tensor(labels))

    assert_equals_loop(loss, loop, first, second, weight)


def test_known_values_by_hand() -> None:
    # Orthonormal rows: cosine 1 with the own positive, 0 with the other; loss = log(1 + exp(-1/T)).
    eye = torch.eye(2, dtype=torch.float64)
    assert info_nce(eye, eye, 0.5).item() == pytest.approx(math.log(1 + math.exp(-2)), abs=1e-12)
    # The own hard negative is the anchor itself, so it counts as much as the positive; the other one is orthogonal.
    expected = math.log(2 + 2 * math.exp(-2))
    assert hard_negative_info_nce(eye, eye, [eye], 0.5).item() == pytest.approx(expected, abs=1e-12)
    expected = math.log(1 + 2 * math.exp(-2))
    assert hard_negative_info_nce(eye, eye, [eye], 0.5, 0.0).item() == pytest.approx(expected, abs=1e-12)


def test_only_anchors_look_for_positives() -> None:
    # The objective has one direction: exchanging the sides gives another value.
    a = torch.tensor([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]])
    b = torch.tensor([[1.0, 0.0], [1.0, 0.0], [1.0, 0.2]])
    assert abs(info_nce(a, b, 0.05).item() - info_nce(b, a, 0.05).item()) > 0.1


# ------------------------------------------------------------------------------- objectives against sentence-transformers


@pytest.fixture
def peer(smoke_backbones: Path) -> SentenceTransformer:
    """The same weights in sentence-transformers with mean pooling, dropout off."""
    words = Transformer(str(smoke_backbones / "smoke_bert"), max_seq_length=32)
    model = SentenceTransformer(modules=[words, Pooling(32, pooling_mode="mean")], device="cpu")
    for part in model.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
    return model


def assert_equal(encoder: TransformerEncoder, loss: torch.Tensor, peer: SentenceTransformer, theirs: torch.Tensor):
    loss.backward()
    theirs.backward()
    assert loss.item() == pytest.approx(theirs.item(), abs=1e-5)
    reference = gradients(peer[0].auto_model)
    compared = 0
    for name, gradient in gradients(encoder.model).items():
        torch.testing.assert_close(gradient, reference[name], atol=1e-5, rtol=1e-4)
        compared += int(gradient.abs().max() > 1e-6)
    assert compared > 20


def test_unsupervised_equals_sentence_transformers(encoder: TransformerEncoder, peer: SentenceTransformer) -> None:
    """MultipleNegativesRankingLoss at scale 20 is temperature 0.05."""
    loss = batch_loss(encoder, task_of(encoder, "contrastive", readout="mean", head="none"))
    features = [peer.tokenize(SENTENCES), peer.tokenize(SENTENCES)]
    assert_equal(encoder, loss, peer, MultipleNegativesRankingLoss(peer, scale=20.0)(features, labels=None))


def test_supervised_equals_sentence_transformers(encoder: TransformerEncoder, peer: SentenceTransformer) -> None:
    loss = batch_loss(encoder, task_of(encoder, "supervised", readout="mean", head="none"))
    features = [peer.tokenize(part) for part in (SENTENCES, POSITIVES, NEGATIVES)]
    assert_equal(encoder, loss, peer, MultipleNegativesRankingLoss(peer, scale=20.0)(features, labels=None))


def test_softmax_equals_sentence_transformers(encoder: TransformerEncoder, peer: SentenceTransformer) -> None:
    task = task_of(encoder, "softmax")
    theirs = SoftmaxLoss(peer, sentence_embedding_dimension=32, num_labels=3)
    theirs.classifier.load_state_dict(task.own["classifier"].state_dict())
    features = [peer.tokenize(SENTENCES), peer.tokenize(POSITIVES)]
    loss = batch_loss(encoder, task)
    assert_equal(encoder, loss, peer, theirs(features, labels=torch.tensor(FRAME["label"].tolist())))
    for ours, other in zip(task.own.parameters(), theirs.classifier.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, other.grad, atol=1e-6, rtol=1e-4)


def test_supervised_sees_its_columns_behind_the_head(encoder: TransformerEncoder) -> None:
    task = task_of(encoder, "supervised", temperature=0.3, hard_negative_weight=0.5)
    loss = batch_loss(encoder, task, chunk_rows=5)
    vectors = [encoder.encode(FRAME[name].tolist(), ["cls_mlp"])["cls_mlp"] for name in task.columns]
    anchors, positives, negatives = (part.astype(np.float64) for part in vectors)
    assert loss.item() == pytest.approx(naive_loss(anchors, positives, 0.3, negatives, alpha=0.5), abs=1e-5)
    loss.backward()
    assert all(p.grad.abs().max() > 0 for p in task.own.parameters())


def test_a_neutral_is_a_second_hard_negative(encoder: TransformerEncoder) -> None:
    task = task_of(encoder, "supervised_neutral", temperature=0.3, hard_negative_weight=0.5)
    vectors = [encoder.encode(FRAME[name].tolist(), ["cls_mlp"])["cls_mlp"] for name in task.columns]
    assert task.columns == ("anchor", "positive", "negative", "neutral")
    anchors, positives, *negatives = (part.astype(np.float64) for part in vectors)
    expected = naive_loss(anchors, positives, 0.3, *negatives, alpha=0.5)
    assert batch_loss(encoder, task).item() == pytest.approx(expected, abs=1e-5)


def test_pairs_look_for_their_seconds(encoder: TransformerEncoder) -> None:
    task = task_of(encoder, "pairs", temperature=0.3)
    first, second = (encoder.encode(FRAME[name].tolist(), ["cls_mlp"])["cls_mlp"] for name in task.columns)
    assert batch_loss(encoder, task).item() == pytest.approx(naive_loss(first, second, 0.3), abs=1e-5)


@pytest.mark.parametrize("kind", ["contrastive", "pairs", "supervised", "supervised_neutral"])
def test_a_dual_encoder_has_two_of_everything(encoder: TransformerEncoder, kind: str) -> None:
    """The first column passes one encoder and the others the second, which begins equal and shares no weight."""
    task = task_of(encoder, kind, temperature=0.3, encoders="two")
    second = task.own["second"]
    with torch.no_grad():
        for weights in second.model.parameters():
            weights.add_(0.02 * torch.randn_like(weights))
    columns = {"contrastive": ("sentence", "sentence")}.get(kind, task.columns)
    anchors = encoder.encode(FRAME[columns[0]].tolist(), ["cls_mlp"])["cls_mlp"]
    others = [second.encode(FRAME[name].tolist(), ["cls_mlp"])["cls_mlp"] for name in columns[1:]]
    loss = batch_loss(encoder, task, chunk_rows=4)
    assert loss.item() == pytest.approx(naive_loss(anchors, others[0], 0.3, *others[1:]), abs=1e-5)
    loss.backward()
    for part in (encoder, second):
        assert part.heads["cls_mlp"].dense.weight.grad.abs().max() > 0
        assert part.model.embeddings.word_embeddings.weight.grad.abs().max() > 0
    assert encoder.heads["cls_mlp"] is not second.heads["cls_mlp"]
    assert tuple(task.exported()) == ("cls_mlp",)


def test_one_mask_makes_both_views_the_same_vectors(smoke_backbones: Path) -> None:
    folder = smoke_backbones / "smoke_bert"
    losses = {}
    for masks in ("one", "two"):
        torch.manual_seed(4)
        encoder = load_transformer(folder, {**read_entry(folder), "pooler": False}, dropout=0.3).train()
        seen: list[torch.Tensor] = []
        task = task_of(encoder, "contrastive", temperature=0.3, masks=masks)
        passed = encoding(encoder, "fp32", 0)

        def encode(rows, readout, other=None, passed=passed, seen=seen):
            seen.append(passed(rows, readout, other))
            return seen[-1]

        losses[masks] = task.loss(range(task.rows), encode)[0].item()
        [vectors] = seen
        assert len(vectors) == task.rows * (1 if masks == "one" else 2)
        if masks == "one":
            same = vectors.detach().double().numpy()
            assert losses["one"] == pytest.approx(naive_loss(same, same, 0.3), abs=1e-5)
    assert losses["two"] > losses["one"]
    with pytest.raises(SembenchError, match="with one mask a sentence is encoded once; set encoders: one"):
        OBJECTIVES.parse({"kind": "contrastive", "masks": "one", "encoders": "two"}, "here")


def test_softmax_takes_names_of_labels_and_refuses_others(encoder: TransformerEncoder) -> None:
    chosen = OBJECTIVES.parse({"kind": "softmax"}, "test")
    names = ["contradiction", "entailment", "neutral", "neutral", "entailment", "contradiction"]
    task = build_task(chosen, encoder, FRAME.assign(label=names), 32)
    assert task.labels.tolist() == FRAME["label"].tolist()
    with pytest.raises(SembenchError, match="the column 'label' holds '3'; it must hold contradiction"):
        build_task(chosen, encoder, FRAME.assign(label=[0, 1, 2, 3, 0, 0]), 32)


# -------------------------------------------------------------------------------------------------------- parameters


def test_the_head_belongs_on_cls() -> None:
    for kind in ("contrastive", "supervised"):
        with pytest.raises(SembenchError) as error:
            OBJECTIVES.parse({"kind": kind, "readout": "mean"}, "variant x")
        assert str(error.value).startswith(
            "variant x: the head 'mlp' belongs on read-out 'cls', not 'mean'; set head: none"
        )


@pytest.mark.parametrize(
    ("parameters", "exports", "default"),
    [
        ({"kind": "contrastive"}, ("cls_mlp",), "cls"),
        ({"kind": "contrastive", "head": "none", "readout": "first_last"}, (), "first_last"),
        ({"kind": "supervised"}, ("cls_mlp",), "cls_mlp"),
        ({"kind": "supervised", "head": "none", "readout": "mean"}, (), "mean"),
        ({"kind": "supervised", "encoders": "two"}, ("cls_mlp",), "cls_mlp"),
        ({"kind": "pairs"}, ("cls_mlp",), "cls"),
        ({"kind": "softmax"}, (), "mean"),
        ({"kind": "relation", "readout": "pooler"}, (), "pooler"),
    ],
)
def test_what_a_run_offers_is_known_before_it_is_made(
    encoder: TransformerEncoder, parameters: dict, exports: tuple, default: str
) -> None:
    chosen = OBJECTIVES.parse(parameters, "test")
    assert chosen.plugin.exports(chosen.config) == exports
    assert chosen.plugin.default_readout(chosen.config) == default
    assert default in chosen.plugin.offers(chosen.config)
    assert ("pooler" in chosen.plugin.offers(chosen.config)) == (default == "pooler")
    if parameters["kind"] != "relation":
        task = build_task(chosen, encoder, FRAME, 32)
        assert tuple(task.exported()) == exports
        assert set(chosen.plugin.offers(chosen.config)) == set(encoder.readouts)


# ----------------------------------------------------------------------------------------------------------- batches


@pytest.mark.parametrize("readout", ["cls", "mean", "last2", "first_last", "embed_last"])
@pytest.mark.parametrize("chunk_rows", [1, 4, 5, 100])
def test_chunked_batch_equals_the_whole(encoder: TransformerEncoder, readout: str, chunk_rows: int) -> None:
    rows = encoder.tokens(SENTENCES, 32)
    whole = encode_rows(encoder, rows, readout, 0)
    chunked = encode_rows(encoder, rows, readout, chunk_rows)
    torch.testing.assert_close(chunked, whole, atol=2e-6, rtol=1e-5)


def test_chunked_gradients_equal_the_whole(encoder: TransformerEncoder) -> None:
    task = task_of(encoder, "contrastive", readout="first_last", head="none")
    found = []
    for chunk_rows in (0, 4):
        encoder.zero_grad()
        batch_loss(encoder, task, chunk_rows).backward()
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


@pytest.mark.parametrize(
    ("anchors", "batch", "pairs"),
    [
        ("aaabbcd", 3, 4 * 3 * 2 / (7 * 6)),  # 3 pairs of a and 1 of b, of 21; a batch of 3 has 3 of the 21
        ("aaabbcd", 7, 4),
        ("aaabbcd", 64, 4),
        ("aaabbcd", 1, 0),
        ("abcdefg", 7, 0),
        ("aaaa", 2, 1),
        ("a", 2, 0),
    ],
)
def test_repeats_of_a_batch_by_hand_and_over_all_batches(anchors: str, batch: int, pairs: float) -> None:
    assert pairs_per_batch(pd.Series(list(anchors)), batch) == pytest.approx(pairs)
    batches = list(itertools.combinations(anchors, min(batch, len(anchors))))
    found = [sum(a == b for a, b in itertools.combinations(each, 2)) for each in batches]
    assert sum(found) / len(batches) == pytest.approx(pairs)


def test_false_negatives_are_told_where_a_batch_is_expected_to_hold_some(capsys: pytest.CaptureFixture[str]) -> None:
    """Of ten rows two are equal: one pair of 45, and a batch of 4 has 6 of them, one of 3 but 3, which is 0.07."""

    def told(kind: str, data: pd.DataFrame, batch: int) -> str:
        announce_duplicates(OBJECTIVES.parse({"kind": kind}, "test"), data, batch, StepProgress("run", 1))
        return capsys.readouterr().err

    for kind in ("contrastive", "pairs", "supervised"):
        columns = OBJECTIVES.get(kind).columns
        data = pd.DataFrame({name: list("aabcdefghi") if name == columns[0] else ["x"] * 10 for name in columns})
        assert told(kind, data, 4) == (
            f"run: warning: 10.0% of the rows repeat the '{columns[0]}' of an earlier one, so a batch of 4 holds 0.13 "
            "pairs of equal ones on average, false negatives of each other; the papers keep them\n"
        )
        assert told(kind, data, 3) == told(kind, data.iloc[1:], 9) == ""
    one = pd.DataFrame({"first": ["a"] * 9, "second": ["b"] * 9, "label": [0] * 9})
    assert told("softmax", one, 9) == ""


def test_a_resumed_order_continues_the_old_one() -> None:
    whole = list(step_rows(23, 4, seed=1, first_step=0, last_step=15))
    assert list(step_rows(23, 4, seed=1, first_step=7, last_step=15)) == whole[7:]
    assert list(step_rows(23, 4, seed=2, first_step=0, last_step=15)) != whole


def test_a_sample_is_a_function_of_the_seed_in_the_old_order() -> None:
    frame = pd.DataFrame({"sentence": [str(number) for number in range(50)]}, index=range(100, 150))
    numbers = [int(text) for text in sampled(frame, 20, 7)["sentence"]]
    assert numbers == sorted(set(numbers))
    assert len(numbers) == 20
    assert sampled(frame, 20, 7).equals(sampled(frame, 20, 7))
    assert not sampled(frame, 20, 7).equals(sampled(frame, 20, 8))
    assert list(sampled(frame, None, 7).index) == list(range(50))
    with pytest.raises(SembenchError, match="a sample of 51 rows was asked for, but the data set has only 50"):
        sampled(frame, 51, 7)
