"""Every trained row of SimCSE's tables at scale full against what the paper, its appendix and the official code say."""

from __future__ import annotations

from typing import Any

import pytest

from sembench.plan import Plan
from tests.conftest import ROOT

# Appendix A and the official scripts. Every model: 32 word pieces, one-sided cosine at 0.05, no weight decay, no warm-up, gradients
# clipped at 1, the checkpoint's own dropout of 0.1, dev scores of STS-B every 125 steps.
COMMON = {
    **{"max_length": 32, "weight_decay": 0.0, "warmup": 0.0, "clip": 1.0, "dropout": None, "eval_every": 125},
    **{"dev": "sts_benchmark", "max_steps": None, "rows": None, "temperature": 0.05, "similarity": "cosine"},
    **{"encoders": "one", "readout": "cls", "head": "mlp"},
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


@pytest.mark.parametrize("table", ["1", "2", "3", "4", "6", "7", "d1"])
def test_every_trained_row_is_compared_above(full: Plan, table: str) -> None:
    trained = {
        run.variant for key in full.view(f"simcse_table_{table}").needs.scores if (run := full.run(key.run)).trained
    }
    assert trained and trained <= set(EXPECTED)
