"""What all figures have in common: their four files, and how the page shows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sembench.reporting.text import environment
from sembench.reporting.view import FIGURE_SUFFIXES, C, Shown, View

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure as Drawing


@dataclass(frozen=True)
class Drawn:
    """A drawing, its numbers, and why a label is absent from it."""

    drawing: Drawing
    frame: pd.DataFrame
    absent: Mapping[str, str]


class FigureView(View[C]):
    """Base of figures: a kind says how to ``draw`` and which ``runs`` are behind it."""

    suffixes: ClassVar[tuple[str, ...]] = FIGURE_SUFFIXES

    def draw(self) -> Drawn:
        """Return the figure; called in the project's style."""
        raise NotImplementedError

    @property
    def runs(self) -> tuple[str, ...]:
        """Ids of the runs behind the figure."""
        raise NotImplementedError

    def drawn(self) -> Drawn:
        """Return the figure, drawn once."""
        from sembench.reporting.drawing import spell_out, styled

        if not hasattr(self, "_drawn"):
            with styled():
                self._drawn = self.draw()
            spell_out(self._drawn.drawing)
        return self._drawn

    def render(self) -> dict[str, str | bytes]:
        """Return the figure as svg, pdf and png, and its numbers as csv."""
        from sembench.reporting.drawing import figure_files

        return figure_files(self.drawn().drawing, self.drawn().frame)

    def page(self) -> Shown:
        """Return the figure with its caption and what is absent from it."""
        from sembench.reporting.drawing import inline_svg

        drawn = self.drawn()
        html = (
            environment(self.plan.root)
            .get_template("figure.html.j2")
            .render(
                key=self.key,
                title=self.config.title,
                caption=self.config.caption,
                svg=inline_svg(drawn.drawing, self.key, self.config.title),
                absent=list(drawn.absent.items()),
            )
        )
        return Shown(section="figures", html=str(html), runs=self.runs)
