"""The training loop on the random encoder: schedule, selection, resuming, saving."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from transformers import AutoModel, AutoTokenizer

from sembench.core.errors import SembenchError
from sembench.encoders.folder import load_encoder
from sembench.evaluation.pairs import Pairs, read_pairs
from sembench.registry import Plan, RunSpec, load_registry
from sembench.registry.models import Recipe
from sembench.training import loop
from sembench.training.checkpoint import Checkpoint
from sembench.training.loop import Trained, train
from sembench.training.save import save_run

ROOT = Path(__file__).parents[2]
WORDS = (ROOT / "tests/fixtures/words/words.txt").read_text().split()


def sentences(n: int = 40) -> list[str]:
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(WORDS, size=rng.integers(3, 12))) + "." for _ in range(n)]


@pytest.fixture(scope="module")
def dev() -> Pairs:
    return read_pairs(load_registry(ROOT).datasets["smoke_stsb"], ROOT / "tests/fixtures/stsb", "dev")


RECIPE = Recipe(batch_size=8, max_steps=10, eval_every=3, learning_rate=1e-3, precision="fp32", chunk_rows=6)


def run(folder: Path, dev: Pairs, recipe: Recipe = RECIPE, seed: int = 1, checkpoints: Path | None = None) -> Trained:
    return train(recipe, seed, folder, sentences(), dev, Checkpoint(checkpoints, "test"), "test")


def test_dev_is_scored_at_the_start_every_k_steps_and_at_the_last(smoke_backbones: Path, dev: Pairs) -> None:
    found = run(smoke_backbones / "smoke_bert", dev)
    assert [point["step"] for point in found.curve] == [0, 3, 6, 9, 10]
    assert len(found.losses) == found.steps == 10
    best = max(found.curve[1:], key=lambda point: point["dev"])
    assert found.best == {"step": best["step"], "dev": best["dev"]}


def test_the_kept_weights_are_those_of_the_best_step(smoke_backbones: Path, dev: Pairs) -> None:
    found = run(smoke_backbones / "smoke_bert", dev)
    again = loop._dev_point(found.encoder, RECIPE, dev, step=0, progress=loop.StepProgress("t", 1))
    assert again["dev"] == pytest.approx(found.best["dev"], abs=1e-6)


def test_the_earliest_of_equal_steps_is_kept(
    smoke_backbones: Path, dev: Pairs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "correlation", lambda *_: 0.5)
    assert run(smoke_backbones / "smoke_bert", dev).best["step"] == 3


def test_the_rate_falls_linearly_to_zero() -> None:
    factor = loop._linear_decay(10, 0.0)
    assert [round(factor(step), 6) for step in (0, 1, 5, 9, 10)] == [1.0, 0.9, 0.5, 0.1, 0.0]
    rising = loop._linear_decay(10, 0.2)
    assert [round(rising(step), 6) for step in (0, 1, 2, 6, 10)] == [0.0, 0.5, 1.0, 0.5, 0.0]


def test_training_is_a_function_of_the_seed(smoke_backbones: Path, dev: Pairs) -> None:
    first, second = (run(smoke_backbones / "smoke_bert", dev, seed=3) for _ in range(2))
    other = run(smoke_backbones / "smoke_bert", dev, seed=4)
    assert first.losses == second.losses
    assert first.losses != other.losses
    for name, value in first.encoder.state_dict().items():
        assert torch.equal(value, second.encoder.state_dict()[name])


def test_the_first_step_is_adamw_without_decay(smoke_backbones: Path, dev: Pairs) -> None:
    """After one step Adam has moved each weight by the rate times the gradient's sign (clipping keeps the sign)."""
    recipe = RECIPE.model_copy(update={"max_steps": 1, "learning_rate": 1e-3})
    before = load_file(smoke_backbones / "smoke_bert" / "model.safetensors")
    after = run(smoke_backbones / "smoke_bert", dev, recipe).encoder.model.state_dict()
    moved = (after["encoder.layer.0.output.dense.weight"] - before["encoder.layer.0.output.dense.weight"]).abs()
    assert moved.max() == pytest.approx(1e-3, rel=1e-2)
    # A decayed weight would shrink even without a gradient: embeddings of unseen words must not move at all.
    rows = (after["embeddings.word_embeddings.weight"] != before["embeddings.word_embeddings.weight"]).any(dim=1)
    assert 0 < rows.sum() < len(rows)


