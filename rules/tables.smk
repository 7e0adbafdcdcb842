# One rule per table of registry/tables, named as the table, so that `snakemake simcse_table_5` builds just that one.
# Inputs: score records. Outputs: results/<scale>/tables/<id>.{csv,md,tex,html}.


for key in PLAN.registry.tables:

    rule:
        name:
            key
        input:
            scores=PLAN.table_scores(key),
        output:
            [PLAN.layout.table(key, suffix) for suffix in TABLE_FORMATS],
        log:
            str(PLAN.layout.base / f"logs/{key}.log"),
        benchmark:
            str(PLAN.layout.base / f"benchmarks/{key}.jsonl")
        localrule: True
        threads: 1
        resources:
            mem_mb=1000,
            runtime=10,
        params:
            table=key,
            plan=shown_config(),
            spec=PLAN.table_params(key),
            code=rendering_code(),
        message:
            f"rendering {key}"
        script:
            "../workflow_scripts/render_table.py"


for key, entry in PLAN.makeable_frames().items():

    rule:
        name:
            key
        input:
            source=PLAN.layout.analogy(entry.source),
        output:
            [PLAN.layout.table(key, suffix) for suffix in TABLE_FORMATS],
        log:
            str(PLAN.layout.base / f"logs/{key}.log"),
        benchmark:
            str(PLAN.layout.base / f"benchmarks/{key}.jsonl")
        localrule: True
        threads: 1
        resources:
            mem_mb=1000,
            runtime=10,
        params:
            table=key,
            plan=shown_config(),
            spec=canonical_json(entry.model_dump(mode="json")),
            code=rendering_code(),
        message:
            f"rendering {key}"
        script:
            "../workflow_scripts/render_frame.py"


rule tables:
    """All tables of the scale."""
    input:
        rules_outputs("tables"),
