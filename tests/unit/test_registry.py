"""Registry: resolution, hashes, and errors that name file, key and the nearest valid name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from sembench.core.canonical import canonical_json
from sembench.core.errors import SembenchError
from sembench.registry import Plan, RunSpec, load_registry
from sembench.registry.load import merged
from sembench.registry.models import Recipe
from sembench.registry.stages import code_digest

ROOT = Path(__file__).parents[2]


def edit(project: Path, name: str, change) -> None:
    """Change a registry file of a private copy through its parsed form."""
    path = project / "registry" / name
    value = yaml.safe_load(path.read_text())
    change(value)
    path.write_text(yaml.safe_dump(value, sort_keys=False))
    load_registry.cache_clear()


def test_the_registry_is_sound_at_every_scale() -> None:
    for scale in load_registry(ROOT).scales:
        plan = Plan(scale, root=ROOT)
        for table in plan.registry.tables:
            assert plan.rows(table)
        for key in plan.registry.variants:
            if not plan.registry.variant(key).abstract:
                assert plan.specs_of(key)


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        (
            "variants.yaml",
            lambda v: v["unsup_simcse_bert_base"]["recipe"].update(learnig_rate=1),
            r"variants\.yaml, variant 'unsup_simcse_bert_base', recipe: unknown key 'learnig_rate'; did you mean 'learning_rate'",
        ),
        (
            "variants.yaml",
            lambda v: v["bert_base"].update(extends="untuched"),
            r"variant 'untuched' is not in registry/variants\.yaml; did you mean 'untouched'",
        ),
        (
            "variants.yaml",
            lambda v: v["distilbert"].update(backbone="distilbert_base_case"),
            r"backbone 'distilbert_base_case' is not in the registry; did you mean 'distilbert_base_cased'",
        ),
        ("variants.yaml", lambda v: v["untouched"].update(extends="bert_base"), "extends itself"),
        (
            "variants.yaml",
            lambda v: v["unsup_simcse"]["recipe"].update(temperature=-1),
            r"key 'temperature': Input should be greater than 0 \(given: -1\)",
        ),
        (
            "variants.yaml",
            lambda v: v["analogy_on_simcse_bert"].update(start="unsup_simcse_bert"),
            r"variant 'unsup_simcse_bert' is not in the registry; did you mean 'unsup_simcse_bert_base'",
        ),
        (
            "variants.yaml",
            lambda v: v["analogy_on_simcse_bert"].update(start="bert_base"),
            r"variant 'analogy_on_simcse_bert': 'bert_base' is not trained; start from a trained variant",
        ),
        (
            "variants.yaml",
            lambda v: v["analogy_on_simcse_bert"].update(start="unsup_simcse_roberta_base"),
            r"'unsup_simcse_roberta_base' has the backbone roberta_base, not bert_base_uncased; use the same",
        ),
        (
            "variants.yaml",
            lambda v: v["analogy_bert"].update(start="simcse_on_analogy_bert"),
            r"variant '\w+': starts from itself through '\w+'; break the circle",
        ),
        (
            "variants.yaml",
            lambda v: v["distilbert"].update(start="analogy_distilbert"),
            r"variant 'distilbert': an encoder that is not trained starts from nothing; drop 'start'",
        ),
        (
            "variants.yaml",
            lambda v: v["analogy_distilbert"].update(data="enwiki_excerpt"),
            r"variant 'analogy_distilbert': objective analogy does not train on enwiki_excerpt; take dsbats4cl or",
        ),
        (
            "variants.yaml",
            lambda v: v["unsup_simcse_distilbert"].update(data="dsbats_open"),
            r"'unsup_simcse_distilbert': objective contrastive does not train on dsbats_open; take a data set of sent",
        ),
        ("variants.yaml", lambda v: v["bert_base"].update(extends=["untouched"]), "'extends' must be one name"),
        (
            "tables/beyond_table_cross.yaml",
            lambda v: v["columns"][3].update(gain_of="gain_srsd"),
            r"column 'gain_stsb': gain_of must not name a gain, which 'gain_srsd' is",
        ),
        (
            "tables/simcse_table_5.yaml",
            lambda v: v["columns"][7].update(mean_of=["avg"]),
            r"column 'avg': mean_of must name columns with a metric of their own",
        ),
        (
            "tables/beyond_table_cross.yaml",
            lambda v: v["groups"][0]["rows"][1].update(before="distilbert_simcse"),
            r"row 'distilbert_simcse': stands before itself",
        ),
        (
            "tables/beyond_table_cross.yaml",
            lambda v: v["groups"][0]["rows"].append(v["groups"][0]["rows"][0]),
            r"row 'distilbert' stands twice; give each its own key",
        ),
        (
            "tables/beyond_table_cross.yaml",
            lambda v: v["groups"][0]["rows"][1].update(before="distilbrt"),
            r"row 'distilbert_simcse': row 'distilbrt' is not in the registry; did you mean 'distilbert'",
        ),
        (
            "tables/beyond_table_cross.yaml",
            lambda v: v["columns"][3].update(gain_of="stsbb"),
            r"column 'gain_stsb': column 'stsbb' is not in the registry; did you mean 'stsb'",
        ),
        (
            "datasets.yaml",
            lambda v: v["sick"]["files"][0].update(sha265="0"),
            r"data set|dataset 'sick': unknown key 'files\.0\.sha265'; did you mean 'sha256'",
        ),
        (
            "datasets.yaml",
            lambda v: v["sick"]["files"][0].update(name="../../etc/passwd"),
            "relative path that stays in its folder",
        ),
        (
            "scales.yaml",
            lambda v: v["demo"].update(sedes=[1]),
            r"scale 'demo': unknown key 'sedes'; did you mean 'seeds'",
        ),
        (
            "scales.yaml",
            lambda v: v["smoke"]["substitutes"].update(wiki_1m="smoke_wikki"),
            "'smoke_wikki' is not in the registry; did you mean 'smoke_wiki'",
        ),
        (
            "tables/simcse_table_5.yaml",
            lambda v: v["groups"][0]["rows"][0].update(variant="glove_6b"),
            r"tables/simcse_table_5\.yaml, row 'glove_6b_50d': variant 'glove_6b' is not in the registry; did you mean 'glove_6b_50d'",
        ),
        (
            "tables/simcse_table_5.yaml",
            lambda v: v["columns"][0]["metric"].update(suite="stss"),
            r"column 'sts12': suite 'stss' is not in the registry; did you mean 'sts'",
        ),
    ],
)
def test_mistakes_are_named(project: Path, file: str, change, message: str) -> None:
    edit(project, file, change)
    with pytest.raises(SembenchError, match=message) as caught:
        load_registry(project)
    assert "\n" not in str(caught.value)


def test_broken_yaml_names_file_and_line(project: Path) -> None:
    path = project / "registry" / "suites.yaml"
    path.write_text(path.read_text() + "\nsts: {title: [}\n")
    load_registry.cache_clear()
    with pytest.raises(SembenchError, match=r"registry/suites\.yaml, line \d+"):
        load_registry(project)


def test_a_key_written_twice_is_an_error(project: Path) -> None:
    path = project / "registry" / "readouts.yaml"
    path.write_text(path.read_text() + "\ncls: {title: again, summary: again}\n")
    load_registry.cache_clear()
    with pytest.raises(SembenchError, match="the key 'cls' stands twice"):
        load_registry(project)


def test_a_paper_value_that_is_no_number_is_named(project: Path) -> None:
    path = project / "registry" / "paper_values.csv"
    path.write_text(path.read_text() + "simcse,simcse_table_5,glove_avg,avg,6l.32,\n")
    load_registry.cache_clear()
    with pytest.raises(SembenchError, match=r"paper_values\.csv, line \d+: '6l\.32' is not a number"):
        load_registry(project)


def test_extends_merges_deeply_and_later_values_win() -> None:
    assert merged({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"c": 9}}) == {"a": {"b": 1, "c": 9}, "d": 3}
    registry = load_registry(ROOT)
    entry = registry.variant("unsup_simcse_distilbert_first_last")
    assert entry.recipe["learning_rate"] == 2.0e-4
    assert entry.recipe["readout"] == "first_last"
    assert entry.data == "enwiki_excerpt"


def test_paper_recipes() -> None:
    """Table A.1 of the paper and the settings common to all models."""
    plan = Plan("full", root=ROOT)
    expected = {
        "unsup_simcse_bert_base": (64, 3e-5),
        "unsup_simcse_bert_large": (64, 1e-5),
        "unsup_simcse_roberta_base": (512, 1e-5),
        "unsup_simcse_roberta_large": (512, 3e-5),
    }
    for variant, (batch, rate) in expected.items():
        recipe = plan.spec(variant, 42).recipe
        assert (recipe.batch_size, recipe.learning_rate) == (batch, rate)
        assert (recipe.temperature, recipe.max_length, recipe.epochs, recipe.eval_every) == (0.05, 32, 1, 125)
        assert (recipe.weight_decay, recipe.warmup, recipe.clip) == (0.0, 0.0, 1.0)
        assert (recipe.readout, recipe.head, recipe.select_by) == ("cls", "mlp", "cls")


def test_run_id_is_the_hash_of_the_canonical_recipe() -> None:
    import hashlib

    spec = Plan("demo", root=ROOT).spec("unsup_simcse_distilbert", 42)
    digest = hashlib.sha256(spec.canonical.encode()).hexdigest()[:8]
    assert spec.id == f"unsup_simcse_distilbert.s42.{digest}"
    assert json.loads(spec.canonical)["seed"] == 42
    assert RunSpec.from_json(spec.canonical) == spec


def test_any_change_is_another_run_and_order_is_none(project: Path) -> None:
    before = Plan("demo", root=project).spec("unsup_simcse_distilbert", 42).id
    edit(project, "variants.yaml", lambda v: v.update(dict(reversed(list(v.items())))))
    assert Plan("demo", root=project).spec("unsup_simcse_distilbert", 42).id == before
    edit(project, "variants.yaml", lambda v: v["unsup_simcse_distilbert"]["recipe"].update(learning_rate=5e-4))
    assert Plan("demo", root=project).spec("unsup_simcse_distilbert", 42).id != before
    edit(project, "variants.yaml", lambda v: v["unsup_simcse_distilbert"]["recipe"].update(learning_rate=3e-4))
    assert Plan("demo", root=project).spec("unsup_simcse_distilbert", 42).id == before
    edit(project, "stages.yaml", lambda v: v["train"].update(version=99))
    assert Plan("demo", root=project).spec("unsup_simcse_distilbert", 42).id != before
    assert len({Plan("demo", root=project).spec("unsup_simcse_distilbert", seed).id for seed in (1, 2)}) == 2


def test_other_data_is_another_run(project: Path) -> None:
    before = Plan("demo", root=project).spec("unsup_simcse_distilbert", 42).id
    edit(project, "datasets.yaml", lambda v: v["enwiki_excerpt"]["files"][0].update(sha256="0" * 64))
    assert Plan("demo", root=project).spec("unsup_simcse_distilbert", 42).id != before


def test_a_field_at_its_default_leaves_no_trace() -> None:
    """So that a field added later changes no older run id."""
    spec = Plan("full", root=ROOT).spec("unsup_simcse_bert_base", 42)
    recipe = json.loads(spec.canonical).get("recipe", {})
    defaults = Recipe().model_dump()
    assert all(recipe[name] != defaults[name] for name in recipe)


def test_canonical_json_ignores_order() -> None:
    assert canonical_json({"b": 1, "a": [1, {"d": 2, "c": 3}]}) == '{"a":[1,{"c":3,"d":2}],"b":1}'


def test_config_mistakes() -> None:
    with pytest.raises(SembenchError, match=r"scale 'dmeo' is not in registry/scales\.yaml; did you mean 'demo'"):
        Plan.from_config({"scale": "dmeo"}, root=ROOT)
    with pytest.raises(SembenchError, match=r"key 'seed' is not in config\.yaml; did you mean 'seeds'"):
        Plan.from_config({"seed": [1]}, root=ROOT)
    with pytest.raises(SembenchError, match="must be a list of whole numbers"):
        Plan.from_config({"seeds": 42}, root=ROOT)
    with pytest.raises(SembenchError, match="mirror folder '/nowhere/at/all' does not exist"):
        Plan.from_config({"mirror": "/nowhere/at/all"}, root=ROOT)


@pytest.fixture(autouse=True)
def _no_mirror(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("SEMBENCH_MIRROR", raising=False)
    yield
    load_registry.cache_clear()


def test_what_a_scale_cannot_build_says_why() -> None:
    rows = {row.row.key: row for row in Plan("demo", root=ROOT).rows("simcse_table_5")}
    assert rows["distilbert_cls"].missing is None
    assert "hub_bert_base_uncased" in str(rows["unsup_simcse_bert_base"].missing)
    assert "scale full" in str(rows["unsup_simcse_bert_base"].missing)
    assert rows["bert_flow"].missing == "normalising flows are not built yet"


# --------------------------------------------------------------------------------------------------- code digests


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


def test_costly_stages_are_locked() -> None:
    """Whoever changes such code raises the stage's version or relocks it with a reason."""
    for name, stage in load_registry(ROOT).stages.items():
        assert code_digest(ROOT, stage.modules) == stage.digest, (
            f"code of stage '{name}' changed: raise its version in registry/stages.yaml if results can change, "
            f'then run: sembench relock {name} --why "..."'
        )


