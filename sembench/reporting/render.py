"""Rendering tables and figures: reading the scores that a view needs, and writing its files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sembench.core.files import atomic_path

if TYPE_CHECKING:
    import pandas as pd

    from sembench.plan import Needs, Plan
    from sembench.reporting.view import View


def scores_of(plan: Plan, needs: Needs) -> pd.DataFrame:
    """Return the score records that a view needs; with ``plan.partial`` those that are there.

    Raises:
        SembenchError: a score file is absent, broken, or was made from other content than its inputs hold now.
    """
    from sembench.results.store import read_scores

    artifacts = [plan.score(key) for key in needs.scores]
    if plan.partial:
        artifacts = [artifact for artifact in artifacts if (plan.root / artifact.record).is_file()]
    return read_scores(plan.root, artifacts)


def view_of(plan: Plan, key: str, scores: pd.DataFrame) -> View[Any]:
    """Return a planned view with the score records that it may look into."""
    chosen = plan.view(key).entry.chosen
    made: View[Any] = chosen.plugin(chosen.config, plan, scores, key)
    return made


def write_view(plan: Plan, key: str, scores: pd.DataFrame | None = None) -> list[Path]:
    """Render a view and write its files atomically below the plan's root; return their paths.

    Raises:
        SembenchError: what the view is made from is absent or broken, or scores were made from different data.
    """
    planned = plan.view(key)
    content = view_of(plan, key, scores_of(plan, planned.needs) if scores is None else scores).render()
    paths = [plan.root / path for path in planned.outputs]
    for path in paths:
        made = content[path.suffix[1:]]
        with atomic_path(path) as temporary:
            temporary.write_bytes(made.encode() if isinstance(made, str) else made)
    return paths
