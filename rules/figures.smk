# One rule per figure of registry/figures, named as the figure; its data is kept beside it as csv.
# Inputs: score records, or run.json for training curves. Outputs: results/<scale>/figures/<id>.{svg,pdf,png,csv}.


rule study_objective:
    """Where an objective leads free vectors, without an encoder (what the analogy paper's loss rewards)."""
    output:
        curves=str(PLAN.layout.study("{figure}")),
    log:
        str(PLAN.layout.base / "logs/study_objective/{figure}.log"),
    benchmark:
        str(PLAN.layout.base / "benchmarks/study_objective/{figure}.jsonl")
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        lines=lambda wildcards: PLAN.study_params(wildcards.figure),
    message:
        "following free vectors for {wildcards.figure}"
    shell:
        "python workflow_scripts/study_objective.py {wildcards.figure:q} --out {output.curves:q} 2>&1 | tee {log:q}"


for key in PLAN.registry.figures:

    rule:
        name:
            key
        input:
            scores=PLAN.figure_scores(key),
            stories=PLAN.figure_stories(key),
            study=PLAN.figure_study(key),
        output:
            [PLAN.layout.figure(key, suffix) for suffix in FIGURE_FORMATS],
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
            figure=key,
            plan=shown_config(),
            spec=PLAN.figure_params(key),
            code=rendering_code(),
        message:
            f"rendering {key}"
        script:
            "../workflow_scripts/render_figure.py"


rule figures:
    """All figures of the scale."""
    input:
        rules_outputs("figures"),


rule analogy:
    """Every table and figure of the analogy paper that is in the registry, and the data sets behind them."""
    input:
        rules_outputs("tables", "analogy"),
        rules_outputs("figures", "analogy"),
        []
        if PLAN.analogy_missing()
        else [PLAN.layout.analogy(DERIVED[key]) for key in ("dsbats_sn", "dsbats4cl")],


rule simcse:
    """Every table and figure of the SimCSE paper that is in the registry."""
    input:
        rules_outputs("tables", "simcse"),
        rules_outputs("figures", "simcse"),


rule beyond:
    """All tables and figures that go past the two papers."""
    input:
        rules_outputs("tables", "beyond"),
        rules_outputs("figures", "beyond"),
