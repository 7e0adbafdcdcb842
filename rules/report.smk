# The page that shows everything: tables, figures, what holds, and the provenance of every number.
# Inputs: all score records, tables and figures. Output: results/<scale>/report/index.html.


rule report:
    """One self-contained HTML page."""
    input:
        scores=PLAN.layout.collected,
        tables=rules_outputs("tables"),
        figures=rules_outputs("figures"),
    output:
        page=str(PLAN.layout.report),
    log:
        str(PLAN.layout.base / "logs/report.log"),
    benchmark:
        str(PLAN.layout.base / "benchmarks/report.jsonl")
    localrule: True
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        plan=shown_config(),
        code=rendering_code(),
    message:
        "writing the report"
    script:
        "../workflow_scripts/report.py"
