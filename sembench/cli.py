"""The command line: score any encoder, and look at what is known, planned and fetched."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from rich.console import Console
from rich.table import Table as RichTable

from sembench.core.errors import SembenchError, explained, unknown
from sembench.registry import Plan, load_registry, project_root
from sembench.registry.config import mirror_folder
from sembench.registry.layout import DATA, backbone
from sembench.registry.load import read_yaml

app = typer.Typer(no_args_is_help=True, add_completion=False, help=__doc__, pretty_exceptions_enable=False)

ScaleOption = Annotated[str, typer.Option(help="smoke, demo, small or full; as in config.yaml if not given")]
MirrorOption = Annotated[Path | None, typer.Option(help="mirror folder; else SEMBENCH_MIRROR, else config.yaml")]


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201


def _out(text: str) -> None:
    print(text)  # noqa: T201


def _plan(scale: str = "", mirror: Path | None = None) -> Plan:
    """Return the plan of config.yaml with what the command line lays over it."""
    root = project_root()
    config = read_yaml(root / "config.yaml")
    if scale:
        config["scale"] = scale
    if mirror:
        config["mirror"] = str(mirror)
    plan = Plan.from_config(config, root=root)
    if mirror:
        plan.mirror = mirror_folder(mirror)
    return plan


def _show_table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    table = RichTable(*columns, box=None, header_style="bold", pad_edge=False)
    for row in rows:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 200).print(table)


@app.command()
def score(
    model: Annotated[str, typer.Argument(help="a model folder, a backbone, a run id, or a variant of the registry")],
    suite: Annotated[list[str], typer.Option(help="suite of registry/suites.yaml; may be repeated")] = ["sts"],  # noqa: B006
    readout: Annotated[
        list[str] | None, typer.Option(help="read-out; its own if none is given; may be repeated")
    ] = None,
    mirror: MirrorOption = None,
    scale: ScaleOption = "small",
    precision: Annotated[str, typer.Option(help="fp32, bf16 or auto")] = "fp32",
    as_json: Annotated[bool, typer.Option("--json", help="print score records, one JSON object a line")] = False,
) -> None:
    """Score an encoder by the papers' protocol. What is missing is fetched; other output goes to standard error."""
    # Heavy imports stay inside: listing and planning must answer at once.
    from sembench.scoring import score_model

    records = score_model(_plan(scale, mirror), model, suite, readout, precision, _say)
    if as_json:
        for record in records:
            _out(json.dumps(record))
        return
    shown = [record for record in records if record["aggregation"] != "subset"]
    fields = ("readout", "suite", "task", "split", "aggregation", "metric")
    rows = ([*(record[name] for name in fields), _percent(record), str(record["n"])] for record in shown)
    _show_table([*fields, "value", "n"], rows)


def _percent(record: dict[str, Any]) -> str:
    """Correlations are printed times 100, as papers do; alignment and uniformity as they are."""
    correlation = record["metric"] in ("spearman", "pearson")
    return f"{record['value'] * 100:.2f}" if correlation else f"{record['value']:.4f}"


@app.command("ls")
def list_known(
    what: Annotated[str, typer.Argument(help="variants, tables, figures, datasets, backbones, suites or scales")],
    scale: ScaleOption = "",
) -> None:
    """List what the registry knows, and whether the scale can build it."""
    plan = _plan(scale)
    known = plan.registry
    listings: dict[str, Callable[[], list[tuple[str, str, str]]]] = {
        "variants": lambda: [
            (key, known.variant(key).summary, _state(_variant_missing(plan, key))) for key in _concrete(plan)
        ],
        "tables": lambda: [(key, table.title, _rows_state(plan, key)) for key, table in known.tables.items()],
        "figures": lambda: [(key, figure.title, "") for key, figure in known.figures.items()],
        "datasets": lambda: [
            (key, entry.title, _state(plan.dataset_missing(key))) for key, entry in known.datasets.items()
        ],
        "backbones": lambda: [
            (key, entry.title, _state(plan.backbone_missing(key))) for key, entry in known.backbones.items()
        ],
        "suites": lambda: [(key, suite.title, ", ".join(suite.tasks)) for key, suite in plan.suites.items()],
        "scales": lambda: [(key, entry.title, f"seeds {entry.seeds}") for key, entry in known.scales.items()],
    }
    if what not in listings:
        raise unknown("listing", what, listings, "sembench ls")
    _show_table(("name", "what it is", f"scale {plan.name}"), listings[what]())


