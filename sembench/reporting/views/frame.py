"""Tables that show a file of a data set made here: sizes, examples. No scores, no numbers of a paper."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from sembench.core.artifact import opened_file
from sembench.core.schema import RelativePath, Strict
from sembench.plan.needs import Needs
from sembench.registry.check import need
from sembench.reporting.coordinates import check_once
from sembench.reporting.view import Shown, ViewConfig
from sembench.reporting.views._text_table import TextTable

if TYPE_CHECKING:
    import pandas as pd

    from sembench.core.artifact import Artifact
    from sembench.plan import Plan
    from sembench.registry.load import Registry


class Column(Strict):
    """A column of the file."""

    key: str
    label: str
    blanks: bool = Field(False, description="show underscores as blanks: words of several parts, as BATS writes them")


class First(Strict):
    """Only the first rows of each value of a column."""

    column: str
    n: int = Field(1, gt=0)


class FrameConfig(ViewConfig):
    """The table: a data set, one of its files, and which columns and rows of it are shown."""

    data: str = Field(description="data set made here")
    file: RelativePath = Field(description="one of its files, csv or parquet")
    columns: list[Column] = Field(min_length=1)
    where: dict[str, list[str]] = Field({}, description="column -> the values of the rows that are shown; none: all")
    first_per: First | None = None


class Frame(TextTable[FrameConfig]):
    """A table of a data set."""

    Config: ClassVar[type[ViewConfig]] = FrameConfig
    version: ClassVar[int] = 1

    @classmethod
    def check(cls, config: FrameConfig, registry: Registry, where: str, key: str) -> None:
        """Check that the data set is made here and has the file.

        Raises:
            SembenchError: it is not, or it has not.
        """
        from sembench.registry.entries import maker_of

        super().check(config, registry, where, key)
        check_once((column.key for column in config.columns), f"{where}, column")
        need("data set made here", config.data, registry.made, where)
        maker = maker_of(config.data, registry.made[config.data]).plugin
        need(f"file of {config.data}", config.file, maker.files, where)
        if config.file == maker.examples:
            for name in (*(column.key for column in config.columns), *config.where):
                need(f"column of {config.data}", name, maker.columns, where)

    @classmethod
    def needs(cls, config: FrameConfig, plan: Plan) -> Needs:
        """Return the data set."""
        del plan
        return Needs(data=(config.data,))

    @property
    def artifact(self) -> Artifact:
        """The data set that is shown."""
        return self.plan.data(self.plan.used(self.config.data))

    def frame(self) -> pd.DataFrame:
        """Return what is shown, columns under their labels.

        Raises:
            SembenchError: the file was changed, cannot be read or lacks a column.
        """
        from sembench.core.frames import read_frame

        config = self.config
        first = [config.first_per.column] if config.first_per else []
        path = opened_file(self.plan.root, self.artifact, config.file)
        frame = read_frame(path, [*(column.key for column in config.columns), *config.where, *first])
        for column, values in config.where.items():
            frame = frame[frame[column].astype(str).isin(values)]
        if config.first_per:
            frame = frame.groupby(config.first_per.column, sort=False).head(config.first_per.n)
        kept = frame[[column.key for column in config.columns]]
        return kept.set_axis([column.label for column in config.columns], axis=1).reset_index(drop=True)

    def cells(self, frame: pd.DataFrame) -> list[list[str]]:
        """Return the text of all cells, row by row."""
        blanks = [column.blanks for column in self.config.columns]
        return [
            [text.replace("_", " ") if blank else text for text, blank in zip(row, blanks, strict=True)]
            for row in super().cells(frame)
        ]

    def caption(self, frame: pd.DataFrame) -> str:
        """Return the caption, and what is to be said of an empty table."""
        nothing = "" if len(frame) else " No row of the data set is among those that are asked for."
        return str(self.config.caption) + nothing

    def page(self) -> Shown | None:
        """Return the table, or None where the data set is not made yet."""
        made = (self.plan.root / self.artifact.record).is_file()
        return Shown(section="data", html=self.html(self.frame())) if made else None


PLUGIN = Frame
