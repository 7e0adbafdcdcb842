# Everything that may use the network: data sets and model assets, verified, into results/data/sets.
# Inputs: none. Outputs: the files of each data set and its record. `snakemake fetch` does this and stops.


for artifact in JOBS.datasets:

    rule:
        name:
            f"fetch_{artifact.name}"
        output:
            artifact.paths,
        log:
            f"results/data/logs/fetch_{artifact.name}.log",
        benchmark:
            f"results/data/benchmarks/fetch_{artifact.name}.jsonl"
        retries: 3
        localrule: True
        threads: 1
        resources:
            mem_mb=1000,
            runtime=60,
        params:
            name=artifact.name,
        message:
            f"fetching {artifact.name}"
        shell:
            "python workflow_scripts/fetch_dataset.py {params.name:q} 2>&1 | tee -i {log:q}"


rule fetch:
    """Fetch all that the scale needs and stop; everything after works without a network."""
    input:
        [
            path
            for artifact in PLAN.wanted().get("dataset", [])
            for path in artifact.paths
        ],
    message:
        "all data sets are there"
