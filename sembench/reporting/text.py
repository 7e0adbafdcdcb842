"""Text of numbers, and text in which no character means anything to Markdown or LaTeX."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from sembench.core.errors import printable

if TYPE_CHECKING:
    import jinja2
    import pandas as pd

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "±": r"$\pm$", "−": r"$-$", "–": "--", "[": "{[}", "]": "{]}",
}  # fmt: skip
_FORMULA = ("=", "+", "-", "@")
GLYPHS = {"": "", "matches": "≈", "within seed spread": "±", "above paper": "▲", "below paper": "▼"}


def number(value: float, digits: int) -> str:
    """Return a number as printed, with a true minus sign."""
    return f"{value:.{digits}f}".replace("-", "−")


def signed(value: float, digits: int) -> str:
    """Return a difference as printed, its sign always shown."""
    return f"{value:+.{digits}f}".replace("-", "−")


def visible(text: str) -> str:
    """Return text in which whatever reverses it, hides in it, or commands a terminal is spelt out."""
    return "".join(character if character in "\n\t\xa0" else printable(character) for character in text)


def flat(text: str) -> str:
    """Return visible text as one line."""
    return visible(" ".join(text.split()))


def markdown_escape(text: str) -> str:
    """Return text in which no character means anything to Markdown."""
    escaped = re.sub(r"([\\`*_|<>\[\]#~$]|&(?=#?\w+;))", r"\\\1", flat(text))
    # At the beginning of a block these are a list, a rule, or make a heading of the line above.
    return re.sub(r"^(\d*)([-+.)=]+)(?=\s|$)", r"\1\\\2", escaped)


def latex_escape(text: str) -> str:
    """Return text in which no character means anything to LaTeX."""
    return "".join(_LATEX.get(character, character) for character in flat(text))


def csv_text(frame: pd.DataFrame) -> str:
    """Return a frame as csv; an apostrophe comes before text that a spreadsheet would compute as a formula."""
    safe = frame.rename(columns=_no_formula)
    for name in safe.select_dtypes(exclude="number").columns:
        safe[name] = safe[name].map(_no_formula)
    return str(safe.to_csv(index=False, lineterminator="\n"))


def _no_formula(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.lstrip().startswith(_FORMULA) else value


def environment(root: Path) -> jinja2.Environment:
    """Return the template environment of ``root/report``; everything a template prints is escaped."""
    import jinja2

    env = jinja2.Environment(
        loader=jinja2.FileSystemLoader(root / "report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        # Markup is what this project made itself.
        finalize=lambda value: visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value,
    )
    env.globals |= {"number": number, "signed": signed, "glyphs": GLYPHS}
    return env
