"""The auxiliary MLM loss: masks by counting, the loss against a loop over transformers' scores, and what sees a mask."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AutoConfig,
    AutoModelForMaskedLM,
    DistilBertConfig,
    DistilBertForMaskedLM,
    DPRConfig,
    PreTrainedTokenizerFast,
)

from sembench.core.errors import SembenchError
from sembench.core.plugin import OBJECTIVES
from sembench.encoders.folder import load_encoder
from sembench.encoders.lm_head import load_lm_head
from sembench.encoders.transformer import TransformerEncoder, load_transformer, read_entry
from sembench.training.objectives._mlm import masked
from sembench.training.objectives.base import Objective
from sembench.training.trainer import build_task, encoding
from tests.unit.test_objectives import FRAME, SENTENCES, naive_loss

KINDS = ["contrastive", "pairs", "supervised", "supervised_neutral"]


def at(folder: Path, dropout: float = 0.0) -> TransformerEncoder:
    return load_transformer(folder, {**read_entry(folder), "pooler": False}, dropout=dropout).train()


@pytest.fixture
def encoder(bert: Path) -> TransformerEncoder:
    return at(bert)


@pytest.fixture(scope="module")
def bert(smoke_backbones: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """BERT whose head has biases: those of a random start are zeros, which a wrong head has as well."""
    folder = shutil.copytree(smoke_backbones / "smoke_bert", tmp_path_factory.mktemp("mlm") / "bert")
    return with_biases(folder)


def with_biases(folder: Path, spread: float = 1.0) -> Path:
    tensors = load_file(folder / "model.safetensors")
    generator = torch.Generator().manual_seed(0)
    for name, value in tensors.items():
        if name.endswith("bias"):
            tensors[name] = 0.05 * torch.randn(value.shape, generator=generator)
        elif value.ndim == 2:
            tensors[name] = spread * value
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def task_of(encoder: TransformerEncoder, kind: str = "contrastive", **parameters) -> Objective:
    given = {"kind": kind, "mlm_weight": 0.5, **parameters}
    return build_task(OBJECTIVES.parse(given, "test"), encoder, FRAME, 32)


# -------------------------------------------------------------------------------------------------------------- masks


class Vocabulary:
    """What ``masked`` asks of a head."""

    words, mask, specials = 1000, 4, (0, 1, 2, 3, 4)


def test_masks_are_drawn_at_berts_rates() -> None:
    torch.manual_seed(1)
    rows = [[2, *torch.randint(5, 1000, (98,)).tolist(), 3] for _ in range(4000)]
    found = masked(rows, Vocabulary, 0.15)
    flat, new = np.array(rows), np.array(found.rows)
    chosen = np.zeros_like(flat, dtype=bool)
    for row, places in enumerate(found.places):
        chosen[row, places] = True
    n = 4000 * 98
    assert chosen.sum() / n == pytest.approx(0.15, abs=0.003)
    assert (new[~chosen] == flat[~chosen]).all()
    assert found.targets.tolist() == flat[chosen].tolist()
    # A drawn piece may be the old one, or [MASK]: one in a thousand.
    old, hidden = new[chosen] == flat[chosen], new[chosen] == Vocabulary.mask
    assert hidden.mean() == pytest.approx(0.8, abs=0.006)
    assert old.mean() == pytest.approx(0.1, abs=0.005)
    drawn = new[chosen][~old & ~hidden]
    assert len(drawn) / chosen.sum() == pytest.approx(0.1, abs=0.005)
    assert 0 <= drawn.min() < 10 < 990 < drawn.max() <= 999
    assert drawn.mean() == pytest.approx(499.5, abs=12)


def test_specials_are_never_chosen() -> None:
    """Nor is an unknown piece, which is a special to transformers and to the official code."""
    torch.manual_seed(0)
    rows = [[2, 1, 7, 0, 4, 8, 3], [2, 3], [2, 9, 3]]
    found = masked(rows, Vocabulary, 1 - 1e-9)
    assert found.places == [[2, 5], [], [1]]
    assert found.targets.tolist() == [7, 8, 9]
    assert [len(row) for row in found.rows] == [7, 2, 3]


def test_the_tokenizer_says_what_is_special(bert: Path) -> None:
    head = load_lm_head(bert)
    assert (head.specials, head.mask) == ((0, 1, 2, 3, 4), 4)
    assert head.words == AutoConfig.from_pretrained(bert).vocab_size


# ---------------------------------------------------------------------------------------------------- head of the file


def saved_distilbert(smoke_backbones: Path, folder: Path) -> None:
    tokenizer = PreTrainedTokenizerFast.from_pretrained(smoke_backbones / "smoke_bert")
    shape = {"dim": 32, "n_layers": 1, "n_heads": 2, "hidden_dim": 64, "vocab_size": len(tokenizer)}
    DistilBertForMaskedLM(DistilBertConfig(**shape)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


@pytest.mark.parametrize("architecture", ["smoke_bert", "smoke_roberta", "distilbert"])
def test_scores_are_those_of_transformers_model(smoke_backbones: Path, tmp_path: Path, architecture: str) -> None:
    folder = tmp_path / "model"
    if architecture == "distilbert":
        saved_distilbert(smoke_backbones, folder)
    else:
        shutil.copytree(smoke_backbones / architecture, folder)
    with_biases(folder)
    reference = AutoModelForMaskedLM.from_pretrained(folder).eval()
    head, encoder = load_lm_head(folder), load_encoder(folder)
    rows = encoder.tokens(SENTENCES, 32)
    with torch.inference_mode():
        for row in rows:
            expected = reference(input_ids=torch.tensor([row])).logits[0]
            states = encoder.model(input_ids=torch.tensor([row])).last_hidden_state[0]
            torch.testing.assert_close(head(states), expected, atol=1e-5, rtol=1e-4)
            torch.testing.assert_close(
                head(encoding(encoder, "fp32", 0).at([row], [[1]])), expected[1:2], atol=1e-5, rtol=1e-4
            )
    assert float(expected.std()) > 0.1
    assert not encoder.notes  # the head is known, though no score needs it


def test_loading_a_head_draws_no_number(bert: Path) -> None:
    """The other modules of an objective begin as they would without it."""
    before = torch.get_rng_state()
    load_lm_head(bert)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_checkpoint_without_a_head_is_refused(bert: Path, tmp_path: Path) -> None:
    bare = shutil.copytree(bert, tmp_path / "bare")
    encoder = at(bare)
    encoder.model.save_pretrained(bare)
    with pytest.raises(SembenchError) as error:
        task_of(encoder)
    assert str(error.value) == (
        f"{bare} has no masked-language-model head (it lacks cls.predictions.bias, cls.predictions.decoder.bias, "
        "cls.predictions.transform.LayerNorm.bias); take a checkpoint that was saved with it, such as "
        "BERT's, RoBERTa's or BERT-tiny's"
    )
    DPRConfig().save_pretrained(bare)
    with pytest.raises(SembenchError, match=r"head \(its type 'dpr' is no masked language model\); take a checkpoint"):
        load_lm_head(bare)
    blind = shutil.copytree(bert, tmp_path / "blind")
    (blind / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "[UNK]"}')
    with pytest.raises(SembenchError, match=r"head \(its tokenizer_config\.json names no mask_token\)"):
        load_lm_head(blind)
    encoder.folder = None
    with pytest.raises(SembenchError, match="the encoder is from no folder, so that it has no masked-language-model"):
        task_of(encoder)


# ---------------------------------------------------------------------------------------------------------- the loss


def naive_mlm(bert: Path, rows: list[list[int]], places: list[list[int]], targets: list[int]) -> float:
    """Cross-entropies of single places in float64, row by row, from transformers' own model."""
    reference = AutoModelForMaskedLM.from_pretrained(bert).double().eval()
    left, total = list(targets), 0.0
    for row, chosen in zip(rows, places, strict=True):
        scores = reference(input_ids=torch.tensor([row])).logits[0].detach().numpy()
        for place in chosen:
            below = sum(math.exp(score) for score in scores[place])
            total += math.log(below) - scores[place][left.pop(0)]
    assert not left
    return total / len(targets)


