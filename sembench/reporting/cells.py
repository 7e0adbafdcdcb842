"""Cells: ours, its spread over seeds, the paper's number, the difference and a verdict; or why there is none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal

from sembench.core.errors import SembenchError
from sembench.core.lazy import pd
from sembench.registry.models import MetricUnit, Where

if TYPE_CHECKING:
    from sembench.plan import PlannedCell
    from sembench.registry.load import PaperValue
    from sembench.results.comparison import Comparison

Status = Literal["measured", "missing", "failed"]
ClaimState = Literal["holds", "contradicted", "not shown", "cannot be tested"]
Verdict = Literal["", "matches", "within seed spread", "above paper", "below paper"]
CSV_COLUMNS = [
    "table", "row", "row_label", "column", "value", "sd", "n_seeds", "paper_value", "delta", "verdict", "status",
    "runs", "reason",
]  # fmt: skip
_PLACE = ("run", "readout", "suite", "task", "split", "subset", "aggregation", "metric")
_POINTS = MetricUnit(title="")


@dataclass(frozen=True)
class Scored:
    """What one column says about one row: a value for every run that has one, or why there can be none.

    Attributes:
        values: by run id, in the metric's printed unit, not rounded.
        planned: ids of the runs that should have a value.
        seeds: seed of each planned run; None: the encoder is untouched, and its value goes with any seed.
        missing: why there can be no value.
        records: labels of the rows of the scores behind it.
        where: coordinates of all parts that it is made from.
    """

    values: Mapping[str, float] = field(default_factory=dict)
    planned: tuple[str, ...] = ()
    seeds: Mapping[str, int | None] = field(default_factory=dict)
    missing: str = ""
    unit: MetricUnit = _POINTS
    readout: str = ""
    n: int = 0
    sample_hash: str = ""
    records: tuple[int, ...] = ()
    where: tuple[Where, ...] = ()


@dataclass(frozen=True)
class Cell:
    """One cell of a table, in the metric's printed unit and not rounded.

    ``runs`` are the runs whose scores are in ``values``, in the same order; for a failed cell, the planned ones.
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
    digits: int
    records: tuple[int, ...]
    where: tuple[Where, ...]


@dataclass(frozen=True)
class ClaimResult:
    """What the cells say about a claim of the paper.

    Attributes:
        text: the claim.
        column: label of the column that it is about.
        better_label: of the row that should be better.
        worse_label: of the other one.
        better: value of the one, None where it is missing.
        worse: of the other.
        comparison: of both, by items and by seeds; None where there can be none.
        state: ``holds`` and ``contradicted`` only where the interval of the difference leaves out 0.
        evidence: the interval and the tests in words, or why there are none.
        digits: decimals as printed.
    """

    text: str
    column: str
    better_label: str
    worse_label: str
    better: float | None
    worse: float | None
    comparison: Comparison | None
    state: ClaimState
    evidence: str
    digits: int

    @property
    def difference(self) -> float | None:
        """What the one is better by; over the seeds that both have where they are compared."""
        if self.comparison:
            return self.comparison.difference
        return self.better - self.worse if self.better is not None and self.worse is not None else None


class Records:
    """Score records by their coordinates; refuses to show records made from different data beside each other."""

    def __init__(self, scores: pd.DataFrame, runs: Iterable[str]) -> None:
        """Index the records of some runs."""
        found = scores[scores["run"].isin(list(runs))]
        places = zip(*(found[name] for name in _PLACE), strict=True)
        values = zip(found["value"], found["n"], found["sample_hash"], found.index, strict=True)
        self._lines = dict(zip(places, values, strict=True))
        self._first: dict[Where, tuple[str, str]] = {}

    def find(self, run: str, readout: str, where: Where) -> tuple[float, int, str, int] | None:
        """Return value, number of items, hash of the data and row label of a score, or None where there is none.

        Raises:
            SembenchError: a score with the same coordinates of another run was made from other data.
        """
        line = self._lines.get((run, readout, *(getattr(where, name) for name in _PLACE[2:])))
        if line is None:
            return None
        place = where.model_copy(update={"variant": None, "readout": None})
        other, known = self._first.setdefault(place, (run, line[2]))
        if known != line[2]:
            raise SembenchError(
                f"{where.suite}/{where.task}/{where.split}: the scores of {other} and {run} are from different data "
                f"({known[:8]} and {line[2][:8]}); delete the older score file and run again"
            )
        return float(line[0]), int(line[1]), str(line[2]), int(line[3])


