"""Makes what a plan of scale smoke needs in one process, with the functions that its jobs call.

Loading torch and transformers takes seconds and a training of scale smoke a tenth of one, so a method more costs the tests
little. Snakemake finds the artefacts by their names, and makes those of ``LEFT`` and all that needs them: at least one by
each rule.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from sembench.core.artifact import Artifact
from sembench.core.files import stamped
from sembench.evaluation.job import ensure, score_run
from sembench.plan import Plan
from sembench.plan.graph import PlannedView
from sembench.plan.jobs import Jobs
from sembench.reporting.render import write_view
from sembench.training.job import train_run

LEFT = ("smoke_trec", "dsbats_definitions", "smoke_glove")


def build(plan: Plan, views: Iterable[PlannedView], left: Iterable[str] = ()) -> None:
    """Make everything behind the views and render them, but for the artefacts named ``left`` and what needs them."""
    chosen = list(views)
    needed = [artifact for view in chosen for artifact in plan.artifacts(view.needs)]
    for artifact in sorted(plan.ancestors(needed), key=lambda each: len(list(plan.ancestors([each])))):
        if not _needs(plan, [artifact], left):
            _make(plan, artifact)
    keys = [key for view in chosen for key in view.needs.scores if not _needs(plan, [plan.score(key)], left)]
    for run in dict.fromkeys(key.run for key in keys):
        score_run(plan, plan.run(run), [key for key in keys if key.run == run])
    for view in chosen:
        if not _needs(plan, plan.artifacts(view.needs), left):
            write_view(plan, view.key)
            stamped(plan.root / Jobs(plan).stamp(view.key))


def _needs(plan: Plan, artifacts: Iterable[Artifact], names: Iterable[str]) -> bool:
    return not {each.name for each in plan.ancestors(artifacts)}.isdisjoint(names)


def _make(plan: Plan, artifact: Artifact) -> None:
    if artifact.kind in ("dataset", "made", "backbone"):
        ensure(plan, artifact, _say)
    elif artifact.kind == "run":
        train_run(plan, plan.run(artifact.folder.name))


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    smoke = Plan("smoke")
    build(smoke, smoke.chosen_views().values(), LEFT)
