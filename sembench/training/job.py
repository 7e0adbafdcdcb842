"""Training one planned run: inputs checked, the model folder written, its record last."""

from __future__ import annotations

import os
import sys

from sembench.core.artifact import alone, content_of, opened, seal
from sembench.core.canonical import digest
from sembench.core.errors import SembenchError
from sembench.data.frames import read_examples
from sembench.data.readers.pairs import read_pairs
from sembench.encoders.devices import lent_environment, pick_device, use_threads
from sembench.encoders.transformer import read_entry
from sembench.plan import Plan, Run
from sembench.training import ranks
from sembench.training.checkpoint import Checkpoint
from sembench.training.launch import launch
from sembench.training.save import save_run
from sembench.training.trainer import train

DEV_SPLIT = "dev"
SCRIPT = "workflow_scripts/train.py"


def train_run(plan: Plan, run: Run) -> None:
    """Train a run from where its recipe begins and write its model folder, unless it is there.

    A training outlives a workflow that is killed: whoever trains the same run meanwhile waits for it, and goes on from
    its state if it was stopped.

    Raises:
        SembenchError: there is nothing to train, an input was changed, or training fails.
        Interrupted: a signal ended the run; its state is kept, and the same call goes on.
    """
    if not run.trained:
        raise SembenchError(f"run '{run.id}' has nothing to train; its variant has no recipe")
    if ranks.started():  # Whoever started the processes sees to it that nobody else makes the same.
        with ranks.joined(pick_device()):
            _train(plan, run)
        return
    with alone(plan.root, run.artifact) as is_open:
        if is_open and run.training and run.training.recipe.processes > 1:
            _train_together(plan, run, run.training.recipe.processes)
        elif is_open:
            _train(plan, run)


def _train_together(plan: Plan, run: Run, processes: int) -> None:
    """Train a run in several processes, each on a GPU of its own where there are GPUs.

    Raises:
        SystemExit: with the exit code of the processes, if it is not 0.
    """
    environment = {**os.environ, **plan.environment(), **lent_environment(processes)}
    if code := launch([sys.executable, str(plan.root / SCRIPT), run.id], processes, environment):
        raise SystemExit(code)


def _train(plan: Plan, run: Run) -> None:
    assert run.training and run.begin and run.data and run.dev
    use_threads(plan.scale.threads)
    recipe, objective = run.training.recipe, run.training.objective
    start = opened(plan.root, run.begin)
    maker = plan.maker(run.data.name).plugin
    examples = read_examples(opened(plan.root, run.data) / maker.examples, objective.plugin.columns)
    dev = read_pairs(plan.entry(run.dev.name), opened(plan.root, run.dev), DEV_SPLIT)
    content = digest([content_of(plan.root, each) for each in run.artifact.inputs], 16)
    checkpoint = Checkpoint(plan.root / plan.layout.base / "checkpoints", run.id, content=content)
    trained = train(recipe, objective, run.seed, start, examples, dev, checkpoint, run.id)
    if not ranks.is_first():
        return
    facts = {
        "variant": run.variant,
        "seed": run.seed,
        "recipe": run.training.params,
        "start": run.begin.folder.name,
        "data": run.data.name,
        "dev": run.dev.name,
        "dev_rows": len(dev),
    }
    save_run(
        trained,
        start,
        plan.root / run.artifact.folder,
        name=run.id,
        title=f"{read_entry(start).get('title', start.name)}, {run.variant}, seed {run.seed}",
        readout=objective.plugin.default_readout(objective.config),
        facts=facts,
    )
    seal(plan.root, run.artifact, {"steps": trained.state.step, "precision": trained.precision})
    checkpoint.remove()
