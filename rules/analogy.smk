# Word analogies become sentence relations: BATS words, senses from an inventory, a filter, DSBATS-sn and DSBATS4CL.
# Inputs: BATS (or the project's own small one), WordNet, a dictionary. Outputs: results/<scale>/analogy.

from sembench.analogy.rules import check_options, check_relations, load_rules

ANALOGY_JOB, SRSD_JOB = checked(lambda: (PLAN.analogy_params, PLAN.srsd_params))
BUILD, _ = checked(check_options, PLAN.registry.analogy)
checked(check_relations, PLAN.relations or BUILD.relations, load_rules())
BATS, WORDNET, DICTIONARY = map(PLAN.dataset_key, ("bats", "wordnet", "gcide"))


rule prepare_wordnet:
    """Lay WordNet 3.0 out as nltk's reader wants it."""
    input:
        files=dataset_files(WORDNET),
    output:
        database=[
            wordnet_root(WORDNET) / "corpora/wordnet" / name
            for name in ("data.noun", "index.noun", "lexnames")
        ],
    log:
        f"results/data/logs/prepare_{WORDNET}.log",
    benchmark:
        f"results/data/benchmarks/prepare_{WORDNET}.jsonl"
    localrule: True
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        key=WORDNET,
    message:
        "preparing WordNet"
    shell:
        "python workflow_scripts/prepare_wordnet.py {params.key:q} 2>&1 | tee {log:q}"


rule build_dsbats_sn:
    """Definition sentences for word pairs, filtered by relation (analogy paper, Section 3)."""
    input:
        bats=dataset_files(BATS),
        wordnet=rules.prepare_wordnet.output.database,
        dump=lambda wildcards: PLAN.analogy_config.get("dump", []),
    output:
        pairs=str(PLAN.layout.analogy("dsbats_sn.parquet")),
        sizes=str(PLAN.layout.analogy("sizes.csv")),
        report=str(PLAN.layout.analogy("filter_report.tsv")),
        not_found=str(PLAN.layout.analogy("not_found.tsv")),
    log:
        str(PLAN.layout.base / "logs/build_dsbats_sn.log"),
    benchmark:
        str(PLAN.layout.base / "benchmarks/build_dsbats_sn.jsonl")
    localrule: True
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        job=ANALOGY_JOB,
        wordnet=WORDNET,
    message:
        "building DSBATS-sn"
    shell:
        "python workflow_scripts/build_dsbats_sn.py --job {params.job:q} --out {output.pairs:q}"
        " --wordnet {params.wordnet:q} --dump {input.dump:q} 2>&1 | tee {log:q}"


rule build_dsbats4cl:
    """Rows of three pairs for contrastive learning (analogy paper, Section 4 and Table 5)."""
    input:
        pairs=rules.build_dsbats_sn.output.pairs,
    output:
        rows=str(PLAN.layout.analogy(DERIVED["dsbats4cl"])),
        held_out=str(PLAN.layout.analogy(DERIVED["dsbats4cl_held_out"])),
    log:
        str(PLAN.layout.base / "logs/build_dsbats4cl.log"),
    benchmark:
        str(PLAN.layout.base / "benchmarks/build_dsbats4cl.jsonl")
    localrule: True
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        job=ANALOGY_JOB,
    message:
        "building DSBATS4CL"
    shell:
        "python workflow_scripts/build_dsbats4cl.py --job {params.job:q} --pairs {input.pairs:q}"
        " --out {output.rows:q} --held-out {output.held_out:q} 2>&1 | tee {log:q}"


rule build_dsbats_open:
    """What SRSD is tested on: definition pairs from a dictionary that is not WordNet and the project's, or a user's."""
    input:
        bats=dataset_files(BATS),
        wordnet=rules.prepare_wordnet.output.database,
        dictionary=dataset_files(DICTIONARY),
        own=PLAN.analogy_config.get("srsd_pairs", []),
    output:
        pairs=str(PLAN.layout.analogy("dsbats_open.parquet")),
        sizes=str(PLAN.layout.analogy("open_sizes.csv")),
    log:
        str(PLAN.layout.base / "logs/build_dsbats_open.log"),
    benchmark:
        str(PLAN.layout.base / "benchmarks/build_dsbats_open.jsonl")
    localrule: True
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        job=SRSD_JOB,
        wordnet=WORDNET,
        dictionary=DICTIONARY,
    message:
        "building DSBATS-open"
    shell:
        "python workflow_scripts/build_dsbats_open.py --job {params.job:q} --out {output.pairs:q}"
        " --sizes {output.sizes:q} --wordnet {params.wordnet:q} --dictionary {params.dictionary:q}"
        " --own {input.own:q} 2>&1 | tee {log:q}"