@pytest.mark.parametrize("stop", [4, 8])
def test_an_interrupted_run_continues_bit_for_bit(
    smoke_backbones: Path, dev: Pairs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: int
) -> None:
    whole = run(smoke_backbones / "smoke_bert", dev)
    step = loop._step

    def dying(*arguments):
        if arguments[-1] == stop:
            raise KeyboardInterrupt
        return step(*arguments)

    monkeypatch.setattr(loop, "_step", dying)
    with pytest.raises(KeyboardInterrupt):
        run(smoke_backbones / "smoke_bert", dev, checkpoints=tmp_path)
    monkeypatch.setattr(loop, "_step", step)
    resumed = run(smoke_backbones / "smoke_bert", dev, checkpoints=tmp_path)
    assert resumed.losses == whole.losses
    assert [p["dev"] for p in resumed.curve] == [p["dev"] for p in whole.curve]
    assert resumed.best == whole.best
    assert [(s["start_step"], s["end_step"]) for s in resumed.segments] == [(0, stop // 3 * 3), (stop // 3 * 3, 10)]
    for name, value in whole.encoder.state_dict().items():
        assert torch.equal(value, resumed.encoder.state_dict()[name])


def test_a_checkpoint_of_another_run_or_a_broken_one_is_refused(
    smoke_backbones: Path, dev: Pairs, tmp_path: Path
) -> None:
    path = tmp_path / "test" / "state.pt"
    path.parent.mkdir()
    path.write_bytes(b"no checkpoint")
    with pytest.raises(SembenchError, match=r"cannot be read .* delete it to start the run anew"):
        run(smoke_backbones / "smoke_bert", dev, checkpoints=tmp_path)
    torch.save({"run": "other"}, path)
    with pytest.raises(SembenchError, match="belongs to other, not test"):
        run(smoke_backbones / "smoke_bert", dev, checkpoints=tmp_path)


def test_a_loss_that_explodes_is_one_sentence(
    smoke_backbones: Path, dev: Pairs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sembench.training.tasks.info_nce", lambda a, *_: a.sum() * float("nan"))
    with pytest.raises(SembenchError, match="the loss is nan at step 1; lower the learning rate"):
        run(smoke_backbones / "smoke_bert", dev)


def test_wrong_starts_are_named(smoke_backbones: Path, dev: Pairs) -> None:
    with pytest.raises(SembenchError, match="is no transformer"):
        run(smoke_backbones / "smoke_glove", dev)
    with pytest.raises(SembenchError, match="the head 'mlp' belongs on read-out 'cls'"):
        run(smoke_backbones / "smoke_bert", dev, RECIPE.model_copy(update={"readout": "mean"}))
    with pytest.raises(SembenchError, match="no sentence to train on"):
        train(RECIPE, 1, smoke_backbones / "smoke_bert", [], dev, Checkpoint(None, "t"), "t")


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_low_precision_trains_close_to_full(smoke_backbones: Path, dev: Pairs, precision: str) -> None:
    full = run(smoke_backbones / "smoke_bert", dev, RECIPE.model_copy(update={"dropout": 0.0}))
    low = run(smoke_backbones / "smoke_bert", dev, RECIPE.model_copy(update={"dropout": 0.0, "precision": precision}))
    assert low.precision == precision
    np.testing.assert_allclose(low.losses[:2], full.losses[:2], rtol=0.05, atol=0.02)
    assert all(p.dtype == torch.float32 for p in low.encoder.parameters())


@pytest.fixture(scope="module")
def saved(smoke_backbones: Path, dev: Pairs, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Trained, RunSpec]:
    spec = Plan("smoke", root=ROOT).spec("unsup_simcse_distilbert", 1)
    found = run(smoke_backbones / "smoke_bert", dev)
    folder = tmp_path_factory.mktemp("saved") / "model"
    save_run(found, spec, smoke_backbones / "smoke_bert", "cls", folder, {"train_rows": 40})
    return folder, found, spec


def test_a_saved_run_loads_with_its_head_and_equal_vectors(saved: tuple[Path, Trained, RunSpec]) -> None:
    folder, found, _ = saved
    loaded = load_encoder(folder)
    assert "cls_mlp" in loaded.readouts
    assert "pooler" not in loaded.readouts
    for name in ("cls", "cls_mlp", "first_last"):
        np.testing.assert_array_equal(
            loaded.encode(sentences(9), [name])[name], found.encoder.encode(sentences(9), [name])[name]
        )


def test_transformers_gives_equal_vectors(saved: tuple[Path, Trained, RunSpec]) -> None:
    folder, found, _ = saved
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    with torch.inference_mode():
        batch = tokenizer(sentences(5), padding=True, return_tensors="pt")
        expected = model(**batch).last_hidden_state[:, 0].numpy()
    np.testing.assert_allclose(found.encoder.encode(sentences(5), ["cls"])["cls"], expected, atol=1e-6)


def test_sentence_transformers_gives_equal_vectors(saved: tuple[Path, Trained, RunSpec]) -> None:
    folder, found, _ = saved
    expected = SentenceTransformer(str(folder), device="cpu").encode(sentences(5))
    np.testing.assert_allclose(found.encoder.encode(sentences(5), ["cls"])["cls"], expected, atol=1e-6)


def test_run_json_holds_the_spec(saved: tuple[Path, Trained, RunSpec]) -> None:
    folder, _, spec = saved
    story = json.loads((folder / "run.json").read_text())
    assert RunSpec.model_validate(story["spec"]) == spec
    assert story["train_rows"] == 40


def test_a_run_can_start_from_another_run(saved: tuple[Path, Trained, RunSpec], dev: Pairs) -> None:
    folder, first, _ = saved
    assert "cls_mlp" in load_encoder(folder).readouts
    found = run(folder, dev, RECIPE.model_copy(update={"head": "none", "learning_rate": 1e-12}))
    # It begins where the first one was kept, without that one's head.
    assert found.curve[0]["dev"] == pytest.approx(first.best["dev"], abs=1e-6)
    assert "cls_mlp" not in found.encoder.readouts
    for name, value in load_file(folder / "model.safetensors").items():
        torch.testing.assert_close(found.encoder.model.state_dict()[name], value, atol=1e-7, rtol=0)


def test_a_run_through_the_pooler_trains_and_keeps_it(smoke_backbones: Path, dev: Pairs, tmp_path: Path) -> None:
    recipe = RECIPE.model_copy(update={"head": "none", "readout": "pooler", "select_by": "pooler"})
    found = run(smoke_backbones / "smoke_bert", dev, recipe)
    before = load_file(smoke_backbones / "smoke_bert" / "model.safetensors")["pooler.dense.weight"]
    assert not torch.equal(found.encoder.model.pooler.dense.weight, before)
    spec = Plan("smoke", root=ROOT).spec("unsup_simcse_bert_base", 1).model_copy(update={"recipe": recipe})
    save_run(found, spec, smoke_backbones / "smoke_bert", "pooler", tmp_path, {})
    loaded = load_encoder(tmp_path)
    vectors = loaded.encode(sentences(5), ["pooler"])["pooler"]
    np.testing.assert_allclose(vectors, found.encoder.encode(sentences(5), ["pooler"])["pooler"], atol=1e-6)
    model = AutoModel.from_pretrained(tmp_path)
    tokens = AutoTokenizer.from_pretrained(tmp_path)(sentences(5), padding=True, return_tensors="pt")
    with torch.no_grad():
        expected = model(**tokens).pooler_output
    np.testing.assert_allclose(vectors, expected, atol=1e-5)


def test_an_encoder_without_a_pooler_cannot_train_through_it(smoke_backbones: Path, dev: Pairs) -> None:
    recipe = RECIPE.model_copy(update={"head": "none", "readout": "pooler", "select_by": "pooler"})
    with pytest.raises(SembenchError, match="smoke_roberta has no pooler to train through; choose another read-out"):
        run(smoke_backbones / "smoke_roberta", dev, recipe)
