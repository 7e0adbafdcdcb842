# All score records of the scale in one file, and the page that shows everything with the provenance of every number.
# Inputs: scores, tables and figures. Outputs: results/<scale>/collected/scores.parquet and results/<scale>/report.


rule collect_scores:
    """Join the score records of everything that the scale shows, for whoever analyses them elsewhere."""
    input:
        lambda wildcards: scores_for(None),
    output:
        scores=str(PLAN.layout.collected),
        stamp=JOBS.stamp("collect_scores"),
    log:
        str(PLAN.layout.base / "logs/collect_scores.log"),
    benchmark:
        str(PLAN.layout.base / "benchmarks/collect_scores.jsonl")
    localrule: True
    threads: 1
    resources:
        mem_mb=2000,
        runtime=10,
    message:
        "collecting scores"
    shell:
        "python workflow_scripts/collect_scores.py --stamp {output.stamp:q} 2>&1 | tee -i {log:q}"


rule report:
    """One self-contained HTML page."""
    input:
        scores=PLAN.layout.collected,
        views=JOBS.rendered(),
    output:
        page=str(PLAN.layout.report),
        stamp=JOBS.stamp("report"),
    log:
        str(PLAN.layout.base / "logs/report.log"),
    benchmark:
        str(PLAN.layout.base / "benchmarks/report.jsonl")
    localrule: True
    threads: 1
    resources:
        mem_mb=2000,
        runtime=10,
    message:
        "writing the report"
    shell:
        "python workflow_scripts/report.py --stamp {output.stamp:q} 2>&1 | tee -i {log:q}"
