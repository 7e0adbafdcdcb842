# One rule per table and figure, named as its file in registry/, so that `snakemake simcse_table_5` builds just that one.
# Inputs: what the view declares that it needs. Outputs: results/<scale>/{tables,figures}/<id>.*, and a stamp whose name
# holds the digest of spec and code: nothing else has to be remembered to know that a view is up to date.


for key, view in PLAN.views.items():

    rule:
        name:
            key
        input:
            scores=lambda wildcards, key=key: scores_for(key),
            others=JOBS.other_inputs(key),
        output:
            view.outputs,
            stamp=JOBS.stamp(key),
        log:
            str(PLAN.layout.base / f"logs/{key}.log"),
        benchmark:
            str(PLAN.layout.base / f"benchmarks/{key}.jsonl")
        localrule: True
        threads: 1
        resources:
            mem_mb=2000,
            runtime=10,
        params:
            key=key,
        message:
            f"rendering {key}"
        shell:
            "python workflow_scripts/render_view.py {params.key:q} --stamp {output.stamp:q} 2>&1 | tee -i {log:q}"


rule tables:
    """All tables of the scale."""
    input:
        JOBS.rendered(folder="tables"),
    message:
        "all tables are there"


rule figures:
    """All figures of the scale."""
    input:
        JOBS.rendered(folder="figures"),
    message:
        "all figures are there"


rule simcse:
    """Every table and figure of the SimCSE paper that is in the registry."""
    input:
        JOBS.rendered(paper="simcse"),
    message:
        "all tables and figures of SimCSE are there"


rule analogy:
    """Every table and figure of the analogy paper that is in the registry, and the data sets behind them."""
    input:
        JOBS.rendered(paper="analogy"),
        JOBS.published_files(shown=False),
    message:
        "all tables, figures and data sets of the analogy paper are there"


rule beyond:
    """All tables and figures that go past the two papers."""
    input:
        JOBS.rendered(paper="beyond"),
    message:
        "all tables and figures beyond the papers are there"
