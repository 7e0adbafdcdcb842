"""What a scale builds: recipes as the papers have them, keys that keep their promise, and why something is missing."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from sembench.core.artifact import seal
from sembench.core.canonical import canonical_json
from sembench.core.errors import SembenchError
from sembench.plan import Plan, ScoreKey
from sembench.plan.code import code_digest
from sembench.plan.jobs import Jobs
from sembench.registry.models import Where
from tests.conftest import ROOT, edit


def run_id(root: Path, variant: str = "unsup_simcse_distilbert", seed: int = 42, **config: object) -> str:
    plan = Plan.from_config({"scale": "demo", "seeds": [seed], **config}, root=root)
    return plan.runs_of(variant)[0].id


# ------------------------------------------------------------------------------------------------------- recipes


def test_paper_recipes() -> None:
    """Table A.1 of SimCSE and the settings common to all models (paper, Appendix A)."""
    plan = Plan("full", root=ROOT)
    expected = {
        "unsup_simcse_bert_base": (64, 3e-5, 1),
        "unsup_simcse_bert_large": (64, 1e-5, 1),
        "unsup_simcse_roberta_base": (512, 1e-5, 1),
        "unsup_simcse_roberta_large": (512, 3e-5, 1),
        "sup_simcse_bert_base": (512, 5e-5, 3),
        "sup_simcse_bert_large": (512, 1e-5, 3),
        "sup_simcse_roberta_base": (512, 5e-5, 3),
        "sup_simcse_roberta_large": (512, 1e-5, 3),
    }
    for variant, (batch, rate, epochs) in expected.items():
        training = plan.runs_of(variant)[0].training
        assert training is not None
        recipe, objective = training.recipe, training.objective
        assert (recipe.batch_size, recipe.learning_rate, recipe.epochs) == (batch, rate, epochs)
        assert (recipe.max_length, recipe.eval_every, recipe.precision) == (32, 125, "fp16")
        assert (recipe.weight_decay, recipe.warmup, recipe.clip) == (0.0, 0.0, 1.0)
        config = objective.config.model_dump()
        assert (config["temperature"], config["readout"], config["head"]) == (0.05, "cls", "mlp")
        supervised = variant.startswith("sup")
        assert objective.kind == ("supervised" if supervised else "contrastive")
        # The head stays at test time in supervised models only, also for the dev score.
        assert recipe.select_by == plan.readout_of(variant) == ("cls_mlp" if supervised else "cls")


# ---------------------------------------------------------------------------------------------------------- keys


def test_a_run_id_holds_the_key_of_parameters_and_inputs() -> None:
    run = Plan("demo", root=ROOT).runs_of("unsup_simcse_distilbert")[0]
    params = json.loads(canonical_json(dict(run.artifact.params)))
    inputs = [each.key for each in run.artifact.inputs]
    digest = hashlib.sha256(canonical_json(["run", params, inputs]).encode()).hexdigest()[:8]
    assert run.id == f"unsup_simcse_distilbert.s42.{digest}"
    # Every default is there, so that a changed one is another run.
    assert params["objective"]["temperature"] == 0.05
    assert params["clip"] == 1.0
    assert params["seed"] == 42
    assert [each.kind for each in run.artifact.inputs] == ["backbone", "made", "dataset"]


def test_run_ids_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Golden ids: whoever changes one on purpose writes the new one here; all that was made before is made anew."""
    monkeypatch.delenv("SEMBENCH_MIRROR", raising=False)
    found = [
        Plan(scale, root=ROOT).runs_of(variant)[0].id
        for scale, variant in (
            ("full", "unsup_simcse_bert_base"),
            ("full", "sup_simcse_roberta_large"),
            ("full", "analogy_bert"),
            ("full", "bert_base"),
            ("demo", "unsup_simcse_distilbert"),
            ("demo", "minilm"),
        )
    ]
    assert found == GOLDEN


GOLDEN = [
    "unsup_simcse_bert_base.s42.2f10fe4c",
    "sup_simcse_roberta_large.s42.457f57af",
    "analogy_bert.s42.9874cfff",
    "bert_base.s0.4f5066a9",
    "unsup_simcse_distilbert.s42.41a23342",
    "minilm.s0.e51db6fd",
]


