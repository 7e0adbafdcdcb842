"""Tables of text, such as examples: one frame of strings in four forms. No scores, no numbers of a paper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from sembench.reporting.text import csv_text, environment, latex_escape, markdown_escape
from sembench.reporting.view import TABLE_SUFFIXES, C, View

if TYPE_CHECKING:
    import pandas as pd


class TextTable(View[C]):
    """Base of the tables of text: a kind says what the ``frame`` is, and may say how its cells are written."""

    suffixes: ClassVar[tuple[str, ...]] = TABLE_SUFFIXES

    def frame(self) -> pd.DataFrame:
        """Return what is shown, columns under their labels."""
        raise NotImplementedError

    def caption(self, frame: pd.DataFrame) -> str:
        """Return the caption."""
        del frame
        return str(self.config.caption)

    def cells(self, frame: pd.DataFrame) -> list[list[str]]:
        """Return the text of all cells, row by row."""
        return [[str(value) for value in row] for row in frame.itertuples(index=False)]

    def csv(self, frame: pd.DataFrame) -> str:
        """Return the table as data."""
        return csv_text(frame)

    def render(self) -> dict[str, str | bytes]:
        """Return the table in four forms, by suffix."""
        frame = self.frame()
        return {
            "csv": self.csv(frame),
            "md": self._markdown(frame),
            "tex": self._latex(frame),
            "html": self.html(frame),
        }

    def html(self, frame: pd.DataFrame) -> str:
        """Return the table as a fragment of a page."""
        parts: dict[str, Any] = {"columns": list(frame.columns), "rows": self.cells(frame)}
        template = environment(self.plan.root).get_template("frame.html.j2")
        return str(template.render(key=self.key, title=self.config.title, caption=self.caption(frame), **parts))

    def _markdown(self, frame: pd.DataFrame) -> str:
        rows = [[markdown_escape(cell) for cell in row] for row in [list(frame.columns), *self.cells(frame)]]
        rows.insert(1, [":--"] * len(frame.columns))
        table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
        return f"## {markdown_escape(self.config.title)}\n\n{markdown_escape(self.caption(frame))}\n\n{table}\n"

    def _latex(self, frame: pd.DataFrame) -> str:
        lines = [list(frame.columns), *self.cells(frame)]
        head, *body = [" & ".join(latex_escape(cell) for cell in row) + r" \\" for row in lines]
        lines_out = [
            "% needs the package booktabs",
            r"\begin{table*}[t]",
            r"\centering\small",
            rf"\begin{{tabular}}{{{'l' * len(frame.columns)}}}",
            *(r"\toprule", head, r"\midrule", *body, r"\bottomrule"),
            r"\end{tabular}",
            rf"\caption{{{latex_escape(self.config.title)}. {latex_escape(self.caption(frame))}}}",
            rf"\label{{tab:{self.key.replace('_', '-')}}}",
            r"\end{table*}",
        ]
        return "\n".join(lines_out) + "\n"
