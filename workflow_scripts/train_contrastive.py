"""Train one run from its canonical recipe. `sembench show VARIANT` prints the recipe to hand over by hand."""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from sembench.analogy.dsbats import definitions
from sembench.core.errors import SembenchError, explained
from sembench.corpora.build import read_sentences
from sembench.corpora.lines import sample
from sembench.evaluation.pairs import read_pairs
from sembench.registry import RunSpec, load_registry
from sembench.registry.layout import dataset_file
from sembench.registry.plan import DEV_SPLIT
from sembench.results.records import read_frame
from sembench.training.checkpoint import Checkpoint
from sembench.training.loop import train
from sembench.training.save import save_run
from sembench.training.tasks import Examples


def load_examples(path: Path, spec: RunSpec) -> Examples:
    """Return what the objective trains on: sentences, rows of DSBATS4CL, or the definitions of DSBATS-sn."""
    if path.suffix != ".parquet":
        return sample(read_sentences(path), spec.recipe.rows, spec.seed)
    frame = read_frame(path)
    if spec.recipe.objective == "defsent":
        frame = definitions(frame)
    kept = sample(range(len(frame)), spec.recipe.rows, spec.seed)
    return frame.iloc[list(kept)].reset_index(drop=True)


@explained
def main() -> None:
    """Read the command line, train, and write the model folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recipe", required=True, help="canonical JSON of the run")
    parser.add_argument("--readout", required=True, help="read-out that the run is used with")
    parser.add_argument("--start", type=Path, required=True, help="model folder that training starts from")
    parser.add_argument("--data", type=Path, required=True, help="corpus, or parquet of an analogy data set")
    parser.add_argument("--out", type=Path, required=True, help="model folder to write")
    parser.add_argument("--checkpoints", type=Path, help="folder in which an interrupted run is found again")
    parser.add_argument("--threads", type=int, default=0)
    given = parser.parse_args()
    if given.threads:
        torch.set_num_threads(given.threads)

    spec = RunSpec.from_json(given.recipe)
    if not (spec.trained and spec.data and spec.dev):
        raise SembenchError(f"run '{spec.id}' has nothing to train")
    examples = load_examples(given.data, spec)
    dev_set = load_registry().datasets[spec.dev.key]
    dev = read_pairs(dev_set, dataset_file(spec.dev.key, dev_set.files[0].name).parent, DEV_SPLIT)
    checkpoint = Checkpoint(given.checkpoints, spec.id)
    run = train(spec.recipe, spec.seed, given.start, examples, dev, checkpoint, spec.id)
    facts = {"data": spec.data.key, "train_rows": len(examples), "dev": spec.dev.key, "dev_rows": len(dev)}
    save_run(run, spec, given.start, given.readout, given.out, facts)
    checkpoint.remove()


if __name__ == "__main__":
    main()
