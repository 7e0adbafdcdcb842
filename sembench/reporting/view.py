"""What every table and figure is: parameters, what it needs, the files it renders, what it shows on the page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

from pydantic import Field

from sembench.core.errors import SembenchError
from sembench.core.schema import Strict
from sembench.plan.needs import Needs

if TYPE_CHECKING:
    import pandas as pd

    from sembench.plan import Plan
    from sembench.registry.load import Registry
    from sembench.reporting.cells import ClaimResult

TABLE_SUFFIXES = ("csv", "md", "tex", "html")
FIGURE_SUFFIXES = ("svg", "pdf", "png", "csv")
Section = Literal["tables", "data", "figures"]


class ViewConfig(Strict):
    """What every view's YAML says."""

    title: str
    paper: str
    caption: str = ""
    by_name: list[str] = Field([], description="scales at which it is built only where a command names it")


@dataclass(frozen=True)
class Shown:
    """What a view contributes to the page.

    Attributes:
        section: where it stands.
        html: a fragment in which everything is escaped.
        claims: what its cells say about the paper's claims.
        cells: what the dialog of a cell shows, by ``row/column``; ``records`` are labels of rows of the scores.
        runs: ids of the runs behind it.
    """

    section: Section
    html: str
    claims: tuple[ClaimResult, ...] = ()
    cells: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    runs: tuple[str, ...] = ()


C = TypeVar("C", bound=ViewConfig)


class View(Generic[C]):
    """Base of the views; a kind is one file in ``sembench/reporting/views``.

    Attributes:
        measures: shows nothing of its own where a scale can make nothing that it needs.
    """

    Config: ClassVar[type[ViewConfig]] = ViewConfig
    version: ClassVar[int] = 1
    suffixes: ClassVar[tuple[str, ...]] = ()
    measures: ClassVar[bool] = True
    shows_paper_values: ClassVar[bool] = False

    def __init__(self, config: C, plan: Plan, scores: pd.DataFrame, key: str) -> None:
        """Keep what a view is made from: its parameters, the plan, score records, and its own key."""
        self.config, self.plan, self.scores, self.key = config, plan, scores, key

    @classmethod
    def check(cls, config: C, registry: Registry, where: str, key: str) -> None:
        """Check the names that the parameters of a view refer to; ``where`` is its file and ``key`` its name.

        Raises:
            SembenchError: a name refers to nothing; the nearest known one is named.
        """
        del config
        if not cls.shows_paper_values and registry.values_of.get(key):
            raise SembenchError(f"{where}: shows no numbers of a paper; drop its lines from registry/paper_values.csv")

    @classmethod
    def needs(cls, config: C, plan: Plan) -> Needs:
        """Return what must be made before the view can be rendered."""
        del config, plan
        return Needs()

    @classmethod
    def shows(cls, config: C, plan: Plan) -> Any:
        """Return, as JSON values, what a view shows besides its parameters and what it needs."""
        del config, plan
        return None

    @classmethod
    def absent(cls, config: Any, plan: Plan) -> Iterable[tuple[str, str]]:
        """Return what stays missing at the plan's scale: a row or point as it is labelled, and why."""
        del config, plan
        return ()

    def render(self) -> dict[str, str | bytes]:
        """Return the content of each file, by suffix."""
        raise NotImplementedError

    def page(self) -> Shown | None:
        """Return what the page shows, or None where there is nothing to show yet."""
        raise NotImplementedError
