"""Two scores beside each other: which of their runs and items belong together, and whether they differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sembench.core.errors import SembenchError
from sembench.core.lazy import np
from sembench.plan.needs import ScoreKey
from sembench.reporting.text import number, signed

if TYPE_CHECKING:
    import pandas as pd

    from sembench.plan import Plan
    from sembench.registry.models import Where
    from sembench.reporting.cells import Scored
    from sembench.results.comparison import Comparison, Part

_PLACE = ("suite", "task", "split", "subset", "aggregation", "metric")
_ITEM = ("subset", "index", "gold")


class IncomparableError(SembenchError):
    """Two scores have no items in common, or none that could be drawn anew."""


def compared(plan: Plan, first: Scored, second: Scored, parts: Sequence[tuple[Scored, Scored]]) -> Comparison:
    """Compare two scores, seed by seed and item by item.

    Args:
        plan: of the scale.
        first: values of one side.
        second: of the other one.
        parts: the scores that both are the mean of, which have items; a score that is no mean is its only part.

    Raises:
        IncomparableError: there is no pair of runs, or there are no items to compare.
        SembenchError: predictions are damaged, or of different items.
    """
    from sembench.results.comparison import compare

    values = [(first.values[one], second.values[other]) for one, other in _pairs(first, second)]
    found = [part for one, other in parts for part in items_of(plan, one, other)]
    return compare([replace(part, weight=part.weight / len(parts)) for part in found], values)


def _pairs(first: Scored, second: Scored) -> list[tuple[str, str]]:
    """Return the runs that are compared with each other: those of one seed, or the only ones of both sides."""
    from sembench.results.aggregate import paired

    if len(first.values) == len(second.values) == 1:
        return list(zip(first.values, second.values, strict=True))
    sides = ({run: run for run in first.values}, {run: run for run in second.values})
    pairs = [(one, other) for one, other in paired(sides, {**first.seeds, **second.seeds}).values()]
    if not pairs:
        raise IncomparableError("no two of their runs have the same seed; compare a single run with another")
    return pairs


def items_of(plan: Plan, first: Scored, second: Scored) -> list[Part]:
    """Return the items of two scores that are no means, in parts that are resampled apart; in their printed unit.

    Raises:
        IncomparableError: they are scores of different things, or have no values of single items.
        SembenchError: predictions are damaged, or of different items.
    """
    from sembench.results.comparison import Part

    [one], [other] = first.where, second.where
    if [getattr(one, name) for name in _PLACE] != [getattr(other, name) for name in _PLACE]:
        raise IncomparableError("they are scores of different tasks, splits or metrics")
    task = plan.task(str(one.suite), str(one.task))
    statistic = task.protocol.plugin.statistics().get(one.metric)
    if statistic is None:
        raise IncomparableError(f"{one.metric} of {one.suite}/{one.task} is no score of items that could be drawn anew")
    sides = [
        [_predictions(plan, run, place, statistic.column) for run in of_side]
        for of_side, place in zip(zip(*_pairs(first, second), strict=True), (one, other), strict=True)
    ]
    items = _same_items([frame for side in sides for frame in side], one)
    values = [np.stack([frame[statistic.column].to_numpy() for frame in side]) for side in sides]
    gold = items["gold"].to_numpy()
    return [
        Part(statistic, gold[rows], values[0][:, rows], values[1][:, rows], share * first.unit.times)
        for rows, share in _strata(items, str(one.aggregation))
    ]


def _predictions(plan: Plan, run: str, place: Where, column: str) -> pd.DataFrame:
    """Return the predictions of a run for the items of a score."""
    from sembench.results.store import read_predictions

    artifact = plan.score(ScoreKey(run, str(place.readout), str(place.suite), str(place.task)))
    if not (plan.root / artifact.record).is_file():
        raise IncomparableError(f"{artifact.record} is not there, which has the values of single items")
    frame = read_predictions(plan.root, artifact)
    wanted = {"split": place.split, **({"subset": place.subset} if place.subset else {})}
    if {*wanted, column, "gold"} <= set(frame.columns):
        for name, value in wanted.items():
            frame = frame[frame[name] == value]
        if len(frame):
            return frame.reset_index(drop=True)
    named = f"subset {place.subset} of split {place.split}" if place.subset else f"split {place.split}"
    raise IncomparableError(f"{named} of {place.suite}/{place.task} has no values of single items")


def _same_items(frames: Sequence[pd.DataFrame], place: Where) -> pd.DataFrame:
    """Return what all frames say of the items themselves.

    Raises:
        SembenchError: they differ in it.
    """
    kept = [frame[[name for name in _ITEM if name in frame.columns]] for frame in frames]
    for frame in kept[1:]:
        if not frame.equals(kept[0]):
            sizes = f"{len(kept[0])} and {len(frame)} items" if len(frame) != len(kept[0]) else "other gold labels"
            raise SembenchError(
                f"{place.suite}/{place.task}/{place.split}: the predictions of two runs are of different data "
                f"({sizes}); delete the older scores and run again"
            )
    return kept[0]


def _strata(items: pd.DataFrame, aggregation: str) -> Iterator[tuple[Any, float]]:
    """Yield rows of items that are resampled together, and their share in the score: a mean is over subsets."""
    if aggregation not in ("mean", "wmean"):
        yield np.arange(len(items)), 1.0
        return
    groups = items.groupby("subset", sort=False).indices.values()
    for rows in groups:
        yield rows, len(rows) / len(items) if aggregation == "wmean" else 1 / len(groups)


# ---------------------------------------------------------------------------------------------------------- in words


def interval_text(comparison: Comparison, digits: int) -> str:
    """Return the 95% interval of a difference as printed."""
    return f"{signed(comparison.low, digits)} to {signed(comparison.high, digits)}"


def evidence(comparison: Comparison, digits: int) -> str:
    """Return in words what an interval and the tests beside it rest on."""
    items = f"{comparison.items:,} items"
    if comparison.seeds > 1:
        basis = f"over {items} and {comparison.seeds} seeds"
    else:
        basis = f"paired bootstrap over {items}, one run each"
    tests = "; ".join(str(test) for test in comparison.tests).replace("= -", "= −")
    return f"95% interval {interval_text(comparison, digits)} ({basis}); {tests}"


def own_text(plan: Plan, scored: Scored) -> str:
    """Return a score as printed: with the bootstrap interval of one run, or with the deviation over seeds."""
    from sembench.results.aggregate import seed_summary
    from sembench.results.resampling import interval

    (mean, sd, _), digits = seed_summary(list(scored.values.values())), scored.unit.digits
    if sd is not None:
        return f"{number(mean, digits)} ± {number(sd, digits)}"
    parts = items_of(plan, scored, scored)
    if len(parts) > 1:
        return number(mean, digits)
    low, high = (scored.unit.times * value for value in interval(parts[0].statistic, parts[0].first[0], parts[0].gold))
    return f"{number(mean, digits)} [{number(low, digits)}, {number(high, digits)}]"
