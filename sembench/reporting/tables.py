"""Tables as csv, Markdown, LaTeX and HTML, all from one view of the cells."""

from __future__ import annotations

import itertools
import re
import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import jinja2

from sembench.core.files import write_text
from sembench.registry.models import Table
from sembench.registry.plan import Plan, PlannedRow
from sembench.reporting.cells import Cell, build_cells, shown_columns, table_frame

if TYPE_CHECKING:
    import pandas as pd

SUFFIXES = ("csv", "md", "tex", "html")
LEGEND = "Ours, with the paper's number in brackets; ± is the sample standard deviation over seeds."
_GLYPHS = {"": "", "matches": "≈", "within seed spread": "±", "above paper": "▲", "below paper": "▼"}


@dataclass(frozen=True)
class Marked:
    """Something printed, and the letter of the footnote that says what is amiss with it (or nothing)."""

    text: str
    mark: str


@dataclass(frozen=True)
class ViewRow:
    """A row as printed; every cell comes with the letter of its footnote."""

    label: Marked
    readout: str
    own: bool
    cells: tuple[tuple[Cell, str], ...]


@dataclass(frozen=True)
class TableView:
    """All that a rendering prints. ``reasons`` are the footnotes by letter; equal reasons share one."""

    id: str
    title: str
    caption: str
    method: str
    note: str
    digits: int
    columns: tuple[Marked, ...]
    groups: tuple[tuple[str, tuple[ViewRow, ...]], ...]
    reasons: tuple[tuple[str, str], ...]
    quotes: tuple[str, ...]
    cells: tuple[Cell, ...]


# ---------------------------------------------------------------------------------------------------- the view


