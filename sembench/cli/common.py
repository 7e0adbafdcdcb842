"""What commands share: options, the plan that they name, and printing. Whatever is printed is printed as it is."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sembench.core.errors import printable
from sembench.plan import Plan
from sembench.registry import project_root
from sembench.registry.load import read_yaml
from sembench.reporting.text import markdown_escape, visible

ScaleOption = Annotated[str, typer.Option(help="smoke, demo, small or full; as in config.yaml if not given")]
MirrorOption = Annotated[Path | None, typer.Option(help="mirror folder; else SEMBENCH_MIRROR, else config.yaml")]


def out(text: str) -> None:
    """Print a result; what it quotes cannot move the cursor."""
    print(visible(text))  # noqa: T201


def plan_of(scale: str = "", mirror: Path | None = None) -> Plan:
    """Return the plan of config.yaml with what the command line lays over it; a mirror named there comes first."""
    root = project_root()
    config = read_yaml(root / "config.yaml")
    return Plan.from_config(config | ({"scale": scale} if scale else {}), root=root, mirror=mirror)


def show_table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    """Print a table. Cells and headings are text and no markup, such as "[e1; e2]"; none of them moves the cursor."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        table.add_column(Text(column))
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    Console(width=None if sys.stdout.isatty() else 200).print(table)


def markdown(columns: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table to be pasted: Markdown, numbers to the right of the first column."""
    marks = [":--", *("--:" for _ in columns[1:])]
    lines = [[markdown_escape(cell) for cell in line] for line in (columns, *rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in (lines[0], marks, *lines[1:]))
