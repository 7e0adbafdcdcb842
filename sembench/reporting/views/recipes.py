"""Tables of hyper-parameters: rows are trained variants, columns are keys of their recipes as resolved at the scale."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from sembench.core.lazy import pd
from sembench.core.plugin import OBJECTIVES
from sembench.core.schema import Strict
from sembench.registry.check import need
from sembench.registry.models import Recipe
from sembench.reporting.coordinates import Checker, check_once
from sembench.reporting.tables import Marked, Printed, PrintedRow, PrintedTable, marks_of, render_html, renderings
from sembench.reporting.text import csv_text
from sembench.reporting.view import TABLE_SUFFIXES, Shown, View, ViewConfig

if TYPE_CHECKING:
    from sembench.plan import Plan
    from sembench.registry.load import Registry
    from sembench.reporting.cells import Verdict

_INPUTS = ("backbone", "data")
METHOD = "Shown: what the registry trains with at this scale, with the paper's value in brackets."


class Column(Strict):
    """A column: a key of the recipe such as ``batch_size`` or ``objective.temperature``, or ``backbone``, ``data``."""

    key: str
    label: str
    path: str = Field("", description="key of the recipe; empty: the column's own key")


class Row(Strict):
    """A row: a trained variant, or a line of the paper that nothing here trains yet (``missing``)."""

    key: str
    label: str
    variant: str | None = None
    missing: str = ""
    paper: str = Field("", description="row key in paper_values.csv; empty: the row's own key")
    own: bool = False
    scales: list[str] = []


class Group(Strict):
    """Rows under a heading."""

    heading: str
    rows: list[Row]


class RecipesConfig(ViewConfig):
    """The table."""

    columns: list[Column] = Field(min_length=1)
    groups: list[Group] = Field(min_length=1)


def path_of(column: Column) -> str:
    """Return the key of the recipe that a column shows."""
    return column.path or column.key


def _check_path(path: str, where: str) -> None:
    head, dot, rest = path.partition(".")
    need("key of a recipe", head, [*Recipe.model_fields, *_INPUTS], where)
    if dot and head == "objective":
        known = {"kind", *(name for kind in OBJECTIVES.modules for name in OBJECTIVES.get(kind).Config.model_fields)}
        need("parameter of an objective", rest, known, where)


class Recipes(View[RecipesConfig]):
    """A table of hyper-parameters."""

    Config: ClassVar[type[ViewConfig]] = RecipesConfig
    version: ClassVar[int] = 1
    suffixes: ClassVar[tuple[str, ...]] = TABLE_SUFFIXES
    measures: ClassVar[bool] = False
    shows_paper_values: ClassVar[bool] = True

    @classmethod
    def check(cls, config: RecipesConfig, registry: Registry, where: str, key: str) -> None:
        """Check variants, scales, keys of recipes, and the paper's numbers.

        Raises:
            SembenchError: a name refers to nothing.
        """
        rows = [row for group in config.groups for row in group.rows]
        check_once((row.key for row in rows), f"{where}, row")
        check_once((column.key for column in config.columns), f"{where}, column")
        for row in rows:
            place = f"{where}, row '{row.key}'"
            Checker(registry).scales(row.scales, place)
            need("variant", row.variant, registry.variants, place)
        for column in config.columns:
            _check_path(path_of(column), f"{where}, column '{column.key}'")
        names = [name for row in rows for name in (row.key, row.paper) if name]
        for row_key, column_key in registry.values_of.get(key, {}):
            place = f"registry/paper_values.csv, {key}, {row_key}, {column_key}"
            need(f"row of {key}", row_key, names, place)
            need(f"column of {key}", column_key, [column.key for column in config.columns], place)

    @classmethod
    def shows(cls, config: RecipesConfig, plan: Plan) -> Any:
        """Return the values that are shown."""
        rows = [row for group in config.groups for row in group.rows if plan.shown(row.scales)]
        return [[str(_value(plan, row, column)) for column in config.columns] for row in rows]

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yield a cell at a time: table, row, its label, column, value, the paper's value, verdict, reason."""
        paper = self.plan.registry.values_of.get(self.key, {})
        for _, row in self._rows():
            for column in self.config.columns:
                value = _value(self.plan, row, column)
                printed = paper.get((row.paper or row.key, column.key))
                yield {
                    "table": self.key,
                    "row": row.key,
                    "row_label": row.label,
                    "column": column.key,
                    "value": value,
                    "paper_value": printed.value if printed else None,
                    "verdict": _verdict(value, printed.value if printed else None),
                    "status": "missing" if row.variant is None else "measured",
                    "reason": row.missing,
                }

    def render(self) -> dict[str, str | bytes]:
        """Return the table in four forms, by suffix."""
        csv = csv_text(pd.DataFrame(list(self.lines())))
        return dict(renderings(self.printed(), self.plan.root, csv))

    def page(self) -> Shown:
        """Return the table; its cells need no dialog, since they are what the registry says."""
        return Shown(section="tables", html=render_html(self.printed(), self.plan.root, live=False))

    def printed(self) -> PrintedTable:
        """Return what the table prints."""
        width = len(self.config.columns)
        found = list(self.lines())
        lines = [found[i : i + width] for i in range(0, len(found), width)]
        marks = marks_of([[line["reason"] for line in row] for row in lines], width)
        rows = [
            (heading, PrintedRow(Marked(row.label, mark), "", row.own, tuple(_printed(cell) for cell in line)))
            for (heading, row), line, mark in zip(self._rows(), lines, marks.rows, strict=True)
        ]
        return PrintedTable(
            key=self.key,
            title=self.config.title,
            caption=self.config.caption,
            method=METHOD,
            note=self.plan.scale.note,
            columns=tuple(Marked(column.label) for column in self.config.columns),
            groups=tuple(
                (heading, tuple(row for _, row in part)) for heading, part in itertools.groupby(rows, lambda x: x[0])
            ),
            reasons=marks.reasons,
        )

    def _rows(self) -> list[tuple[str, Row]]:
        groups = self.config.groups
        return [(group.heading, row) for group in groups for row in group.rows if self.plan.shown(row.scales)]


def _value(plan: Plan, row: Row, column: Column) -> Any:
    """Return what a variant is trained with; None where nothing here trains it, or where the key is not its own."""
    if row.variant is None:
        return None
    run = plan.runs_of(row.variant)[0]
    found: Any = {} if run.training is None else run.training.values
    found = {**found, "backbone": run.backbone, "data": run.data.name if run.data else None}
    for name in path_of(column).split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _verdict(value: Any, paper: float | None) -> Verdict:
    if paper is None or isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    if value == paper:
        return "matches"
    return "above paper" if value > paper else "below paper"


def _printed(cell: dict[str, Any]) -> Printed:
    return Printed(
        key=f"{cell['row']}/{cell['column']}",
        ours="–" if cell["value"] is None else _text(cell["value"]),
        paper="" if cell["paper_value"] is None else _text(cell["paper_value"]),
        verdict=cell["verdict"],
        status=cell["status"],
    )


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


PLUGIN = Recipes
