"""Text of numbers, and text in which no character means anything to Markdown or LaTeX."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import jinja2

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "±": r"$\pm$", "−": r"$-$", "–": "--", "[": "{[}", "]": "{]}",
}  # fmt: skip
GLYPHS = {"": "", "matches": "≈", "within seed spread": "±", "above paper": "▲", "below paper": "▼"}


def number(value: float, digits: int) -> str:
    """Return a number as printed, with a true minus sign."""
    return f"{value:.{digits}f}".replace("-", "−")


def signed(value: float, digits: int) -> str:
    """Return a difference as printed, its sign always shown."""
    return f"{value:+.{digits}f}".replace("-", "−")


def markdown_escape(text: str) -> str:
    """Return text in which no character means anything to Markdown."""
    return re.sub(r"([\\`*_|<>\[\]#~])", r"\\\1", " ".join(text.split()))


def latex_escape(text: str) -> str:
    """Return text in which no character means anything to LaTeX."""
    return "".join(_LATEX.get(character, character) for character in " ".join(text.split()))


def environment(root: Path) -> jinja2.Environment:
    """Return the template environment of ``root/report``; everything a template prints is escaped."""
    import jinja2

    env = jinja2.Environment(
        loader=jinja2.FileSystemLoader(root / "report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    env.globals |= {"number": number, "signed": signed, "glyphs": GLYPHS}
    return env