def _concrete(plan: Plan) -> list[str]:
    return [key for key in plan.registry.variants if not plan.registry.variant(key).abstract]


def _variant_missing(plan: Plan, key: str) -> str | None:
    return plan.run_missing(plan.specs_of(key)[0])


def _state(missing: str | None) -> str:
    return missing or "available"


def _rows_state(plan: Plan, key: str) -> str:
    rows = plan.rows(key)
    return f"{sum(not row.missing for row in rows)} of {len(rows)} rows can be built"


@app.command()
def show(variant: Annotated[str, typer.Argument(help="a variant of the registry")], scale: ScaleOption = "") -> None:
    """Show a variant's resolved recipe, its run ids, and the canonical JSON that the training rule takes."""
    plan = _plan(scale)
    entry = plan.variant(variant)
    specs = plan.specs_of(variant)
    resolved = {
        "variant": variant,
        "summary": entry.summary,
        "scale": plan.name,
        "backbone": entry.backbone,
        "data": entry.data,
        "readout": plan.readout_of(variant, None),
        "recipe": specs[0].recipe.model_dump(mode="json"),
        "runs": [spec.id for spec in specs],
        "missing": plan.run_missing(specs[0]),
    }
    _out(yaml.safe_dump(resolved, sort_keys=False, allow_unicode=True).rstrip())
    _out(f"canonical: {specs[0].canonical}")


@app.command("plan")
def show_plan(
    target: Annotated[str, typer.Argument(help="a table, a figure, or all")] = "all", scale: ScaleOption = ""
) -> None:
    """Show what a target needs at a scale: data sets, runs that are done or open, and rows that stay missing."""
    plan = _plan(scale)
    tables, figures = _targets(plan, target)
    rows = [row for key in tables for row in plan.rows(key)]
    points = [point for key in figures for point in plan.points(key)]
    runs = list(
        dict.fromkeys([run for row in rows for run in row.runs] + [run for point in points for run in point.runs])
    )
    _show_table(("run", "kind", "state"), ((run, _kind(plan, run), _run_state(plan, run)) for run in runs))
    missing = [(row.row.label, row.missing) for row in rows if row.missing]
    if missing:
        _out("")
        _show_table(("row that stays missing", "why"), missing)
    _out(f"\n{len(runs)} runs; build with: snakemake {target} --cores 2 --config scale={plan.name}")


def _targets(plan: Plan, target: str) -> tuple[list[str], list[str]]:
    tables, figures = list(plan.registry.tables), list(plan.registry.figures)
    if target == "all":
        return tables, figures
    if target not in tables + figures:
        raise unknown("target", target, [*tables, *figures, "all"])
    return [key for key in tables if key == target], [key for key in figures if key == target]


def _kind(plan: Plan, run: str) -> str:
    spec = plan.run(run)
    return f"train, {spec.recipe.max_steps or 'all'} steps" if spec.trained else "untouched"


def _run_state(plan: Plan, run: str) -> str:
    spec = plan.run(run)
    jobs = {plan.suite_job(key) for key in plan.suites}
    if all((plan.root / plan.scores(run, job)).is_file() for job in jobs if plan.job_suites(job)):
        return "scored"
    folder = plan.layout.run(run) if spec.trained else backbone(spec.backbone.key)
    return "ready to score" if (plan.root / folder / "encoder.json").is_file() else "open"


@app.command()
def datasets(scale: ScaleOption = "", mirror: MirrorOption = None) -> None:
    """List every file: whether it is here and verified, its licence, and where it can come from."""
    from sembench.sources import Site, verify_dataset

    plan = _plan(scale, mirror)
    site = Site(root=plan.root, data=plan.root / DATA, mirror=plan.mirror)
    rows = []
    for key, entry in plan.registry.datasets.items():
        origins = ", ".join(dict.fromkeys(source.kind for source in entry.sources))
        for state in verify_dataset(key, entry, site):
            here = "have" if state.present else "-"
            rows.append(
                (
                    key,
                    state.name,
                    here,
                    state.problem or state.verified if state.present else "-",
                    entry.licence,
                    origins,
                )
            )
    _show_table(("data set", "file", "here", "verified", "licence", "sources"), rows)


