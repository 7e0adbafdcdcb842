"""Where a number is from: records, recipe, encoder, data, versions and hardware behind every cell."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sembench.core.artifact import Artifact, opened_file, read_record
from sembench.core.errors import SembenchError
from sembench.plan.layout import HISTORY
from sembench.plan.needs import ScoreKey

if TYPE_CHECKING:
    import pandas as pd

    from sembench.plan import Plan, Run

# What of a run.json a reader wants to see beside a number; every key is optional.
_RUN_KEYS = ("versions", "hardware", "precision", "steps", "best", "train_rows", "segments")
RECORD_COLUMNS = ("run", "seed", "readout", "suite", "task", "split", "subset", "aggregation", "metric", "value", "n",
                  "sample_hash", "protocol", "device", "precision", "seconds", "created")  # fmt: skip


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the mapping in a JSON file, or None where there is no such file; NaN and infinities become None.

    Raises:
        SembenchError: the file is there but holds something else.
    """
    if not path.is_file():
        return None
    try:
        value = json.loads(path.read_text(encoding="utf-8"), parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise SembenchError(f"{path} is not a JSON mapping; delete it and run again")
    return value


def read_run(plan: Plan, run: Run) -> dict[str, Any] | None:
    """Return the ``run.json`` of a trained run, or None where it is not made or the encoder is untouched.

    Raises:
        SembenchError: it was changed, or the run was made from other content than lies there now.
    """
    if not run.trained or not (plan.root / run.artifact.record).is_file():
        return None
    return read_json(opened_file(plan.root, run.artifact, HISTORY))


def data_entry(plan: Plan, artifact: Artifact) -> dict[str, Any]:
    """Return title, licence, citation, source and files of a data set; what was fetched or made, where it was."""
    made = artifact.kind == "made"
    entry = (plan.registry.made if made else plan.registry.datasets)[artifact.name]
    record = read_record(plan.root, artifact) or {}
    facts = record.get("facts") or {}
    source = facts.get("source")
    origin = (
        f"{source.get('kind', '?')}: {source.get('origin', '?')}"
        if isinstance(source, dict)
        else "no record of a fetch here"
    )
    files = record.get("files") or dict.fromkeys(artifact.files)
    return {
        "key": artifact.name,
        "title": entry.title,
        "licence": entry.licence,
        "cite": entry.cite,
        "source": f"made here: {artifact.folder}" if made else origin,
        "fetched": facts.get("fetched") or record.get("made") or "",
        "files": [{"name": name, "sha256": sha256} for name, sha256 in files.items()],
    }


def backbone_entry(plan: Plan, artifact: Artifact) -> dict[str, Any]:
    """Return title and origin of a pretrained encoder."""
    entry = plan.registry.backbones[artifact.name]
    encoder = {"encoder": f"{entry.title} ({artifact.name})"}
    if artifact.inputs:
        return data_entry(plan, artifact.inputs[0]) | encoder
    return {"key": artifact.name, "title": entry.title, "source": f"package: {entry.package}", **encoder}


def run_entry(plan: Plan, run: Run) -> dict[str, Any]:
    """Return what the page's dialogs show of a run."""
    record = read_run(plan, run)
    entry = {
        "variant": run.variant,
        "summary": plan.resolved(run.variant).variant.summary,
        "seed": run.seed if run.trained else None,
        "trained": run.trained,
        "recipe": run.training.params if run.training else None,
        "backbone": run.backbone,
        "data": run.data.name if run.data else None,
        "start": run.start.id if run.start else None,
        "folder": str(run.artifact.folder),
        "run": {key: _shareable(record[key]) for key in _RUN_KEYS if key in record} if record else None,
    }
    return {name: value for name, value in entry.items() if value is not None}


def _shareable(value: Any) -> Any:
    """Leave out the names of machines: a report is shown to others."""
    if isinstance(value, list):
        return [_shareable(item) for item in value]
    return {k: _shareable(v) for k, v in value.items() if k != "host"} if isinstance(value, dict) else value


def records_of(plan: Plan, scores: pd.DataFrame, labels: Iterable[int]) -> dict[str, Any]:
    """Return score records as a table, each once: names of the columns, and rows by label."""
    chosen = scores.loc[sorted(set(labels))]
    columns = [name for name in RECORD_COLUMNS if name in chosen.columns]
    rows = chosen[columns].astype(object).to_dict("split")
    keys = zip(*(chosen[name] for name in ScoreKey._fields), strict=True)
    files = [str(plan.score(ScoreKey(*key)).record) for key in keys]
    lines = ([*line, file] for line, file in zip(rows["data"], files, strict=True))
    return {"columns": [*columns, "file"], "rows": dict(zip(map(str, rows["index"]), lines, strict=True))}


def provenance(
    plan: Plan, cells: Mapping[str, Mapping[str, Any]], runs: Iterable[str], scores: pd.DataFrame
) -> dict[str, Any]:
    """Return what the page's dialogs show: cells by ``table/row/column``, and all that they name, each once."""
    shown = [plan.run(run) for run in sorted(set(runs))]
    artifacts = list(plan.ancestors([run.artifact for run in shown]))
    return {
        "cells": dict(cells),
        "records": records_of(plan, scores, (label for cell in cells.values() for label in cell.get("records", ()))),
        "runs": {run.id: run_entry(plan, run) for run in shown},
        "backbones": {each.name: backbone_entry(plan, each) for each in artifacts if each.kind == "backbone"},
        "data": {run.data.name: data_entry(plan, run.data) for run in shown if run.data},
    }