def test_any_change_is_another_run_and_order_is_none(registry_copy: Path) -> None:
    before = run_id(registry_copy)
    edit(registry_copy, "variants.yaml", lambda v: v.update(dict(reversed(list(v.items())))))
    assert run_id(registry_copy) == before
    edit(registry_copy, "variants.yaml", lambda v: v["unsup_simcse_distilbert"]["recipe"].update(learning_rate=5e-4))
    assert run_id(registry_copy) != before
    edit(registry_copy, "variants.yaml", lambda v: v["unsup_simcse_distilbert"]["recipe"].update(learning_rate=3e-4))
    assert run_id(registry_copy) == before
    assert len({run_id(registry_copy, seed=seed) for seed in (1, 2)}) == 2


def test_the_order_of_roles_is_no_part_of_a_key(registry_copy: Path) -> None:
    name = "dsbats_sn"
    before = Plan("demo", root=registry_copy).made(name)
    assert len(before.inputs) > 1
    edit(registry_copy, "made.yaml", lambda v: v[name].update(inputs=dict(reversed(v[name]["inputs"].items()))))
    assert Plan("demo", root=registry_copy).made(name) == before


def test_the_read_out_of_a_variant_is_no_part_of_its_training(registry_copy: Path) -> None:
    before = run_id(registry_copy)
    edit(registry_copy, "variants.yaml", lambda v: v["unsup_simcse_distilbert"].update(readout="mean"))
    assert run_id(registry_copy) == before


@pytest.mark.parametrize("unit", ["objective", "training", "encoding", "maker", "converter"])
def test_another_version_is_another_run_and_nothing_else_moves(monkeypatch: pytest.MonkeyPatch, unit: str) -> None:
    from sembench.core.plugin import CONVERTERS, MAKERS, OBJECTIVES
    from sembench.plan import engines

    before = {key: run_id(ROOT, key) for key in ("unsup_simcse_distilbert", "analogy_distilbert", "minilm")}
    if unit in engines.ENGINES:
        old = engines.ENGINES[unit]
        monkeypatch.setitem(engines.ENGINES, unit, engines.Engine(old.version + 1, old.roots))
    else:
        family, kind = {
            "objective": (OBJECTIVES, "contrastive"),
            "maker": (MAKERS, "wikipedia"),
            "converter": (CONVERTERS, "distilbert_onnx"),
        }[unit]
        monkeypatch.setattr(family.get(kind), "version", 99)
    changed = {key for key in before if run_id(ROOT, key) != before[key]}
    both = {"unsup_simcse_distilbert", "analogy_distilbert"}
    # One method's fix recomputes that method alone; a backbone's conversion is what both start from.
    assert changed == ({"unsup_simcse_distilbert"} if unit in ("objective", "maker") else both)


def test_other_content_of_the_data_is_another_run_and_another_fetch(registry_copy: Path) -> None:
    """A changed checksum is another folder for the set and for all that is made from it: nothing old is read."""
    plan = Plan("demo", root=registry_copy)
    before = plan.runs_of("unsup_simcse_distilbert")[0], plan.dataset("enwiki_excerpt"), plan.made("enwiki_sentences")
    edit(registry_copy, "datasets.yaml", lambda v: v["enwiki_excerpt"]["files"][0].update(sha256="0" * 64))
    plan = Plan("demo", root=registry_copy)
    after = plan.runs_of("unsup_simcse_distilbert")[0], plan.dataset("enwiki_excerpt"), plan.made("enwiki_sentences")
    assert before[0].id != after[0].id
    assert before[1].folder != after[1].folder
    assert before[2].folder != after[2].folder
    assert set(after[1].paths) <= {path for each in plan.ancestors([after[0].artifact]) for path in each.paths}


def test_a_set_without_checksums_counts_by_its_sources(registry_copy: Path) -> None:
    before = Plan("full", root=registry_copy).backbone("bert_base_uncased").key
    edit(registry_copy, "datasets.yaml", lambda v: v["hub_bert_base_uncased"]["sources"][0].update(revision="f" * 40))
    assert Plan("full", root=registry_copy).backbone("bert_base_uncased").key != before


