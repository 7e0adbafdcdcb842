"""Every trained row of SimCSE's tables: BERT's at scale full against what the paper, its appendix and the official code say,
DistilBERT's at scale small against BERT's.
"""

from __future__ import annotations

from typing import Any

import pytest

from sembench.plan import Plan
from sembench.reporting.views._scores_grid import Grid
from tests.conftest import ROOT

# Appendix A and the official scripts. Every model: 32 word pieces, one-sided cosine at 0.05, no weight decay, no warm-up, gradients
# clipped at 1, the checkpoint's own dropout of 0.1, dev scores of STS-B every 125 steps.
COMMON = {
    **{"max_length": 32, "weight_decay": 0.0, "warmup": 0.0, "clip": 1.0, "dropout": None, "eval_every": 125},
    **{"dev": "sts_benchmark", "max_steps": None, "rows": None, "temperature": 0.05, "similarity": "cosine"},
    **{"encoders": "one", "readout": "cls", "head": "mlp"},
    **{"mlm_weight": 0.0, "mlm_probability": 0.15, "mlm_leak": False},
}
UNSUP = COMMON | {"kind": "contrastive", "masks": "two", "epochs": 1, "select_by": "cls", "data": "wiki_1m"}
SUP = COMMON | {"kind": "supervised", "epochs": 3, "select_by": "cls_mlp", "data": "nli_triplets", "batch_size": 512}
SUP |= {"hard_negative_weight": 1.0}
BERT = UNSUP | {"batch_size": 64, "learning_rate": 3e-5}
SUP_BERT = SUP | {"learning_rate": 5e-5}
# Pairs have neither a second mask nor a hard negative to weigh.
PAIRS = {name: value for name, value in BERT.items() if name != "masks"} | {"kind": "pairs"}
JUDGED = {name: value for name, value in SUP_BERT.items() if name != "hard_negative_weight"} | {"kind": "pairs"}
NEXT = PAIRS | {"rows": 1_000_000}
TRAJECTORIES = {
    "unsup_simcse_bert_base_trajectory": BERT,
    "unsup_simcse_bert_base_fixed_trajectory": BERT | {"masks": "one"},
    "unsup_simcse_bert_base_dropout_000_trajectory": BERT | {"dropout": 0.0},
    "augmented_bert_base_delete_one_trajectory": PAIRS | {"data": "wiki_1m_delete_one"},
}

# "roberta_base" has "bert_base" in it.
BACKBONES = {
    **{"roberta_base": "roberta_base", "roberta_large": "roberta_large"},
    **{"bert_base": "bert_base_uncased", "bert_large": "bert_large_uncased"},
}

