# Everything that may use the network: data sets and model assets, verified, into results/data/sets.
# Inputs: none. Outputs: the files of each data set and its manifest. `snakemake fetch` does this and stops.


for key, entry in PLAN.registry.datasets.items():

    rule:
        name:
            f"fetch_{key}"
        output:
            files=[dataset_file(key, file.name) for file in entry.files],
            manifest=manifest(key),
        log:
            f"results/data/logs/fetch_{key}.log",
        benchmark:
            f"results/data/benchmarks/fetch_{key}.jsonl"
        retries: 3
        localrule: True
        threads: 1
        resources:
            mem_mb=1000,
            runtime=60,
        params:
            dataset=key,
        message:
            f"fetching {entry.title}"
        shell:
            "python workflow_scripts/fetch_dataset.py {params.dataset:q} 2>&1 | tee {log:q}"


rule fetch:
    """Fetch all that the scale needs and stop; everything after works without a network."""
    input:
        [dataset_files(key) for key in PLAN.needed_datasets()],