def test_how_much_a_file_may_hold_is_no_part_of_a_key(registry_copy: Path) -> None:
    before = Plan("full", root=registry_copy).dataset("glove_840b_text").key
    edit(registry_copy, "datasets.yaml", lambda v: v["glove_840b_text"]["files"][0].update(max_mb=7000))
    assert Plan("full", root=registry_copy).dataset("glove_840b_text").key == before


def test_what_the_project_writes_itself_is_part_of_the_key(registry_copy: Path) -> None:
    """SRSD's own pairs and the dictionary decide its test set; DSBATS4CL's rows do not."""
    key = ScoreKey(run_id(registry_copy, "minilm"), "mean", "srsd", "srsd")

    def score() -> str:
        return str(Plan.from_config({"scale": "demo"}, root=registry_copy).score(key).record)

    before = score()
    path = registry_copy / "registry/dsbats_open.tsv"
    text = path.read_text()
    path.write_text("\n".join(text.split("\n")[:20]) + "\n")
    assert score() != before
    path.write_text(text)
    assert score() == before
    edit(registry_copy, "made.yaml", lambda v: v["dsbats4cl"].update(rows=7))
    assert score() == before
    edit(registry_copy, "datasets.yaml", lambda v: v["gcide"]["files"][0].update(sha256="0" * 64))
    assert score() != before


def test_other_relations_are_other_data_and_other_runs() -> None:
    def made(**config: object) -> tuple[str, str]:
        plan = Plan.from_config({"scale": "demo", **config}, root=ROOT)
        return plan.made("dsbats_sn").key, plan.runs_of("analogy_distilbert")[0].id

    everything, some, same = made(), made(relations=["E06", "E07"]), made(relations=["E06", "E07"])
    assert some == same
    assert everything[0] != some[0]
    assert everything[1] != some[1]
    assert made(relations="E07") == made(relations=["E07"])
    assert run_id(ROOT) == run_id(ROOT, relations=["E06"])


def test_other_senses_are_other_runs(registry_copy: Path) -> None:
    def name(**config: object) -> str:
        return run_id(registry_copy, "analogy_bert", **config)

    dump = registry_copy / "own.jsonl"
    dump.write_text("{}\n")
    first = name(inventory="dump", dump=str(dump))
    dump.write_text("{} \n")
    second = name(inventory="dump", dump=str(dump))
    asked = name(inventory="babelnet")
    answer = registry_copy / "results/data/babelnet/v9/getSynset/ab" / f"{'ab12':0<64}.json"
    answer.parent.mkdir(parents=True)
    answer.write_text("{}")
    assert len({name(), first, second, asked, name(inventory="babelnet")}) == 5


def test_another_test_set_scores_anew_and_trains_nothing_anew(registry_copy: Path) -> None:
    (registry_copy / "own.tsv").write_text("anything")
    plans = [
        Plan.from_config({"scale": "demo", **config}, root=registry_copy) for config in ({}, {"srsd_pairs": "own.tsv"})
    ]
    runs = [plan.runs_of("analogy_distilbert")[0].id for plan in plans]
    assert runs[0] == runs[1]
    srsd, sts = ScoreKey(runs[0], "cls", "srsd", "srsd"), ScoreKey(runs[0], "cls", "sts", "stsb")
    assert plans[0].score(srsd).key != plans[1].score(srsd).key
    assert plans[0].score(sts).key == plans[1].score(sts).key


def test_a_new_task_or_read_out_moves_no_other_score(registry_copy: Path) -> None:
    key = ScoreKey(run_id(registry_copy, "minilm"), "mean", "transfer", "mrpc")
    before = Plan("demo", root=registry_copy).score(key).record
    edit(registry_copy, "suites.yaml", lambda v: v["transfer"]["tasks"].update(again=v["transfer"]["tasks"]["trec"]))
    assert Plan("demo", root=registry_copy).score(key).record == before
    assert before.parent != Plan("demo", root=registry_copy).score(key._replace(readout="cls")).record.parent