EXPECTED: dict[str, dict[str, Any]] = {
    # Table A.1, the models of Table 5.
    "unsup_simcse_bert_base": BERT,
    "unsup_simcse_bert_large": UNSUP | {"batch_size": 64, "learning_rate": 1e-5},
    "unsup_simcse_roberta_base": UNSUP | {"batch_size": 512, "learning_rate": 1e-5},
    "unsup_simcse_roberta_large": UNSUP | {"batch_size": 512, "learning_rate": 3e-5},
    "sup_simcse_bert_base": SUP_BERT,
    "sup_simcse_bert_large": SUP | {"learning_rate": 1e-5},
    "sup_simcse_roberta_base": SUP | {"learning_rate": 5e-5},
    "sup_simcse_roberta_large": SUP | {"learning_rate": 1e-5},
    # Table 1.
    **{f"augmented_bert_base_crop_{k}": PAIRS | {"data": f"wiki_1m_crop_{k}"} for k in (10, 20, 30)},
    **{f"augmented_bert_base_deletion_{k}": PAIRS | {"data": f"wiki_1m_deletion_{k}"} for k in (10, 20, 30)},
    "augmented_bert_base_delete_one": PAIRS | {"data": "wiki_1m_delete_one"},
    "augmented_bert_base_delete_one_no_dropout": PAIRS | {"data": "wiki_1m_delete_one", "dropout": 0.0},
    "augmented_bert_base_synonym": PAIRS | {"data": "wiki_1m_synonym"},
    "augmented_bert_base_mlm_15": PAIRS | {"data": "wiki_1m_mlm_15"},
    # Table 2.
    "unsup_simcse_bert_base_two": BERT | {"encoders": "two"},
    "augmented_bert_base_delete_one_two": PAIRS | {"data": "wiki_1m_delete_one", "encoders": "two"},
    "next_sentence_bert_base": NEXT | {"data": "wiki_next_sentence"},
    "next_sentence_bert_base_two": NEXT | {"data": "wiki_next_sentence", "encoders": "two"},
    "next_three_bert_base": NEXT | {"data": "wiki_next_three"},
    "next_three_bert_base_two": NEXT | {"data": "wiki_next_three", "encoders": "two"},
    # Table 3.
    **{
        f"unsup_simcse_bert_base_dropout_{round(p * 100):03}": BERT | {"dropout": p}
        for p in (0.0, 0.01, 0.05, 0.15, 0.2, 0.5)
    },
    "unsup_simcse_bert_base_fixed": BERT | {"masks": "one"},
    # Table 4.
    "pairs_bert_base_qqp": JUDGED | {"data": "qqp_duplicates"},
    **{
        f"pairs_bert_base_{name}{end}": JUDGED | {"data": data, "rows": rows}
        for name, data in {
            **{"flickr30k": "flickr30k_pairs", "paranmt": "paranmt_pairs", "entailment": "nli_entailment"},
            **{"neutral": "nli_neutral", "contradiction": "nli_contradiction", "all": "nli_all_pairs"},
        }.items()
        for end, rows in (("", None), ("_sample", 134_000))
    },
    "sup_simcse_bert_base_anli": SUP_BERT | {"data": "nli_anli_triplets"},
    # Figure 2, whose steps the paper does not count.
    **{name: recipe | {"max_steps": 500, "eval_every": 10} for name, recipe in TRAJECTORIES.items()},
    # Table 6; "first-last" was the embedding output and the last block then.
    "unsup_simcse_bert_base_no_mlp": BERT | {"head": "none"},
    "unsup_simcse_bert_base_first_last": BERT | {"head": "none", "readout": "embed_last", "select_by": "embed_last"},
    "sup_simcse_bert_base_no_mlp": SUP_BERT | {"head": "none", "select_by": "cls"},
    "sup_simcse_bert_base_first_last": SUP_BERT | {"head": "none", "readout": "embed_last", "select_by": "embed_last"},
    # Table 7 and the text of Section 4.
    "sup_simcse_bert_base_alpha_05": SUP_BERT | {"hard_negative_weight": 0.5},
    "sup_simcse_bert_base_alpha_20": SUP_BERT | {"hard_negative_weight": 2.0},
    "sup_simcse_bert_base_neutral": SUP_BERT | {"kind": "supervised_neutral", "data": "nli_quadruplets"},
    "sup_simcse_bert_base_two": SUP_BERT | {"encoders": "two"},
    # Table D.1.
    "sup_simcse_bert_base_dot": SUP_BERT | {"similarity": "dot", "temperature": 1.0},
    "sup_simcse_bert_base_t0001": SUP_BERT | {"temperature": 0.001},
    "sup_simcse_bert_base_t001": SUP_BERT | {"temperature": 0.01},
    "sup_simcse_bert_base_t01": SUP_BERT | {"temperature": 0.1},
    "sup_simcse_bert_base_t1": SUP_BERT | {"temperature": 1.0},
    # Table D.2.
    "sup_simcse_bert_base_mlm_001": SUP_BERT | {"mlm_weight": 0.01},
    "sup_simcse_bert_base_mlm_100": SUP_BERT | {"mlm_weight": 1.0},
    "sup_simcse_bert_base_mlm_leak": SUP_BERT | {"mlm_weight": 0.1, "mlm_leak": True},
}
# Tables D.2 and E.1: the final models with MLM besides.
EXPECTED |= {
    f"{learning}_simcse_{model}_mlm": EXPECTED[f"{learning}_simcse_{model}"] | {"mlm_weight": 0.1}
    for learning in ("unsup", "sup")
    for model in ("bert_base", "roberta_base", "roberta_large")
}


