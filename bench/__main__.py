"""Side-by-side speed measurements: alternating runs in one process, medians, a ratio. ``python -m bench [NAME ...]``.

Never part of the tests. Needs the demo's backbones and sentences, which `make demo` leaves behind.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.util import pairwise_cos_sim

from sembench.core.artifact import Artifact, opened
from sembench.core.errors import explained
from sembench.data.frames import read_examples
from sembench.encoders.folder import load_encoder
from sembench.evaluation.engine import Request, score
from sembench.evaluation.job import open_protocol
from sembench.evaluation.sts import correlation
from sembench.plan import Plan
from sembench.registry.entries import training_of
from sembench.training.batches import step_rows
from sembench.training.trainer import build_task, encoding, load_start

Work = Callable[[], object]
PLAN = Plan("demo")
SENTENCES = "enwiki_sentences"
VARIANT = "unsup_simcse_distilbert"


def there(artifact: Artifact) -> Path:
    """Return the folder of an artefact, checked; one that is not made is an error."""
    return opened(PLAN.root, artifact)


def alternate(contestants: dict[str, Work], rounds: int) -> dict[str, float]:
    """Run the contestants in turn and return each one's median seconds; a first round warms up and is not counted."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for turn in range(rounds + 1):
        for name, work in contestants.items():
            start = time.perf_counter()
            work()
            if turn:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def training_step() -> dict[str, float]:
    """Forward and backward of unsupervised SimCSE on DistilBERT, batch 64: chunks sorted by length, one pass, fp32."""
    variant = PLAN.resolved(VARIANT).variant
    training = training_of(variant.recipe or {}, f"variant '{VARIANT}'")
    recipe, objective = training.recipe, training.objective
    encoder = load_start(there(PLAN.backbone(str(variant.backbone))), objective, recipe.dropout)
    examples = read_examples(there(PLAN.made(SENTENCES)) / PLAN.maker(SENTENCES).plugin.examples, ["sentence"])
    task = build_task(objective, encoder, examples, recipe.max_length)
    batches = step_rows(task.rows, recipe.batch_size, seed=0, first_step=0, last_step=10_000)
    encoder.train()

    def step(chunk_rows: int, precision: str) -> None:
        encoder.zero_grad()
        task.own.zero_grad()
        task.loss(next(batches), encoding(encoder, precision, chunk_rows))[0].backward()

    return alternate(
        {
            "bf16, chunks of 32 rows": lambda: step(32, "bf16"),
            "bf16, one forward": lambda: step(0, "bf16"),
            "fp32, one forward": lambda: step(0, "fp32"),
        },
        rounds=7,
    )


def encode() -> dict[str, float]:
    """MiniLM over 2,000 Wikipedia sentences, mean read-out, fp32: ours and sentence-transformers."""
    folder = there(PLAN.backbone("minilm"))
    file = there(PLAN.made(SENTENCES)) / PLAN.maker(SENTENCES).plugin.examples
    sentences = read_examples(file, ["sentence"])["sentence"].head(2000).tolist()
    ours, peer = load_encoder(folder), SentenceTransformer(str(folder), device="cpu")
    return alternate(
        {
            "sembench": lambda: ours.encode(sentences, ["mean"]),
            "sentence-transformers": lambda: peer.encode(sentences, batch_size=32),
        },
        rounds=5,
    )


def sts() -> dict[str, float]:
    """MiniLM on STS-B, dev and test, fp32: all scores of the protocol, and Spearman by sentence-transformers."""
    folder = there(PLAN.backbone("minilm"))
    protocol = open_protocol(PLAN, "sts", "stsb")
    ours, peer = load_encoder(folder), SentenceTransformer(str(folder), device="cpu")

    def by_peer() -> list[float]:
        found = []
        for parts in protocol.parts.values():
            for pairs in parts:
                first, second = (peer.encode(list(side), batch_size=32) for side in (pairs.first, pairs.second))
                found.append(correlation("spearman", pairwise_cos_sim(first, second).numpy(), pairs.gold))
        return found

    return alternate(
        {
            "sembench": lambda: list(score(ours, [Request("mean", "sts", "stsb", protocol)])),
            "sentence-transformers": by_peer,
        },
        rounds=3,
    )


BENCHES: dict[str, Callable[[], dict[str, float]]] = {"training_step": training_step, "encode": encode, "sts": sts}


@explained
def main(arguments: Sequence[str] | None = None) -> None:
    """Run the named benches, or all, and print one JSON object each."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(BENCHES)}; all if none is given")
    names = parser.parse_args(arguments).names
    if stray := [name for name in names if name not in BENCHES]:
        parser.error(f"there is no bench '{stray[0]}'; choose from {', '.join(BENCHES)}")
    for name in names or BENCHES:
        medians = BENCHES[name]()
        first = next(iter(medians.values()))
        ratios = {other: round(value / first, 2) for other, value in medians.items()}
        seconds = {other: round(value, 3) for other, value in medians.items()}
        print(
            json.dumps({"bench": name, "median_seconds": seconds, "ratio": ratios, "threads": torch.get_num_threads()})
        )


if __name__ == "__main__":
    main()