@pytest.mark.parametrize("leak", [False, True])
@pytest.mark.parametrize(("kind", "chunk_rows"), [("contrastive", 0), ("contrastive", 1), ("supervised", 5)])
def test_the_loss_is_that_of_a_naive_loop(
    bert: Path, encoder: TransformerEncoder, kind: str, chunk_rows: int, leak: bool
) -> None:
    task = task_of(encoder, kind, temperature=0.3, mlm_weight=0.7, mlm_leak=leak)
    columns = [FRAME[name].tolist() for name in {"contrastive": ("sentence",) * 2}.get(kind, task.columns)]
    rows = encoder.tokens([text for column in columns for text in column], 32)
    torch.manual_seed(5)
    hidden = masked(rows, task.own["lm_head"], 0.15)
    expected = naive_mlm(bert, hidden.rows, hidden.places, hidden.targets.tolist())
    with torch.inference_mode():
        seen = hidden.rows if leak else rows
        vectors = encoding(encoder, "fp32", 0)(seen, "cls_mlp").double().numpy()
    contrast = naive_loss(*np.split(vectors, len(columns))[:2], 0.3, *np.split(vectors, len(columns))[2:])
    torch.manual_seed(5)
    loss, facts = task.loss(range(task.rows), encoding(encoder, "fp32", chunk_rows))
    assert facts == {"mlm_loss": pytest.approx(expected, abs=1e-5)}
    assert loss.item() == pytest.approx(contrast + 0.7 * expected, abs=1e-5)
    assert abs(expected) > 1