def test_a_run_starts_from_the_run_of_the_same_seed() -> None:
    plan = Plan("demo", root=ROOT)
    chained = plan.spec("analogy_on_simcse_distilbert", 7)
    assert chained.start == plan.spec("unsup_simcse_distilbert", 7).id
    assert RunSpec.from_json(chained.canonical) == chained
    # The run it starts from is part of its recipe, and a variant without a start has none in its name.
    assert "start" not in json.loads(plan.spec("analogy_distilbert", 7).canonical)


def test_another_recipe_of_the_start_is_another_run(project: Path) -> None:
    before = Plan("demo", root=project).spec("analogy_on_simcse_distilbert", 7).id
    edit(project, "variants.yaml", lambda v: v["unsup_simcse_distilbert"]["recipe"].update(learning_rate=1e-5))
    assert Plan("demo", root=project).spec("analogy_on_simcse_distilbert", 7).id != before


def test_a_run_that_only_others_start_from_is_planned(project: Path) -> None:
    edit(project, "tables/beyond_table_cross.yaml", lambda v: v["groups"][0]["rows"].pop(1))
    edit(
        project,
        "tables/beyond_table_cross.yaml",
        lambda v: [row.pop("before", 0) for row in v["groups"][0]["rows"]],
    )
    plan = Plan("demo", root=project, papers=["beyond"])
    assert plan.spec("unsup_simcse_distilbert", 42).id in plan.shown_runs


