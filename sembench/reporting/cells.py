"""Cells: ours, its spread over seeds, the paper's number, the difference and a verdict; or why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Literal

import pandas as pd

from sembench.registry.load import PaperValue
from sembench.registry.models import Claim, Column, Metric, Table
from sembench.registry.plan import Plan, PlannedRow
from sembench.results.aggregate import seed_summary, select

# ``quoted`` marks a number taken over from elsewhere in the place of ours.
Status = Literal["measured", "quoted", "missing", "failed"]
Verdict = Literal["", "matches", "within seed spread", "above paper", "below paper"]


@dataclass(frozen=True)
class Cell:
    """One cell of a table, in the table's units and not rounded.

    ``runs`` are the runs whose scores are in ``values``, in the same order; for a failed cell, the
    planned ones.
    """

    table: str
    row: str
    row_label: str
    column: str
    value: float | None
    sd: float | None
    n_seeds: int
    paper_value: float | None
    delta: float | None
    verdict: Verdict
    status: Status
    runs: tuple[str, ...]
    reason: str
    note: str
    paper: str
    n: int
    sample_hash: str
    readout: str
    values: tuple[float, ...]


CSV_COLUMNS = [
    "table", "row", "row_label", "column", "value", "sd", "n_seeds", "paper_value", "delta", "verdict", "status",
    "runs", "reason",
]  # fmt: skip


@dataclass(frozen=True)
class ClaimResult:
    """What the cells say about a claim of the paper; ``holds`` is None when one of the two cells is missing."""

    text: str
    column: str
    better_label: str
    worse_label: str
    better: float | None
    worse: float | None
    difference: float | None
    holds: bool | None
    n_seeds: int
    reason: str


@dataclass(frozen=True)
class _Scored:
    """What one column says about one row: a value for every run that has one, or why there can be none."""

    values: dict[str, float] = field(default_factory=dict)
    missing: str = ""
    n: int = 0
    sample_hash: str = ""


# ---------------------------------------------------------------------------------------------- building cells


def shown_columns(plan: Plan, table_id: str) -> list[Column]:
    """Return the columns of a table that appear at the plan's scale."""
    return [column for column in plan.table(table_id).columns if plan.shown(column.scales)]


def build_cells(plan: Plan, table_id: str, scores: pd.DataFrame) -> list[Cell]:
    """Return one cell per planned row and shown column, row by row.

    Raises:
        SembenchError: a column's scores were made from different data.
    """
    sheet = _Sheet(plan, table_id, scores)
    return [sheet.cell(row, column) for row in plan.rows(table_id) for column in shown_columns(plan, table_id)]


class _Sheet:
    """A table with the score records of each of its columns."""

    def __init__(self, plan: Plan, table_id: str, scores: pd.DataFrame) -> None:
        self.plan, self.id, self.table = plan, table_id, plan.table(table_id)
        self.columns = {column.key: column for column in self.table.columns}
        runs = {run for row in plan.rows(table_id) for run in row.runs}
        self.records = {c.key: select(scores, c.metric, runs) for c in self.table.columns if c.metric}
        self.rows = {row.row.key: row for row in plan.rows(table_id)}
        self.paper = paper_values(plan, table_id)

    def cell(self, row: PlannedRow, column: Column) -> Cell:
        scored = self._scored(row, column)
        printed = self.paper.get((row.row.paper or row.row.key, column.key))
        value, sd, n_seeds = seed_summary(list(scored.values.values())) if scored.values else (None, None, 0)
        paper_value = printed.value if printed else None
        delta = value - paper_value if value is not None and paper_value is not None else None
        return Cell(
            table=self.id,
            row=row.row.key,
            row_label=row.row.label,
            column=column.key,
            value=value,
            sd=sd,
            n_seeds=n_seeds,
            paper_value=paper_value,
            delta=delta,
            verdict=verdict(delta, sd, self.table),
            status="missing" if scored.missing else "measured" if scored.values else "failed",
            runs=() if scored.missing else tuple(scored.values) or row.runs,
            reason=scored.missing or _failures(len(scored.values), len(row.runs)),
            note=printed.note if printed else self.table.lost,
            paper=printed.paper if printed else "",
            n=scored.n,
            sample_hash=scored.sample_hash,
            readout=row.readout or "",
            values=tuple(scored.values.values()),
        )

    def _scored(self, row: PlannedRow, column: Column) -> _Scored:
        if row.missing:
            return _Scored(missing=row.missing)
        if column.gain_of:
            return self._gain(row, self.columns[column.gain_of])
        if column.metric is None:
            parts = {key: self._scored(row, self.columns[key]) for key in column.mean_of}
            return self._mean({self.columns[key].label: part for key, part in parts.items()})
        if reason := missing_reason(self.plan, row, column.metric):
            return _Scored(missing=reason)
        records = self.records[column.key]
        found = {line["run"]: line for line in records[records["readout"] == row.readout].to_dict("records")}
        lines = {run: found[run] for run in row.runs if run in found}
        if not lines:
            return _Scored()
        values = {run: line["value"] * self.table.times for run, line in lines.items()}
        first = next(iter(lines.values()))
        return _Scored(values, n=first["n"], sample_hash=first["sample_hash"])

    def _gain(self, row: PlannedRow, column: Column) -> _Scored:
        """Subtract the mean of the row before from each run, so that the spread stays that of the trained runs."""
        before = self.rows.get(row.row.before or "")
        if before is None:
            shown = "that row is not shown at this scale" if row.row.before else "and this is the first"
            return _Scored(missing=f"a gain needs an encoder before it, {shown}")
        after, untouched = self._scored(row, column), self._scored(before, column)
        if after.missing or untouched.missing or not untouched.values:
            return _Scored(missing=after.missing or untouched.missing or f"no value of {before.row.label}")
        base = sum(untouched.values.values()) / len(untouched.values)
        return _Scored({run: value - base for run, value in after.values.items()}, n=after.n)

    def _mean(self, parts: dict[str, _Scored]) -> _Scored:
        """Average columns run by run after rounding them as printed, which is how the paper got its averages."""
        if absent := [label for label, part in parts.items() if part.missing]:
            return _Scored(missing=f"an average of columns that are missing: {', '.join(absent)}")
        first, *others = parts.values()
        runs = [run for run in first.values if all(run in part.values for part in others)]
        rounded = {run: [round(part.values[run], self.table.digits) for part in parts.values()] for run in runs}
        means = {run: sum(values) / len(values) for run, values in rounded.items()}
        return _Scored(means, n=sum(part.n for part in parts.values()))