def test_fits_have_keys_of_their_own() -> None:
    plan = Plan("small", root=ROOT)
    run = plan.runs_of("minilm")[0].id
    keys = [
        ScoreKey(run, f"mean.{transform}", "sts", task)
        for transform in ("whitening_nli", "whitening_task")
        for task in ("stsb", "sickr")
    ]
    fits = [plan.fit(key) for key in keys]
    # Fitted on NLI it serves every task; fitted on the target, each task has its own.
    assert fits[0].folder == fits[1].folder
    assert fits[2].folder != fits[3].folder
    assert [each.kind for each in plan.score(keys[0]).inputs] == ["backbone", "dataset", "fit"]


def test_a_run_starts_from_the_run_of_the_same_seed(registry_copy: Path) -> None:
    plan = Plan("demo", root=registry_copy, seeds=[7])
    chained = plan.runs_of("analogy_on_simcse_distilbert")[0]
    assert chained.start == plan.runs_of("unsup_simcse_distilbert")[0]
    assert chained.begin == chained.start.artifact
    edit(registry_copy, "variants.yaml", lambda v: v["unsup_simcse_distilbert"]["recipe"].update(learning_rate=1e-5))
    assert Plan("demo", root=registry_copy, seeds=[7]).runs_of("analogy_on_simcse_distilbert")[0].id != chained.id


def test_what_trains_just_as_its_base_is_the_runs_of_its_base(registry_copy: Path) -> None:
    """At scale demo all train for 30 steps, so what ablations are compared with is trained once; small trains epochs."""
    name, base = "unsup_simcse_distilbert_baseline", "unsup_simcse_distilbert"
    for scale, shared in (("demo", True), ("small", False)):
        plan = Plan(scale, root=registry_copy, seeds=[7, 8])
        assert (plan.runs_of(name) == plan.runs_of(base)) is shared
        assert plan.runs_of(name)[0].variant == (base if shared else name)
        # An ablation extends what it is compared with, and differs.
        assert plan.runs_of("unsup_simcse_distilbert_no_mlp")[0].variant == "unsup_simcse_distilbert_no_mlp"
    # The read-out of a score is that of the variant that is asked for, whosever the run.
    edit(registry_copy, "variants.yaml", lambda v: v[name].update(readout="mean"))
    plan = Plan("demo", root=registry_copy)
    cell = plan.cell(Where(variant=name, suite="sts", task="stsb"))
    assert (cell.runs[0].variant, cell.readout) == (base, "mean")


def test_an_entry_with_braces_is_a_variant_for_every_encoder(registry_copy: Path) -> None:
    edit(
        registry_copy,
        "families.yaml",
        lambda v: v.update(mini={"title": "Mini", "unsup": "mini_unsup", "sup": "mini_sup"}),
    )
    bases = {
        f"mini_{kind}": {"extends": f"{kind}_simcse_distilbert", "backbone": "bert_tiny"} for kind in ("unsup", "sup")
    }
    edit(registry_copy, "variants.yaml", lambda v: v.update(bases))
    plan = Plan("demo", root=registry_copy)
    names = {name.replace("_mini_", "_distilbert_") for name in plan.registry.variants if "_mini_" in name}
    assert len(names) > 40 and names < set(plan.registry.variants)
    assert plan.registry.lineage("augmented_mini_delete_one_two")[-4:] == (
        *("mini_unsup", "augmented_mini", "augmented_mini_delete_one", "augmented_mini_delete_one_two"),
    )
    run = plan.runs_of("augmented_mini_delete_one_two")[0]
    assert (run.backbone, run.data.name if run.data else "") == ("bert_tiny", "enwiki_delete_one")
    summary = plan.resolved(run.variant).variant.summary
    assert summary == "Mini on sentences and copies without one word, two encoders"


def test_what_a_scale_is_too_small_for_is_built_by_name_alone(registry_copy: Path) -> None:
    plan = Plan("demo", root=registry_copy)
    assert plan.view("simcse_table_1").by_name  # says so: ten trainings
    assert plan.view("simcse_table_e1").by_name  # nothing of it can be measured there
    assert not plan.view("simcse_table_a1").by_name  # it measures nothing anywhere
    chosen = plan.chosen_views("simcse")
    assert set(chosen) == {f"simcse_{name}" for name in ("table_5", "table_a1", "figure_3", "figure_f1", "figure_g1")}
    assert len({key.run for view in chosen.values() for key in view.needs.scores if plan.run(key.run).trained}) == 2
    assert plan.batch("simcse_table_1")
    edit(registry_copy, "tables/simcse_table_1.yaml", lambda v: v.pop("by_name"))
    assert "simcse_table_1" in Plan("demo", root=registry_copy).chosen_views()
    assert {f"simcse_table_{number}" for number in "1234567"} <= set(Plan("full", root=ROOT).chosen_views())


