"""The grid of a table of scores: what was scored for each cell that a scale shows, means and gains included."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sembench.registry.models import MetricUnit, Where
from sembench.reporting.cells import Records, Scored, looked_up
from sembench.reporting.views._scores_config import Column, Row, ScoresConfig, absent, coordinates_of, rows_of
from sembench.results.aggregate import paired, paired_gain

if TYPE_CHECKING:
    import pandas as pd

    from sembench.plan import Plan


class Grid:
    """The rows and columns that a scale shows, and what was scored for each of their cells."""

    def __init__(self, config: ScoresConfig, plan: Plan, scores: pd.DataFrame | None = None) -> None:
        """Plan the grid; ``scores`` are needed only to look into cells."""
        self.config, self.plan, self._scores = config, plan, scores
        self.rows = [(heading, row) for heading, row in rows_of(config) if plan.shown(row.scales)]
        self.columns = [column for column in config.columns if column.shown and plan.shown(column.scales)]
        self.by_key = {column.key: column for column in config.columns}
        self._rows = {row.key: row for _, row in self.rows}
        self._found: dict[tuple[str, str], Scored] = {}
        self._records: Records | None = None

    def places(self) -> Iterator[Where]:
        """Yield the coordinates of every cell that the shown ones are made from and that the table does not lack."""
        names = {name for column in self.columns for name in self.parts(column)}
        for _, row in self.rows:
            for column in self.config.columns:
                if column.key in names and not absent(self.config, row, column):
                    yield coordinates_of(self.config, row, column)

    def parts(self, column: Column) -> list[str]:
        """Return the columns with coordinates that a column comes down to."""
        of = [column.gain_of] if column.gain_of else column.mean_of
        return [part for name in of for part in self.parts(self.by_key[name])] or [column.key]

    def scored(self, row: Row, column: Column) -> Scored:
        """Return the values of a cell, or why it has none.

        Raises:
            SembenchError: scores with the same coordinates were made from different data.
        """
        place = (row.key, column.key)
        if place not in self._found:
            if column.gain_of:
                self._found[place] = self._gain(row, self.by_key[column.gain_of])
            elif column.mean_of:
                self._found[place] = self._mean(row, [self.by_key[name] for name in column.mean_of])
            else:
                self._found[place] = self._single(row, column)
        return self._found[place]

    def _single(self, row: Row, column: Column) -> Scored:
        where = coordinates_of(self.config, row, column)
        unit = self._unit(where)
        if reason := absent(self.config, row, column):
            return Scored(missing=reason, unit=unit, where=(where,))
        return looked_up(self.plan.cell(where), where, unit, self._all())

    def _unit(self, where: Where) -> MetricUnit:
        unit = self.plan.registry.metrics[str(where.metric)]
        return unit if self.config.digits is None else unit.model_copy(update={"digits": self.config.digits})

    def _all(self) -> Records:
        if self._records is None:
            assert self._scores is not None
            cells = (self.plan.cell(place) for place in self.places())
            self._records = Records(self._scores, {run.id for cell in cells for run in cell.runs})
        return self._records

    def _gain(self, row: Row, column: Column) -> Scored:
        after = self.scored(row, column)
        before = self._rows.get(row.before or "")
        if before is None:
            shown = "that row is not shown at this scale" if row.before else "and this is the first"
            return Scored(missing=f"a gain needs an encoder before it, {shown}", unit=after.unit)
        then = self.scored(before, column)
        if after.missing or then.missing or not then.values:
            return Scored(missing=after.missing or then.missing or f"no value of {before.label}", unit=after.unit)
        seeds = {**then.seeds, **after.seeds}
        gains = paired_gain(after.values, then.values, seeds)
        return Scored(
            values=gains,
            planned=after.planned,
            seeds=seeds,
            unit=after.unit,
            readout=after.readout,
            n=after.n,
            records=(*after.records, *then.records),
            where=(*after.where, *then.where),
        )

    def _mean(self, row: Row, columns: Sequence[Column]) -> Scored:
        """Average columns seed by seed after rounding them as printed, which is how papers get their averages."""
        parts = [self.scored(row, column) for column in columns]
        if lacking := [column.label for column, part in zip(columns, parts, strict=True) if part.missing]:
            whole = parts[0].missing if len({part.missing for part in parts}) == 1 else ""
            reason = whole or f"an average of columns that are missing: {', '.join(lacking)}"
            return Scored(missing=reason, unit=parts[0].unit)
        seeds = {run: seed for part in parts for run, seed in part.seeds.items()}
        rounded = [{run: round(value, part.unit.digits) for run, value in part.values.items()} for part in parts]
        return Scored(
            values={run: sum(values) / len(values) for run, values in paired(rounded, seeds).items()},
            planned=max((part.planned for part in parts), key=len),
            seeds=seeds,
            unit=parts[0].unit,
            readout=parts[0].readout if len({part.readout for part in parts}) == 1 else "",
            n=sum(part.n for part in parts),
            records=tuple(record for part in parts for record in part.records),
            where=tuple(where for part in parts for where in part.where),
        )