class _Footnotes:
    """Gives each reason a letter, in the order in which they are first met."""

    def __init__(self) -> None:
        self.letters: dict[str, str] = {}

    def mark(self, reason: str) -> str:
        if not reason:
            return ""
        number, letters = len(self.letters), string.ascii_lowercase
        return self.letters.setdefault(reason, letters[number % 26] * (number // 26 + 1))


def table_view(plan: Plan, table_id: str, scores: pd.DataFrame) -> TableView:
    """Return what a table prints at the plan's scale."""
    spec, rows, columns = plan.table(table_id), plan.rows(table_id), shown_columns(plan, table_id)
    cells = build_cells(plan, table_id, scores)
    grid = [cells[i * len(columns) : (i + 1) * len(columns)] for i in range(len(rows))]
    # A reason that a whole row or column shares is told once, on its label.
    row_reasons = [_shared(line) for line in grid]
    open_lines = [line for line, reason in zip(grid, row_reasons, strict=True) if not reason]
    column_reasons = [_shared(column) for column in zip(*open_lines, strict=True)] or [""] * len(columns)
    notes = _Footnotes()
    heads = [Marked(column.label, notes.mark(r)) for column, r in zip(columns, column_reasons, strict=True)]
    shown = []
    for row, line, shared in zip(rows, grid, row_reasons, strict=True):
        label = Marked(row.row.label, notes.mark(shared))
        told = [shared or reason for reason in column_reasons]
        marked = [(cell, "" if here else notes.mark(cell.reason)) for cell, here in zip(line, told, strict=True)]
        readout = plan.registry.readouts[row.readout].title if row.readout else ""
        shown.append((row.group, ViewRow(label, readout, row.row.own, tuple(marked))))
    return TableView(
        id=table_id,
        title=spec.title,
        caption=spec.caption,
        method=_method(plan, table_id),
        note=plan.scale.note,
        digits=spec.digits,
        columns=tuple(heads),
        groups=tuple((head, tuple(r for _, r in part)) for head, part in itertools.groupby(shown, key=lambda x: x[0])),
        reasons=tuple((letter, reason) for reason, letter in notes.letters.items()),
        quotes=(
            *_quotes(cells, spec.paper),
            *_nearest(spec, rows, cells),
            *([f"Where no number of the paper stands beside a cell: {spec.lost}"] if spec.lost else []),
        ),
        cells=tuple(cells),
    )


def _shared(cells: Sequence[Cell]) -> str:
    reasons = {cell.reason for cell in cells}
    return reasons.pop() if len(reasons) == 1 else ""


def _method(plan: Plan, table_id: str) -> str:
    spec = plan.table(table_id)
    metrics = [column.metric for column in shown_columns(plan, table_id) if column.metric]
    names = ", ".join(dict.fromkeys(metric.metric for metric in metrics))
    aggregations = ", ".join(dict.fromkeys(metric.aggregation for metric in metrics))
    times = f" x {spec.times:g}" if spec.times != 1 else ""
    return f"Shown: {names}{times}, aggregation {aggregations}, read-out as named in each row. {LEGEND}"


def _quotes(cells: Iterable[Cell], paper: str) -> Iterable[str]:
    """Say where printed numbers are from when it is not plainly the table's own paper."""
    told: dict[tuple[str, str], dict[str, None]] = {}
    for cell in cells:
        if cell.paper_value is not None and (cell.note or cell.paper != paper):
            told.setdefault((cell.paper, cell.note), {})[cell.row_label] = None
    for (source, note), labels in told.items():
        yield f"Printed numbers ({source}) of {', '.join(labels)}: {note or 'another paper than the table is from'}"


def _nearest(spec: Table, rows: Sequence[PlannedRow], cells: Iterable[Cell]) -> Iterable[str]:
    """Where several rows stand for one row of the paper, say which comes nearest to each number printed for it."""
    stands_for = {row.row.key: row.row.paper for row in rows if row.row.paper}
    labels = {column.key: column.label for column in spec.columns}
    candidates: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        if cell.row in stands_for and cell.delta is not None:
            candidates.setdefault((stands_for[cell.row], cell.column), []).append(cell)
    for (_, column), found in candidates.items():
        best = min(found, key=lambda cell: abs(cell.delta or 0.0))
        if len(found) > 1:
            yield (
                f"Nearest to the printed {best.paper_value:.{spec.digits}f} ({labels[column]}), and so the paper-like "
                f"setting: {best.row_label} under {best.readout}, {ours(best, spec.digits)}"
            )


# ------------------------------------------------------------------------------------------------ text of cells


def number(value: float, digits: int) -> str:
    """Return a number as printed, with a true minus sign."""
    return f"{value:.{digits}f}".replace("-", "−")


def signed(value: float, digits: int) -> str:
    """Return a difference as printed, its sign always shown."""
    return f"{value:+.{digits}f}".replace("-", "−")


def ours(cell: Cell, digits: int) -> str:
    """Return our side of a cell: value and spread over seeds, an en dash where missing, or ``failed``."""
    if cell.value is None:
        return "failed" if cell.status == "failed" else "–"
    spread = f" ± {number(cell.sd, digits)}" if cell.sd is not None else ""
    return number(cell.value, digits) + spread


def cell_text(cell: Cell, digits: int) -> str:
    """Return ours with the paper's number in brackets."""
    paper = f" ({number(cell.paper_value, digits)})" if cell.paper_value is not None else ""
    return ours(cell, digits) + paper


# --------------------------------------------------------------------------------------------------- renderings


def render_csv(view: TableView) -> str:
    """Return the long form, one line a cell."""
    return str(table_frame(view.cells, view.digits).to_csv(index=False, lineterminator="\n"))


def markdown_escape(text: str) -> str:
    """Return text in which no character means anything to Markdown."""
    return re.sub(r"([\\`*_|<>\[\]#~])", r"\\\1", " ".join(text.split()))


def _markdown_marked(text: str, mark: str) -> str:
    return markdown_escape(text) + (f"<sup>{mark}</sup>" if mark else "")


def render_markdown(view: TableView) -> str:
    """Return the table as GitHub-flavoured Markdown."""
    width = len(view.columns) + 2
    head = ["Model", "Read-out", *(_markdown_marked(c.text, c.mark) for c in view.columns)]
    lines = [head, [":--", ":--", *["--:"] * len(view.columns)]]
    for heading, rows in view.groups:
        lines.append([f"*{markdown_escape(heading)}*", *[""] * (width - 1)])
        lines += [_markdown_row(row, view.digits) for row in rows]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    note = [f"> **{markdown_escape(view.note)}**"] if view.note else []
    caption = f"{markdown_escape(view.caption)} {markdown_escape(view.method)}".strip()
    notes = [f"<sup>{mark}</sup> {markdown_escape(text)}" for mark, text in view.reasons]
    below = "\n".join(f"- {text}" for text in [*notes, *(markdown_escape(quote) for quote in view.quotes)])
    return "\n\n".join(["## " + markdown_escape(view.title), *note, caption, table, below]).strip() + "\n"


def _markdown_row(row: ViewRow, digits: int) -> list[str]:
    label = f"**{markdown_escape(row.label.text)}**" if row.own else markdown_escape(row.label.text)
    cells = [_markdown_marked(cell_text(cell, digits), mark) for cell, mark in row.cells]
    return [label + _markdown_marked("", row.label.mark), markdown_escape(row.readout), *cells]


_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "±": r"$\pm$", "−": r"$-$", "–": "--", "[": "{[}", "]": "{]}",
}  # fmt: skip


def latex_escape(text: str) -> str:
    """Return text in which no character means anything to LaTeX."""
    return "".join(_LATEX.get(character, character) for character in " ".join(text.split()))


def _latex_marked(text: str, mark: str) -> str:
    return latex_escape(text) + (rf"\textsuperscript{{{mark}}}" if mark else "")


def render_latex(view: TableView) -> str:
    """Return the table as a LaTeX float; it needs the packages booktabs and graphicx."""
    width = len(view.columns) + 2
    head = ["Model", "Read-out", *(_latex_marked(c.text, c.mark) for c in view.columns)]
    body = []
    for heading, rows in view.groups:
        body += [r"\midrule", rf"\multicolumn{{{width}}}{{l}}{{\textit{{{latex_escape(heading)}}}}} \\", r"\midrule"]
        body += [_latex_row(row, view.digits) for row in rows]
    notes = [rf"\textsuperscript{{{mark}}}~{latex_escape(text)}." for mark, text in view.reasons]
    notes += [latex_escape(quote) + "." for quote in view.quotes]
    note = rf"\textbf{{{latex_escape(view.note)}}} " if view.note else ""
    caption = " ".join(latex_escape(text) for text in (view.title + ".", view.caption, view.method))
    return "\n".join(
        [
            "% needs the packages booktabs and graphicx",
            r"\begin{table*}[t]",
            r"\centering",
            rf"\resizebox{{\textwidth}}{{!}}{{\begin{{tabular}}{{ll{'r' * len(view.columns)}}}",
            r"\toprule",
            " & ".join(head) + r" \\",
            *body,
            r"\bottomrule",
            r"\end{tabular}}",
            rf"\caption{{{note}{caption}}}",
            rf"\label{{tab:{view.id.replace('_', '-')}}}",
            r"\par\raggedright\footnotesize",
            *notes,
            r"\end{table*}",
            "",
        ]
    )


def _latex_row(row: ViewRow, digits: int) -> str:
    label = rf"\textbf{{{latex_escape(row.label.text)}}}" if row.own else latex_escape(row.label.text)
    cells = [_latex_marked(cell_text(cell, digits), mark) for cell, mark in row.cells]
    return " & ".join([label + _latex_marked("", row.label.mark), latex_escape(row.readout), *cells]) + r" \\"


def environment(root: Path) -> jinja2.Environment:
    """Return the template environment of ``root/report``; everything a template prints is escaped."""
    env = jinja2.Environment(
        loader=jinja2.FileSystemLoader(root / "report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    env.globals |= {"number": number, "signed": signed, "ours": ours, "glyphs": _GLYPHS}
    return env


def render_html(view: TableView, root: Path) -> str:
    """Return the table as an HTML fragment without style or script; templates lie in ``root/report``."""
    return str(environment(root).get_template("table.html.j2").render(view=view))


def write_table(plan: Plan, table_id: str, scores: pd.DataFrame) -> list[Path]:
    """Write a table as csv, md, tex and html below the plan's root and return their paths.

    Raises:
        SembenchError: a column's scores were made from different data.
    """
    view = table_view(plan, table_id, scores)
    texts = [render_csv(view), render_markdown(view), render_latex(view), render_html(view, plan.root)]
    paths = [plan.root / plan.layout.table(table_id, suffix) for suffix in SUFFIXES]
    for path, text in zip(paths, texts, strict=True):
        write_text(path, text)
    return paths
