"""The training loop on random encoders, every kind of objective: schedule, selection, resuming, saving."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import signal
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from torch.nn import functional
from transformers import AutoModel, AutoTokenizer

from sembench.core.errors import SembenchError
from sembench.core.plugin import OBJECTIVES, Chosen
from sembench.data.readers.pairs import Pairs, read_pairs
from sembench.encoders.folder import load_encoder
from sembench.encoders.readouts import MLPHead
from sembench.plan.layout import RUN_FILES
from sembench.registry.models import Dataset, Recipe
from sembench.training import checkpoint as checkpoint_module
from sembench.training import dev as dev_module
from sembench.training import trainer
from sembench.training.checkpoint import Checkpoint, Interrupted, UnusableStateError, Weighted
from sembench.training.dev import dev_point
from sembench.training.objectives.base import SENTENCE_TRANSFORMERS
from sembench.training.save import save_run
from sembench.training.trainer import Trained, train

ROOT = Path(__file__).parents[2]
WORDS = (ROOT / "tests/fixtures/words/words.txt").read_text().split()
# Options of an objective that train something more, or draw random numbers of their own.
OPTIONS = {
    "supervised, two encoders": {"kind": "supervised", "encoders": "two"},
    "contrastive, MLM": {"kind": "contrastive", "mlm_weight": 0.1},
    "supervised, MLM that leaks": {"kind": "supervised", "mlm_weight": 0.1, "mlm_leak": True},
}
KINDS = [*sorted(OBJECTIVES.modules), *OPTIONS]
RECIPE = Recipe(objective={}, batch_size=8, max_steps=10, eval_every=4, learning_rate=1e-3, precision="fp32")


def examples(n: int = 40) -> pd.DataFrame:
    """Invented sentences in every column that an objective may read."""
    rng = np.random.default_rng(0)
    sentences = [" ".join(rng.choice(WORDS, size=rng.integers(3, 12))) + "." for _ in range(n)]
    texts = ["sentence", "gloss", "anchor", "positive", "negative", "first", "second"]
    texts += [f"{role}_{side}_gloss" for role in ("anchor", "positive", "third") for side in ("source", "target")]
    columns = {name: [sentences[i] for i in rng.permutation(n)] for name in texts}
    columns |= {"sentence": sentences, "word": list(rng.choice(WORDS, n)), "label": list(rng.integers(3, size=n))}
    relation = rng.integers(4, size=n)
    columns |= {"anchor_directed": relation, "positive_directed": relation, "third_directed": rng.integers(6, size=n)}
    columns["neutral"] = [sentences[i] for i in rng.permutation(n)]
    return pd.DataFrame(columns)


def chosen(kind: str = "contrastive", **parameters) -> Chosen:
    return OBJECTIVES.parse({**OPTIONS.get(kind, {"kind": kind}), **parameters}, "test")


@pytest.fixture(scope="module")
def dev() -> Pairs:
    entries = yaml.safe_load((ROOT / "registry/datasets.yaml").read_text())
    pairs = read_pairs(Dataset.model_validate(entries["smoke_stsb"]), ROOT / "tests/fixtures/stsb", "dev")
    return Pairs(pairs.subset, pairs.first[:30], pairs.second[:30], pairs.gold[:30])


@pytest.fixture(scope="module")
def bert(smoke_backbones: Path) -> Path:
    return smoke_backbones / "smoke_bert"


def run(
    folder: Path,
    dev: Pairs,
    objective: Chosen | None = None,
    seed: int = 1,
    checkpoint: Checkpoint | None = None,
    data: pd.DataFrame | None = None,
    **recipe,
) -> Trained:
    given = RECIPE.model_copy(update=recipe)
    frame = examples() if data is None else data
    return train(given, objective or chosen(), seed, folder, frame, dev, checkpoint or Checkpoint(None, "test"), "test")


@pytest.fixture(scope="module")
def wholes(bert: Path, dev: Pairs) -> dict[str, Trained]:
    """A run of each kind that nothing interrupts."""
    return {kind: run(bert, dev, chosen(kind)) for kind in KINDS}


def curve(found: Trained) -> list[dict]:
    return [{name: value for name, value in point.items() if name != "seconds"} for point in found.state.curve]


def assert_same_run(one: Trained, other: Trained) -> None:
    assert one.state.losses == other.state.losses
    assert curve(one) == curve(other)
    assert one.state.best == other.state.best
    for name, value in one.encoder.state_dict().items():
        assert torch.equal(value, other.encoder.state_dict()[name]), name


# ----------------------------------------------------------------------------------------------------------- the loop


def test_a_training_says_what_repeats_in_its_data_and_keeps_it(
    bert: Path, dev: Pairs, capsys: pytest.CaptureFixture[str]
) -> None:
    data = examples(8)
    for seen, repeated in ((False, data), (True, data.assign(sentence=[*data["sentence"][:7], data["sentence"][0]]))):
        trained = run(bert, dev, data=repeated, max_steps=1)
        assert trained.rows == 8
        line = "test: warning: 12.5% of the rows repeat the 'sentence' of an earlier one, so a batch of 8 holds 1 pairs"
        assert (line in capsys.readouterr().err) is seen


def plain_losses(
    folder: Path, sentences: list[str], seed: int, steps: int, batch: int, rate: float, **dropout: float
) -> list[float]:
    """Unsupervised SimCSE as one would write it with transformers alone."""
    torch.manual_seed(seed)
    model = AutoModel.from_pretrained(folder, add_pooling_layer=False, **dropout).train()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    dense = torch.nn.Linear(32, 32)
    torch.nn.init.normal_(dense.weight, std=0.02)
    torch.nn.init.zeros_(dense.bias)
    weights = [*model.parameters(), *dense.parameters()]
    optimizer = torch.optim.AdamW(weights, lr=rate, weight_decay=0.0, fused=True)
    order = np.random.Generator(np.random.PCG64([seed, 0])).permutation(len(sentences))
    losses = []
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = rate * ((steps - step) / steps)
        texts = [sentences[i] for i in order[step * batch : (step + 1) * batch]]
        tokens = tokenizer(texts + texts, padding=True, truncation=True, max_length=32, return_tensors="pt")
        output = model(input_ids=tokens["input_ids"], attention_mask=tokens["attention_mask"])
        vectors = functional.normalize(torch.tanh(dense(output.last_hidden_state[:, 0])), dim=-1)
        loss = functional.cross_entropy(
            vectors[: len(texts)] @ vectors[len(texts) :].T / 0.05, torch.arange(len(texts))
        )
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_a_run_is_that_of_a_plain_loop_bit_for_bit(bert: Path, dev: Pairs, monkeypatch: pytest.MonkeyPatch) -> None:
    """With transformers' own layers on padded rows, as on a GPU, down to the dropout masks."""
    monkeypatch.setattr(trainer, "prepare", lambda encoder: None)
    expected = plain_losses(bert, examples()["sentence"].tolist(), seed=3, steps=5, batch=8, rate=1e-3)
    assert run(bert, dev, seed=3, max_steps=5).state.losses == expected


