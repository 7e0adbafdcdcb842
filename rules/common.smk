# The resolved plan of the chosen scale and what rules ask of it. No rules here.

import os
import shlex
import sys
from pathlib import Path

from sembench.core.errors import SembenchError
from sembench.registry import Plan
from sembench.registry.layout import (
    MODEL_FILES,
    PACKAGE_FILES,
    STATIC_FILES,
    backbone as backbone_folder,
    corpus as corpus_path,
    dataset_file,
    manifest,
    wordnet_root,
)
from sembench.registry.load import DERIVED
from sembench.core.canonical import canonical_json
from sembench.registry.stages import code_digest


def checked(function, *arguments):
    """Call a function; what it finds wrong is one sentence instead of a traceback through the workflow's frames."""
    try:
        return function(*arguments)
    except SembenchError as error:
        raise WorkflowError(str(error)) from None


PLAN = checked(Plan.from_config, config, Path(workflow.basedir))
checked(lambda: PLAN.all_runs)

# Where files may come from is no parameter: another mirror must not fetch the same bytes again.
os.environ.update(PLAN.environment())

# Costly rules are shell lines: they must find the interpreter that runs the workflow, and nothing on the hub.
shell.prefix(
    f"set -euo pipefail; export PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH "
    "HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false; "
)


wildcard_constraints:
    run=r"[a-z0-9_]+\.s\d+\.[0-9a-f]{8}",
    suite=r"[a-z0-9_]+",
    pin=r"[0-9a-f]{8}",
    figure=r"[a-z0-9_]+",


def backbone_files(key):
    """Files of an untouched encoder's model folder."""
    names = {"transformer": MODEL_FILES, "static": STATIC_FILES, "use": PACKAGE_FILES}[
        PLAN.backbone(key).kind
    ]
    return [backbone_folder(key) / name for name in names]


def dataset_files(key):
    """Fetched files of a data set and the record of where they came from."""
    return [
        *(dataset_file(key, file.name) for file in PLAN.dataset(key).files),
        manifest(key),
    ]


def model_folder(run):
    """Model folder of a run: its own if it was trained, else that of its backbone."""
    spec = PLAN.run(run)
    return PLAN.layout.run(run) if spec.trained else backbone_folder(spec.backbone.key)


def run_files(run):
    """Files of a trained run's model folder."""
    return [PLAN.layout.run(run) / name for name in (*MODEL_FILES, "run.json")]


def model_files(wildcards):
    """Files of the model that a scoring job loads."""
    spec = PLAN.run(wildcards.run)
    return run_files(spec.id) if spec.trained else backbone_files(spec.backbone.key)


def start_folder(run):
    """Model folder that a run's training starts from: its backbone's or that of another run."""
    spec = PLAN.run(run)
    return (
        model_folder(spec.start) if spec.start else backbone_folder(spec.backbone.key)
    )


def start_files(wildcards):
    """Files of the encoder that a run's training starts from."""
    spec = PLAN.run(wildcards.run)
    return run_files(spec.start) if spec.start else backbone_files(spec.backbone.key)


def corpus_of(wildcards):
    """What a run trains on."""
    return PLAN.data_path(PLAN.run(wildcards.run).data.key)


def story_of(wildcards):
    """The file by which a trained run counts as done."""
    return PLAN.layout.run(wildcards.run) / "run.json"


def scores_of(wildcards):
    """The file by which a scoring job counts as done."""
    return PLAN.layout.scores(wildcards.run, wildcards.suite, wildcards.pin)


def unless_done(files, done):
    """An input function whose files count as old where the job's output is there.

    Names pin content: fetching the same bytes again must neither train nor score again. They are ordinary inputs where
    the output is missing, since Snakemake 9 does not look for missing outputs behind ancient inputs that are remade.
    """

    def inputs(wildcards):
        found = files(wildcards)
        return ancient(found) if Path(done(wildcards)).is_file() else found

    return inputs


def dev_of(wildcards):
    """Pairs whose score selects a run's kept step."""
    return dataset_files(PLAN.run(wildcards.run).dev.key)


def recipe_of(wildcards):
    """Canonical JSON of a run."""
    return PLAN.run(wildcards.run).canonical


def readout_of(wildcards):
    """Read-out that a run is used with."""
    return PLAN.readout_of(PLAN.run(wildcards.run).variant, None)


def score_job(wildcards):
    """Canonical JSON of what a scoring job does."""
    if scores_of(wildcards) != PLAN.scores(wildcards.run, wildcards.suite):
        raise SembenchError(
            f"scores {wildcards.suite}.{wildcards.pin} are of another protocol or other data; "
            f"those of now are {PLAN.scores(wildcards.run, wildcards.suite)}"
        )
    return PLAN.score_params(wildcards.suite)


def suite_files(wildcards):
    """Data that a scoring job reads."""
    keys = {
        task.dataset
        for suite in PLAN.job_suites(wildcards.suite).values()
        for task in suite.tasks.values()
    }
    return [path for key in sorted(keys) for path in data_files(key)]


def data_files(key):
    """Files of a data set, fetched or made here."""
    return [PLAN.layout.analogy(DERIVED[key])] if key in DERIVED else dataset_files(key)


def rendering_code(*extra):
    """Digest of the code behind the cheap rules: an edit renders anew, touching or reformatting a file does not."""
    return code_digest(
        PLAN.root,
        ["sembench/reporting/*.py", "sembench/results/*.py", "report/*", *extra],
    )


def shown_config():
    """The plan's own keys of the configuration, for scripts that build the same plan again."""
    own = {
        "scale": PLAN.name,
        "seeds": PLAN.seeds,
        "partial": PLAN.partial,
        "papers": PLAN.papers or None,
    }
    return canonical_json({**own, **PLAN.analogy_config})


def rules_outputs(kind, paper=None):
    """All tables or figures of the chosen papers, or of one paper whatever is chosen."""
    if kind == "tables":
        known = (
            {**PLAN.registry.tables, **PLAN.makeable_frames()}
            if paper
            else {**PLAN.tables, **PLAN.frames}
        )
        return [
            PLAN.layout.table(k, s)
            for k, e in known.items()
            if paper in (None, e.paper)
            for s in TABLE_FORMATS
        ]
    known = PLAN.registry.figures if paper else PLAN.figures
    return [
        PLAN.layout.figure(k, s)
        for k, e in known.items()
        if paper in (None, e.paper)
        for s in FIGURE_FORMATS
    ]


TABLE_FORMATS = ("csv", "md", "tex", "html")
FIGURE_FORMATS = ("svg", "pdf", "png", "csv")
