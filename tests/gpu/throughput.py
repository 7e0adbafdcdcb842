"""Training speed on a GPU beside sentence-transformers, and one run against the processor; under five minutes.

    python -m tests.gpu.throughput                      # BERT base and RoBERTa large, bf16, on the GPU
    python -m tests.gpu.throughput --device cpu --tiny  # the same from end to end, in seconds

Encoders have random weights, since speed does not depend on them, and rows have random word pieces with lengths like those
of Wikipedia's sentences. Both sides take the same rows: unsupervised SimCSE's step of 2N rows, with AdamW, the norm of
the gradient clipped, and a falling rate. sentence-transformers' step is what its trainer does in one: forward of its
model under autocast with ``MultipleNegativesRankingLoss`` at scale 20, backward, clip, step; the trainer itself would
need two more packages for the same. Prints rows of Markdown for docs/measured.md.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from sentence_transformers.sentence_transformer.modules import Pooling
from torch import Tensor, nn
from transformers import BertConfig, BertModel, PretrainedConfig, PreTrainedModel, RobertaConfig, RobertaModel

from sembench.encoders.devices import autocast, hardware
from sembench.encoders.readouts import MLPHead
from sembench.encoders.tokens import Tokens
from sembench.encoders.transformer import TransformerEncoder
from sembench.registry.models import Recipe
from sembench.training.batches import Keep
from sembench.training.losses import info_nce
from sembench.training.memory import GIB, Shape, predicted
from sembench.training.trainer import encoding, optimisation, reading

# Dense bf16 multiplications and additions a second, as the makers say (data sheets: H100 SXM, H200, A100).
PEAK_FLOPS = {"H100": 989e12, "H200": 989e12, "A100": 312e12}
SPECIALS = 5  # ids below are none of words
Step = Callable[[list[list[int]]], float]


@dataclass(frozen=True)
class Case:
    """An encoder's shape and the batch of its recipe in the paper."""

    name: str
    make: Callable[[], PreTrainedModel]
    batch: int
    steps: int