def test_packed_rows_train_as_a_plain_loop_does(bert: Path, dev: Pairs) -> None:
    """Without dropout, whose masks are drawn in another order."""
    none = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    expected = plain_losses(bert, examples()["sentence"].tolist(), seed=3, steps=5, batch=8, rate=1e-3, **none)
    found = run(bert, dev, seed=3, max_steps=5, dropout=0.0).state.losses
    assert found == pytest.approx(expected, rel=1e-4)
    assert found[0] == pytest.approx(expected[0], rel=1e-6)


def test_dev_is_scored_at_the_start_every_k_steps_and_at_the_last(wholes: dict[str, Trained]) -> None:
    found = wholes["contrastive"]
    assert [point["step"] for point in found.state.curve] == [0, 4, 8, 10]
    assert len(found.state.losses) == found.state.step == 10
    best = max(found.state.curve[1:], key=lambda point: point["dev"])
    assert found.state.best == {"step": best["step"], "dev": best["dev"]}
    assert found.state.curve[1]["loss"] == pytest.approx(np.mean(found.state.losses[:4]))
    assert found.state.curve[3]["loss"] == pytest.approx(np.mean(found.state.losses[8:]))


@pytest.mark.parametrize("kind", KINDS)
def test_every_objective_trains_what_it_owns_and_keeps_the_best_of_it(
    bert: Path, dev: Pairs, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With dev scores that only fall, the kept weights are those after the first interval, heads included."""
    scores = iter([0.1, 0.9, 0.5])
    monkeypatch.setattr(dev_module, "correlation", lambda *_: next(scores))
    kept = []
    keep = Weighted.keep_best
    monkeypatch.setattr(
        Weighted, "keep_best", lambda self: (keep(self), kept.append({k: v.clone() for k, v in self.weights().items()}))
    )
    tasks = []
    build = trainer.build_task
    monkeypatch.setattr(trainer, "build_task", lambda *given: tasks.append(build(*given)) or tasks[0])
    found = run(bert, dev, chosen(kind), max_steps=8)
    assert np.isfinite(found.state.losses).all()
    assert len(kept) == 1
    last = Weighted(encoder=found.encoder, own=tasks[0].own)
    assert all(torch.equal(value, kept[0][name]) for name, value in last.weights().items())
    # Everything owned has moved away from its random start.
    torch.manual_seed(1)
    trainer.load_start(bert, chosen(kind), None)
    fresh = chosen(kind).plugin(chosen(kind).config, found.encoder, examples(), 32)
    for name, value in fresh.own.state_dict().items():
        assert not torch.equal(value, tasks[0].own.state_dict()[name]), name


def test_a_head_counts_once(bert: Path) -> None:
    """It is the encoder's read-out and the objective's module: one entry in the optimiser, the norm, the checkpoint."""
    encoder = trainer.load_start(bert, chosen(), None)
    task = trainer.build_task(chosen(), encoder, examples(), 32)
    model = Weighted(encoder=encoder, own=task.own)
    names = list(model.weights())
    assert sum("cls_mlp" in name for name in names) == 2
    assert len(list(model.parameters())) == len(list(encoder.model.parameters())) + 2


def test_the_earliest_of_equal_steps_is_kept(bert: Path, dev: Pairs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dev_module, "correlation", lambda *_: 0.5)
    assert run(bert, dev).state.best["step"] == 4


def test_the_rate_falls_linearly_to_zero() -> None:
    factor = trainer.linear_decay(10, 0.0)
    assert [round(factor(step), 6) for step in (0, 1, 5, 9, 10)] == [1.0, 0.9, 0.5, 0.1, 0.0]
    rising = trainer.linear_decay(10, 0.2)
    assert [round(rising(step), 6) for step in (0, 1, 2, 6, 10)] == [0.0, 0.5, 1.0, 0.5, 0.0]


def test_training_is_a_function_of_the_seed(bert: Path, dev: Pairs) -> None:
    first, second, other = (run(bert, dev, seed=seed, rows=30, max_steps=5, chunk_rows=6) for seed in (3, 3, 4))
    assert_same_run(first, second)
    assert first.state.losses != other.state.losses


def test_weights_without_a_gradient_do_not_move(bert: Path, dev: Pairs) -> None:
    """A decayed weight would shrink: embeddings of unseen words must not."""
    before = load_file(bert / "model.safetensors")["bert.embeddings.word_embeddings.weight"]
    after = run(bert, dev, max_steps=1).encoder.model.state_dict()["embeddings.word_embeddings.weight"]
    rows = (after != before).any(dim=1)
    assert 0 < rows.sum() < len(rows)


def test_selection_by_the_own_head(bert: Path, dev: Pairs) -> None:
    found = run(bert, dev, chosen("supervised"), select_by="cls_mlp")
    assert "cls_mlp" in found.encoder.readouts
    assert dev_point(found.encoder, "cls_mlp", dev)["dev"] == pytest.approx(found.state.best["dev"], abs=1e-6)


def test_a_read_out_that_is_not_offered_is_refused_before_training(bert: Path, dev: Pairs) -> None:
    for objective, name in ((chosen(head="none"), "cls_mlp"), (chosen(), "pooler"), (chosen(), "first_lst")):
        with pytest.raises(SembenchError, match=f"recipe: select_by '{name}' is not in what the encoder offers"):
            run(bert, dev, objective, select_by=name)


def test_a_loss_that_explodes_is_one_sentence(bert: Path, dev: Pairs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chosen().plugin, "loss", lambda self, batch, encode: (torch.tensor(float("nan")), {}))
    with pytest.raises(SembenchError, match="the loss is nan at step 1; lower the learning rate"):
        run(bert, dev)


def test_wrong_starts_are_named(smoke_backbones: Path, dev: Pairs) -> None:
    with pytest.raises(SembenchError, match="smoke_glove is not a transformer and cannot be trained"):
        run(smoke_backbones / "smoke_glove", dev)
    with pytest.raises(SembenchError, match="smoke_roberta has no pooler to train through; choose another read-out"):
        run(smoke_backbones / "smoke_roberta", dev, chosen(head="none", readout="pooler"), select_by="pooler")


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_low_precision_trains_close_to_full(bert: Path, dev: Pairs, precision: str) -> None:
    full = run(bert, dev, dropout=0.0, max_steps=2)
    low = run(bert, dev, dropout=0.0, max_steps=2, precision=precision)
    assert low.precision == precision
    np.testing.assert_allclose(low.state.losses, full.state.losses, rtol=0.05, atol=0.02)
    assert all(p.dtype == torch.float32 for p in low.encoder.parameters())


def test_a_step_whose_gradient_overflows_in_fp16_is_skipped(
    bert: Path, dev: Pairs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scaler leaves weights and moments as they are, halves its factor, and the run goes on."""
    plain, seen, scales = chosen().plugin.loss, [], []

    def overflowing(self, batch, encode):
        loss, facts = plain(self, batch, encode)
        seen.append({name: value.clone() for name, value in self.own.state_dict().items()})
        # The value stays; the gradient is too large once it is scaled, in the sixth step (by chance in the first ones too).
        return (loss + (loss * 1e37 - (loss * 1e37).detach()) if len(seen) == 6 else loss), facts

    build = trainer.optimisation

    def watched(*given):
        parts = build(*given)
        scales.append(parts[2].get_scale())
        update = parts[2].update
        monkeypatch.setattr(parts[2], "update", lambda: (update(), scales.append(parts[2].get_scale())))
        return parts

    monkeypatch.setattr(chosen().plugin, "loss", overflowing)
    monkeypatch.setattr(trainer, "optimisation", watched)
    found = run(bert, dev, max_steps=8, precision="fp16")
    moved = [
        any(not torch.equal(value, later[name]) for name, value in before.items())
        for before, later in itertools.pairwise(seen)
    ]
    halved = [later / before == 0.5 for before, later in itertools.pairwise(scales)]
    assert [not skipped for skipped in halved[:7]] == moved
    assert moved[4:] == [True, False, True]
    assert len(found.state.losses) == 8
    assert np.isfinite(found.state.losses).all()
    assert all(torch.isfinite(value).all() for value in found.encoder.state_dict().values())


# -------------------------------------------------------------------------------------------------- stopping, going on


def signalled(
    monkeypatch: pytest.MonkeyPatch, objective: Chosen, number: signal.Signals, step: int, times: int = 1
) -> None:
    """Send a signal to this process in the middle of a step."""
    loss, calls = objective.plugin.loss, []

    def sending(self, batch, encode):
        calls.append(batch)
        for _ in range(times if len(calls) == step else 0):
            os.kill(os.getpid(), number)
        return loss(self, batch, encode)

    monkeypatch.setattr(objective.plugin, "loss", sending)


@pytest.mark.parametrize("kind", KINDS)
def test_a_signal_saves_after_the_step_and_the_run_goes_on_bit_for_bit(
    bert: Path, dev: Pairs, wholes: dict[str, Trained], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Stopped at step 6, between the dev scores of 4 and 8."""
    whole = wholes[kind]
    with monkeypatch.context() as patched:
        signalled(patched, chosen(kind), signal.SIGTERM, step=6)
        with pytest.raises(Interrupted, match="test was stopped by SIGTERM after step 6") as stop:
            run(bert, dev, chosen(kind), checkpoint=Checkpoint(tmp_path, "test"))
    assert stop.value.code == 75
    resumed = run(bert, dev, chosen(kind), checkpoint=Checkpoint(tmp_path, "test"))
    assert_same_run(whole, resumed)
    assert [(s["start_step"], s["end_step"]) for s in resumed.state.segments] == [(0, 6), (6, 10)]
    for name, head in whole.heads.items():
        assert all(torch.equal(a, b) for a, b in zip(head.parameters(), resumed.heads[name].parameters(), strict=True))


@pytest.mark.parametrize("step", [1, 5, 8])
def test_a_crash_loses_what_came_after_the_last_write(
    bert: Path, dev: Pairs, wholes: dict[str, Trained], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    whole = wholes["contrastive"]

    def dying(loss: torch.Tensor, now: int) -> float:
        if now == step + 1:
            raise MemoryError
        return float(loss.detach())

    with monkeypatch.context() as patched:
        patched.setattr(trainer, "finite", dying)
        with pytest.raises(MemoryError):
            run(bert, dev, checkpoint=Checkpoint(tmp_path, "test", every=0.0))
    resumed = run(bert, dev, checkpoint=Checkpoint(tmp_path, "test", every=0.0))
    assert_same_run(whole, resumed)
    assert resumed.state.segments[0]["end_step"] == step


def test_an_interrupted_run_does_not_go_on_with_other_data(bert: Path, dev: Pairs, tmp_path: Path) -> None:
    """A data set without a checksum may hold something else once it is fetched again, and the run's key is the same."""
    run(bert, dev, max_steps=3, checkpoint=Checkpoint(tmp_path, "test", every=0.0, content="one"))
    with pytest.raises(SembenchError, match=r"state\.pt was trained on other content of its inputs .*; delete .*state"):
        run(bert, dev, max_steps=3, checkpoint=Checkpoint(tmp_path, "test", content="two"))


def test_a_signal_that_comes_twice_at_once_counts_once(
    bert: Path, dev: Pairs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A workflow passes SIGTERM on to its jobs, which may have been sent it together with the workflow."""
    signalled(monkeypatch, chosen(), signal.SIGTERM, step=2, times=3)
    with pytest.raises(Interrupted, match="SIGTERM after step 2"):
        run(bert, dev, checkpoint=Checkpoint(tmp_path, "test"))
    assert (tmp_path / "test" / "state.pt").is_file()


def test_a_second_signal_ends_the_run_at_once(
    bert: Path, dev: Pairs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint_module, "TOGETHER", 0.0)
    signalled(monkeypatch, chosen(), signal.SIGINT, step=2, times=2)
    with pytest.raises(KeyboardInterrupt):
        run(bert, dev, checkpoint=Checkpoint(tmp_path, "test"))
    assert not list(tmp_path.iterdir())


def test_what_is_ignored_stays_so(bert: Path, dev: Pairs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As SIGHUP below nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        signalled(monkeypatch, chosen(), signal.SIGHUP, step=2)
        assert run(bert, dev, max_steps=3, checkpoint=Checkpoint(tmp_path, "test")).state.step == 3
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGINT, signal.SIGHUP])
def test_other_signals_stop_as_well_and_handlers_are_put_back(
    bert: Path, dev: Pairs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    before = signal.getsignal(number)
    signalled(monkeypatch, chosen(), number, step=2)
    with pytest.raises(Interrupted, match=f"{number.name} after step 2"):
        run(bert, dev, checkpoint=Checkpoint(tmp_path, "test"))
    assert signal.getsignal(number) == before


def test_a_signal_in_the_last_step_lets_the_run_end(
    bert: Path, dev: Pairs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    signalled(monkeypatch, chosen(), signal.SIGTERM, step=3)
    assert run(bert, dev, max_steps=3, checkpoint=Checkpoint(tmp_path, "test")).state.step == 3
    assert not list(tmp_path.iterdir())


def test_nothing_is_written_before_its_time(bert: Path, dev: Pairs, tmp_path: Path) -> None:
    run(bert, dev, max_steps=3, checkpoint=Checkpoint(tmp_path, "test"))
    assert not list(tmp_path.iterdir())
    run(bert, dev, max_steps=3, checkpoint=Checkpoint(tmp_path, "test", every=0.0))
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["state.pt"]
    Checkpoint(tmp_path, "test").remove()
    assert not list(tmp_path.iterdir())


def test_a_thread_trains_without_listening_to_signals(bert: Path, dev: Pairs, tmp_path: Path) -> None:
    found: list[Trained] = []
    worker = threading.Thread(
        target=lambda: found.append(run(bert, dev, max_steps=2, checkpoint=Checkpoint(tmp_path, "t")))
    )
    worker.start()
    worker.join()
    assert found[0].state.step == 2


def write_state(path: Path, saved: dict) -> None:
    """Write a state as ``Checkpoint`` does: its checksum is right, whatever it holds."""
    path.parent.mkdir(exist_ok=True)
    torch.save(saved, path)
    path.write_bytes(path.read_bytes() + hashlib.sha256(path.read_bytes()).hexdigest().encode())


@pytest.fixture(scope="module")
def state(bert: Path, dev: Pairs, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The last state of a run of three steps."""
    folder = tmp_path_factory.mktemp("state")
    run(bert, dev, chosen("softmax"), max_steps=3, checkpoint=Checkpoint(folder, "test", every=0.0))
    return folder / "test" / "state.pt"


def test_checkpoints_of_something_else_are_sentences(bert: Path, dev: Pairs, state: Path, tmp_path: Path) -> None:
    path = tmp_path / "test" / "state.pt"
    good = torch.load(state, weights_only=True)

    def refused(saved: dict, **recipe) -> str:
        write_state(path, saved)
        with pytest.raises(SembenchError) as error:
            run(bert, dev, chosen("softmax"), checkpoint=Checkpoint(tmp_path, "test"), **recipe)
        assert str(error.value).endswith(f"delete {path} to start the run anew")
        assert path.is_file()
        return str(error.value)

    assert "belongs to other, not test" in refused({**good, "run": "other"})
    assert "was trained in fp32 but would go on in bf16" in refused(good, precision="bf16")
    # What `auto` stands for on another machine would choose another step.
    assert "would go on in fp32 with dev scores in bf16" in refused(good, eval_precision="bf16")


CLASSIFIER = "own.classifier.weight"
UNFIT = {
    **{
        f"no {key}": partial(lambda key, good: good.pop(key), key)
        for key in ("run", "precision", "weights", "best_weights")
    },
    **{f"no {key}": partial(lambda key, good: good.pop(key), key) for key in ("parts", "rng", "cuda_rng", "state")},
    "a weight less": lambda good: good["weights"].pop(CLASSIFIER),
    "a weight of another shape": lambda good: good["weights"].update({CLASSIFIER: torch.zeros(3, 5)}),
    "more than a state": lambda good: good["state"].update(stop=1),
    "no scaler": lambda good: good["parts"].pop(),
    "an optimiser of less": lambda good: good["parts"][0]["param_groups"].pop(),
    "a generator of less": lambda good: good.update(rng=good["rng"][:9]),
}


@pytest.mark.parametrize("change", list(UNFIT))
def test_a_state_that_does_not_fit_is_never_half_used(
    bert: Path, dev: Pairs, state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], change: str
) -> None:
    """The run starts anew by itself, with the same numbers as if there had been no state."""
    good = torch.load(state, weights_only=True)
    UNFIT[change](good)
    path = tmp_path / "test" / "state.pt"
    write_state(path, good)
    found = run(bert, dev, chosen("softmax"), max_steps=1, checkpoint=Checkpoint(tmp_path, "test"))
    assert [(each["start_step"], each["end_step"]) for each in found.state.segments] == [(0, 1)]
    assert found.state.losses == torch.load(state, weights_only=True)["state"]["losses"][:1]
    assert f"{path} does not fit the run (" in (told := capsys.readouterr().err)
    assert "; it is deleted, and the run starts anew" in told
    assert not path.exists()


def test_no_bit_of_a_state_can_flip_unseen(state: Path, tmp_path: Path) -> None:
    """Nor can it be cut, empty or longer: none is used, and all are sentences."""
    whole, rng = bytearray(state.read_bytes()), np.random.default_rng(0)
    damaged = [b"", b"\n", b"no checkpoint", whole + b"\0", whole + whole, whole[:-64], whole[64:]]
    damaged += [whole[:length] for length in rng.integers(len(whole), size=20)]
    for place in [*range(len(whole) - 70, len(whole)), *rng.integers(len(whole), size=150)]:
        damaged.append(bytearray(whole))
        damaged[-1][place] ^= 1 << int(rng.integers(8))
    checkpoint = Checkpoint(tmp_path, "test")
    for content in damaged:
        (tmp_path / "test").mkdir(exist_ok=True)
        (tmp_path / "test" / "state.pt").write_bytes(content)
        with pytest.raises(UnusableStateError, match=r"state\.pt is damaged$"):
            checkpoint.restore(Weighted(), "fp32")


def test_a_damaged_state_lets_the_run_start_anew_by_itself(
    bert: Path, dev: Pairs, wholes: dict[str, Trained], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(bert, dev, max_steps=2, checkpoint=Checkpoint(tmp_path, "test", every=0.0))
    path = tmp_path / "test" / "state.pt"
    content = path.read_bytes()
    path.write_bytes(content[:-9] + b"9" + content[-8:])
    assert_same_run(wholes["contrastive"], run(bert, dev, checkpoint=Checkpoint(tmp_path, "test")))
    assert f"test: {path} is damaged; it is deleted, and the run starts anew" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_a_full_disk_costs_neither_the_run_nor_its_older_state(
    bert: Path, dev: Pairs, wholes: dict[str, Trained], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """What torch raises there is its own error, on top of the system's."""
    save, calls = torch.save, []

    def full(saved: dict, stream) -> None:
        calls.append(saved["state"]["step"])
        if calls[-1] > 3:
            with Path("/dev/full").open("wb") as device:
                save(saved, device)
        save(saved, stream)

    monkeypatch.setattr(torch, "save", full)
    signalled(monkeypatch, chosen(), signal.SIGTERM, step=6)
    with pytest.raises(Interrupted) as stop:
        run(bert, dev, checkpoint=Checkpoint(tmp_path, "test", every=0.0))
    assert stop.value.code == 75
    assert calls == [1, 2, 3, 4, 5, 6]
    told = capsys.readouterr().err
    full_disk = f"which is not saved (the disk is full while writing {tmp_path}/test/state.pt)"
    assert f"test: step 4, {full_disk}; the older state stays as it is\n" in told
    assert f"test: stopped by SIGTERM after step 6, {full_disk}; run the same command" in told
    assert [path.name for path in (tmp_path / "test").iterdir()] == ["state.pt"]
    monkeypatch.undo()
    resumed = run(bert, dev, checkpoint=Checkpoint(tmp_path, "test"))
    assert_same_run(wholes["contrastive"], resumed)
    assert resumed.state.segments[0]["end_step"] == 3


# -------------------------------------------------------------------------------------------------------------- saving

SAVED = {
    "unsupervised": chosen(),
    "supervised": chosen("supervised"),
    "MLM": chosen("supervised", mlm_weight=0.1),
    "softmax": chosen("softmax"),
    "pooler": chosen(head="none", readout="pooler"),
    "first_last": chosen(head="none", readout="first_last"),
}


@pytest.fixture(scope="module", params=list(SAVED))
def saved(request, bert: Path, dev: Pairs, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Trained, Chosen]:
    objective = SAVED[request.param]
    readout = objective.plugin.default_readout(objective.config)
    found = run(bert, dev, objective, select_by=readout, max_steps=4)
    folder = tmp_path_factory.mktemp("saved") / "model"
    save_run(found, bert, folder, name="a.s1.0", title="A", readout=readout, facts={"seed": 1})
    return folder, found, objective


def test_what_a_killed_process_left_of_a_model_goes_with_the_next(
    bert: Path, wholes: dict[str, Trained], tmp_path: Path
) -> None:
    (tmp_path / ".saving").mkdir()
    (tmp_path / ".saving" / "model.safetensors").write_bytes(b"half a model")
    save_run(wholes["contrastive"], bert, tmp_path, name="a", title="A", readout="cls", facts={})
    assert not list(tmp_path.glob(".*"))
    assert (tmp_path / "model.safetensors").stat().st_size > 1000


def test_a_saved_run_loads_with_equal_vectors(saved: tuple[Path, Trained, Chosen]) -> None:
    folder, found, objective = saved
    loaded = load_encoder(folder)
    assert set(loaded.readouts) == set(objective.plugin.offers(objective.config))
    texts = examples(9)["sentence"].tolist()
    for name in loaded.readouts:
        np.testing.assert_array_equal(loaded.encode(texts, [name])[name], found.encoder.encode(texts, [name])[name])


def test_the_folder_holds_what_the_plan_declares(saved: tuple[Path, Trained, Chosen]) -> None:
    folder, found, objective = saved
    names = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    described = SENTENCE_TRANSFORMERS.get(objective.plugin.default_readout(objective.config), ())
    assert names == {*RUN_FILES, *described}
    entry = json.loads((folder / "encoder.json").read_text())
    exported = objective.plugin.exports(objective.config)
    assert entry["heads"] == dict.fromkeys(exported, "mlp")
    assert entry["readout"] == objective.plugin.default_readout(objective.config)
    assert set(load_file(folder / "model.safetensors")) == set(found.encoder.model.state_dict())
    heads = load_file(folder / "heads.safetensors")
    assert set(heads) == {f"{name}.dense.{part}" for name in exported for part in ("weight", "bias")}
    history = json.loads((folder / "run.json").read_text())
    assert history["run"] == "a.s1.0"
    assert history["seed"] == 1
    assert history["train_rows"] == 40
    assert len(history["losses"]) == found.state.step


def test_transformers_gives_equal_vectors(saved: tuple[Path, Trained, Chosen]) -> None:
    folder, found, _ = saved
    texts = examples(5)["sentence"].tolist()
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    with torch.inference_mode():
        output = model(**tokenizer(texts, padding=True, return_tensors="pt"))
    expected = output.last_hidden_state[:, 0].numpy()
    np.testing.assert_allclose(found.encoder.encode(texts, ["cls"])["cls"], expected, atol=1e-6)
    if "pooler" in found.encoder.readouts:
        pooled = output.pooler_output.numpy()
        np.testing.assert_allclose(found.encoder.encode(texts, ["pooler"])["pooler"], pooled, atol=1e-5)


def test_sentence_transformers_gives_the_default_read_out(saved: tuple[Path, Trained, Chosen]) -> None:
    folder, found, objective = saved
    readout = objective.plugin.default_readout(objective.config)
    if not (folder / "modules.json").is_file():
        assert readout == "first_last"
        return
    texts = examples(5)["sentence"].tolist()
    expected = SentenceTransformer(str(folder), device="cpu").encode(texts)
    np.testing.assert_allclose(found.encoder.encode(texts, [readout])[readout], expected, atol=1e-6)


def test_the_saved_head_is_the_trained_one(bert: Path, dev: Pairs) -> None:
    """No run can leave a head at its random start."""
    found = run(bert, dev, seed=1, max_steps=2)
    torch.manual_seed(1)
    trainer.load_start(bert, chosen(), None)
    fresh = MLPHead(32).dense.weight
    assert (found.heads["cls_mlp"].dense.weight - fresh).abs().max() > 1e-4
    for kind in KINDS:
        objective = chosen(kind)
        assert tuple(run(bert, dev, objective, max_steps=1).heads) == objective.plugin.exports(objective.config)


def test_a_run_can_start_from_another_run(bert: Path, dev: Pairs, wholes: dict[str, Trained], tmp_path: Path) -> None:
    first = wholes["contrastive"]
    save_run(first, bert, tmp_path, name="a", title="A", readout="cls", facts={})
    found = run(tmp_path, dev, chosen(head="none"), learning_rate=1e-12, max_steps=1)
    # It begins where the first one was kept, without that one's head.
    assert found.state.curve[0]["dev"] == pytest.approx(first.state.best["dev"], abs=1e-6)
    assert "cls_mlp" not in found.encoder.readouts
    for name, value in load_file(tmp_path / "model.safetensors").items():
        torch.testing.assert_close(found.encoder.model.state_dict()[name], value, atol=1e-7, rtol=0)


def test_a_run_through_the_pooler_trains_it(bert: Path, dev: Pairs) -> None:
    found = run(bert, dev, chosen("relation", readout="pooler"), select_by="pooler", max_steps=2)
    before = load_file(bert / "model.safetensors")["bert.pooler.dense.weight"]
    assert not torch.equal(found.encoder.model.pooler.dense.weight, before)