def test_the_gradient_reaches_encoder_and_head(encoder: TransformerEncoder) -> None:
    """The head's output layer begins as the word embeddings and is a weight of its own."""
    task = task_of(encoder)
    head = task.own["lm_head"]
    [decoder] = [value for value in head.parameters() if value.shape == (head.words, 32)]
    words = encoder.model.embeddings.word_embeddings.weight
    assert torch.equal(decoder, words) and decoder.data_ptr() != words.data_ptr()
    torch.manual_seed(0)
    hidden = masked(task.sentences(range(task.rows))[0], head, 0.5)
    encode = encoding(encoder, "fp32", 4)
    torch.nn.functional.cross_entropy(head(encode.at(hidden.rows, hidden.places)), hidden.targets).backward()
    for module in (head, encoder.model):
        assert all(p.grad is not None and p.grad.abs().max() > 0 for p in module.parameters())
    assert not torch.allclose(words.grad, decoder.grad)


def test_states_of_tokens_come_in_the_order_asked(encoder: TransformerEncoder) -> None:
    rows = encoder.tokens(SENTENCES, 32)
    places = [[3, 1], [], [2], [5, 0, 4], [], [1]]
    with torch.inference_mode():
        alone = [encoder.model(input_ids=torch.tensor([row])).last_hidden_state[0] for row in rows]
        expected = torch.stack([alone[i][place] for i, chosen in enumerate(places) for place in chosen])
        for chunk_rows in (0, 1, 2, 4):
            found = encoding(encoder, "fp32", chunk_rows).at(rows, places)
            torch.testing.assert_close(found, expected, atol=2e-6, rtol=1e-5)


def test_a_batch_in_which_nothing_is_hidden_has_no_mlm_loss(encoder: TransformerEncoder) -> None:
    task = task_of(encoder, mlm_probability=1e-9)
    loss, facts = task.loss([0, 1], encoding(encoder, "fp32", 0))
    assert facts == {"mlm_loss": 0.0}
    plain = task_of(encoder, mlm_weight=0.0)
    plain.own["cls_mlp"].load_state_dict(task.own["cls_mlp"].state_dict())
    assert plain.loss([0, 1], encoding(encoder, "fp32", 0))[0].item() == pytest.approx(loss.item(), abs=1e-6)


# ------------------------------------------------------------------------------------------------- what sees a mask


class Spy:
    """Stands before an encoder and keeps the rows that pass it."""

    def __init__(self, encoder: TransformerEncoder) -> None:
        self.encode = encoding(encoder, "fp32", 0)
        self.contrast: list[list[list[int]]] = []
        self.hidden: list[list[list[int]]] = []

    def __call__(self, rows, readout, other=None):
        self.contrast.append([list(row) for row in rows])
        return self.encode(rows, readout, other)

    def at(self, rows, places):
        self.hidden.append([list(row) for row in rows])
        return self.encode.at(rows, places)


@pytest.mark.parametrize("kind", KINDS)
def test_no_mask_leaks_into_the_contrastive_input_unless_asked(encoder: TransformerEncoder, kind: str) -> None:
    for seed in range(3):
        torch.manual_seed(seed)
        task, spy = task_of(encoder, kind, mlm_probability=0.5), Spy(encoder)
        clean = [list(row) for column in task.sentences(range(task.rows)) for row in column]
        task.loss(range(task.rows), spy)
        assert spy.contrast == [clean]
        assert not any(task.own["lm_head"].mask in row for rows in spy.contrast for row in rows)
        assert any(task.own["lm_head"].mask in row for row in spy.hidden[0])
        # Every copy of a sentence has masks of its own, and what is kept for the next batch is as before.
        assert len(spy.hidden[0]) == len(clean) and spy.hidden[0] != clean
        if kind == "contrastive":
            assert spy.hidden[0][:6] != spy.hidden[0][6:]
        assert [list(row) for column in task.sentences(range(task.rows)) for row in column] == clean
    task, spy = task_of(encoder, kind, mlm_probability=0.5, mlm_leak=True), Spy(encoder)
    task.loss(range(task.rows), spy)
    assert spy.contrast == spy.hidden != [clean]


# --------------------------------------------------------------------------------------------------------- parameters


def test_a_run_without_it_keeps_its_name() -> None:
    plain, given = (OBJECTIVES.parse({"kind": "supervised", **more}, "x") for more in ({}, {"mlm_weight": 0.1}))
    assert not [name for name in plain.params if "mlm" in name]
    assert given.params["mlm_weight"] == 0.1


def test_parameters_that_do_not_fit_are_refused() -> None:
    for given, said in (
        ({"mlm_weight": 0.1, "encoders": "two"}, "the MLM loss is that of one encoder; set encoders: one"),
        ({"mlm_leak": True}, "without the MLM loss no mask can leak; give mlm_weight a value, or drop mlm_leak"),
        ({"mlm_weight": -1}, "key 'mlm_weight': Input should be greater than or equal to 0"),
        ({"mlm_probability": 1.0}, "key 'mlm_probability': Input should be less than 1"),
    ):
        with pytest.raises(SembenchError, match=said):
            OBJECTIVES.parse({"kind": "supervised", **given}, "here")
