# One job for each encoder: those scores of a batch that are missing, from one pass over the unique sentences. A batch is
# what one command asks for, named by Jobs.batch_of, so that all tables of the command share the job.
# Inputs: a model folder and the data of the tasks. Outputs: results/<scale>/scores/<run>/<read-out>/<suite>.<task>.<key>.*


rule score:
    """Score an encoder by the papers' protocols under the read-outs that are asked for (SimCSE, Sections 5 to 7)."""
    input:
        lambda wildcards: JOBS.scoring_inputs(wildcards.run, wildcards.batch),
    output:
        # Scores are files of their own, by read-out and task, whose keys no wildcard knows; this only says "done".
        done=temp(str(PLAN.layout.scoring("{run}", "{batch}"))),
    log:
        str(PLAN.layout.base / "logs/score/{run}.{batch}.log"),
    benchmark:
        str(PLAN.layout.base / "benchmarks/score/{run}.{batch}.jsonl")
    threads: PLAN.scale.threads
    resources:
        gpu=lambda wildcards: gpus(1),
        mem_mb=8000,
        runtime=60,
    message:
        "scoring {wildcards.run}"
    shell:
        "python workflow_scripts/score.py {wildcards.run:q} {wildcards.batch:q} --done {output.done:q}"
        " 2>&1 | tee -i {log:q}"
