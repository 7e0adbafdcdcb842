# Fetched encoders become ordinary model folders that describe themselves.
# Inputs: fetched sets. Outputs: results/data/backbones/<name>.<key>.


for artifact in JOBS.backbones:

    rule:
        name:
            f"build_backbone_{artifact.name}"
        input:
            unless_made(
                [path for each in artifact.inputs for path in each.paths], artifact
            ),
        output:
            artifact.paths,
        log:
            f"results/data/logs/build_backbone_{artifact.name}.log",
        benchmark:
            f"results/data/benchmarks/build_backbone_{artifact.name}.jsonl"
        localrule: True
        threads: 1
        resources:
            mem_mb=8000,
            runtime=60,
        params:
            name=artifact.name,
        message:
            f"building the model folder of {artifact.name}"
        shell:
            "python workflow_scripts/build_backbone.py {params.name:q} 2>&1 | tee -i {log:q}"
