"""Where a number is from: records, recipe, encoder, data, versions and hardware behind every cell."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sembench.core.errors import SembenchError
from sembench.registry.layout import manifest
from sembench.registry.load import DERIVED
from sembench.registry.models import Column
from sembench.registry.plan import Plan, RunSpec
from sembench.reporting.cells import Cell
from sembench.results.aggregate import select

if TYPE_CHECKING:
    import pandas as pd

# What of a run.json a reader wants to see beside a number; every key is optional.
_RUN_KEYS = ("versions", "hardware", "precision", "steps", "best", "train_rows", "segments")
_RECORD_KEYS = ("run", "seed", "task", "split", "value", "n", "sample_hash", "protocol", "stage", "device", "precision",
                "seconds", "created")  # fmt: skip


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the mapping in a JSON file, or None where there is no such file; NaN and infinities become None.

    Raises:
        SembenchError: the file is there but holds something else.
    """
    if not path.is_file():
        return None
    try:
        value = json.loads(path.read_text(encoding="utf-8"), parse_constant=lambda _: None)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise SembenchError(f"{path} is not a JSON mapping; delete it and run again")
    return value


def read_run(plan: Plan, run_id: str) -> dict[str, Any] | None:
    """Return the ``run.json`` of a trained run, or None where there is none."""
    return read_json(plan.root / plan.layout.run(run_id) / "run.json")


def data_entry(plan: Plan, key: str) -> dict[str, Any]:
    """Return title, licence, citation, source and files of a data set, as fetched where a manifest tells so."""
    if key in DERIVED:
        made = {"title": f"{key}, made by this workflow", "licence": "that of its sources", "cite": "", "fetched": ""}
        return {"key": key, **made, "source": str(plan.layout.analogy(DERIVED[key])), "files": []}
    entry, fetched = plan.dataset(key), read_json(plan.root / manifest(key))
    source = (fetched or {}).get("source") or {}
    files: list[dict[str, Any]] = (fetched or {}).get("files") or [file.model_dump() for file in entry.files]
    return {
        "key": key,
        "title": entry.title,
        "licence": entry.licence,
        "cite": entry.cite,
        "source": f"{source.get('kind', '?')}: {source.get('origin', '?')}" if fetched else "no record of a fetch here",
        "fetched": (fetched or {}).get("fetched", ""),
        "files": [{name: file.get(name) for name in ("name", "sha256", "rows")} for file in files],
    }


def backbone_entry(plan: Plan, key: str) -> dict[str, Any]:
    """Return title and origin of a pretrained encoder."""
    entry = plan.backbone(key)
    if entry.dataset:
        return data_entry(plan, plan.dataset_key(entry.dataset)) | {"encoder": f"{entry.title} ({key})"}
    return {
        "key": key,
        "title": entry.title,
        "encoder": f"{entry.title} ({key})",
        "source": f"package: {entry.package}",
    }


def provenance(plan: Plan, cells: Iterable[Cell], scores: pd.DataFrame) -> dict[str, Any]:
    """Return what the page's dialogs show: every cell by ``table/row/column``, and each run that they name once."""
    told = list(cells)
    runs = {run for cell in told for run in cell.runs}
    behind = _Behind(plan, scores)
    return {
        "cells": {f"{cell.table}/{cell.row}/{cell.column}": _cell_entry(plan, cell, behind) for cell in told},
        "runs": {run: _run_entry(plan, plan.run(run)) for run in sorted(runs)},
    }


class _Behind:
    """Finds the score records behind a cell; of an average those of its parts, of a gain those of both rows."""

    def __init__(self, plan: Plan, scores: pd.DataFrame) -> None:
        self.plan, self.scores = plan, scores
        self.found: dict[tuple[str, str], list[dict[str, Any]]] = {}

    def records(self, cell: Cell) -> list[dict[str, Any]]:
        if cell.value is None:
            return []
        columns = {column.key: column for column in self.plan.table(cell.table).columns}
        lines = [line for key in _parts(cell.column, columns) for line in self._of_column(cell.table, columns[key])]
        shown = {(run, cell.readout) for run in cell.runs}
        if columns[cell.column].gain_of:
            rows = {row.row.key: row for row in self.plan.rows(cell.table)}
            before = rows[str(rows[cell.row].row.before)]
            shown |= {(run, str(before.readout)) for run in before.runs}
        return [
            {name: line[name] for name in _RECORD_KEYS} | {"file": line["file"]}
            for line in lines
            if (line["run"], line["readout"]) in shown
        ]

    def _of_column(self, table: str, column: Column) -> list[dict[str, Any]]:
        if (table, column.key) not in self.found:
            assert column.metric is not None
            runs = {run for row in self.plan.rows(table) for run in row.runs}
            job = self.plan.suite_job(column.metric.suite)
            lines = select(self.scores, column.metric, runs).to_dict("records")
            self.found[table, column.key] = [
                {str(k): v for k, v in line.items()} | {"file": self.plan.scores(line["run"], job).as_posix()}
                for line in lines
            ]
        return self.found[table, column.key]


def _parts(key: str, columns: dict[str, Column]) -> list[str]:
    """Return the metric columns that a column comes down to."""
    column = columns[key]
    of = [column.gain_of] if column.gain_of else column.mean_of
    return [part for name in of for part in _parts(name, columns)] or [key]


def _told(column: Column, columns: list[Column]) -> str:
    """Say in words what a column shows."""
    labels = {other.key: other.label for other in columns}
    if column.gain_of:
        return f"{labels[column.gain_of]}, less that of the encoder before training"
    if column.metric is None:
        return f"mean of {', '.join(labels[key] for key in column.mean_of)}, each rounded first"
    return "{suite} / {task} / {split}, aggregation {aggregation}, {metric}".format(**column.metric.model_dump())


def _cell_entry(plan: Plan, cell: Cell, behind: _Behind) -> dict[str, Any]:
    spec = plan.table(cell.table)
    column = next(column for column in spec.columns if column.key == cell.column)
    readout = plan.registry.readouts.get(cell.readout)
    return {
        "row": cell.row_label,
        "column": column.label,
        "digits": spec.digits,
        "status": cell.status,
        "reason": cell.reason,
        "value": cell.value,
        "sd": cell.sd,
        "n_seeds": cell.n_seeds,
        "n": cell.n,
        "sample_hash": cell.sample_hash,
        "paper_value": cell.paper_value,
        "paper": cell.paper,
        "note": cell.note,
        "delta": cell.delta,
        "verdict": cell.verdict,
        "readout": f"{readout.title} ({cell.readout}): {readout.summary}" if readout else "",
        "metric": _told(column, spec.columns),
        "runs": cell.runs,
        "values": cell.values,
        "records": behind.records(cell),
    }


def _run_entry(plan: Plan, spec: RunSpec) -> dict[str, Any]:
    run = read_run(plan, spec.id) if spec.trained else None
    return {
        "variant": spec.variant,
        "summary": plan.variant(spec.variant).summary,
        "seed": spec.seed if spec.trained else None,
        "trained": spec.trained,
        "recipe": spec.model_dump(mode="json"),
        "backbone": backbone_entry(plan, spec.backbone.key),
        "data": data_entry(plan, spec.data.key) if spec.data else None,
        "run": {key: _shareable(run[key]) for key in _RUN_KEYS if key in run} if run else None,
    }


def _shareable(value: Any) -> Any:
    """Leave out the names of machines: a report is shown to others."""
    if isinstance(value, list):
        return [_shareable(item) for item in value]
    return {k: v for k, v in value.items() if k != "host"} if isinstance(value, dict) else value