def paper_values(plan: Plan, table_id: str) -> dict[tuple[str, str], PaperValue]:
    """Return the printed numbers of a table by row and column."""
    return {(v.row, v.column): v for v in plan.registry.paper_values if v.table == table_id}


def missing_reason(plan: Plan, row: PlannedRow, metric: Metric) -> str:
    """Return why a metric cannot be had for a row whose runs can be made, or an empty string."""
    tasks = plan.tasks(metric.suite)
    if metric.task not in tasks:
        return f"suite {metric.suite} has no task {metric.task}"
    if reason := tasks[metric.task]:
        return reason
    if metric.split not in plan.suites[metric.suite].tasks[metric.task].splits:
        return f"split {metric.split} of {metric.task} is not scored at scale {plan.name}"
    kind = plan.backbone(str(plan.variant(str(row.row.variant)).backbone)).kind
    offered = plan.registry.readouts[str(row.readout)].kinds
    return "" if kind in offered else f"read-out {row.readout} is not offered by encoders of kind {kind}"


def verdict(delta: float | None, sd: float | None, table: Table) -> Verdict:
    """Judge a difference to the paper; it is rounded as printed first, so that +1.00 is within a tolerance of 1."""
    if delta is None:
        return ""
    size = abs(round(delta, table.digits))
    if size <= table.tolerance:
        return "matches"
    if sd is not None and size <= 2 * sd:
        return "within seed spread"
    return "above paper" if delta > 0 else "below paper"


def _failures(measured: int, planned: int) -> str:
    if measured == planned:
        return ""
    failed = planned - measured
    return f"{failed} of {planned} seeds failed" if planned > 1 else "the run failed: it is planned but has no score"


# ------------------------------------------------------------------------------------------- what cells are for


def table_frame(cells: Sequence[Cell], digits: int = 2) -> pd.DataFrame:
    """Return cells in the long form of the csv, numbers rounded to ``digits + 2`` decimals."""
    lines = [{f.name: getattr(cell, f.name) for f in fields(Cell) if f.name in CSV_COLUMNS} for cell in cells]
    frame = pd.DataFrame(lines, columns=CSV_COLUMNS)
    frame["runs"] = [" ".join(cell.runs) for cell in cells]
    numbers = {name: frame[name].astype("float64") for name in ("value", "sd", "paper_value", "delta")}
    return frame.assign(**{name: column.round(digits + 2) for name, column in numbers.items()})


def claims(plan: Plan, table_id: str, cells: Sequence[Cell]) -> list[ClaimResult]:
    """Return what the cells of a table say about each of the paper's claims that this scale tests."""
    spec = plan.table(table_id)
    by_place = {(cell.row, cell.column): cell for cell in cells}
    return [_claim(claim, spec, by_place) for claim in spec.claims if plan.shown(claim.scales)]


def _claim(claim: Claim, spec: Table, cells: dict[tuple[str, str], Cell]) -> ClaimResult:
    labels = {row.key: row.label for group in spec.groups for row in group.rows}
    pair = {row: cells.get((row, claim.column)) for row in (claim.better, claim.worse)}
    better, worse = (cell.value if cell else None for cell in pair.values())
    difference = better - worse if better is not None and worse is not None else None
    reasons = {row: cell.reason if cell else "not shown at this scale" for row, cell in pair.items()}
    absent = [f"{labels[row]}: {reasons[row]}" for row, cell in pair.items() if cell is None or cell.value is None]
    return ClaimResult(
        text=claim.text,
        column=next(column.label for column in spec.columns if column.key == claim.column),
        better_label=labels[claim.better],
        worse_label=labels[claim.worse],
        better=better,
        worse=worse,
        difference=difference,
        holds=None if difference is None else difference > 0,
        n_seeds=max((cell.n_seeds for cell in pair.values() if cell), default=0),
        reason="; ".join(absent),
    )
