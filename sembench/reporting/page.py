"""The report: one HTML file that needs nothing beside it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

import sembench
from sembench.core.files import write_text
from sembench.plan.needs import Needs
from sembench.reporting.provenance import backbone_entry, data_entry, provenance, read_run
from sembench.reporting.render import scores_of, view_of
from sembench.reporting.text import environment

if TYPE_CHECKING:
    import pandas as pd

    from sembench.core.artifact import Artifact
    from sembench.plan import Plan, Run
    from sembench.reporting.view import Shown


def write_page(plan: Plan, scores: pd.DataFrame | None = None) -> Path:
    """Write the report of the plan's scale and return its path.

    Reads besides the scores only what is on the disk already: records of trained runs and of data sets.

    Raises:
        SembenchError: scores of one column were made from different data, or a record is broken.
    """
    path = plan.root / plan.layout.report
    write_text(path, render_page(plan, scores))
    return path


def render_page(plan: Plan, scores: pd.DataFrame | None = None) -> str:
    """Return the report as HTML; the same input gives the same text."""
    planned = plan.chosen_views()
    if scores is None:
        keys = (key for view in planned.values() for key in view.needs.scores)
        scores = scores_of(plan, Needs(scores=tuple(dict.fromkeys(keys))))
    views = {key: view_of(plan, key, scores).page() for key in planned}
    shown = {key: view for key, view in views.items() if view is not None}
    titles = {key: view.entry.title for key, view in planned.items()}
    runs = _runs(plan, shown)
    artifacts = sorted(plan.ancestors(_made_from(plan)), key=lambda each: each.name)
    return (
        environment(plan.root)
        .get_template("page.html.j2")
        .render(
            scale=plan.name,
            title=plan.scale.title,
            note=plan.scale.note,
            seeds=plan.seeds,
            example=next(iter(shown), "all"),
            titles=titles,
            claims=[(key, view.claims) for key, view in shown.items() if view.claims],
            sections={
                name: [(key, Markup(view.html)) for key, view in shown.items() if view.section == name]
                for name in ("tables", "data", "figures")
            },
            runs=[chart for chart in (_training(plan, run) for run in runs.values()) if chart],
            datasets=[data_entry(plan, each) for each in artifacts if each.kind in ("dataset", "made")],
            packages=[backbone_entry(plan, each) for each in artifacts if each.kind == "backbone" and not each.inputs],
            provenance=provenance(plan, _cells(shown), runs, scores),
            version=sembench.__version__,
        )
    )


def _made_from(plan: Plan) -> list[Artifact]:
    return [each for view in plan.chosen_views().values() for each in plan.artifacts(view.needs)]


def _cells(shown: dict[str, Shown]) -> dict[str, Any]:
    return {f"{key}/{cell}": entry for key, view in shown.items() for cell, entry in view.cells.items()}


def _runs(plan: Plan, shown: dict[str, Shown]) -> dict[str, Run]:
    """Return the runs behind what is shown, and those that they start from, in order."""
    found: dict[str, Run] = {}
    for name in dict.fromkeys(name for view in shown.values() for name in view.runs):
        run: Run | None = plan.run(name)
        while run is not None:
            found.setdefault(run.id, run)
            run = run.start
    return found


def _training(plan: Plan, run: Run) -> dict[str, Any] | None:
    """Return the chart of a trained run and a line of facts, or None where no curve of it is there."""
    from sembench.reporting.drawing import inline_svg, training_chart

    record = read_run(plan, run)
    chart = training_chart(record) if record else None
    if record is None or chart is None:
        return None
    segments = [segment for segment in record.get("segments") or [] if isinstance(segment, dict)]
    seconds = sum(segment.get("seconds") or 0 for segment in segments)
    facts = [
        ("steps", record.get("steps")),
        ("training rows", record.get("train_rows")),
        ("precision", record.get("precision")),
        ("seconds", round(seconds) or None),
        ("kept step", (record.get("best") or {}).get("step")),
    ]
    return {
        "id": run.id,
        "summary": plan.resolved(run.variant).variant.summary,
        "seed": run.seed,
        "facts": [(name, fact) for name, fact in facts if fact is not None],
        "svg": inline_svg(chart, f"run-{run.id.replace('.', '-')}", f"Loss and dev score of {run.id}"),
    }
