"""Commands on BabelNet: work off the requests that the word pairs of BATS need, and export the answers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sembench.cli.common import MirrorOption, ScaleOption, out, plan_of
from sembench.core.errors import SembenchError
from sembench.core.progress import say
from sembench.plan import Plan
from sembench.registry import project_root

app = typer.Typer(no_args_is_help=True, help="Work off the requests to BabelNet that the word pairs need.")
SourceOption = Annotated[
    str | None,
    typer.Option(
        help="senses of one source only, such as WN, which asks far less; as in registry/made.yaml if not given"
    ),
]
# The data set whose words and senses are asked for.
PAIRS = "dsbats_sn"


@app.command("plan")
def babelnet_plan(source: SourceOption = None, scale: ScaleOption = "", mirror: MirrorOption = None) -> None:
    """Say how many requests remain; asks nothing."""
    from sembench.analogy.inventory.commands import plan_text
    from sembench.analogy.inventory.crawl import plan as crawl_plan

    plan = plan_of(scale, mirror)
    out(plan_text(crawl_plan(_words(plan), _cache(), source=_source(plan, source))))


@app.command()
def crawl(
    budget: Annotated[
        int | None, typer.Option(min=1, help="most requests of this call; none: until the daily limit")
    ] = None,
    source: SourceOption = None,
    scale: ScaleOption = "",
    mirror: MirrorOption = None,
) -> None:
    """Ask what is not known yet, never anything twice; stops at the limit and goes on at the next call."""
    from sembench.analogy.inventory.babelnet import BabelNetClient
    from sembench.analogy.inventory.commands import crawl_text
    from sembench.analogy.inventory.crawl import crawl as work_off

    plan = plan_of(scale, mirror)
    client = BabelNetClient(_cache(), max_requests=budget)
    out(crawl_text(work_off(_words(plan), client, source=_source(plan, source), say=say)))


@app.command()
def export(
    target: Annotated[Path, typer.Argument(help="file to write, .jsonl or .jsonl.gz")],
    source: SourceOption = None,
    scale: ScaleOption = "",
) -> None:
    """Write all answers as a dump, from which the data sets can be built without BabelNet."""
    from sembench.analogy.inventory.dump import export_dump

    header = export_dump(_cache(), target, source=_source(plan_of(scale), source))
    out(f"{target}: {header['counts']}")


def _source(plan: Plan, asked: str | None) -> str | None:
    """Return the source asked for, or that of the data set, so that what is crawled is what it needs."""
    config: Any = plan.maker(PAIRS).config
    return asked or config.source


def _cache() -> Any:
    from sembench.analogy.inventory.cache import FOLDER, AnswerCache

    return AnswerCache(project_root() / FOLDER)


def _words(plan: Plan) -> Any:
    """Return the words of BATS with the parts of speech that their filters admit; fetches BATS if need be."""
    from sembench.analogy.bats import read_bats, read_corrections
    from sembench.analogy.filters import lookups
    from sembench.analogy.rules import load_rules
    from sembench.sources import fetch_planned

    name = plan.used(plan.registry.made[PAIRS].inputs["bats"])
    if reason := plan.data_missing(name):
        raise SembenchError(f"the words cannot be had at scale {plan.name}: {reason}")
    fetch_planned(plan, name, say)
    options: Any = plan.maker(PAIRS).config
    registry = plan.root / "registry"
    pairs = read_bats(
        plan.root / plan.dataset(name).folder, options.relations, read_corrections(registry / "corrections.tsv")
    )
    return lookups(pairs, load_rules(registry / "relations.yaml"), options)
