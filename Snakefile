# Rebuilds the papers' tables and figures. Targets first, then options:
#   snakemake simcse_table_5 --cores 2 --config scale=demo
# docs/guide.md tells what each target needs; rules/ holds one file per stage.

from snakemake.utils import min_version

min_version("9.20")


configfile: "config.yaml"


# Used only with `--sdm apptainer`; docs/guide.md tells how to build it from Containerfile.
container: "sembench.sif"


include: "rules/common.smk"


# The first rule is what a bare `snakemake` builds.
rule all:
    input:
        # Asked for by name: where Snakemake's metadata are lost, a table alone would not notice that a run is new.
        PLAN.all_scores(),
        PLAN.layout.report,
        rules_outputs("tables"),
        rules_outputs("figures"),


include: "rules/sources.smk"
include: "rules/corpora.smk"
include: "rules/analogy.smk"
include: "rules/train.smk"
include: "rules/score.smk"
include: "rules/collect.smk"
include: "rules/tables.smk"
include: "rules/figures.smk"
include: "rules/report.smk"


onstart:
    print(f"scale {PLAN.name}: {PLAN.scale.title}")


onsuccess:
    if (PLAN.root / PLAN.layout.report).is_file():
        print(f"report: {PLAN.root / PLAN.layout.report}")
