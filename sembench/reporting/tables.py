"""Tables as Markdown, LaTeX and HTML, all from the same printed cells."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sembench.reporting.cells import Cell, ClaimResult, Status, Verdict
from sembench.reporting.text import environment, latex_escape, markdown_escape, number, signed

LEGEND = "Ours, with the paper's number in brackets; ± is the sample standard deviation over seeds."


@dataclass(frozen=True)
class Marked:
    """Something printed, and the letter of the footnote that qualifies it (or nothing)."""

    text: str
    mark: str = ""


@dataclass(frozen=True)
class Printed:
    """A cell as printed: ours, the paper's, the difference, and the letter of its footnote."""

    key: str
    ours: str
    paper: str = ""
    delta: str = ""
    verdict: Verdict = ""
    status: Status = "measured"
    mark: str = ""
    title: str = ""

    @property
    def text(self) -> str:
        """Ours with the paper's number in brackets."""
        return f"{self.ours} ({self.paper})" if self.paper else self.ours


@dataclass(frozen=True)
class PrintedRow:
    """A row as printed; ``readout`` is a second label and may be empty."""

    label: Marked
    readout: str
    own: bool
    cells: tuple[Printed, ...]


@dataclass(frozen=True)
class PrintedTable:
    """All that a rendering prints. ``reasons`` are the footnotes by letter; equal reasons share one."""

    key: str
    title: str
    caption: str
    method: str
    note: str
    columns: tuple[Marked, ...]
    groups: tuple[tuple[str, tuple[PrintedRow, ...]], ...]
    reasons: tuple[tuple[str, str], ...] = ()
    quotes: tuple[str, ...] = ()

    @property
    def stub(self) -> tuple[str, ...]:
        """Heads of the columns of labels; none for read-outs where no row has one."""
        named = any(row.readout for _, rows in self.groups for row in rows)
        return ("Model", "Read-out") if named else ("Model",)