def test_an_id_of_another_recipe_says_what_it_is_now() -> None:
    plan = Plan("demo", root=ROOT)
    run = plan.runs_of("unsup_simcse_distilbert")[0]
    assert plan.run(run.id) == run
    with pytest.raises(SembenchError, match=f"is not part of scale 'demo' any more; it is {run.id} now"):
        plan.run("unsup_simcse_distilbert.s42.00000000")
    with pytest.raises(SembenchError, match="'nothing' is not a run of scale 'demo'"):
        plan.run("nothing")


# -------------------------------------------------------------------------------------------------------- scales


def test_a_scale_lays_its_overlay_over_all_that_extends_a_variant(registry_copy: Path) -> None:
    overlay = {"analogy": {"recipe": {"max_steps": 5, "batch_size": 3}}}
    edit(registry_copy, "scales.yaml", lambda v: v["demo"].update(variants=overlay))

    def recipe(key: str):
        training = Plan("demo", root=registry_copy).runs_of(key)[0].training
        assert training is not None
        return training.recipe

    found = [recipe(key) for key in ("analogy_bert", "analogy_on_simcse_distilbert")]
    assert {(r.max_steps, r.batch_size) for r in found} == {(5, 3)}
    assert recipe("unsup_simcse_distilbert").max_steps == 30
    # The nearer overlay wins.
    edit(
        registry_copy, "scales.yaml", lambda v: v["demo"]["variants"].update(analogy_bert={"recipe": {"max_steps": 9}})
    )
    assert (recipe("analogy_bert").max_steps, recipe("analogy_bert").batch_size) == (9, 3)


def test_an_entry_has_the_last_word_at_a_scale_and_it_is_said_where_a_value_is_from(registry_copy: Path) -> None:
    """A scale's recipe is laid over every variant, `max_steps: 2` of a user's own entry too; `scales:` comes last."""

    def change(variants) -> None:
        variants["mine"] = {"extends": "unsup_simcse_distilbert", "recipe": {"max_steps": 2}}
        variants["firm"] = {**variants["mine"], "scales": {"demo": {"recipe": {"max_steps": 2}}}}

    edit(registry_copy, "variants.yaml", change)
    plan = Plan("demo", root=registry_copy)
    mine, firm = plan.resolved("mine"), plan.resolved("firm")
    assert mine.variant.recipe is not None
    assert firm.variant.recipe is not None
    assert mine.variant.recipe["max_steps"] == 30
    assert mine.origins["recipe.max_steps"] == "scales.yaml, demo, recipe"
    assert firm.variant.recipe["max_steps"] == 2
    assert firm.origins["recipe.max_steps"] == "variants.yaml, firm, scales.demo"
    assert firm.origins["recipe.objective.kind"] == "variants.yaml, unsup_simcse"


def test_what_stands_in_for_a_set_stands_in_everywhere(registry_copy: Path) -> None:
    """One notion of substitution: of training data, dev data, tasks and inputs of what is made here."""
    edit(registry_copy, "scales.yaml", lambda v: v["demo"]["fallbacks"].update(wiki_1m="enwiki_sentences"))
    plan = Plan("demo", root=registry_copy)
    run = plan.runs_of("unsup_simcse_bert_base")[0]
    assert run.data is not None
    assert plan.used("wiki_1m") == run.data.name == "enwiki_sentences"


