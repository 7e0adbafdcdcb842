# Fetched files become what training reads: corpora of one sentence a line, and ordinary model folders.
# Inputs: results/data/sets. Outputs: results/data/corpora and results/data/backbones.


rule build_corpus:
    """Clean sentences, one a line, from a Wikipedia dump or a list of sentences."""
    input:
        files=lambda wildcards: dataset_files(wildcards.dataset),
    output:
        corpus=str(corpus_path("{dataset}")),
    log:
        "results/data/logs/build_corpus_{dataset}.log",
    benchmark:
        "results/data/benchmarks/build_corpus_{dataset}.jsonl"
    localrule: True
    threads: 1
    resources:
        mem_mb=2000,
        runtime=60,
    message:
        "building the corpus {wildcards.dataset}"
    shell:
        "python workflow_scripts/build_corpus.py {wildcards.dataset:q} --out {output.corpus:q} 2>&1 | tee {log:q}"


for key, entry in PLAN.registry.backbones.items():

    rule:
        name:
            f"build_backbone_{key}"
        input:
            []
            if entry.dataset is None
            else dataset_files(PLAN.dataset_key(entry.dataset)),
        output:
            backbone_files(key),
        log:
            f"results/data/logs/build_backbone_{key}.log",
        benchmark:
            f"results/data/benchmarks/build_backbone_{key}.jsonl"
        localrule: True
        threads: 1
        resources:
            mem_mb=8000,
            runtime=60,
        params:
            backbone=key,
            entry=canonical_json(entry.model_dump(mode="json")),
        message:
            f"building the model folder of {entry.title}"
        shell:
            "python workflow_scripts/build_backbone.py {params.backbone:q} 2>&1 | tee {log:q}"
