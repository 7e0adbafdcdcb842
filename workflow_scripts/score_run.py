"""Score one model on the suites of one job and write records and predictions."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pandas as pd
import torch

from sembench.core.errors import SembenchError, explained
from sembench.core.schema import parse
from sembench.encoders.devices import pick_device
from sembench.encoders.folder import load_encoder
from sembench.encoders.transformer import set_precision
from sembench.evaluation.score import read_parts, score
from sembench.registry import load_registry
from sembench.registry.layout import dataset_folder
from sembench.registry.load import DERIVED
from sembench.registry.models import Suite
from sembench.results.records import labelled, records_frame, write_parquet


@explained
def main() -> None:
    """Read the command line, score, and write both files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--job", required=True, help="canonical JSON of suites, data, precision and code version")
    parser.add_argument("--scores", type=Path, required=True)
    parser.add_argument("--predictions", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=0)
    given = parser.parse_args()
    if given.threads:
        torch.set_num_threads(given.threads)

    job = json.loads(given.job)
    suites = {key: parse(Suite, entry, f"job, suite '{key}'") for key, entry in job["suites"].items()}
    made = given.scores.parents[2] / "analogy"
    parts = read_parts(suites, load_registry().datasets, lambda key: made if key in DERIVED else dataset_folder(key))
    encoder = load_encoder(given.model)
    precision = set_precision(encoder, job["precision"])
    try:
        scored = score(encoder, parts)
    except SembenchError as error:
        raise SembenchError(f"run {given.run}: {error}") from None
    labels = {"stage": job["stage"], "device": pick_device().type, "precision": precision}
    write_parquet(pd.DataFrame(scored.predictions), given.predictions)
    write_parquet(records_frame(labelled(scored.records, given.run, labels)), given.scores)


if __name__ == "__main__":
    main()
