"""What several encoders retrieve for the same queries, side by side (SimCSE, Table 8)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from sembench.core.lazy import pd
from sembench.plan.needs import Needs, ScoreKey
from sembench.registry.models import Where
from sembench.reporting.coordinates import USUAL, Checker, Point, merged_where
from sembench.reporting.text import csv_text
from sembench.reporting.view import Shown, ViewConfig
from sembench.reporting.views._text_table import TextTable

if TYPE_CHECKING:
    from sembench.plan import Plan
    from sembench.registry.load import Registry

_RETRIEVED = ("query", "rank", "sentence", "cosine")


class RetrievedConfig(ViewConfig):
    """The table: the task that retrieves, and a column for each encoder."""

    at: Where
    columns: list[Point] = Field(min_length=1)


class Retrieved(TextTable[RetrievedConfig]):
    """Queries with the sentences nearest to them under each encoder; of a trained one, those of its first seed."""

    Config: ClassVar[type[ViewConfig]] = RetrievedConfig
    version: ClassVar[int] = 1

    @classmethod
    def check(cls, config: RetrievedConfig, registry: Registry, where: str, key: str) -> None:
        """Check the names in the coordinates.

        Raises:
            SembenchError: a name refers to nothing.
        """
        super().check(config, registry, where, key)
        check = Checker(registry)
        for point in config.columns:
            check.point(point, (merged_where(USUAL, config.at, point),), where)

    @classmethod
    def needs(cls, config: RetrievedConfig, plan: Plan) -> Needs:
        """Return the scores whose predictions are shown."""
        return Needs(scores=tuple(dict.fromkeys(key for _, key, _ in _columns(config, plan) if key)))

    @classmethod
    def shows(cls, config: RetrievedConfig, plan: Plan) -> Any:
        """Return why a column is missing."""
        return [missing for _, _, missing in _columns(config, plan)]

    @classmethod
    def absent(cls, config: RetrievedConfig, plan: Plan) -> Iterable[tuple[str, str]]:
        """Return the columns that stay missing at the plan's scale, with the reasons."""
        return [(point.label, missing) for point, _, missing in _columns(config, plan) if missing]

    def retrieved(self) -> pd.DataFrame:
        """Return query, rank, encoder, run, sentence and cosine of all that was retrieved.

        Raises:
            SembenchError: predictions were changed or cannot be read.
        """
        from sembench.results.store import read_predictions

        frames = []
        for point, key, _ in _columns(self.config, self.plan):
            if key and (self.plan.root / self.plan.score(key).record).is_file():
                found = read_predictions(self.plan.root, self.plan.score(key))
                found = found[found["split"] == self.config.at.split]
                frames.append(found[list(_RETRIEVED)].assign(encoder=point.label, run=key.run))
        columns = ["query", "rank", "encoder", "run", "sentence", "cosine"]
        return pd.concat(frames, ignore_index=True)[columns] if frames else pd.DataFrame(columns=columns)

    def frame(self) -> pd.DataFrame:
        """Return a row for each rank under its query, and a column for each encoder that has retrieved something."""
        found = self.retrieved()
        texts = found.assign(text=found["sentence"] + [f" ({cosine:.3f})" for cosine in found["cosine"]])
        rows = texts.pivot_table(index=["query", "rank"], columns="encoder", values="text", aggfunc="first", sort=False)
        rows = rows.reset_index().fillna("")
        rows["query"] = rows["query"].mask(rows["query"].duplicated(), "")
        return rows.rename(columns={"query": "Query", "rank": "Rank"})

    def caption(self, frame: pd.DataFrame) -> str:
        """Return the caption, the number behind each column, and why a column is absent."""
        columns = list(_columns(self.config, self.plan))
        absent = [f" {point.label}: {missing}." for point, _, missing in columns if missing]
        absent += [f" {p.label}: the run failed." for p, key, _ in columns if key and p.label not in frame.columns]
        return super().caption(frame) + self._number() + "".join(absent)

    def _number(self) -> str:
        """Return the metric's title and its value for each column, as a sentence; empty where there is none."""
        at, found = self.config.at, []
        unit = self.plan.registry.metrics[str(at.metric)]
        for point, key, _ in _columns(self.config, self.plan):
            if key:
                place = {**key._asdict(), "split": at.split, "metric": at.metric}
                values = self.scores.loc[(self.scores[list(place)] == pd.Series(place)).all(axis=1), "value"]
                found += [f"{point.label} {unit.times * value:.{unit.digits}f}" for value in values]
        return f" {unit.title[:1].upper()}{unit.title[1:]}: {', '.join(found)}." if found else ""

    def csv(self, frame: pd.DataFrame) -> str:
        """Return all that was retrieved, a line for each sentence."""
        del frame
        return csv_text(self.retrieved())

    def page(self) -> Shown:
        """Return the table."""
        return Shown(
            section="tables",
            html=self.html(self.frame()),
            runs=tuple(key.run for key in self.needs(self.config, self.plan).scores),
        )


def _columns(config: RetrievedConfig, plan: Plan) -> Iterator[tuple[Point, ScoreKey | None, str]]:
    """Yield each shown column with its score, that of the encoder's first run, or with the reason why it has none."""
    for point in config.columns:
        if plan.shown(point.scales):
            place = merged_where(USUAL, config.at, point)
            cell = plan.cell(place)
            missing = point.missing or cell.missing
            run = "" if missing else cell.runs[0].id
            key = ScoreKey(run, cell.readout, str(place.suite), str(place.task))
            yield point, None if missing else key, missing


PLUGIN = Retrieved
