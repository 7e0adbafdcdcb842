"""Comparing two encoders on the same items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sembench.cli.common import MirrorOption, ScaleOption, markdown, out, plan_of, show_table
from sembench.core.errors import SembenchError, unknown
from sembench.core.plugin import Chosen
from sembench.core.progress import say
from sembench.evaluation.named import available, check_made, check_suites
from sembench.plan import Plan, Run, ScoreKey
from sembench.plan.artefacts import PlannedCell
from sembench.registry.check import need, need_readout
from sembench.registry.models import Where

if TYPE_CHECKING:
    from sembench.reporting.cells import Records, Scored
    from sembench.results.comparison import Comparison

SuiteOption = Annotated[list[str], typer.Option(help="suite of registry/suites.yaml; may be repeated")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(compare)


def compare(
    first: Annotated[str, typer.Argument(help="a run id, or a variant of the registry with all its seeds")],
    second: Annotated[str, typer.Argument(help="the other one")],
    suite: SuiteOption = ["sts"],  # noqa: B006
    readout: Annotated[
        list[str] | None, typer.Option(help="read-out of both, or if given twice of each; their own if none is given")
    ] = None,
    split: Annotated[str, typer.Option(help="split of the tasks")] = "test",
    metric: Annotated[str, typer.Option(help="metric; each task's first one if none is given")] = "",
    aggregation: Annotated[str, typer.Option(help="all, mean or wmean, over a task's subsets")] = "all",
    scale: ScaleOption = "",
    mirror: MirrorOption = None,
    as_text: Annotated[bool, typer.Option("--text", help="print a Markdown table to be pasted")] = False,
) -> None:
    """Compare two encoders item by item: the difference, its 95% interval, tests, and Holm's correction over tasks.

    What is not scored yet is scored and kept, as the workflow would; nothing is trained.
    """
    plan = plan_of(scale, mirror)
    check_suites(plan, suite)
    need("metric", metric or None, plan.registry.metrics, "--metric", "registry/metrics.yaml")
    need("aggregation", aggregation, ("all", "mean", "wmean"), "--aggregation", "what tasks are summed up by")
    sides = [_side(plan, *each) for each in zip((first, second), _readouts(readout or []), strict=True)]
    places = _places(plan, suite, Where(split=split, subset="", aggregation=aggregation, metric=metric or None))
    for side in sides:
        for run in side.runs:
            check_made(plan, side.name, run)
    columns = ("task", "split", "metric", *(side.label for side in sides), *_HEADS)
    rows = _rows(plan, sides, places)
    if as_text:
        out(markdown(columns, rows) + f"\n\n{_NOTE}")
    else:
        show_table(columns, rows)
        out(f"\n{_NOTE}")


_HEADS = ("difference", "95% interval", "items", "test", "p, Holm")
_NOTE = (
    "Intervals of one run are by bootstrap over items (2,000 resamples), of a difference by paired bootstrap; with "
    "several seeds the variance over seeds is added (min F'). Correlations of one run each are tested by Williams and "
    "Steiger, accuracies by McNemar. The first test's p is corrected over the lines."
)


@dataclass(frozen=True)
class _Side:
    """An encoder that is compared: its runs, one a seed, and its read-out."""

    name: str
    variant: str
    runs: tuple[Run, ...]
    readout: str

    @property
    def label(self) -> str:
        return f"{self.name} ({self.readout})"


def _readouts(given: Sequence[str]) -> list[str | None]:
    if len(given) > 2:
        raise SembenchError(f"--readout is given {len(given)} times; give it once for both encoders, or once for each")
    return [given[0], given[-1]] if given else [None, None]


def _side(plan: Plan, name: str, asked: str | None) -> _Side:
    if "." in name and name.partition(".")[0] in plan.registry.variants:
        runs: tuple[Run, ...] = (plan.run(name),)
    elif name in plan.registry.variants:
        runs = plan.runs_of(name)
    else:
        raise unknown("run or variant", name, plan.registry.concrete, "the registry")
    variant = name.partition(".")[0]
    need_readout(asked, plan.registry, "--readout")
    readout = plan.readout_of(variant, asked)
    if reason := plan.missing(variant) or plan.readout_missing(variant, readout):
        raise SembenchError(f"'{name}' cannot be compared at scale {plan.name}: {reason}")
    return _Side(name, variant, runs, readout)


def _places(plan: Plan, suites: Sequence[str], asked: Where) -> list[Where]:
    """Return the coordinates of what can be compared; tasks of which nothing can are said."""
    found, reasons = [], []
    for suite, task in [place for name in dict.fromkeys(suites) for place in available(plan, name, say)]:
        protocol = plan.task(suite, task).protocol
        metrics = list(protocol.plugin.statistics())
        if reason := _not_compared(protocol, metrics, asked):
            reasons.append(reason)
            say(f"task {task} of {suite} is left out: {reason}")
        else:
            found.append(asked.model_copy(update={"suite": suite, "task": task, "metric": asked.metric or metrics[0]}))
    if not found:
        raise SembenchError(f"no task of {' and '.join(suites)} can be compared: {reasons[0]}; name another one")
    return found


def _not_compared(protocol: Chosen[Any], metrics: Sequence[str], asked: Where) -> str:
    """Return why a task gives nothing of what is asked for, or an empty string."""
    if not metrics:
        return "its scores cannot be computed anew from single items that are independent"
    for what, given, known in (
        ("metric", asked.metric, metrics),
        ("split", asked.split, protocol.plugin.splits(protocol.config)),
        ("aggregation", asked.aggregation, protocol.plugin.aggregations),
    ):
        if given is not None and given not in known:
            return f"it has no {what} {given} to compare, only {', '.join(each for each in known if each != 'subset')}"
    return ""


def _rows(plan: Plan, sides: Sequence[_Side], places: Sequence[Where]) -> list[list[str]]:
    from sembench.evaluation.job import ensure_scored
    from sembench.reporting.cells import Records
    from sembench.reporting.compared import compared
    from sembench.results.significance import holm
    from sembench.results.store import read_scores

    keys = [
        ScoreKey(run.id, side.readout, str(place.suite), str(place.task))
        for side in sides
        for run in side.runs
        for place in places
    ]
    ensure_scored(plan, keys, say)
    records = Records(read_scores(plan.root, map(plan.score, keys)), {key.run for key in keys})
    lines = []
    for place in places:
        one, other = (_scored(plan, side, place, records) for side in sides)
        lines.append((one, other, compared(plan, one, other, [(one, other)])))
    corrected = holm([comparison.p for *_, comparison in lines])
    return [_row(plan, place, *line, p_holm) for place, line, p_holm in zip(places, lines, corrected, strict=True)]


def _scored(plan: Plan, side: _Side, place: Where, records: Records) -> Scored:
    from sembench.reporting.cells import looked_up

    where = place.model_copy(update={"variant": side.variant})
    cell = PlannedCell(where, side.readout, side.runs)
    return looked_up(cell, where, plan.registry.metrics[str(place.metric)], records)


def _row(plan: Plan, place: Where, one: Scored, other: Scored, found: Comparison, p_holm: float) -> list[str]:
    from sembench.reporting.compared import interval_text, own_text
    from sembench.reporting.text import signed
    from sembench.results.significance import p_text

    digits = one.unit.digits
    return [
        plan.task(str(place.suite), str(place.task)).title,
        str(place.split),
        str(place.metric),
        own_text(plan, one),
        own_text(plan, other),
        signed(found.difference, digits),
        interval_text(found, digits),
        f"{found.items:,}" + (f" x {found.seeds} seeds" if found.seeds > 1 else ""),
        "; ".join(str(test) for test in found.tests),
        p_text(p_holm),
    ]
