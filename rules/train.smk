# One job per variant and seed. Its only parameter is the canonical recipe, whose hash is part of the run's name.
# Inputs: the model folder it starts from, a corpus, the dev pairs. Outputs: a model folder that describes itself.


rule train_contrastive:
    """Train one run and keep the step with the best dev score (SimCSE, Section 3 and Appendix A)."""
    input:
        start=unless_done(start_files, story_of),
        corpus=unless_done(corpus_of, story_of),
        dev=unless_done(dev_of, story_of),
    output:
        model=run_files("{run}"),
    log:
        str(PLAN.layout.base / "logs/train_contrastive/{run}.log"),
    benchmark:
        str(PLAN.layout.base / "benchmarks/train_contrastive/{run}.jsonl")
    # A processor's training uses them all; with a GPU the rest can score meanwhile.
    threads: 4
    resources:
        gpu=1,
        mem_mb=16000,
        runtime=240,
    params:
        recipe=recipe_of,
        readout=readout_of,
        start=lambda wildcards: str(start_folder(wildcards.run)),
        folder=str(PLAN.layout.run("{run}")),
        checkpoints=str(PLAN.layout.base / "checkpoints"),
    message:
        "training {wildcards.run}"
    shell:
        "python workflow_scripts/train_contrastive.py --recipe {params.recipe:q} --readout {params.readout:q}"
        " --start {params.start:q} --data {input.corpus:q}"
        " --out {params.folder:q} --checkpoints {params.checkpoints:q} --threads {threads} 2>&1 | tee {log:q}"