@pytest.fixture(scope="module")
def full() -> Plan:
    return Plan("full", root=ROOT, seeds=[42])


@pytest.mark.parametrize("variant", EXPECTED)
def test_a_recipe_is_the_papers(full: Plan, variant: str) -> None:
    run = full.runs_of(variant)[0]
    assert run.training is not None and run.data is not None
    found = {**run.training.values, **run.training.values["objective"], "data": run.data.name}
    assert {name: found[name] for name in EXPECTED[variant]} == EXPECTED[variant]
    assert run.backbone == next(backbone for name, backbone in BACKBONES.items() if name in variant)


@pytest.mark.parametrize(
    "view", [*(f"table_{name}" for name in ("1", "2", "3", "4", "6", "7", "d1", "d2", "e1")), "figure_2"]
)
def test_every_trained_row_is_compared_above(full: Plan, view: str) -> None:
    needs = full.view(f"simcse_{view}").needs
    trained = {
        run.variant for name in (*(key.run for key in needs.scores), *needs.runs) if (run := full.run(name)).trained
    }
    assert trained and trained <= set(EXPECTED)


# ------------------------------------------------------------------------------------------------------ the same on a laptop

# What a laptop changes in every recipe, and what scale small lays on all. The rates are docs/measured.md's.
LAPTOP = {"batch_size": 64, "max_steps": 30, "eval_every": 10, "rows": None, "eval_precision": "auto"}
RATES = {"unsup": 3e-4, "sup": 1e-4}
# What stands in for data that no laptop's mirror holds; other data are the paper's own.
SMALL = {
    "wiki_1m": "enwiki_sentences",
    **{f"wiki_1m_{name}_{k}": f"enwiki_{name}_{k}" for name in ("crop", "deletion") for k in (10, 20, 30)},
    **{f"wiki_1m_{name}": f"enwiki_{name}" for name in ("delete_one", "synonym", "mlm_15")},
    **{"wiki_next_sentence": "enwiki_next_sentence", "wiki_next_three": "enwiki_next_three"},
    **{
        f"nli_{name}": f"nli_{name}_small"
        for name in ("triplets", "quadruplets", "entailment", "neutral", "contradiction", "all_pairs")
    },
}
# Trained through first-last as it is now, the embedding output left out; unsupervised at a rate chosen for it.
FIRST_LAST = {"readout": "first_last", "select_by": "first_last"}
# Figure 2 is drawn at the paper's own rate.
OWN: dict[str, dict[str, Any]] = {
    **{name: {"learning_rate": 3e-5, "max_steps": 100} for name in TRAJECTORIES},
    "unsup_simcse_bert_base_first_last": FIRST_LAST | {"learning_rate": 2e-4},
    "sup_simcse_bert_base_first_last": FIRST_LAST,
}
# "134k pairs" of what has 9,000.
SAMPLES = {name for name in EXPECTED if name.endswith("_sample")}
# An auxiliary MLM loss needs a head that DistilBERT's file does not have; BERT-tiny has these rows.
ON_BERT = [
    name for name in EXPECTED if "bert_base" in name and "roberta" not in name and not EXPECTED[name].get("mlm_weight")
]


def on_distilbert(variant: str) -> str:
    """Return the name of a variant on DistilBERT: what is compared with ablations trains as long as they do."""
    name = variant.replace("bert_base", "distilbert")
    bases = ("unsup_simcse_distilbert", "sup_simcse_distilbert", "unsup_simcse_distilbert_first_last")
    return f"{name}_baseline" if name in bases else name