def test_a_scale_lays_its_overlay_over_all_that_extends_a_variant(project: Path) -> None:
    edit(
        project,
        "scales.yaml",
        lambda v: v["demo"].update(variants={"analogy": {"recipe": {"max_steps": 5, "batch_size": 3}}}),
    )
    plan = Plan("demo", root=project)
    recipes = {key: plan.spec(key, 1).recipe for key in ("analogy_bert", "analogy_on_simcse_distilbert")}
    assert {(r.max_steps, r.batch_size) for r in recipes.values()} == {(5, 3)}
    assert plan.spec("unsup_simcse_distilbert", 1).recipe.max_steps == 30
    # The nearer overlay wins.
    edit(project, "scales.yaml", lambda v: v["demo"]["variants"].update(analogy_bert={"recipe": {"max_steps": 9}}))
    recipe = Plan("demo", root=project).spec("analogy_bert", 1).recipe
    assert (recipe.max_steps, recipe.batch_size) == (9, 3)


def test_other_senses_are_other_runs(project: Path) -> None:
    def name(**config: object) -> str:
        return Plan.from_config({"scale": "demo", **config}, root=project).spec("analogy_bert", 1).id

    dump = project / "own.jsonl"
    dump.write_text("{}\n")
    first = name(inventory="dump", dump=str(dump))
    dump.write_text("{} \n")
    second = name(inventory="dump", dump=str(dump))
    asked = name(inventory="babelnet")
    answer = project / "results/data/babelnet/v9/getSynset/ab/ab12.json"
    answer.parent.mkdir(parents=True)
    answer.write_text("{}")
    assert len({name(), first, second, asked, name(inventory="babelnet")}) == 5
    assert name(relations="E07") == name(relations=["E07"]) != name()