def encoders(tiny: bool) -> list[Case]:
    """Return the paper's smallest and largest encoders, or their like in miniature."""
    if tiny:
        sizes = {"vocab_size": 100, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
        return [
            Case("BERT tiny", lambda: bert(BertConfig(**sizes, num_attention_heads=2)), 8, 3),
            Case("RoBERTa tiny", lambda: roberta(RobertaConfig(**sizes, num_attention_heads=2)), 8, 3),
        ]
    large = {"vocab_size": 50265, "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24}
    return [
        Case("BERT base", lambda: bert(BertConfig()), 64, 60),
        Case(
            "RoBERTa large",
            lambda: roberta(RobertaConfig(**large, num_attention_heads=16, max_position_embeddings=514)),
            512,
            12,
        ),
    ]


def bert(config: PretrainedConfig) -> PreTrainedModel:
    """Return a BERT without a pooler, as training takes it."""
    return BertModel(config, add_pooling_layer=False)


def roberta(config: PretrainedConfig) -> PreTrainedModel:
    """Return a RoBERTa without a pooler."""
    return RobertaModel(config, add_pooling_layer=False)


def batches(batch: int, vocabulary: int, seed: int = 0) -> Iterator[list[list[int]]]:
    """Yield batches of rows without end; a length is 4 to 32 word pieces, 25 on average as in Wikipedia cut at 32."""
    rng = np.random.default_rng(seed)
    while True:
        lengths = np.clip(rng.normal(27, 8, size=batch).round(), 4, 32).astype(int)
        yield [rng.integers(SPECIALS, vocabulary, size=length).tolist() for length in lengths]


# ------------------------------------------------------------------------------------------------- the two contestants


def ours(model: PreTrainedModel, device: torch.device, precision: str, chunk_rows: int, keep: Keep) -> Step:
    """Return a step of this project's loop on rows of ids, which returns the loss."""
    tokens = Tokens(lambda texts, longest: [], 512, int(model.config.pad_token_id or 0))
    encoder = TransformerEncoder(model, tokens, {"cls_mlp": MLPHead(model.config.hidden_size)}).to(device).train()
    encode = encoding(encoder, precision, chunk_rows, keep)
    optimizer, schedule, scaler = optimisation(Recipe(objective={}), encoder, 10_000, precision)

    def step(rows: list[list[int]]) -> float:
        first, second = encode([*rows, *rows], "cls_mlp").chunk(2)
        loss = info_nce(first, second, 0.05)
        value = reading(loss, 0)
        optimizer.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(encoder.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        schedule.step()
        return value()

    return step


class _Given(nn.Module):
    """The first module of a sentence-transformers model, around an encoder that is there already."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.auto_model = model

    def forward(self, features: dict[str, Tensor], **_: Any) -> dict[str, Tensor]:
        given = {name: features[name] for name in ("input_ids", "attention_mask")}
        return {**features, "token_embeddings": self.auto_model(**given).last_hidden_state}


def peer(model: PreTrainedModel, device: torch.device, precision: str) -> Step:
    """Return a step of sentence-transformers on the same rows."""
    width, pad = model.config.hidden_size, int(model.config.pad_token_id or 0)
    encoder = SentenceTransformer(
        modules=[_Given(model), Pooling(width, pooling_mode="cls")], device=str(device)
    ).train()
    loss_of = MultipleNegativesRankingLoss(encoder, scale=20.0)
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=3e-5, weight_decay=0.0, fused=True)
    tokens = Tokens(lambda texts, longest: [], 512, pad)

    def step(rows: list[list[int]]) -> float:
        ids, mask = tokens.padded(rows, device)
        features = [{"input_ids": ids, "attention_mask": mask} for _ in range(2)]
        with autocast(precision, device):
            loss = loss_of(features, None)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(encoder.parameters(), 1.0)
        optimizer.step()
        return float(loss.detach())

    return step


# ---------------------------------------------------------------------------------------------------------- measuring


def flops(shape: Shape, lengths: Iterable[int]) -> float:
    """Return the multiplications and additions of a training step: 6 a weight and token, and attention's products."""
    weights = shape.layers * (4 * shape.width**2 + 2 * shape.width * shape.inner)
    return float(sum(6 * weights * length + 12 * shape.layers * shape.width * length**2 for length in lengths))


def peak_flops(device: torch.device) -> float | None:
    """Return the most that a GPU can do in a second; none where its data sheet is not here."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else ""
    return next((rate for part, rate in PEAK_FLOPS.items() if part in name), None)


def measured(step: Step, rows: Iterator[list[list[int]]], steps: int, device: torch.device) -> tuple[float, int, int]:
    """Return the median seconds of a step, the tokens of the median batch, and the peak of memory in bytes."""
    wait = (lambda: torch.cuda.synchronize(device)) if device.type == "cuda" else (lambda: None)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    times, tokens = [], []
    for number in range(steps + max(1, steps // 5)):
        batch = next(rows)
        wait()
        start = time.perf_counter()
        step(batch)
        wait()
        if number >= max(1, steps // 5):  # the first ones warm up
            times.append(time.perf_counter() - start)
            tokens.append(2 * sum(map(len, batch)))
    memory = torch.cuda.max_memory_allocated(device) if device.type == "cuda" else 0
    return statistics.median(times), int(statistics.median(tokens)), memory


def contestants(
    case: Case, device: torch.device, precision: str
) -> Iterator[tuple[str, Callable[[], Step], int, Keep]]:
    """Yield what is measured: a name, what makes its step anew, and how it cuts the batch."""
    chunk = max(2, case.batch // 4)
    for name, chunk_rows, keep in (
        ("one pass", 0, "activations"),
        (f"chunks of {chunk}, vectors kept", chunk, "vectors"),
    ):
        yield (
            f"sembench, {name}",
            lambda c=chunk_rows, k=keep: ours(case.make(), device, precision, c, k),
            chunk_rows,
            keep,
        )
    yield "sentence-transformers", lambda: peer(case.make(), device, precision), 0, "activations"


def rows_of(case: Case, device: torch.device, precision: str) -> Iterator[str]:
    """Yield a row of Markdown for each contestant."""
    model = case.make()
    config: Any = model.config
    count = sum(each.numel() for each in model.parameters())
    shape = Shape(
        config.num_hidden_layers, config.hidden_size, config.intermediate_size, config.num_attention_heads, count
    )
    best = peak_flops(device)
    for name, make, chunk_rows, keep in contestants(case, device, precision):
        seconds, tokens, memory = measured(make(), batches(case.batch, config.vocab_size), case.steps, device)
        lengths = [length for row in next(batches(case.batch, config.vocab_size)) for length in [len(row)] * 2]
        use = f"{flops(shape, lengths) / seconds / best:.0%}" if best else "-"
        expected = predicted(shape, lengths, case.batch, precision, chunk_rows, keep).total
        gib = f"{memory / GIB:.1f} ({expected / GIB:.1f})" if memory else f"- ({expected / GIB:.1f})"
        yield f"| {case.name}, batch {case.batch} | {name} | {1 / seconds:.2f} | {tokens / seconds:,.0f} | {use} | {gib} |"
        if device.type == "cuda":
            torch.cuda.empty_cache()


def curve(case: Case, device: torch.device, precision: str, steps: int) -> list[float]:
    """Return the losses of some steps without dropout, from the same weights and on the same rows on every device."""
    torch.manual_seed(0)
    model = case.make()
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    step = ours(model, device, precision, 0, "activations")
    rows = batches(8, model.config.vocab_size, seed=1)
    return [step(next(rows)) for _ in range(steps)]


def deviation(case: Case, device: torch.device) -> float:
    """Return the largest relative difference of a loss between a device and the processor, both in fp32."""
    torch.backends.cuda.matmul.allow_tf32 = False
    found, expected = (curve(case, where, "fp32", 5) for where in (device, torch.device("cpu")))
    return max(abs(one - other) / other for one, other in zip(found, expected, strict=True))


TOLERANCE = 1e-3


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, compare, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--tiny", action="store_true", help="encoders in miniature")
    given = parser.parse_args(arguments)
    if given.device == "cuda" and not torch.cuda.is_available():
        parser.error("no GPU is visible; --device cpu --tiny runs all the same")
    device, precision = torch.device(given.device), "bf16"
    print(f"{hardware(device)['gpu'] or 'processor'}, torch {torch.__version__}, {precision}\n")
    print("| encoder | | steps/s | tokens/s | of peak FLOPs | peak GiB (predicted) |")
    print("|---|---|--:|--:|--:|--:|")
    for case in encoders(given.tiny):
        for row in rows_of(case, device, precision):
            print(row, flush=True)
    worst = deviation(encoders(given.tiny)[0], device)
    print(f"\nloss of five steps against the processor, fp32: at most {worst:.1e} apart (tolerance {TOLERANCE:.0e})")
    if not worst < TOLERANCE:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
