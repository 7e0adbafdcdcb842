"""The report: one HTML file that needs nothing beside it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

import sembench
from sembench.core.files import write_text
from sembench.registry.plan import Plan
from sembench.reporting.cells import ClaimResult, claims
from sembench.reporting.figures import inline_svg, rendered, training_chart
from sembench.reporting.frames import frame_views
from sembench.reporting.provenance import backbone_entry, data_entry, provenance, read_run
from sembench.reporting.tables import TableView, environment, table_view

if TYPE_CHECKING:
    import pandas as pd


def write_page(plan: Plan, scores: pd.DataFrame) -> Path:
    """Write the report of the plan's scale and return its path.

    Reads besides the scores only what is on the disk already: ``run.json`` of trained runs, manifests of data sets.

    Raises:
        SembenchError: scores of one column were made from different data, or a ``run.json`` is broken.
    """
    path = plan.root / plan.layout.report
    write_text(path, render_page(plan, scores))
    return path


def render_page(plan: Plan, scores: pd.DataFrame) -> str:
    """Return the report as HTML; the same input gives the same text."""
    views = {key: table_view(plan, key, scores) for key in plan.tables}
    cells = [cell for view in views.values() for cell in view.cells]
    used = {spec.backbone.key for spec in plan.shown_runs.values()}
    packages = [backbone_entry(plan, key) for key in sorted(used) if plan.backbone(key).package]
    return (
        environment(plan.root)
        .get_template("page.html.j2")
        .render(
            scale=plan.name,
            title=plan.scale.title,
            note=plan.scale.note,
            seeds=plan.seeds,
            claims=_claims(plan, views),
            tables=list(views.values()),
            figures=[_figure(plan, key, scores) for key in plan.figures],
            runs=[run for run in (_training(plan, run_id) for run_id in plan.shown_runs) if run],
            frames=[Markup(fragment) for fragment in frame_views(plan)],
            datasets=[data_entry(plan, key) for key in plan.needed_datasets()],
            packages=packages,
            provenance=provenance(plan, cells, scores),
            version=sembench.__version__,
        )
    )


def _claims(plan: Plan, views: dict[str, TableView]) -> list[tuple[TableView, list[ClaimResult]]]:
    found = [(view, claims(plan, key, view.cells)) for key, view in views.items()]
    return [(view, results) for view, results in found if results]


def _figure(plan: Plan, key: str, scores: pd.DataFrame) -> dict[str, Any]:
    spec = plan.figure(key)
    drawing, _, absent = rendered(plan, key, scores)
    svg = inline_svg(drawing, key, spec.title)
    return {"id": key, "title": spec.title, "caption": spec.caption, "svg": svg, "absent": list(absent.items())}


def _training(plan: Plan, run_id: str) -> dict[str, Any] | None:
    """Return the chart of a trained run and a line of facts, or None where no curve of it is there."""
    run = read_run(plan, run_id)
    chart = training_chart(run) if run else None
    if run is None or chart is None:
        return None
    segments = [segment for segment in run.get("segments") or [] if isinstance(segment, dict)]
    seconds = sum(segment.get("seconds") or 0 for segment in segments)
    facts = [
        ("steps", run.get("steps")),
        ("training sentences", run.get("train_rows")),
        ("precision", run.get("precision")),
        ("seconds", round(seconds) or None),
        ("kept step", (run.get("best") or {}).get("step")),
    ]
    return {
        "id": run_id,
        "summary": plan.variant(plan.run(run_id).variant).summary,
        "seed": plan.run(run_id).seed,
        "facts": [(name, fact) for name, fact in facts if fact is not None],
        "svg": inline_svg(chart, f"run-{run_id.replace('.', '-')}", f"Loss and dev score of {run_id}"),
    }