@pytest.mark.parametrize(
    "config", [{"inventory": "dump", "dump": "own.jsonl"}, {"srsd_pairs": "own.jsonl"}], ids=["dump", "srsd_pairs"]
)
def test_an_own_file_that_is_not_there_is_named(project: Path, config: dict[str, str]) -> None:
    plan = Plan.from_config({"scale": "demo", **config}, root=project)
    with pytest.raises(SembenchError, match=r"there is no file '.*own\.jsonl'; mend the key '(dump|srsd_pairs)'"):
        _ = plan.srsd_params


@pytest.mark.parametrize(
    ("value", "expected"), [(True, True), ("true", True), (None, False), (False, False), ("False", False)]
)
def test_a_switch_may_be_a_word(value: object, expected: bool) -> None:
    assert Plan.from_config({"scale": "demo", "partial": value}, root=ROOT).partial is expected


def test_the_home_folder_is_known_in_paths(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(project))
    (project / "own.tsv").write_text("anything")
    plan = Plan.from_config({"scale": "demo", "srsd_pairs": "~/own.tsv"}, root=project)
    assert plan.analogy_config["srsd_pairs"] == str(project / "own.tsv")
    assert json.loads(plan.srsd_params)["own"]


def test_another_test_set_scores_anew_and_trains_nothing_anew(project: Path) -> None:
    (project / "own.tsv").write_text("anything")
    plans = [Plan.from_config({"scale": "demo", **config}, root=project) for config in ({}, {"srsd_pairs": "own.tsv"})]
    assert plans[0].all_runs.keys() == plans[1].all_runs.keys()
    assert plans[0].score_params("srsd") != plans[1].score_params("srsd")
    assert plans[0].score_params("sts") == plans[1].score_params("sts")
