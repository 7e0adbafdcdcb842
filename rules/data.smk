# Data sets made here: sentences, NLI triplets, sentence relations from word analogies. One rule for each entry of
# registry/made.yaml. Inputs: fetched sets and others made here. Outputs: results/data/made/<name>.<key>. Some are also
# copied to results/<scale>/<publish>, where people find them. A set that an encoder takes part in is work for a GPU.


for artifact in JOBS.made:

    encodes = any(each.kind == "backbone" for each in artifact.inputs)

    rule:
        name:
            f"make_{artifact.name}"
        input:
            unless_made(
                [path for each in artifact.inputs for path in each.paths], artifact
            ),
        output:
            artifact.paths,
        log:
            f"results/data/logs/make_{artifact.name}.log",
        benchmark:
            f"results/data/benchmarks/make_{artifact.name}.jsonl"
        localrule: not encodes
        threads: PLAN.scale.threads if encodes else 1
        resources:
            gpu=int(encodes),
            mem_mb=8000 if encodes else 4000,
            runtime=240 if encodes else 60,
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
