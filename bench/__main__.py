"""Side-by-side speed measurements: alternating runs in one process, medians, a ratio. ``python -m bench [NAME]``.

Never part of the tests. Needs ``snakemake fetch --config scale=demo`` and the demo's model folders and corpus.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer

from sembench.corpora.build import read_sentences
from sembench.encoders.folder import load_encoder
from sembench.encoders.readouts import MLPHead
from sembench.encoders.transformer import load_transformer, read_entry
from sembench.registry.models import Recipe
from sembench.training.batches import step_rows
from sembench.training.tasks import SentenceViews

DATA = Path("results/data")
Work = Callable[[], object]


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
    """One step of unsupervised SimCSE on DistilBERT, batch 64: chunks sorted by length, one forward, fp32."""
    folder = DATA / "backbones/distilbert_base_cased"
    encoder = load_transformer(folder, read_entry(folder))
    encoder.heads["cls_mlp"] = MLPHead(encoder.width)
    encoder.train()
    sentences = read_sentences(DATA / "corpora/enwiki_excerpt.txt")
    tasks = {chunk_rows: SentenceViews(Recipe(chunk_rows=chunk_rows), encoder, sentences) for chunk_rows in (0, 32)}
    batches = step_rows(len(sentences), 64, seed=0, first_step=0, last_step=10_000)

    def step(chunk_rows: int, precision: str) -> None:
        encoder.zero_grad()
        tasks[chunk_rows].loss(next(batches), precision)[0].backward()

    return alternate(
        {
            "bf16, chunks of 32 rows": lambda: step(32, "bf16"),
            "bf16, one forward": lambda: step(0, "bf16"),
            "fp32, one forward": lambda: step(0, "fp32"),
        },
        rounds=7,
    )


def encoding() -> dict[str, float]:
    """MiniLM over 2,000 Wikipedia sentences, mean read-out, fp32: ours and sentence-transformers."""
    folder = DATA / "backbones/minilm"
    sentences = read_sentences(DATA / "corpora/enwiki_excerpt.txt")[:2000]
    ours, peer = load_encoder(folder), SentenceTransformer(str(folder), device="cpu")
    return alternate(
        {
            "sembench": lambda: ours.encode(sentences, ["mean"]),
            "sentence-transformers": lambda: peer.encode(sentences, batch_size=32),
        },
        rounds=5,
    )


BENCHES = {"training_step": training_step, "encoding": encoding}


def main() -> None:
    """Run the named benches, or all, and print one JSON object each."""
    for name in sys.argv[1:] or BENCHES:
        medians = BENCHES[name]()
        first = next(iter(medians.values()))
        ratios = {other: round(value / first, 2) for other, value in medians.items()}
        seconds = {other: round(value, 3) for other, value in medians.items()}
        print(
            json.dumps({"bench": name, "median_seconds": seconds, "ratio": ratios, "threads": torch.get_num_threads()})
        )


if __name__ == "__main__":
    main()