def looked_up(cell: PlannedCell, where: Where, unit: MetricUnit, records: Records) -> Scored:
    """Return what was scored for a planned cell at its coordinates.

    Raises:
        SembenchError: scores with the same coordinates were made from different data.
    """
    where = where.model_copy(update={"readout": cell.readout})
    if cell.missing:
        return Scored(missing=cell.missing, unit=unit, readout=cell.readout, where=(where,))
    lines = {run.id: records.find(run.id, cell.readout, where) for run in cell.runs}
    found = {run: line for run, line in lines.items() if line is not None}
    first = next(iter(found.values()), (0.0, 0, "", 0))
    return Scored(
        values={run: line[0] * unit.times for run, line in found.items()},
        planned=tuple(lines),
        seeds={run.id: run.seed if run.trained else None for run in cell.runs},
        unit=unit,
        readout=cell.readout,
        n=first[1],
        sample_hash=first[2],
        records=tuple(line[3] for line in found.values()),
        where=(where,),
    )


def verdict(delta: float | None, sd: float | None, digits: int, tolerance: float) -> Verdict:
    """Judge a difference to the paper; it is rounded as printed first, so that +1.00 is within a tolerance of 1."""
    if delta is None:
        return ""
    size = abs(round(delta, digits))
    if size <= tolerance:
        return "matches"
    if sd is not None and size <= 2 * sd:
        return "within seed spread"
    return "above paper" if delta > 0 else "below paper"


def failures(measured: int, planned: int) -> str:
    """Say how many of the planned runs have no value; empty where all have one."""
    if measured >= planned > 0:
        return ""
    if planned > 1:
        return f"{planned - measured} of {planned} seeds failed"
    return "the run failed: it is planned but has no score"


def cell_of(
    names: tuple[str, str, str, str], scored: Scored, printed: PaperValue | None, tolerance: float, lost: str = ""
) -> Cell:
    """Return a cell from what was scored and what the paper prints; ``names``: table, row, its label, column."""
    from sembench.results.aggregate import seed_summary

    table, row, label, column = names
    value, sd, n_seeds = seed_summary(list(scored.values.values())) if scored.values else (None, None, 0)
    paper_value = printed.value if printed else None
    delta = value - paper_value if value is not None and paper_value is not None else None
    return Cell(
        table=table,
        row=row,
        row_label=label,
        column=column,
        value=value,
        sd=sd,
        n_seeds=n_seeds,
        paper_value=paper_value,
        delta=delta,
        verdict=verdict(delta, sd, scored.unit.digits, tolerance),
        status="missing" if scored.missing else "measured" if scored.values else "failed",
        runs=() if scored.missing else tuple(scored.values) or scored.planned,
        reason=scored.missing or failures(len(scored.values), len(scored.planned)),
        note=printed.note if printed else lost,
        paper=printed.paper if printed else "",
        n=scored.n,
        sample_hash=scored.sample_hash,
        readout=scored.readout,
        values=tuple(scored.values.values()),
        digits=scored.unit.digits,
        records=scored.records if scored.values else (),
        where=scored.where,
    )


def table_frame(cells: Sequence[Cell]) -> pd.DataFrame:
    """Return cells in the long form of the csv, numbers rounded to two decimals more than are printed."""
    lines: list[dict[str, Any]] = []
    for cell in cells:
        line = {f.name: getattr(cell, f.name) for f in fields(Cell) if f.name in CSV_COLUMNS}
        numbers = {name: _rounded(line[name], cell.digits + 2) for name in ("value", "sd", "paper_value", "delta")}
        lines.append(line | numbers | {"runs": " ".join(cell.runs)})
    return pd.DataFrame(lines, columns=CSV_COLUMNS)


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
