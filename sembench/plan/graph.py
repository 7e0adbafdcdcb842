"""The plan of one scale: its artefacts, its tables and figures, and what a command asks for."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sembench.plan.config as values
from sembench.core.artifact import Artifact, Kind
from sembench.core.canonical import canonical_json, digest
from sembench.core.errors import unknown
from sembench.plan.artefacts import Artefacts
from sembench.plan.layout import SHARD_ROWS, SHARDS
from sembench.plan.needs import Needs, ScoreKey
from sembench.registry import load_registry, project_root
from sembench.registry.load import ViewEntry, read_yaml


@dataclass(frozen=True)
class PlannedView:
    """A table or figure at one scale: what it needs, and the files that it becomes.

    Attributes:
        entry: as the registry has it.
        needs: what it is made from at this scale; what cannot be had is left out, and is a missing cell of it.
        outputs: its files.
        missing: why it cannot be rendered at all (a data set that it shows cannot be had), or an empty string.
        by_name: only a command that names it builds it: it says so, or nothing of it can be measured at this scale.
    """

    entry: ViewEntry
    needs: Needs
    outputs: tuple[Path, ...]
    missing: str = ""
    by_name: bool = False

    @property
    def key(self) -> str:
        """Its name."""
        return self.entry.key


class Plan(Artefacts):
    """What one scale builds."""

    @classmethod
    def from_config(cls, config: Mapping[str, Any], root: Path | None = None, mirror: Any = None) -> Plan:
        """Build the plan from config.yaml with what ``--config`` laid over it; a ``mirror`` given here comes first.

        Raises:
            SembenchError: an unknown key or a value that it cannot have.
        """
        registry = load_registry(root)
        values.check_keys(config, registry.settings)
        return cls(
            str(config.get("scale", "full")),
            root=registry.root,
            seeds=values.seeds(config.get("seeds")),
            mirror=values.mirror_folder(mirror, config.get("mirror")),
            partial=values.flag(config.get("partial"), "partial"),
            papers=values.papers(config.get("papers")),
            settings={key: values.home(config.get(key), key) for key in registry.settings},
        )

    @classmethod
    def of_job(cls) -> Plan:
        """Build the plan that the workflow handed to its jobs in the environment; by hand, that of config.yaml."""
        given = os.environ.get("SEMBENCH_CONFIG")
        return cls.from_config(values.from_json(given) if given else read_yaml(project_root() / "config.yaml"))

    def environment(self) -> dict[str, str]:
        """Return the variables from which ``of_job`` builds the same plan; the mirror is no part of any key."""
        chosen = {"scale": self.name, "seeds": self.seeds, "papers": self.papers or None, "partial": self.partial}
        mirror = {"SEMBENCH_MIRROR": str(self.mirror.resolve())} if self.mirror else {}
        return {"SEMBENCH_CONFIG": canonical_json({**chosen, **self.settings}), **mirror}

    def view(self, key: str) -> PlannedView:
        """Return a table or figure, or raise for an unknown one."""
        if key not in self.views:
            raise unknown("table or figure", key, self.views)
        return self.views[key]

    @functools.cached_property
    def views(self) -> dict[str, PlannedView]:
        """All tables and figures at this scale."""
        return {key: self._view(entry) for key, entry in self.registry.views.items()}

    def _view(self, entry: ViewEntry) -> PlannedView:
        plugin, config = entry.chosen.plugin, entry.chosen.config
        needs: Needs = plugin.needs(config, self)
        outputs = tuple(self.layout.view(entry.folder, entry.key, suffix) for suffix in plugin.suffixes)
        missing = next((reason for name in needs.data if (reason := self.data_missing(self.used(name)))), "")
        by_name = self.name in entry.by_name or (plugin.measures and needs == Needs())
        return PlannedView(entry, needs, outputs, missing, by_name)

    def chosen_views(self, paper: str | None = None) -> dict[str, PlannedView]:
        """Return what is built when no view is named, of the chosen papers or of one in any case: what has its data."""
        papers = [paper] if paper else self.papers
        return {
            key: view
            for key, view in self.views.items()
            if not (view.missing or view.by_name) and (not papers or view.entry.paper in papers)
        }

    def view_digest(self, key: str) -> str:
        """Return a digest of all that a view shows besides its code: parameters, paper values, units, keys, reasons."""
        view = self.view(key)
        plugin, config = view.entry.chosen.plugin, view.entry.chosen.config
        paper = [list(vars(value).values()) for value in self.registry.values_of.get(key, {}).values()]
        needs = [str(artifact.record) for artifact in self.artifacts(view.needs)]
        units = {name: unit.model_dump() for name, unit in self.registry.metrics.items()}
        return digest([view.entry.chosen.params, needs, paper, units, plugin.shows(config, self), self.scale.note])

    def artifacts(self, needs: Needs) -> list[Artifact]:
        """Return what a view needs as artefacts, each once."""
        found = [self.score(key) for key in needs.scores]
        found += [self.run(run).artifact for run in needs.runs]
        found += [self.data(self.used(name)) for name in needs.data]
        return list({artifact.record: artifact for artifact in found}.values())

    def batch(self, name: str) -> tuple[ScoreKey, ...]:
        """Return the scores that one command asks for: ``all``, a paper, or names of views joined by ``+``.

        Raises:
            SembenchError: a name is no view.
        """
        if name == "all":
            views = self.chosen_views()
        elif name in values.PAPERS:
            views = self.chosen_views(name)
        else:
            views = {key: self.view(key) for key in name.split("+")}
        return tuple(dict.fromkeys(key for view in views.values() for key in view.needs.scores))

    @functools.cache  # noqa: B019
    def shards(self, name: str) -> tuple[Artifact, ...]:
        """Return what jobs of their own find of a data set made here; none: it is made in one go.

        Their number is part of no key but their own: it decides nothing of the data set.
        """
        of = self.scale.shards if self.maker(name).plugin.sharded else 1
        made = self.made(name)
        if of == 1:
            return ()
        return tuple(
            Artifact(
                "shard",
                f"{name}, {number} of {of}",
                {**made.params, "shard": [number, of]},
                made.inputs,
                SHARDS / made.folder.name / f"{number}-of-{of}",
                (SHARD_ROWS,),
            )
            for number in range(1, of + 1)
        )

    def shard(self, name: str, place: str) -> Artifact:
        """Return a shard of a data set by its place among all, such as ``3-of-64``.

        Raises:
            SembenchError: an unknown data set, or no shard of it at this scale.
        """
        found = {shard.folder.name: shard for shard in self.shards(name)}
        if place not in found:
            raise unknown("shard", place, found, f"those of data set '{name}' at scale '{self.name}'")
        return found[place]

    def unscored(self, keys: Iterable[ScoreKey]) -> list[ScoreKey]:
        """Return the scores that are not there yet."""
        return [key for key in keys if not (self.root / self.score(key).record).is_file()]

    def ancestors(self, artifacts: Iterable[Artifact]) -> Iterator[Artifact]:
        """Yield artefacts and everything that they are made from, each once."""
        seen: set[Path] = set()
        waiting = list(artifacts)
        while waiting:
            artifact = waiting.pop()
            if artifact.record not in seen:
                seen.add(artifact.record)
                yield artifact
                waiting += artifact.inputs

    def wanted(self) -> dict[Kind, list[Artifact]]:
        """Return all that the chosen views need, by kind and in order of names."""
        needed = [artifact for view in self.chosen_views().values() for artifact in self.artifacts(view.needs)]
        found: dict[Kind, list[Artifact]] = {}
        for artifact in sorted(self.ancestors(needed), key=lambda each: each.record):
            found.setdefault(artifact.kind, []).append(artifact)
        return found