babelnet = typer.Typer(no_args_is_help=True, help="Work off the requests to BabelNet that the word pairs need.")
app.add_typer(babelnet, name="babelnet")
SourceOption = Annotated[
    str | None,
    typer.Option(
        help="senses of one source only, such as WN: far fewer requests; as in registry/analogy.yaml if not given"
    ),
]


def _source(asked: str | None) -> str | None:
    """Return the source asked for, or that of the data sets, so that what is crawled is what they need."""
    from sembench.analogy.rules import check_options

    return asked or check_options(load_registry(project_root()).analogy)[0].source


@babelnet.command("plan")
def babelnet_plan(source: SourceOption = None, scale: ScaleOption = "", mirror: MirrorOption = None) -> None:
    """Say how many requests remain; asks nothing."""
    from sembench.analogy.inventory.commands import plan_text
    from sembench.analogy.inventory.crawl import plan as crawl_plan

    _out(plan_text(crawl_plan(_babelnet_words(scale, mirror), _babelnet_cache(), source=_source(source))))


@babelnet.command()
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

    client = BabelNetClient(_babelnet_cache(), max_requests=budget)
    _out(crawl_text(work_off(_babelnet_words(scale, mirror), client, source=_source(source), say=_say)))


@babelnet.command()
def export(
    target: Annotated[Path, typer.Argument(help="file to write, .jsonl or .jsonl.gz")], source: SourceOption = None
) -> None:
    """Write all answers as a dump, from which the data sets can be built without BabelNet."""
    from sembench.analogy.inventory.dump import export_dump

    header = export_dump(_babelnet_cache(), target, source=_source(source))
    _out(f"{target}: {header['counts']}")


def _babelnet_cache() -> Any:
    from sembench.analogy.inventory.cache import AnswerCache
    from sembench.registry.layout import babelnet_cache

    return AnswerCache(project_root() / babelnet_cache())


def _babelnet_words(scale: str, mirror: Path | None) -> Any:
    """Return the words of BATS with the parts of speech that their filters admit; fetches BATS if need be."""
    from sembench.analogy.bats import read_bats, read_corrections
    from sembench.analogy.filters import lookups
    from sembench.analogy.rules import BuildOptions, load_rules
    from sembench.core.schema import parse
    from sembench.sources import Site, fetch_dataset

    plan = _plan(scale, mirror)
    key = plan.dataset_key("bats")
    if reason := plan.dataset_missing(key):
        raise SembenchError(f"the words cannot be had at scale {plan.name}: {reason}")
    site = Site(root=plan.root, data=plan.root / DATA, mirror=plan.mirror)
    fetch_dataset(key, plan.dataset(key), site, plan.scale.sources, say=_say)
    options = parse(BuildOptions, json.loads(plan.analogy_params)["build"], "registry/analogy.yaml, build")
    registry = plan.root / "registry"
    pairs = read_bats(site.folder(key), options.relations, read_corrections(registry / "corrections.tsv"))
    return lookups(pairs, load_rules(registry / "relations.yaml"), options)


@app.command()
def relock(
    stage: Annotated[str, typer.Argument(help="stage of registry/stages.yaml")],
    why: Annotated[str, typer.Option(help="why the edit cannot change results")],
) -> None:
    """Record that a costly stage's code changed in a way that cannot change results."""
    from sembench.registry.stages import relocked

    root = project_root()
    stages = load_registry(root).stages
    if stage not in stages:
        raise unknown("stage", stage, stages, "registry/stages.yaml")
    _out(f"{stage}: {relocked(root, stage, stages[stage], why)}")


@explained
def main() -> None:
    """Run the command line; a user's mistake is one sentence and exit code 2."""
    app()


if __name__ == "__main__":
    main()
