"""Making a data set of the registry: its inputs checked, its record written last."""

from __future__ import annotations

import itertools
import shutil
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from sembench.core.artifact import Artifact, alone, opened, read_record, seal
from sembench.core.errors import SembenchError
from sembench.core.frames import iter_rows, write_rows
from sembench.data.maker import Say
from sembench.data.shards import Shard
from sembench.plan import Plan
from sembench.plan.layout import SHARD_ROWS, SHARDS


def make_dataset(plan: Plan, name: str, say: Say) -> None:
    """Make a data set of ``registry/made.yaml`` at the plan's scale, unless it is there.

    Processes that want the same one at once make it once. Of one that is found in shards, those that are not there yet
    are made first. They are removed in the end, as is what a killed job left of others; those that were there before
    are removed by the workflow that made them.

    Raises:
        SembenchError: an input is not there or was changed, or the maker finds something wrong in it.
    """
    artifact, maker = plan.made(name), plan.maker(name)
    target = plan.root / artifact.folder
    with alone(plan.root, artifact) as is_open:
        if not is_open:
            return
        shards = plan.shards(name)
        others = {shard.folder for shard in shards if (plan.root / shard.record).is_file()}
        for shard in shards:
            make_shard(plan, name, shard, say)
        inputs = _inputs(plan, name)
        if maker.plugin.encoders:
            from sembench.encoders.devices import use_threads

            use_threads(plan.scale.threads)
        target.mkdir(parents=True, exist_ok=True)
        if shards:
            facts = maker.plugin.join(maker.config, inputs, *_read(plan.root, shards), target, say)
        else:
            facts = maker.plugin.make(maker.config, inputs, target, plan.root, say)
        seal(plan.root, artifact, facts)
        for folder in (plan.root / SHARDS / artifact.folder.name).glob("[0-9]*-of-*"):
            if folder.relative_to(plan.root) not in others:
                shutil.rmtree(folder, ignore_errors=True)


def make_shard(plan: Plan, name: str, artifact: Artifact, say: Say) -> None:
    """Make one of ``plan.shards(name)``, unless it is there.

    Raises:
        SembenchError: as ``make_dataset``; the sentence says in which shard.
    """
    maker, shard = plan.maker(name), Shard(*artifact.params["shard"])
    with alone(plan.root, artifact) as is_open:
        if not is_open:
            return
        counts: Counter[str] = Counter()
        try:
            rows = maker.plugin.rows(maker.config, _inputs(plan, name), shard, counts, say)
            path = plan.root / artifact.folder / SHARD_ROWS
            written = write_rows(rows, path, maker.plugin.columns, empty=True)
        except SembenchError as error:
            raise SembenchError(f"{shard}: {error}") from None
        seal(plan.root, artifact, counts)
        say(f"{shard}: {written} rows")


def _inputs(plan: Plan, name: str) -> dict[str, Path]:
    return {role: opened(plan.root, each) for role, each in zip(plan.roles(name), plan.made(name).inputs, strict=True)}


def _read(root: Path, shards: Iterable[Artifact]) -> tuple[Iterable[tuple[str, ...]], Counter[str]]:
    """Return the rows of all shards and the sums of what they counted."""
    paths = [opened(root, shard) / SHARD_ROWS for shard in shards]
    counts: Counter[str] = Counter()
    for shard in shards:
        counts.update((read_record(root, shard) or {})["facts"])
    return itertools.chain.from_iterable(map(iter_rows, paths)), counts