def test_what_a_scale_cannot_build_says_why() -> None:
    plan = Plan("demo", root=ROOT)
    assert plan.missing("distilbert") == ""
    reason = plan.missing("unsup_simcse_bert_base")
    assert "hub_bert_base_uncased" in reason
    assert "scale full" in reason


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ({"variant": "distilbert", "readout": "pooler"}, "read-out pooler is not offered by distilbert"),
        ({"variant": "distilbert", "readout": "cls_mlp"}, "read-out cls_mlp is not offered by distilbert"),
        ({"variant": "glove_6b_50d", "readout": "cls"}, "read-out cls is not offered by glove_6b_50d"),
        ({"variant": "analogy_distilbert", "readout": "cls_mlp"}, "read-out cls_mlp is not offered"),
        ({"variant": "unsup_simcse_distilbert", "readout": "cls_mlp"}, ""),
        ({"variant": "sup_simcse_distilbert", "readout": "cls_mlp"}, "data set"),
        (
            {"variant": "distilbert", "readout": "cls", "split": "train"},
            "split train of stsb is not scored at scale demo",
        ),
        ({"variant": "distilbert", "task": "sts12"}, "data set sts12: needs"),
        ({"variant": "distilbert", "readout": "cls"}, ""),
        ({}, "no encoder is named"),
    ],
)
def test_a_cell_that_cannot_be_is_missing_and_not_failed(
    where: dict[str, str], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SEMBENCH_MIRROR", raising=False)
    cell = Plan("demo", root=ROOT).cell(Where(**{"suite": "sts", "task": "stsb", **where}))
    assert reason in cell.missing
    assert bool(reason) == bool(cell.missing)


def test_an_unknown_metric_or_task_of_a_cell_is_an_error() -> None:
    with pytest.raises(SembenchError, match="task 'stsbb' is not in suite sts; did you mean 'stsb'"):
        Plan("demo", root=ROOT).cell(Where(variant="distilbert", suite="sts", task="stsbb"))


# -------------------------------------------------------------------------------------------------------- config


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({"scale": "dmeo"}, "scale 'dmeo' is not in registry/scales.yaml; did you mean 'demo'?"),
        ({"sede": 3}, "key 'sede' is not in config.yaml; did you mean 'seeds'?"),
        ({"seeds": 3}, "'seeds' must be a list of whole numbers"),
        ({"seeds": [10**30]}, "'seeds' must be a list of whole numbers"),
        ({"papers": ["simcs"]}, "paper 'simcs' is not in config.yaml; did you mean 'simcse'?"),
        ({"partial": "no"}, "'partial' must be true or false, not 'no'"),
        ({"mirror": "/nowhere/at/all"}, "the mirror folder '/nowhere/at/all' does not exist"),
        ({"relations": {"E07": 1}}, "relations"),
        ({"relations": ["E06", "E06"]}, "E06"),
        ({"relations": ["E99"]}, "E99"),
        ({"relations": "I01"}, "I01"),
        ({"srsd_pairs": "nowhere.tsv"}, "nowhere.tsv'; correct the key 'srsd_pairs'"),
        ({"inventory": "dump"}, "'inventory: dump' and 'dump: FILE' belong together"),
        ({"inventory": "wordnett"}, "wordnet"),
    ],
)
def test_a_wrong_configuration_is_one_sentence(
    config: dict[str, object], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SEMBENCH_MIRROR", raising=False)
    with pytest.raises(SembenchError) as caught:
        Jobs(Plan.from_config({"scale": "smoke", **config}, root=ROOT))
    assert sentence in str(caught.value)
    assert ".yaml" in str(caught.value) or "mirror" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "expected"), [(True, True), ("true", True), (None, False), (False, False), ("False", False)]
)
def test_a_switch_may_be_a_word(value: object, expected: bool) -> None:
    assert Plan.from_config({"scale": "demo", "partial": value}, root=ROOT).partial is expected


def test_the_home_folder_is_known_in_paths(registry_copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(registry_copy))
    (registry_copy / "own.tsv").write_text("anything")
    plan = Plan.from_config({"scale": "demo", "srsd_pairs": "~/own.tsv"}, root=registry_copy)
    assert plan.made("dsbats_open").key


def test_a_mirror_on_the_command_line_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEMBENCH_MIRROR", raising=False)
    for name in ("named", "environment", "configured"):
        (tmp_path / name).mkdir()
    config = {"scale": "demo", "mirror": str(tmp_path / "configured")}
    assert Plan.from_config(config, root=ROOT).mirror == tmp_path / "configured"
    monkeypatch.setenv("SEMBENCH_MIRROR", str(tmp_path / "environment"))
    assert Plan.from_config(config, root=ROOT).mirror == tmp_path / "environment"
    assert Plan.from_config(config, root=ROOT, mirror=tmp_path / "named").mirror == tmp_path / "named"


