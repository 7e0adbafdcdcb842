"""What the rules of the workflow ask of the plan: inputs, outputs and stamps of jobs, as plain paths."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from sembench.core.artifact import RECORD, Artifact, check_origins
from sembench.core.canonical import digest
from sembench.core.errors import SembenchError
from sembench.plan.code import views_digest
from sembench.plan.config import PAPERS
from sembench.plan.graph import Plan
from sembench.plan.layout import RUN_FILES, SHARD_ROWS, SHARDS
from sembench.plan.needs import ScoreKey

# A batch is called after the views that a command names, up to so many; with more of them it is ``all``, since its name
# becomes a file name.
_NAMED = 4
# Folders below results/<scale> that the workflow fills itself.
_OWN_FOLDERS = ("runs", "scores", "fits", "tables", "figures", "collected", "report", "logs", "benchmarks")
# Folder of the stamps: empty files whose names hold a digest of what their neighbours were made from.
STAMPS = ".stamps"


@dataclass(frozen=True)
class Published:
    """Files of a data set under plain names (file -> published path), and a stamp whose name holds the key."""

    files: dict[Path, Path]
    stamp: Path

    @property
    def outputs(self) -> list[Path]:
        """The published paths and the stamp."""
        return [*self.files.values(), self.stamp]


class Jobs:
    """Paths of the jobs of one plan."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        # What is wrong in a view or in the parameters of a data set is found before any rule is made.
        self.published  # noqa: B018
        self.rendered()

    @property
    def environment(self) -> dict[str, str]:
        """Variables of all jobs: their plan, the interpreter that runs the workflow, and nothing from the hub.

        Run by hand without them, a job's command takes config.yaml as it is.
        """
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        return {**self.plan.environment(), "PATH": path, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}

    @property
    def datasets(self) -> list[Artifact]:
        """All fetched data sets of the registry; a rule each, whether or not this scale can have them."""
        return [self.plan.dataset(name) for name in self.plan.registry.datasets]

    @functools.cached_property
    def made(self) -> list[Artifact]:
        """All data sets that could be made at this scale."""
        return [self.plan.made(name) for name in self.plan.registry.made if not self.plan.data_missing(name)]

    def made_inputs(self, artifact: Artifact) -> list[Path]:
        """Return the files that a data set, or a shard of one, is made from; shards are needed only until it is."""
        is_there = artifact.kind == "shard" or (self.plan.root / artifact.record).is_file()
        shards = () if is_there else self.plan.shards(artifact.name)
        return [path for each in (*artifact.inputs, *shards) for path in each.paths]

    def shard_files(self, artifact: Artifact) -> list[str]:
        """Return the files of a shard of a data set, with the wildcard ``shard``."""
        return [str(SHARDS / artifact.folder.name / "{shard}" / name) for name in (SHARD_ROWS, RECORD)]

    @property
    def backbones(self) -> list[Artifact]:
        """All backbones of the registry; a rule each."""
        return [self.plan.backbone(name) for name in self.plan.registry.backbones]

    @functools.cached_property
    def published(self) -> dict[str, Published]:
        """Data sets whose files are also copied to where people find them (``publish`` in made.yaml), by name."""
        found = {artifact.name: self._published(artifact) for artifact in self.made if self._folder(artifact)}
        owners: dict[Path, str] = {}
        for name, each in found.items():
            for path in each.files.values():
                if owners.setdefault(path, name) != name or path.parts[2] in _OWN_FOLDERS:
                    raise SembenchError(
                        f"registry/made.yaml, data set '{name}': {path} is written by something else as well; "
                        "give another folder under 'publish'"
                    )
        return found

    def _folder(self, artifact: Artifact) -> str:
        return self.plan.registry.made[artifact.name].publish or ""

    def _published(self, artifact: Artifact) -> Published:
        place = functools.partial(self.plan.layout.published, self._folder(artifact))
        files = {artifact.folder / file: place(_plain(artifact, file)) for file in artifact.files}
        return Published(files, place(f"{STAMPS}/{artifact.name}.{artifact.key}"))

    def published_files(self, shown: bool = True) -> list[Path]:
        """Return the published files that the chosen views are made from, or all of them."""
        needed = {artifact.name for artifact in self.plan.wanted().get("made", [])}
        chosen = [each for name, each in self.published.items() if name in needed or not shown]
        return [path for each in chosen for path in each.outputs]

    # -------------------------------------------------------------------------------------------------- training

    @property
    def run_files(self) -> list[str]:
        """Files of a trained run's model folder, with the wildcard ``run``."""
        return [str(self.plan.layout.runs / "{run}" / name) for name in (*RUN_FILES, RECORD)]

    def training_inputs(self, run_id: str) -> list[Path]:
        """Return the files that a training reads."""
        return [path for each in self.plan.run(run_id).artifact.inputs for path in each.paths]

    def processes(self, run_id: str) -> int:
        """Return the number of processes that train a run together."""
        training = self.plan.run(run_id).training
        return training.recipe.processes if training else 1

    # --------------------------------------------------------------------------------------------------- scoring

    def batch_of(self, view: str | None, targets: Iterable[str]) -> str:
        """Return the name of the batch that scoring jobs for a view belong to.

        An encoder is scored by one job a batch, in one pass over its sentences, and a batch holds what the command asks
        for, not more; so the views of one command must agree on a batch.

        Args:
            view: the view whose scores are wanted; none: all that the chosen views show.
            targets: what the user named on the command line; none: everything. A file counts by its name.
        """
        named = list(dict.fromkeys(Path(str(target)).name.split(".")[0] for target in targets))
        if len(named) == 1 and named[0] in PAPERS and self._holds(named[0], view):
            return named[0]
        known = [name for name in named if name in self.plan.views]
        if known and len(known) == len(named) <= _NAMED and view in known:
            return "+".join(sorted(known))
        return "all" if self._holds("all", view) else str(view)

    def _holds(self, batch: str, view: str | None) -> bool:
        views = self.plan.chosen_views(None if batch == "all" else batch)
        return view in views or (view is None and batch == "all")

    def scores(self, view: str | None, batch: str) -> list[Path]:
        """Return the records of scores that are there, and the ``done`` file of each scoring job that is needed.

        With ``partial`` there are no jobs: views show what is not there as failed.

        Raises:
            SembenchError: the view shows a data set that the scale cannot have, or a score was made from other content
                than lies there now, which no job would notice where the view is rendered already.
        """
        if view and (reason := self.plan.view(view).missing):
            raise SembenchError(f"'{view}' cannot be built at scale {self.plan.name}: {reason}")
        keys = self.plan.view(view).needs.scores if view else self.plan.batch("all")
        missing = set(self.plan.unscored(keys))
        made = [self.plan.score(key) for key in keys if key not in missing]
        check_origins(self.plan.root, made)
        there = [artifact.record for artifact in made]
        if self.plan.partial:
            return there
        if missing:
            # Snakemake takes the temporary end of a scoring job for done where what comes after it is there.
            (self.plan.root / self.stamp(view or "collect_scores")).unlink(missing_ok=True)
        return there + [self._open(run, batch) for run in dict.fromkeys(key.run for key in missing)]

    def _open(self, run: str, batch: str) -> Path:
        """Return the end of a job that is still to be done; one left over from a killed workflow says nothing."""
        path = self.plan.layout.scoring(run, batch)
        (self.plan.root / path).unlink(missing_ok=True)
        return path

    def scoring_inputs(self, run_id: str, batch: str) -> list[Path]:
        """Return the files that a scoring job reads: the model, and the data of what is missing."""
        keys = [key for key in self.plan.batch(batch) if key.run == run_id]
        return list(dict.fromkeys(self._read(self.plan.unscored(keys) or keys)))

    def _read(self, keys: Iterable[ScoreKey]) -> Iterator[Path]:
        for key in keys:
            for artifact in self.plan.score(key).inputs:
                # A fit is made by the scoring job itself, from data that it must read.
                for each in artifact.inputs if artifact.kind == "fit" else (artifact,):
                    yield from each.paths

    # ----------------------------------------------------------------------------------------------------- views

    def other_inputs(self, view: str) -> list[Path]:
        """Return what a view is made from besides scores: records of runs, and files of data sets."""
        needs = self.plan.view(view).needs
        data = [path for name in needs.data for path in self.plan.data(self.plan.used(name)).paths]
        runs = [self.plan.run(run).artifact.record for run in needs.runs]
        return data + ([path for path in runs if (self.plan.root / path).is_file()] if self.plan.partial else runs)

    def stamp(self, name: str) -> Path:
        """Return the stamp of a view, of ``report`` or of ``collect_scores``.

        Its name holds a digest of all that the output was made from; other parameters or code are another name, so that
        Snakemake misses it and renders anew.
        """
        plan = self.plan
        if name in plan.views:
            made_from = [plan.view_digest(name)]
            folder = plan.view(name).entry.folder
        else:
            made_from = [plan.view_digest(key) for key in plan.chosen_views()]
            folder = plan.layout.collected.parent.name if name == "collect_scores" else plan.layout.report.parent.name
        return plan.layout.base / folder / STAMPS / f"{name}.{digest([made_from, views_digest(plan.root)])}"

    def rendered(self, folder: str | None = None, paper: str | None = None) -> list[Path]:
        """Return the files of tables or figures, stamps included: of the chosen papers, or of one paper in any case."""
        views = self.plan.chosen_views(paper).values()
        shown = [view for view in views if folder in (None, view.entry.folder)]
        return [path for view in shown for path in (*view.outputs, self.stamp(view.key))]


def _plain(artifact: Artifact, file: str) -> str:
    """Name a published file after its data set where the maker calls it by what it holds."""
    return file if len(artifact.files) > 1 or artifact.name in file else f"{artifact.name}{Path(file).suffix}"
