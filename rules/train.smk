# One job per variant and seed; the run's name holds the key of its recipe, objective, data and starting point.
# Inputs: the model folder it starts from, its data, the dev pairs. Outputs: a model folder that describes itself.


rule train:
    """Train one run and keep the step with the best dev score (SimCSE, Section 3 and Appendix A)."""
    input:
        lambda wildcards: unless_made(
            JOBS.training_inputs(wildcards.run), PLAN.run(wildcards.run).artifact
        ),
    output:
        JOBS.run_files,
    log:
        str(PLAN.layout.base / "logs/train/{run}.log"),
    benchmark:
        str(PLAN.layout.base / "benchmarks/train/{run}.jsonl")
    # That many whatever `--cores` says, since they decide the last bits of the numbers.
    threads: lambda wildcards: PLAN.scale.threads * JOBS.processes(wildcards.run)
    resources:
        gpu=lambda wildcards: gpus(JOBS.processes(wildcards.run)),
        mem_mb=16000,
        runtime=240,
    message:
        "training {wildcards.run}"
    shell:
        "python workflow_scripts/train.py {wildcards.run:q} 2>&1 | tee -i {log:q}"
