"""What a training step keeps: gradient caching gives the gradient of the whole batch, and its memory is predicted."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks
from transformers import BertConfig, BertModel, DistilBertConfig, DistilBertModel, RobertaConfig, RobertaModel

from sembench.core.errors import SembenchError
from sembench.core.progress import StepProgress
from sembench.core.schema import deciding, parse
from sembench.encoders.devices import autocast
from sembench.encoders.transformer import TransformerEncoder
from sembench.registry.models import Recipe
from sembench.training import memory
from sembench.training.batches import Keep
from sembench.training.memory import (
    GIB,
    Shape,
    activation_bytes,
    announce,
    cast_bytes,
    lengths_of,
    predicted,
    report,
)
from sembench.training.objectives.base import Encode
from sembench.training.trainer import build_task, encoding, load_start
from tests.unit.test_training import KINDS, chosen, examples


class Kept:
    """Counts the bytes that the forward pass keeps for the backward pass, each storage once."""

    def __init__(self) -> None:
        self.storages: dict[int, torch.UntypedStorage] = {}
        self.hooks = saved_tensors_hooks(self._pack, lambda tensor: tensor)

    def _pack(self, tensor: torch.Tensor) -> torch.Tensor:
        # The storage is held, so that its address is not given away again.
        self.storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage()
        return tensor

    def besides(self, weights: list[torch.Tensor]) -> int:
        own = {weight.untyped_storage().data_ptr() for weight in weights}
        return sum(storage.nbytes() for address, storage in self.storages.items() if address not in own)


def step(
    folder: Path, kind: str, precision: str, keep: Keep
) -> tuple[torch.Tensor, dict[str, torch.Tensor], torch.Tensor, int]:
    """Return loss, gradients, a number drawn afterwards, and the bytes that were kept."""
    torch.manual_seed(3)
    encoder = load_start(folder, chosen(kind), 0.3)
    task = build_task(chosen(kind), encoder, examples(12), 32)
    encoder.train()
    # Three chunks, the last one short; two encoders take three and five.
    encode, kept = encoding(encoder, precision, 5, keep), Kept()
    with kept.hooks:
        loss, _ = task.loss(range(12), encode)
    loss.backward()
    model = torch.nn.ModuleDict({"encoder": encoder, "own": task.own})
    gradients = {name: each.grad for name, each in model.named_parameters() if each.grad is not None}
    return loss.detach(), gradients, torch.rand(()), kept.besides(list(model.parameters()))


@pytest.mark.parametrize(("kind", "precision"), [*((kind, "fp32") for kind in KINDS), ("contrastive", "bf16")])
def test_computing_chunks_again_changes_neither_loss_nor_gradient(
    smoke_backbones: Path, kind: str, precision: str
) -> None:
    """Bit for bit, under dropout: the same masks are drawn again, and what is drawn later is the same as well."""
    loss, gradients, after, bytes_kept = step(smoke_backbones / "smoke_bert", kind, precision, "activations")
    again, cached, later, few = step(smoke_backbones / "smoke_bert", kind, precision, "vectors")
    assert torch.equal(again, loss)
    assert torch.equal(later, after)
    assert cached.keys() == gradients.keys()
    assert all(torch.equal(cached[name], value) for name, value in gradients.items())
    assert few < bytes_kept / 10


def test_keeping_vectors_alone_needs_chunks() -> None:
    with pytest.raises(SembenchError, match="with 'keep: vectors' memory is that of one chunk; set chunk_rows"):
        parse(Recipe, {"objective": {}, "keep": "vectors"}, "recipe")
    assert "keep" not in deciding(Recipe(objective={}))


# ----------------------------------------------------------------------------------------------------- predicted peak

MODELS = {
    "bert": (BertModel, BertConfig, {"intermediate_size": 256}),
    "roberta": (RobertaModel, RobertaConfig, {"intermediate_size": 256}),
    "distilbert": (DistilBertModel, DistilBertConfig, {"hidden_dim": 256, "sinusoidal_pos_embds": False}),
}


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize(("layers", "rows", "length"), [(2, 12, 20), (5, 3, 48)])
def test_activations_are_predicted_within_a_tenth(
    kind: str, precision: str, layers: int, rows: int, length: int
) -> None:
    """Against the bytes that torch keeps, with fused attention: on a processor there is none with dropout of its own."""
    model_class, config_class, sizes = MODELS[kind]
    config = config_class(
        vocab_size=50, hidden_size=64, num_hidden_layers=layers, num_attention_heads=4, **sizes,
        attention_probs_dropout_prob=0.0, attention_dropout=0.0,
    )  # fmt: skip
    options = {} if kind == "distilbert" else {"add_pooling_layer": False}
    model = model_class(config, **options).train()
    encoder = TransformerEncoder(model, tokens=None, heads={})  # type: ignore[arg-type]
    ids, mask = torch.randint(5, 50, (rows, length)), torch.ones(rows, length, dtype=torch.long)
    mask[0, -1] = 0
    kept = Kept()
    with kept.hooks, autocast(precision, torch.device("cpu")):
        encoder(ids, mask, ["cls"])
    shape = Shape.of(encoder, 0)
    assert (shape.layers, shape.width, shape.inner, shape.heads) == (layers, 64, 256, 4)
    # A processor keeps dropout masks in the format of the values.
    value = 4 if precision == "fp32" else 2
    expected = activation_bytes(shape, rows, length, precision, value) + cast_bytes(shape, precision)
    assert kept.besides(list(model.parameters())) == pytest.approx(expected, rel=0.1)


# BERT base: 109.5 million weights without a pooler are 0.41 GiB, and as much for gradients, and twice for the moments.
BASE = Shape(layers=12, width=768, inner=3072, heads=12, parameters=108_891_648)


def test_the_peak_is_the_sum_of_its_parts_by_hand() -> None:
    peak = predicted(BASE, [32] * 128, 64, "fp32", 0, "activations")
    tokens = 128 * 32
    assert peak.weights == peak.gradients == 4 * 108_891_648
    assert peak.moments == 8 * 108_891_648
    # Per token and layer 8 hidden states and 2 wide ones of 4 bytes, 2 masks, 4 + 12 statistics.
    layer = 768 * (8 * 4 + 2) + 2 * 3072 * 4 + 16 * 4
    embeddings = 768 * (4 + 1) + 16
    attention = 32 * 4
    working, vectors = 2 * 3072 * 4, 2 * 128 * 768 * 4
    assert peak.activations == tokens * (12 * layer + embeddings + attention + working) + vectors
    assert peak.logits == 4 * 4 * 64 * 128
    assert peak.total == sum((peak.weights, peak.gradients, peak.moments, peak.activations, peak.logits))


def test_keeping_vectors_takes_the_memory_of_the_largest_chunk() -> None:
    lengths = [8] * 64 + [32] * 64
    whole, chunks, vectors = (
        predicted(BASE, lengths, 64, "bf16", *how).activations
        for how in ((0, "activations"), (32, "activations"), (32, "vectors"))
    )
    assert whole > chunks > 2 * vectors
    assert predicted(BASE, [32] * 32, 64, "bf16", 0, "activations").activations == pytest.approx(vectors, rel=0.01)


def test_what_does_not_fit_says_which_parameters_make_it_fit() -> None:
    large, recipe = Shape(24, 1024, 4096, 16, 355_000_000), Recipe(objective={}, batch_size=512)
    given = recipe, large, [32] * 1024, 512, "bf16"
    assert len(report(*given, 140 * GIB)) == 1
    said, remedy = report(*given, 16 * GIB)
    assert said.startswith("predicted peak of GPU memory: ")
    assert remedy.startswith(
        "the GPU has 16.00 GiB, less than that; set 'chunk_rows: 256' and 'keep: vectors' in the recipe"
    )
    fitting = recipe.model_copy(update={"chunk_rows": 256, "keep": "vectors"})
    assert len(report(fitting, *given[1:], 16 * GIB)) == 1
    assert report(*given, GIB)[1].endswith("share the batch among more 'processes', or take a smaller encoder")


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_a_batch_are_counted_without_drawing_anything(smoke_backbones: Path, kind: str) -> None:
    encoder = load_start(smoke_backbones / "smoke_bert", chosen(kind), None)
    task = build_task(chosen(kind), encoder, examples(12), 32)
    encoded: list[int] = []
    plain = encoding(encoder, "fp32", 0)

    class Spying(Encode):
        def __call__(self, rows, *given):
            encoded.extend(map(len, rows))
            return plain(rows, *given)

        def at(self, rows, places):
            encoded.extend(map(len, rows))
            return plain.at(rows, places)

    task.loss(range(12), Spying())
    before = torch.get_rng_state()
    assert lengths_of(task, range(12), encoder) == encoded
    assert torch.equal(torch.get_rng_state(), before)


def test_it_is_said_before_the_first_step_on_a_gpu(smoke_backbones: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = load_start(smoke_backbones / "smoke_bert", chosen(), None)
    task = build_task(chosen(), encoder, examples(12), 32)
    said: list[str] = []
    monkeypatch.setattr(StepProgress, "say", lambda self, text: said.append(text))
    given = Recipe(objective={}), task, [0, 1], encoder, encoder, "fp32", StepProgress("test", 1)
    announce(*given)
    assert not said
    monkeypatch.setattr(memory.torch.cuda, "get_device_properties", lambda device: SimpleNamespace(total_memory=GIB))
    monkeypatch.setattr(TransformerEncoder, "device", SimpleNamespace(type="cuda"))
    monkeypatch.setattr(memory, "lengths_of", lambda *_: [5] * 4)
    announce(*given)
    assert len(said) == 1
