"""Commands that look: what the registry knows, how a name resolves, what a target needs, where things lie."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from sembench.cli.common import ScaleOption, out, plan_of, show_table
from sembench.core.errors import unknown
from sembench.core.progress import say
from sembench.plan import Plan, PlannedView, Run
from sembench.registry import project_root

Listing = list[tuple[str, str, str]]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("ls")(list_known)
    app.command()(show)
    app.command("plan")(show_plan)
    app.command()(path)
    app.command()(relock)


def list_known(
    what: Annotated[
        str, typer.Argument(help="variants, tables, figures, datasets, made, backbones, readouts, suites or scales")
    ],
    scale: ScaleOption = "",
) -> None:
    """List what the registry knows, and whether the scale can build it."""
    plan = plan_of(scale)
    if what not in _LISTINGS:
        raise unknown("listing", what, _LISTINGS, "sembench ls")
    show_table(("name", "what it is", f"scale {plan.name}"), _LISTINGS[what](plan))


def _variants(plan: Plan) -> Listing:
    known = plan.registry
    return [(key, known.variant(key).summary, plan.missing(key) or "available") for key in known.concrete]


def _views(folder: str) -> Callable[[Plan], Listing]:
    def listing(plan: Plan) -> Listing:
        views = [view for view in plan.views.values() if view.entry.folder == folder]
        return [(view.key, view.entry.title, view.missing or _amount(plan, view)) for view in views]

    return listing


def _amount(plan: Plan, view: PlannedView) -> str:
    keys = view.needs.scores
    there = f"{len(keys) - len(plan.unscored(keys))} of {len(keys)} scores are there" if keys else "can be built"
    return f"{there}; only by its name" if view.by_name else there


_LISTINGS: dict[str, Callable[[Plan], Listing]] = {
    "variants": _variants,
    "tables": _views("tables"),
    "figures": _views("figures"),
    "datasets": lambda plan: [
        (key, entry.title, plan.data_missing(key) or "available") for key, entry in plan.registry.datasets.items()
    ],
    "made": lambda plan: [
        (key, entry.title, plan.data_missing(key) or "available") for key, entry in plan.registry.made.items()
    ],
    "backbones": lambda plan: [
        (key, entry.title, plan.backbone_missing(key) or "available") for key, entry in plan.registry.backbones.items()
    ],
    "readouts": lambda plan: [
        *((key, entry.summary, "") for key, entry in plan.registry.readouts.items()),
        *((f"<read-out>.{key}", entry.summary, "") for key, entry in plan.registry.transforms.items()),
    ],
    "suites": lambda plan: [(key, suite.title, ", ".join(suite.tasks)) for key, suite in plan.registry.suites.items()],
    "scales": lambda plan: [(key, entry.title, f"seeds {entry.seeds}") for key, entry in plan.registry.scales.items()],
}


def show(variant: Annotated[str, typer.Argument(help="a variant of the registry")], scale: ScaleOption = "") -> None:
    """Show a variant as it holds at a scale: its runs, and every value with where it is from."""
    plan = plan_of(scale)
    entry, runs = plan.resolved(variant), plan.runs_of(variant)
    resolved: dict[str, Any] = {
        "variant": variant,
        "summary": entry.variant.summary,
        "scale": plan.name,
        "backbone": runs[0].backbone,
        "data": runs[0].data.name if runs[0].data else None,
        "readout": plan.readout_of(variant),
        "readouts": ", ".join(plan.offered(variant)),
        "runs": [run.id for run in runs],
        "missing": plan.missing(variant) or None,
    }
    out(yaml.safe_dump(resolved, sort_keys=False, allow_unicode=True, width=1000).rstrip())
    if runs[0].training:
        out("recipe:")
        show_table(("key", "value", "from"), _recipe(entry.origins, runs[0]))


def _recipe(origins: dict[str, str], run: Run) -> list[tuple[str, str, str]]:
    assert run.training is not None
    values = run.training.values
    values = {f"objective.{k}": v for k, v in values.pop("objective").items()} | values
    return [(key, str(value), origins.get(f"recipe.{key}", "default")) for key, value in values.items()]


def show_plan(
    target: Annotated[str, typer.Argument(help="a table, a figure, or all")] = "all", scale: ScaleOption = ""
) -> None:
    """Show what a target needs at a scale: encoders that are done or open, and what is missing and why."""
    plan = plan_of(scale)
    keys = list(plan.chosen_views()) if target == "all" else [plan.view(target).key]
    needs = [plan.view(key).needs for key in keys]
    scores = list(dict.fromkeys(key for need in needs for key in need.scores))
    runs = list(dict.fromkeys([key.run for key in scores] + [run for need in needs for run in need.runs]))
    wanted, lacking = {key.run for key in scores}, {key.run for key in plan.unscored(scores)}
    states = {
        run: "scored" if run in wanted - lacking else _state(plan.root, plan.run(run), run in wanted) for run in runs
    }
    show_table(("run", "kind", "state"), ((run, _kind(plan.run(run)), state) for run, state in states.items()))
    missing = [(key, plan.view(key).missing) for key in keys if plan.view(key).missing]
    missing += [pair for key in keys for pair in _rows_missing(plan, key)]
    if missing:
        out("")
        show_table(("what stays missing", "why"), dict.fromkeys(missing))
    out(f"\n{len(runs)} encoders; build with: snakemake {target} --cores 2 --config scale={plan.name}")


def _rows_missing(plan: Plan, key: str) -> list[tuple[str, str]]:
    entry = plan.view(key).entry
    return [(str(label), str(why)) for label, why in entry.chosen.plugin.absent(entry.chosen.config, plan)]


def _kind(run: Run) -> str:
    steps = run.training.recipe.max_steps if run.training else None
    return f"train, {steps or 'all'} steps" if run.training else "untouched"


def _state(root: Path, run: Run, wanted: bool) -> str:
    """Return the state of a run that lacks scores, or of which none is wanted: a figure may show its training."""
    if not (root / run.artifact.record).is_file():
        return "open"
    return "ready to score" if wanted else "trained"


def path(
    name: Annotated[str, typer.Argument(help="a data set, backbone, variant, run, table or figure")],
    scale: ScaleOption = "",
) -> None:
    """Print where something lies, whether it is there yet or not: a folder, or the files of a table or figure."""
    plan = plan_of(scale)
    known = plan.registry
    if name in known.datasets or name in known.made:
        out(str(plan.data(plan.used(name)).folder))
    elif name in known.backbones:
        out(str(plan.backbone(plan.used(name)).folder))
    elif name in known.variants:
        for run in plan.runs_of(name):
            out(str(run.artifact.folder))
    elif name in known.views:
        for each in plan.view(name).outputs:
            out(str(each))
    elif "." in name:
        out(str(plan.run(name).artifact.folder))
    else:
        names = [*known.datasets, *known.made, *known.backbones, *known.variants, *known.views]
        raise unknown("name", name, names)


def relock(
    why: Annotated[str, typer.Option(help="why the edit cannot change results")],
    units: Annotated[list[str] | None, typer.Argument(help="engines or plug-ins; all changed ones if none")] = None,
) -> None:
    """Record that code of engines or plug-ins changed in a way that cannot change results (registry/code.yaml)."""
    from sembench.plan.code import relock as relocked

    for name, state in relocked(project_root(), why, units or []).items():
        say(f"{name}: {state}")
