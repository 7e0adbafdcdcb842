# All score records of the scale in one file, for the page and for whoever analyses them elsewhere.
# Inputs: results/<scale>/scores. Output: results/<scale>/collected/scores.parquet.


rule collect_scores:
    """Join the score records of everything that the scale shows."""
    input:
        scores=PLAN.all_scores(),
    output:
        scores=str(PLAN.layout.collected),
    log:
        str(PLAN.layout.base / "logs/collect_scores.log"),
    benchmark:
        str(PLAN.layout.base / "benchmarks/collect_scores.jsonl")
    localrule: True
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        code=code_digest(PLAN.root, ["sembench/results/*.py"]),
    message:
        "collecting scores"
    script:
        "../workflow_scripts/collect_scores.py"
