# One job per run and suite; suites that share sentences are encoded together, under every read-out of the encoder.
# Inputs: a model folder and the suite's data. Outputs: score records and per-pair predictions.


rule score_run:
    """Score a model: STS by Spearman and Pearson in all aggregations, alignment and uniformity (SimCSE, Section 7)."""
    input:
        model=unless_done(model_files, scores_of),
        data=unless_done(suite_files, scores_of),
    output:
        scores=str(PLAN.layout.scores("{run}", "{suite}", "{pin}")),
        predictions=str(PLAN.layout.predictions("{run}", "{suite}", "{pin}")),
    log:
        str(PLAN.layout.base / "logs/score_run/{run}.{suite}.{pin}.log"),
    benchmark:
        str(PLAN.layout.base / "benchmarks/score_run/{run}.{suite}.{pin}.jsonl")
    threads: 4
    resources:
        gpu=1,
        mem_mb=8000,
        runtime=60,
    params:
        job=score_job,
        model=lambda wildcards: str(model_folder(wildcards.run)),
    message:
        "scoring {wildcards.run} on {wildcards.suite}"
    shell:
        "python workflow_scripts/score_run.py --run {wildcards.run:q} --model {params.model:q} --job {params.job:q}"
        " --scores {output.scores:q} --predictions {output.predictions:q} --threads {threads} 2>&1 | tee {log:q}"
