# Rebuilds the papers' tables and figures. Targets first, then options:
#   snakemake simcse_table_5 --cores 2 --config scale=demo
# docs/guide.md says what each target needs; rules/ holds one file per stage.

from pathlib import Path

from snakemake.utils import min_version

min_version("9.20")

if not Path.cwd().samefile(workflow.basedir):
    raise WorkflowError(
        f"the workflow runs in the project's folder alone; first: cd {workflow.basedir}"
    )


configfile: "config.yaml"


# Used only with `--sdm apptainer`; docs/guide.md says how to build it from Containerfile.
container: "sembench.sif"


include: "rules/common.smk"


# The first rule is what a bare `snakemake` builds.
rule all:
    input:
        PLAN.layout.report,
        JOBS.stamp("report"),
        JOBS.rendered(),
        JOBS.published_files(),
    # A group without a message would print the list of all that it needs.
    message:
        "all tables, figures, published data sets and the page are there"


include: "rules/sources.smk"
include: "rules/data.smk"
include: "rules/backbones.smk"
include: "rules/train.smk"
include: "rules/score.smk"
include: "rules/views.smk"
include: "rules/report.smk"


onstart:
    checked(begin, PLAN)
    print(f"scale {PLAN.name}: {PLAN.scale.title}")


onsuccess:
    if (PLAN.root / PLAN.layout.report).is_file():
        print(f"report: {PLAN.root / PLAN.layout.report}")
