"""Tables of scores: a grid of coordinates, each cell beside the number that the paper prints for it.

A row and a column each give some of variant, read-out, suite, task, split, subset, aggregation and metric; the cell
merges them: the table's ``defaults``, then the row, then the column, then what the row says for just that column.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from sembench.plan.needs import Needs
from sembench.reporting.cells import Cell, ClaimResult, ClaimState, cell_of, table_frame
from sembench.reporting.compared import IncomparableError, compared, evidence
from sembench.reporting.coordinates import readout_title, score_keys
from sembench.reporting.tables import (
    LEGEND,
    Marked,
    PrintedRow,
    PrintedTable,
    claim_text,
    marks_of,
    ours,
    printed,
    render_html,
    renderings,
)
from sembench.reporting.text import csv_text, number
from sembench.reporting.view import TABLE_SUFFIXES, Shown, View, ViewConfig
from sembench.reporting.views._scores_config import (
    Claim,
    Column,
    ScoresConfig,
    absent,
    check_table,
    coordinates_of,
    rows_of,
)
from sembench.reporting.views._scores_grid import Grid

if TYPE_CHECKING:
    import pandas as pd

    from sembench.plan import Plan
    from sembench.registry.load import Registry
    from sembench.results.comparison import Comparison, Finding

_STATES: Mapping[Finding, ClaimState] = {"better": "holds", "worse": "contradicted", "open": "not shown"}


class Scores(View[ScoresConfig]):
    """A table of scores."""

    Config: ClassVar[type[ViewConfig]] = ScoresConfig
    version: ClassVar[int] = 1
    suffixes: ClassVar[tuple[str, ...]] = TABLE_SUFFIXES
    shows_paper_values: ClassVar[bool] = True

    def __init__(self, config: ScoresConfig, plan: Plan, scores: pd.DataFrame, key: str) -> None:
        super().__init__(config, plan, scores, key)
        self.grid = Grid(config, plan, scores)
        values = plan.registry.values_of.get(key, {})
        self.cells = [
            cell_of(
                (key, row.key, row.label, column.key),
                self.grid.scored(row, column),
                values.get((row.paper or row.key, column.key)),
                config.tolerance,
                config.lost,
            )
            for _, row in self.grid.rows
            for column in self.grid.columns
        ]

    @classmethod
    def check(cls, config: ScoresConfig, registry: Registry, where: str, key: str) -> None:
        """Check every name in a table and in the paper's numbers for it.

        Raises:
            SembenchError: a name refers to nothing, or a cell has too few coordinates.
        """
        check_table(config, registry, where, key)

    @classmethod
    def needs(cls, config: ScoresConfig, plan: Plan) -> Needs:
        """Return the scores of all cells that are shown or that a shown one is made from."""
        return Needs(scores=score_keys(plan, Grid(config, plan).places()))

    @classmethod
    def shows(cls, config: ScoresConfig, plan: Plan) -> Any:
        """Return read-out and missing reason of every cell."""
        cells = (plan.cell(place) for place in Grid(config, plan).places())
        registry = plan.registry
        titles = {name: entry.title for name, entry in registry.readouts.items()}
        titles |= {name: entry.title for name, entry in registry.transforms.items()}
        return [titles, *([cell.readout, cell.missing] for cell in cells)]

    @classmethod
    def absent(cls, config: ScoresConfig, plan: Plan) -> Iterable[tuple[str, str]]:
        """Return the rows of which no cell can be had at the plan's scale, with the reasons."""
        grid = Grid(config, plan)
        for _, row in grid.rows:
            columns = [column for column in grid.columns if not (column.mean_of or column.gain_of)]
            reasons = [
                absent(config, row, column) or plan.cell(coordinates_of(config, row, column)).missing
                for column in columns
            ]
            if reasons and all(reasons):
                yield row.label, "; ".join(dict.fromkeys(reasons))

    def render(self) -> dict[str, str | bytes]:
        """Return the table in four forms, by suffix."""
        csv = csv_text(table_frame(self.cells))
        table = self.printed()
        # The page has a section of claims, a file of one table has its notes.
        claims = tuple(claim_text(claim) for claim in self.claims())
        return dict(renderings(replace(table, quotes=(*table.quotes, *claims)), self.plan.root, csv))

    def page(self) -> Shown:
        """Return the table with the entries of its cells' dialogs and what it says about claims."""
        runs = dict.fromkeys(run for cell in self.cells for run in cell.runs)
        return Shown(
            section="tables",
            html=render_html(self.printed(), self.plan.root, live=True),
            claims=tuple(self.claims()),
            cells={f"{cell.row}/{cell.column}": self._entry(cell) for cell in self.cells},
            runs=tuple(runs),
        )

    # ---------------------------------------------------------------------------------------------- as printed

    def printed(self) -> PrintedTable:
        """Return what the table prints at the plan's scale."""
        width, columns = len(self.grid.columns), self.grid.columns
        lines = [self.cells[i : i + width] for i in range(0, len(self.cells), width)]
        marks = marks_of([[cell.reason for cell in line] for line in lines], width)
        shown = [
            (
                heading,
                PrintedRow(
                    Marked(row.label, label_mark),
                    self._readout(line),
                    row.own,
                    tuple(printed(*parts) for parts in zip(line, (c.label for c in columns), cell_marks, strict=True)),
                ),
            )
            for (heading, row), line, label_mark, cell_marks in zip(
                self.grid.rows, lines, marks.rows, marks.cells, strict=True
            )
        ]
        return PrintedTable(
            key=self.key,
            title=self.config.title,
            caption=self.config.caption,
            method=self._method(),
            note=self.plan.scale.note,
            columns=tuple(Marked(c.label, mark) for c, mark in zip(columns, marks.columns, strict=True)),
            groups=tuple((head, tuple(row for _, row in part)) for head, part in itertools.groupby(shown, _first)),
            reasons=marks.reasons,
            quotes=(*self._quotes(), *self._nearest(), *self._lost()),
        )

    def _readout(self, line: Sequence[Cell]) -> str:
        """Return the title of the read-out that all cells of a row share; several are named by the columns."""
        found = {cell.readout for cell in line if cell.readout}
        return readout_title(self.plan.registry, found.pop()) if len(found) == 1 else ""

    def _method(self) -> str:
        places = [coordinates_of(self.config, row, column) for _, row in self.grid.rows for column in self._singles()]
        metrics = self.plan.registry.metrics
        units = {str(place.metric): metrics[str(place.metric)].times for place in places}
        names = ", ".join(f"{name} x {times:g}" if times != 1 else name for name, times in units.items())
        aggregations = ", ".join(dict.fromkeys(str(place.aggregation) for place in places))
        return f"Shown: {names}, aggregation {aggregations}, read-out as named in each row. {LEGEND}"

    def _singles(self) -> list[Column]:
        return [self.grid.by_key[name] for column in self.grid.columns for name in self.grid.parts(column)]

    def _quotes(self) -> Iterator[str]:
        """Say where printed numbers are from when it is not plainly the table's own paper."""
        labels: dict[tuple[str, str], dict[str, None]] = {}
        for cell in self.cells:
            if cell.paper_value is not None and (cell.note or cell.paper != self.config.paper):
                labels.setdefault((cell.paper, cell.note), {})[cell.row_label] = None
        for (source, note), rows in labels.items():
            yield f"Printed numbers ({source}) of {', '.join(rows)}: {note or 'another paper than the table is from'}"

    def _nearest(self) -> Iterator[str]:
        """Where several rows stand for one row of the paper, say which comes nearest to each number printed for it."""
        stands_for = {row.key: row.paper for _, row in self.grid.rows if row.paper}
        candidates: dict[tuple[str, str], list[Cell]] = {}
        for cell in self.cells:
            if cell.row in stands_for and cell.delta is not None:
                candidates.setdefault((stands_for[cell.row], cell.column), []).append(cell)
        for (_, column), found in candidates.items():
            best = min(found, key=lambda cell: abs(cell.delta or 0.0))
            if len(found) > 1:
                yield (
                    f"Nearest to the printed {number(best.paper_value or 0.0, best.digits)} "
                    f"({self.grid.by_key[column].label}), and so the paper-like setting: {best.row_label} under "
                    f"{best.readout}, {ours(best)}"
                )

    def _lost(self) -> Iterable[str]:
        lost = self.config.lost
        return [f"Where no number of the paper is beside a cell: {lost}"] if lost else []

    # ------------------------------------------------------------------------------------- claims and dialogs

    def claims(self) -> list[ClaimResult]:
        """Return what the cells say about each of the paper's claims that this scale tests."""
        by_place = {(cell.row, cell.column): cell for cell in self.cells}
        return [self._claim(claim, by_place) for claim in self.config.claims if self.plan.shown(claim.scales)]

    def _claim(self, claim: Claim, cells: dict[tuple[str, str], Cell]) -> ClaimResult:
        labels = {row.key: row.label for _, row in rows_of(self.config)}
        pair = {row: cells.get((row, claim.column)) for row in (claim.better, claim.worse)}
        reasons = {row: cell.reason if cell else "not shown at this scale" for row, cell in pair.items()}
        lacking = [f"{labels[row]}: {reasons[row]}" for row, cell in pair.items() if cell is None or cell.value is None]
        digits = max((cell.digits for cell in pair.values() if cell), default=2)
        comparison, state, why = (
            (None, "cannot be tested", "; ".join(lacking)) if lacking else self._judged(claim, digits)
        )
        better, worse = (cell.value if cell else None for cell in pair.values())
        return ClaimResult(
            text=claim.text,
            column=self.grid.by_key[claim.column].label,
            better_label=labels[claim.better],
            worse_label=labels[claim.worse],
            better=better,
            worse=worse,
            comparison=comparison,
            state=state,
            evidence=why,
            digits=digits,
        )

    def _judged(self, claim: Claim, digits: int) -> tuple[Comparison | None, ClaimState, str]:
        """Return the comparison of a claim's two cells, the state that follows from it, and both in words."""
        rows = {row.key: row for _, row in self.grid.rows}
        columns = [self.grid.by_key[name] for name in (claim.column, *self.grid.parts(self.grid.by_key[claim.column]))]
        whole, *parts = (
            (self.grid.scored(rows[claim.better], column), self.grid.scored(rows[claim.worse], column))
            for column in columns
        )
        try:
            found = compared(self.plan, *whole, parts)
        except IncomparableError as error:
            return None, "not shown", str(error)
        return found, _STATES[found.finding], evidence(found, digits)

    def _entry(self, cell: Cell) -> dict[str, Any]:
        """Return what the dialog of a cell shows; empty entries are left out."""
        column = self.grid.by_key[cell.column]
        entry = {
            "row": cell.row_label,
            "column": column.label,
            "digits": cell.digits,
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
            "readout": self._summary(cell.readout),
            "metric": self._shows(cell, column),
            "runs": list(cell.runs),
            "records": list(cell.records),
        }
        return {name: value for name, value in entry.items() if value not in (None, "", [])}

    def _summary(self, readout: str) -> str:
        if not readout:
            return ""
        base, _, transform = readout.partition(".")
        registry = self.plan.registry
        summaries = [registry.readouts[base].summary, *([registry.transforms[transform].summary] if transform else [])]
        return f"{readout_title(registry, readout)} ({readout}): {'; '.join(summaries)}"

    def _shows(self, cell: Cell, column: Column) -> str:
        """Say in words what a cell shows."""
        labels = self.grid.by_key
        if column.gain_of:
            return f"{labels[column.gain_of].label}, less that of the encoder before training, seed by seed"
        if column.mean_of:
            return f"mean of {', '.join(labels[name].label for name in column.mean_of)}, each rounded first"
        where = cell.where[0]
        subset = f", subset {where.subset}" if where.subset else ""
        return f"{where.suite} / {where.task} / {where.split}{subset}, aggregation {where.aggregation}, {where.metric}"


def _first(pair: tuple[str, Any]) -> str:
    return pair[0]


PLUGIN = Scores
