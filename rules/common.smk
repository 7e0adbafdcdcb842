# The resolved plan of the chosen scale, and the few questions that rules ask of it. No rules here. What is decided, is
# decided by typed code in sembench/plan (Plan: what there is; Jobs: paths of inputs, outputs and stamps).

import os
from pathlib import Path

from sembench.core.cards import visible
from sembench.core.errors import sentence_of
from sembench.plan import Plan
from sembench.plan.jobs import Jobs
from sembench.plan.session import begin


def checked(function, *arguments):
    """Call a function; what it finds wrong is one sentence instead of a traceback through the workflow's frames."""
    try:
        return function(*arguments)
    except Exception as error:
        if not (sentence := sentence_of(error)):
            raise
        raise WorkflowError(sentence) from None


PLAN = checked(Plan.from_config, config, Path(workflow.basedir))
JOBS = checked(Jobs, PLAN)

# Jobs are shell lines that find the same plan and interpreter by their environment. No prefix of the shell and no `script:`
# says so: Snakemake writes both into a command line where a blank or a brace of the project's path breaks it.
os.environ.update(JOBS.environment)


# As many jobs as there are GPUs on this machine use them at a time, whatever the number of cores; `--resources gpu=N` says
# otherwise. Without a GPU jobs ask for none and share the cores. Where a cluster runs the jobs, it knows its own.
GPUS = visible() if workflow.local_exec else None
if GPUS and "gpu" not in workflow.global_resources:
    workflow.register_resource("gpu", GPUS)


def gpus(number):
    """What a job that can use so many GPUs asks for."""
    return 0 if GPUS == 0 else number


wildcard_constraints:
    run=r"[a-z0-9_]+\.s\d+\.[0-9a-f]{8}",
    batch=r"[a-z0-9_+]+",
    shard=r"\d+-of-\d+",


def unless_made(files, artifact):
    """Files that count as old where the artefact is there: its name pins their content, whatever their time stamps.

    They are ordinary inputs where it is missing, since Snakemake 9 does not look for missing outputs behind ancient
    inputs that are made anew.
    """
    return ancient(files) if (PLAN.root / artifact.record).is_file() else files


def shard_inputs(name):
    """Input function of the shards of a data set."""
    return lambda wildcards: checked(
        lambda: unless_made(
            JOBS.made_inputs(PLAN.shard(name, wildcards.shard)),
            PLAN.shard(name, wildcards.shard),
        )
    )


def scores_for(view):
    """Score files of a view; for an encoder of which some are missing, the file that its scoring job ends with."""
    targets = workflow.dag_settings.targets if workflow.dag_settings else ()
    return checked(lambda: JOBS.scores(view, JOBS.batch_of(view, targets)))
