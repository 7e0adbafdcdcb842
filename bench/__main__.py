"""Side-by-side speed measurements: alternating runs in one process, medians, a ratio. ``python -m bench [NAME ...]``.

Never part of the tests. Needs the demo's backbones and sentences, which `make demo` leaves behind.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.util import pairwise_cos_sim

from bench import steps
from sembench.core.artifact import Artifact, opened
from sembench.core.errors import explained
from sembench.data.frames import read_examples
from sembench.encoders.folder import load_encoder
from sembench.evaluation.engine import Request, score
from sembench.evaluation.job import open_protocol
from sembench.evaluation.sts import correlation
from sembench.plan import Plan

Work = Callable[[], object]
# What was compared, median seconds by contestant, and facts besides.
Result = tuple[str, dict[str, float], dict[str, float]]
PLAN = Plan("demo")
SENTENCES = "enwiki_sentences"


def there(artifact: Artifact) -> Path:
    """Return the folder of an artefact, checked; one that is not made is an error."""
    return opened(PLAN.root, artifact)


def some_sentences() -> list[str]:
    """Return the sentences of the demo's Wikipedia excerpt."""
    file = there(PLAN.made(SENTENCES)) / PLAN.maker(SENTENCES).plugin.examples
    found: list[str] = read_examples(file, ["sentence"])["sentence"].tolist()
    return found


def alternate(contestants: dict[str, Work], rounds: int) -> dict[str, float]:
    """Run the contestants in turn and return each one's median seconds; a first round warms up and is not counted."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for turn in range(rounds + 1):
        for name, work in contestants.items():
            taken = steps.seconds(work)
            if turn:
                times[name].append(taken)
    return {name: statistics.median(values) for name, values in times.items()}


def training_step() -> Iterator[Result]:
    """Unsupervised SimCSE on 64 Wikipedia sentences: ours, sentence-transformers, and the rate of a large product.

    The share of the machine's rate is the time that the step's products would take at it, over the time of the step.
    """
    sentences = some_sentences()
    for name in ("distilbert_base_cased", "minilm"):
        folder = there(PLAN.backbone(name))
        needed = steps.operations(folder, sentences)
        for precision in ("fp32", "bf16"):
            product, operations = steps.square(precision)
            medians = alternate(
                {
                    "sembench": steps.ours(folder, sentences, precision),
                    "sentence-transformers": steps.peer(folder, sentences, precision),
                    "square product": product,
                },
                rounds=11,
            )
            rate = operations / medians["square product"]
            facts = {"gflops_of_square": rate / 1e9, "share_of_rate": needed / rate / medians["sembench"]}
            yield f"{name} {precision}", medians, {key: round(value, 3) for key, value in facts.items()}


def encode() -> Iterator[Result]:
    """MiniLM over 2,000 Wikipedia sentences, mean read-out, fp32: ours and sentence-transformers."""
    folder = there(PLAN.backbone("minilm"))
    sentences = some_sentences()[:2000]
    ours, peer = load_encoder(folder), SentenceTransformer(str(folder), device="cpu")
    contestants: dict[str, Work] = {
        "sembench": lambda: ours.encode(sentences, ["mean"]),
        "sentence-transformers": lambda: peer.encode(sentences, batch_size=32),
    }
    yield "minilm fp32", alternate(contestants, rounds=5), {}


def sts() -> Iterator[Result]:
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

    contestants: dict[str, Work] = {
        "sembench": lambda: list(score(ours, [Request("mean", "sts", "stsb", protocol)])),
        "sentence-transformers": by_peer,
    }
    yield "minilm fp32", alternate(contestants, rounds=3), {}


BENCHES: dict[str, Callable[[], Iterator[Result]]] = {"training_step": training_step, "encode": encode, "sts": sts}


@explained
def main(arguments: Sequence[str] | None = None) -> None:
    """Run the named benches, or all, and print one JSON object each."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(BENCHES)}; all if none is given")
    names = parser.parse_args(arguments).names
    if stray := [name for name in names if name not in BENCHES]:
        parser.error(f"there is no bench '{stray[0]}'; choose from {', '.join(BENCHES)}")
    for name in names or BENCHES:
        for what, medians, facts in BENCHES[name]():
            first = medians["sembench"]
            found = {
                **{"bench": name, "what": what, "threads": torch.get_num_threads()},
                "median_seconds": {each: round(value, 3) for each, value in medians.items()},
                "times_as_fast": round(medians["sentence-transformers"] / first, 2),
                **facts,
            }
            print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
