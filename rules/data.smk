# Data sets made here: sentences, NLI triplets, sentence relations from word analogies. One rule for each entry of
# registry/made.yaml. Inputs: fetched sets and others made here. Outputs: results/data/made/<name>.<key>. Some are also
# copied to results/<scale>/<publish>, where people find them. A set that an encoder takes part in is work for a GPU;
# what is made from a dump is found in shards, where the scale has more than one (results/data/shards, removed in the end).


for artifact in JOBS.made:

    encodes = any(each.kind == "backbone" for each in artifact.inputs)
    shards = PLAN.shards(artifact.name)

    if shards:

        rule:
            name:
                f"shard_{artifact.name}"
            input:
                shard_inputs(artifact.name),
            output:
                temp(JOBS.shard_files(artifact)),
            log:
                f"results/data/logs/make_{artifact.name}.{{shard}}.log",
            benchmark:
                f"results/data/benchmarks/make_{artifact.name}.{{shard}}.jsonl"
            threads: 1
            resources:
                mem_mb=4000,
                runtime=120,
            params:
                name=artifact.name,
            message:
                f"making {artifact.name}, shard {{wildcards.shard}}"
            shell:
                "python workflow_scripts/make_data.py {params.name:q} --shard {wildcards.shard:q} 2>&1 | tee -i {log:q}"

    rule:
        name:
            f"make_{artifact.name}"
        input:
            unless_made(JOBS.made_inputs(artifact), artifact),
        output:
            artifact.paths,
        log:
            f"results/data/logs/make_{artifact.name}.log",
        benchmark:
            f"results/data/benchmarks/make_{artifact.name}.jsonl"
        localrule: not (encodes or shards)
        threads: PLAN.scale.threads if encodes else 1
        resources:
            gpu=int(encodes),
            # Joining holds a digest of every row, 100 bytes each; all of English Wikipedia may have 2 * 10^8.
            mem_mb=32000 if shards else 8000 if encodes else 4000,
            runtime=240 if encodes or shards else 60,
        params:
            name=artifact.name,
        message:
            f"making {artifact.name}"
        shell:
            "python workflow_scripts/make_data.py {params.name:q} 2>&1 | tee -i {log:q}"


for name, published in JOBS.published.items():

    rule:
        name:
            f"publish_{name}"
        input:
            list(published.files),
        output:
            list(published.files.values()),
            stamp=published.stamp,
        log:
            str(PLAN.layout.base / f"logs/publish_{name}.log"),
        benchmark:
            str(PLAN.layout.base / f"benchmarks/publish_{name}.jsonl")
        localrule: True
        threads: 1
        resources:
            mem_mb=1000,
            runtime=10,
        params:
            name=name,
        message:
            f"publishing {name}"
        shell:
            "python workflow_scripts/publish.py {params.name:q} --stamp {output.stamp:q} 2>&1 | tee -i {log:q}"
