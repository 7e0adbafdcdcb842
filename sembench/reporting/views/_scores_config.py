"""What a table of scores says of itself in YAML: columns, rows, groups, claims; and the check of every name in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field, model_validator

from sembench.core.errors import SembenchError
from sembench.core.schema import Strict
from sembench.registry.check import need
from sembench.registry.models import Where
from sembench.reporting.coordinates import USUAL, Checker, check_once, gives_any, merged_where
from sembench.reporting.view import ViewConfig

if TYPE_CHECKING:
    from sembench.registry.load import Registry


class Column(Where):
    """A column: coordinates, another column on another encoder, the mean of columns as printed, or a gain.

    Papers average what they printed, so a mean rounds its columns first. A gain is another column's value less that of
    the row named by ``Row.before``, seed by seed.
    """

    key: str
    label: str
    same_as: str | None = Field(None, description="column whose coordinates it has, with other variants")
    replace: dict[str, str] = Field({}, description="in names of variants, with ``same_as``: bert_base -> distilbert")
    mean_of: list[str] = []
    gain_of: str | None = None
    scales: list[str] = Field([], description="only at these scales; none: at all")
    shown: bool = Field(True, description="false: only a part of means and gains")
    missing: str = Field("", description="why no cell of it can be measured")

    @model_validator(mode="after")
    def _one_of(self) -> Column:
        own = gives_any(self) or bool(self.missing)
        if sum((own, self.same_as is not None, bool(self.mean_of), self.gain_of is not None)) > 1:
            raise ValueError(f"column '{self.key}' takes coordinates, same_as, mean_of or gain_of; keep one of them")
        if bool(self.same_as) != bool(self.replace):
            raise ValueError(f"column '{self.key}' needs both same_as and replace, or neither; add the other")
        return self


class Override(Where):
    """What holds for one cell alone: other coordinates, or why it is missing."""

    missing: str = ""


class Row(Where):
    """A row: coordinates, or a line of the paper that nothing here builds yet (``missing``)."""

    key: str
    label: str
    scales: list[str] = Field([], description="only at these scales; none: at all")
    paper: str = Field("", description="row key in paper_values.csv; empty: the row's own key")
    missing: str = Field("", description="why the row cannot be built")
    own: bool = Field(False, description="the paper's own model, set off in the table")
    before: str | None = Field(None, description="key of the row that columns of gains compare with")
    after: str | None = Field(None, description="key of the row of a row set that it is put behind; none: at the end")
    cells: dict[str, Override] = Field({}, description="by column key")


class Group(Strict):
    """Rows under a heading. The registry puts the rows of a row set (``rows_of``) before those given here."""

    heading: str
    rows: list[Row]


class Claim(Strict):
    """A statement of the paper that the table can test: one row beats another in a column."""

    text: str
    better: str
    worse: str
    column: str
    scales: list[str] = []


class ScoresConfig(ViewConfig):
    """A table of scores."""

    defaults: Where = Where()
    tolerance: float = Field(1.0, ge=0, description="difference to the paper up to which a cell matches it")
    digits: int | None = Field(None, ge=0, description="decimals, where the paper prints others than is usual")
    lost: str = Field("", description="why cells without a printed value have none, where the paper's table is lost")
    columns: list[Column] = Field(min_length=1)
    groups: list[Group] = Field(min_length=1)
    claims: list[Claim] = []


def rows_of(config: ScoresConfig) -> list[tuple[str, Row]]:
    """Return the rows in the order in which they are shown, each with its heading."""
    found: list[tuple[str, Row]] = []
    for group in config.groups:
        rows = [row for row in group.rows if row.after is None]
        for row in group.rows:
            if row.after is not None:
                keys = [other.key for other in rows]
                place = keys.index(row.after) + 1 if row.after in keys else len(rows)
                rows.insert(place, row)
        found += [(group.heading, row) for row in rows]
    return found


def named(config: ScoresConfig, key: str) -> Column:
    """Return the column with a key."""
    return next(column for column in config.columns if column.key == key)


def coordinates_of(config: ScoresConfig, row: Row, column: Column) -> Where:
    """Return the coordinates of a cell."""
    own = row.cells.get(column.key, Override())
    if column.same_as is None:
        return merged_where(USUAL, config.defaults, row, column, own)
    given = coordinates_of(config, row, named(config, column.same_as))
    variant = given.variant
    for old, new in column.replace.items():
        variant = variant and variant.replace(old, new)
    return merged_where(given, Where(variant=variant), own)


def absent(config: ScoresConfig, row: Row, column: Column) -> str:
    """Return why the table itself says that a cell is missing; empty where it does not."""
    override = row.cells.get(column.key)
    if override is not None and (override.missing or gives_any(override)):
        return override.missing
    if column.same_as is not None:
        return absent(config, row, named(config, column.same_as))
    return row.missing or column.missing


# ------------------------------------------------------------------------------------------------------- check


def check_table(config: ScoresConfig, registry: Registry, where: str, key: str) -> None:
    """Check every name in a table and in the paper's numbers for it; ``where`` is its file and ``key`` its name.

    Raises:
        SembenchError: a name refers to nothing, or a cell has too few coordinates.
    """
    check = Checker(registry)
    _check_rows(config, check, where)
    _check_columns(config, check, where)
    _check_cells(config, check, where)
    _check_claims(config, check, where)
    _check_values(config, registry, key)


def _check_rows(config: ScoresConfig, check: Checker, where: str) -> None:
    rows = {row.key: row for _, row in rows_of(config)}
    columns = [column.key for column in config.columns]
    # Row sets are shared by tables of a paper, not all of which have a number for each row.
    values = {value.row for value in check.registry.paper_values if value.paper == config.paper}
    check_once((row.key for group in config.groups for row in group.rows), f"{where}, row")
    for row in rows.values():
        place = f"{where}, row '{row.key}'"
        check.scales(row.scales, place)
        need("row", row.before, rows, place)
        need("row", row.after, rows, place)
        need("row of registry/paper_values.csv", row.paper or None, [*values, *rows], place)
        for name in row.cells:
            need("column", name, columns, f"{place}, cells")
        if row.before == row.key:
            raise SembenchError(f"{place}: it is compared with itself; name the row that came before it")


def _check_columns(config: ScoresConfig, check: Checker, where: str) -> None:
    columns = {column.key: column for column in config.columns}
    check_once((column.key for column in config.columns), f"{where}, column")
    for column in config.columns:
        place = f"{where}, column '{column.key}'"
        check.scales(column.scales, place)
        for name in (*column.mean_of, column.gain_of, column.same_as):
            need("column", name, columns, place)
        if column.same_as and (like := columns[column.same_as]) and (like.same_as or like.mean_of or like.gain_of):
            raise SembenchError(f"{place}: same_as must name a column with coordinates of its own")
        # One step at most: a mean of scores, a gain in a score or a mean. So there are no circles.
        if any(columns[name].mean_of or columns[name].gain_of for name in column.mean_of):
            raise SembenchError(f"{place}: mean_of must name columns with coordinates of their own")
        if column.gain_of and columns[column.gain_of].gain_of:
            raise SembenchError(f"{place}: gain_of must not name a gain, which '{column.gain_of}' is")


def _check_cells(config: ScoresConfig, check: Checker, where: str) -> None:
    for _, row in rows_of(config):
        for column in config.columns:
            place = f"{where}, row '{row.key}', column '{column.key}'"
            if column.mean_of:
                _check_mean(config, row, column, place)
            if column.mean_of or column.gain_of:
                continue
            given = coordinates_of(config, row, column)
            if absent(config, row, column):
                check.part(given, place)
            else:
                check.whole(given, place)


def _check_mean(config: ScoresConfig, row: Row, column: Column, place: str) -> None:
    """Raise for a mean over several splits: one that the choice of a parameter has seen is no test."""
    places = [coordinates_of(config, row, other) for other in config.columns if other.key in column.mean_of]
    splits = sorted({str(where.split) for where in places})
    if len(splits) > 1:
        raise SembenchError(f"{place}: it is a mean over the splits {' and '.join(splits)}; give its columns one split")


def _check_claims(config: ScoresConfig, check: Checker, where: str) -> None:
    rows = [row.key for _, row in rows_of(config)]
    for claim in config.claims:
        place = f"{where}, claim '{claim.text}'"
        check.scales(claim.scales, place)
        need("column", claim.column, [column.key for column in config.columns], place)
        need("row", claim.better, rows, place)
        need("row", claim.worse, rows, place)
        if named(config, claim.column).gain_of:
            raise SembenchError(
                f"{place}: column '{claim.column}' holds gains, which have no items; name that of the scores"
            )


def _check_values(config: ScoresConfig, registry: Registry, key: str) -> None:
    rows = [name for _, row in rows_of(config) for name in (row.key, row.paper) if name]
    columns = [column.key for column in config.columns]
    for row, column in registry.values_of.get(key, {}):
        place = f"registry/paper_values.csv, {key}, {row}, {column}"
        need(f"row of {key}", row, rows, place)
        need(f"column of {key}", column, columns, place)
