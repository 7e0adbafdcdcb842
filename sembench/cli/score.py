"""Scoring any encoder by the papers' protocols."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from sembench.cli.common import MirrorOption, out, plan_of, show_table
from sembench.core.progress import say
from sembench.evaluation.named import score_named
from sembench.registry.models import MetricUnit

if TYPE_CHECKING:
    from sembench.results.records import Record


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(score)


def score(
    model: Annotated[str, typer.Argument(help="a model folder, a backbone, a run id, or a variant of the registry")],
    suite: Annotated[list[str], typer.Option(help="suite of registry/suites.yaml; may be repeated")] = ["sts"],  # noqa: B006
    readout: Annotated[
        list[str] | None, typer.Option(help="read-out; its own if none is given; may be repeated")
    ] = None,
    mirror: MirrorOption = None,
    scale: Annotated[str, typer.Option(help="smoke, demo, small or full: which data sets may be used")] = "small",
    precision: Annotated[str, typer.Option(help="fp32, bf16 or auto")] = "fp32",
    as_json: Annotated[bool, typer.Option("--json", help="print score records, one JSON object a line")] = False,
) -> None:
    """Score an encoder by the papers' protocol. What is missing is fetched; other output goes to standard error."""
    plan = plan_of(scale, mirror)
    records = score_named(plan, model, suite, readout, precision, say)
    if as_json:
        for record in records:
            out(json.dumps(record))
        return
    shown = [record for record in records if record["aggregation"] != "subset"]
    fields = ("readout", "suite", "task", "split", "subset", "aggregation", "metric")
    units = plan.registry.metrics
    rows = ([*(str(dict(r)[name]) for name in fields), _printed(r, units), str(r["n"])] for r in shown)
    show_table([*fields, "value", "n"], rows)


def _printed(record: Record, units: dict[str, MetricUnit]) -> str:
    """Print a score in the unit of its metric, as the tables do."""
    unit = units[record["metric"]]
    return f"{record['value'] * unit.times:.{unit.digits}f}"