# -------------------------------------------------------------------------------------------------- code digests


def digest_of(tmp_path: Path, text: str) -> str:
    (tmp_path / "m.py").write_text(text)
    return code_digest(tmp_path, ["m.py"])


def test_code_digest_is_blind_to_form_and_sees_meaning(tmp_path: Path) -> None:
    base = digest_of(tmp_path, 'def f(a, b=1):\n    """Doc."""\n    return a + b\n')
    assert base == digest_of(
        tmp_path, "# comment\ndef f(\n    a,\n    b = 1,\n):\n    '''Other.'''\n\n    return (a + b)\n"
    )
    assert base != digest_of(tmp_path, "def f(a, b=1):\n    return a - b\n")
    assert base != digest_of(tmp_path, "def f(a, b=2):\n    return a + b\n")
    assert base != digest_of(tmp_path, "def f(a, c=1):\n    return a + c\n")


def test_a_digest_covers_what_a_file_imports_down_to_the_engines(tmp_path: Path) -> None:
    from sembench.plan.code import closure, imported

    folder = tmp_path / "sembench"
    (folder / "core").mkdir(parents=True)
    (folder / "core/c.py").write_text("")
    (folder / "a.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from sembench import typed\n"
        "from sembench.core import c\ndef f():\n    from sembench.b import g\n"
    )
    (folder / "b.py").write_text("import sembench.engine\nfrom sembench import a\n")
    (folder / "engine.py").write_text("from sembench import hidden\n")
    for name in ("typed", "hidden"):
        (folder / f"{name}.py").write_text("")
    imported.cache_clear()
    found = closure(tmp_path, ["sembench/a.py"], ["sembench/engine.py"])
    assert found == ["sembench/a.py", "sembench/b.py"]


@pytest.mark.parametrize("text", ["{", "[]", "1", "null"])
def test_a_configuration_in_the_environment_that_is_no_mapping(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("SEMBENCH_CONFIG", text)
    with pytest.raises(SembenchError, match="SEMBENCH_CONFIG must be a JSON mapping"):
        Plan.of_job()


@pytest.mark.parametrize("key", ["mirror", "srsd_pairs"])
@pytest.mark.parametrize("value", ["~nosuchuser/x", "x" * 5000])
def test_a_path_that_cannot_be_one_is_a_sentence(key: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEMBENCH_MIRROR", raising=False)
    with pytest.raises(SembenchError, match=f"config.yaml: '{key}' cannot be '") as caught:
        Plan.from_config({"scale": "demo", key: value}, root=ROOT)
    assert len(str(caught.value)) < 300


def test_a_view_whose_scores_are_gone_is_out_of_date(registry_copy: Path) -> None:
    """Snakemake does not make a missing temporary input anew where the output is there; a missing stamp is made."""
    jobs = Jobs(Plan("smoke", root=registry_copy))
    for view, name in (("simcse_table_6", "simcse_table_6"), (None, "collect_scores")):
        stamp = registry_copy / jobs.stamp(name)
        stamp.parent.mkdir(parents=True, exist_ok=True)
        stamp.touch()
        jobs.scores(view, "all")
        assert not stamp.exists()


def test_a_score_of_other_data_is_found_while_planning(registry_copy: Path) -> None:
    """The table is there and newer than all scores, so that no job would look."""
    plan = Plan("smoke", root=registry_copy)
    key = plan.view("simcse_table_6").needs.scores[0]
    data, score = plan.data(plan.task(key.suite, key.task).data), plan.score(key)
    for text in ("one", "other"):
        for path in (*data.paths[:-1], *score.paths[:-1]):
            (registry_copy / path).parent.mkdir(parents=True, exist_ok=True)
            (registry_copy / path).write_text(text)
        seal(registry_copy, data)
        if text == "one":
            seal(registry_copy, score)
            assert score.record in Jobs(plan).scores("simcse_table_6", "all")
    with pytest.raises(SembenchError, match=f"was made from other content of dataset '{data.name}'"):
        Jobs(plan).scores("simcse_table_6", "all")