class Footnotes:
    """Gives each reason a letter, in the order in which they are first met."""

    def __init__(self) -> None:
        self.letters: dict[str, str] = {}

    def mark(self, reason: str) -> str:
        """Return the letter of a reason; none for an empty one."""
        if not reason:
            return ""
        count, letters = len(self.letters), string.ascii_lowercase
        return self.letters.setdefault(reason, letters[count % 26] * (count // 26 + 1))

    @property
    def reasons(self) -> tuple[tuple[str, str], ...]:
        """Letters with their reasons."""
        return tuple((letter, reason) for reason, letter in self.letters.items())


@dataclass(frozen=True)
class Marks:
    """Letters of the reasons in a grid: one on a row or column where all its cells share it, else on the cell."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    reasons: tuple[tuple[str, str], ...]


def marks_of(grid: Sequence[Sequence[str]], columns: int) -> Marks:
    """Return the letters for a grid of reasons (rows of equal length; empty: none)."""
    row_reasons = [_shared(line) for line in grid]
    open_lines = [line for line, reason in zip(grid, row_reasons, strict=True) if not reason]
    column_reasons = [_shared(column) for column in zip(*open_lines, strict=True)] or [""] * columns
    notes = Footnotes()
    heads = tuple(notes.mark(reason) for reason in column_reasons)
    labels, cells = [], []
    for line, shared in zip(grid, row_reasons, strict=True):
        labels.append(notes.mark(shared))
        covered = [shared or reason for reason in column_reasons]
        cells.append(tuple("" if here else notes.mark(reason) for reason, here in zip(line, covered, strict=True)))
    return Marks(tuple(labels), heads, tuple(cells), notes.reasons)


def _shared(reasons: Sequence[str]) -> str:
    return reasons[0] if len(set(reasons)) == 1 else ""


def ours(cell: Cell) -> str:
    """Return our side of a cell: value and spread over seeds, an en dash where missing, or ``failed``."""
    if cell.value is None:
        return "failed" if cell.status == "failed" else "–"
    spread = f" ± {number(cell.sd, cell.digits)}" if cell.sd is not None else ""
    return number(cell.value, cell.digits) + spread


def claim_text(claim: ClaimResult) -> str:
    """Return a claim with what the numbers say of it as one sentence."""
    sides = ((claim.better_label, claim.better), (claim.worse_label, claim.worse))
    values = ", ".join(f"{label} {number(value, claim.digits)}" for label, value in sides if value is not None)
    return f"Claim {claim.state}: {claim.text} ({claim.column}{f': {values}' if values else ''}; {claim.evidence})"


def printed(cell: Cell, column: str, mark: str) -> Printed:
    """Return a cell as printed."""
    return Printed(
        key=f"{cell.row}/{cell.column}",
        ours=ours(cell),
        paper=number(cell.paper_value, cell.digits) if cell.paper_value is not None else "",
        delta=signed(cell.delta, cell.digits) if cell.delta is not None else "",
        verdict=cell.verdict,
        status=cell.status,
        mark=mark,
        title=f"{cell.row_label}, {column}: where this is from",
    )


# --------------------------------------------------------------------------------------------------- renderings


def _markdown_marked(text: str, mark: str) -> str:
    return markdown_escape(text) + (f"<sup>{mark}</sup>" if mark else "")


def render_markdown(table: PrintedTable) -> str:
    """Return the table as GitHub-flavoured Markdown."""
    stub = len(table.stub)
    width = len(table.columns) + stub
    head = [*table.stub, *(_markdown_marked(c.text, c.mark) for c in table.columns)]
    lines = [head, [*[":--"] * stub, *["--:"] * len(table.columns)]]
    for heading, rows in table.groups:
        lines.append([f"*{markdown_escape(heading)}*", *[""] * (width - 1)])
        lines += [_markdown_row(row, stub) for row in rows]
    grid = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    note = [f"> **{markdown_escape(table.note)}**"] if table.note else []
    caption = f"{markdown_escape(table.caption)} {markdown_escape(table.method)}".strip()
    notes = [f"<sup>{mark}</sup> {markdown_escape(text)}" for mark, text in table.reasons]
    below = "\n".join(f"- {text}" for text in [*notes, *(markdown_escape(quote) for quote in table.quotes)])
    return "\n\n".join(["## " + markdown_escape(table.title), *note, caption, grid, below]).strip() + "\n"


def _markdown_row(row: PrintedRow, stub: int) -> list[str]:
    label = f"**{markdown_escape(row.label.text)}**" if row.own else markdown_escape(row.label.text)
    cells = [_markdown_marked(cell.text, cell.mark) for cell in row.cells]
    labels = [label + _markdown_marked("", row.label.mark), markdown_escape(row.readout)]
    return [*labels[:stub], *cells]


def _latex_marked(text: str, mark: str) -> str:
    return latex_escape(text) + (rf"\textsuperscript{{{mark}}}" if mark else "")


def render_latex(table: PrintedTable) -> str:
    """Return the table as a LaTeX float; it needs the packages booktabs and graphicx."""
    stub = len(table.stub)
    width = len(table.columns) + stub
    head = [*table.stub, *(_latex_marked(c.text, c.mark) for c in table.columns)]
    body = []
    for heading, rows in table.groups:
        body += [r"\midrule", rf"\multicolumn{{{width}}}{{l}}{{\textit{{{latex_escape(heading)}}}}} \\", r"\midrule"]
        body += [_latex_row(row, stub) for row in rows]
    notes = [rf"\textsuperscript{{{mark}}}~{latex_escape(text)}." for mark, text in table.reasons]
    notes += [latex_escape(quote) + "." for quote in table.quotes]
    note = rf"\textbf{{{latex_escape(table.note)}}} " if table.note else ""
    caption = " ".join(latex_escape(text) for text in (table.title + ".", table.caption, table.method))
    return "\n".join(
        [
            "% needs the packages booktabs and graphicx",
            r"\begin{table*}[t]",
            r"\centering",
            rf"\resizebox{{\textwidth}}{{!}}{{\begin{{tabular}}{{{'l' * stub}{'r' * len(table.columns)}}}",
            r"\toprule",
            " & ".join(head) + r" \\",
            *body,
            r"\bottomrule",
            r"\end{tabular}}",
            rf"\caption{{{note}{caption}}}",
            rf"\label{{tab:{table.key.replace('_', '-')}}}",
            r"\par\raggedright\footnotesize",
            *notes,
            r"\end{table*}",
            "",
        ]
    )


def _latex_row(row: PrintedRow, stub: int) -> str:
    label = rf"\textbf{{{latex_escape(row.label.text)}}}" if row.own else latex_escape(row.label.text)
    cells = [_latex_marked(cell.text, cell.mark) for cell in row.cells]
    labels = [label + _latex_marked("", row.label.mark), latex_escape(row.readout)]
    return " & ".join([*labels[:stub], *cells]) + r" \\"


def render_html(table: PrintedTable, root: Path, live: bool) -> str:
    """Return the table as an HTML fragment without style or script; templates lie in ``root/report``.

    ``live``: cells are buttons, which open on the page where a number is from.
    """
    return str(environment(root).get_template("table.html.j2").render(view=table, live=live))


def renderings(table: PrintedTable, root: Path, csv: str) -> Mapping[str, str]:
    """Return the table in its four forms, by suffix; ``csv`` is the long form."""
    return {
        "csv": csv,
        "md": render_markdown(table),
        "tex": render_latex(table),
        "html": render_html(table, root, live=False),
    }
