"""Commands on fetched data."""

from __future__ import annotations

import typer

from sembench.cli.common import MirrorOption, ScaleOption, plan_of, show_table


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(datasets)


def datasets(scale: ScaleOption = "", mirror: MirrorOption = None) -> None:
    """List every file: whether it is here and verified, its licence, and where it can come from."""
    from sembench.sources import Site, verify_dataset

    plan = plan_of(scale, mirror)
    site = Site.of(plan)
    rows = []
    for key, entry in plan.registry.datasets.items():
        origins = ", ".join(dict.fromkeys(source.kind for source in entry.sources))
        for state in verify_dataset(plan.dataset(key), entry, site):
            here = "have" if state.present else "-"
            verified = state.problem or state.verified if state.present else "-"
            rows.append((key, state.name, here, verified, entry.licence, origins))
    show_table(("data set", "file", "here", "verified", "licence", "sources"), rows)