@pytest.fixture(scope="module")
def small() -> Plan:
    return Plan("small", root=ROOT, seeds=[42])


@pytest.mark.parametrize("variant", ON_BERT)
def test_on_a_laptop_a_recipe_is_the_papers_but_for_what_a_laptop_needs(full: Plan, small: Plan, variant: str) -> None:
    theirs, ours = full.runs_of(variant)[0], small.runs_of(on_distilbert(variant))[0]
    assert theirs.training and theirs.data and ours.training and ours.data
    changed = LAPTOP | {"learning_rate": RATES["unsup" if theirs.training.recipe.epochs == 1 else "sup"]}
    changed |= {"precision": "auto", **({"rows": 134_000} if variant in SAMPLES else {})}
    wanted = {**theirs.training.values, **changed}
    own = OWN.get(variant, {})
    objective = {name: own.get(name, value) for name, value in theirs.training.values["objective"].items()}
    wanted |= {name: value for name, value in own.items() if name in wanted} | {"objective": objective}
    assert ours.training.values == wanted
    assert ours.backbone == "distilbert_base_cased"
    assert ours.data.name == SMALL.get(theirs.data.name, theirs.data.name)


@pytest.mark.parametrize("variant", [name for name in ON_BERT if name not in SAMPLES])
def test_on_bert_tiny_a_recipe_is_the_papers_as_well(full: Plan, small: Plan, variant: str) -> None:
    """BERT-tiny trains for 100 steps of 64 rows at one rate and dev score, and reads out where BERT does."""
    theirs, ours = full.runs_of(variant)[0], small.runs_of(variant.replace("bert_base", "bert_tiny"))[0]
    assert theirs.training and theirs.data and ours.training and ours.data
    changed = {"batch_size": 64, "learning_rate": 3e-4, "max_steps": 100, "rows": None, "eval_precision": "auto"}
    changed |= {"precision": "auto", "eval_every": 10 if variant in TRAJECTORIES else 25}
    assert ours.training.values == {**theirs.training.values, **changed}
    assert ours.backbone == "bert_tiny"
    assert ours.data.name == SMALL.get(theirs.data.name, theirs.data.name)


def test_figure_2_shows_the_same_trainings_on_a_laptop(full: Plan, small: Plan) -> None:
    demo = Plan("demo", root=ROOT, seeds=[42])
    drawn = [[plan.run(run).variant for run in plan.view("simcse_figure_2").needs.runs] for plan in (full, demo, small)]
    assert drawn[1] == [on_distilbert(name) for name in drawn[0]]
    assert drawn[2] == [name.replace("bert_base", "bert_tiny") for name in drawn[0]]
    assert set(drawn[0]) == set(TRAJECTORIES)


@pytest.mark.parametrize("table", ["1", "2", "3", "4", "6", "7", "d1"])
def test_every_row_of_the_paper_is_on_a_laptop_too(full: Plan, small: Plan, table: str) -> None:
    """Whether or not its data can be had there; Table 4 has one column, of the full sets."""

    def trained(plan: Plan, on: str) -> set[str]:
        config = plan.view(f"simcse_table_{table}").entry.chosen.config
        grid = Grid(config, plan)
        return {name for place in grid.places() if (name := str(place.variant)) and on in name}

    assert trained(small, "distilbert") == {on_distilbert(name) for name in trained(full, "bert_base") - SAMPLES}


def test_table_d2_shows_the_mean_over_seven_tasks_and_not_the_tasks(full: Plan) -> None:
    view = full.view("simcse_table_d2")
    grid = Grid(view.entry.chosen.config, full)
    assert [column.key for column in grid.columns] == ["stsb", "transfer"]
    scored = {(key.suite, key.task) for key in view.needs.scores}
    tasks = ("mr", "cr", "subj", "mpqa", "sst2", "trec", "mrpc")
    assert scored == {("sts", "stsb"), *(("transfer_fast", task) for task in tasks)}
