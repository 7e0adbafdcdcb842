"""The registry: errors that name file, key and the nearest valid name, before anything runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sembench.core.errors import SembenchError
from sembench.plan import Plan
from sembench.plan.jobs import Jobs
from sembench.registry import load_registry
from sembench.registry.entries import training_of
from sembench.registry.load import TAKEN, TAKEN_PREFIXES
from tests.conftest import ROOT, edit


def test_the_registry_is_sound_at_every_scale() -> None:
    registry = load_registry(ROOT)
    for scale in registry.scales:
        plan = Plan(scale, root=ROOT)
        runs = [run for key in registry.concrete for run in plan.runs_of(key)]
        # A run is of one variant alone, but that of what trains just as its base, which is the base's.
        assert all(run.variant in registry.lineage(key) for key in registry.concrete for run in plan.runs_of(key))
        assert len({run.id for run in runs}) == len({(run.variant, run.seed) for run in runs})
        for view in plan.views.values():
            assert view.outputs
            for artifact in plan.ancestors(plan.artifacts(view.needs)):
                assert artifact.key in str(artifact.record)


def first_row(table) -> dict:
    return table["groups"][0]["rows"][0]


MISTAKES = {
    "a line break in a name": (
        "variants.yaml",
        lambda v: v["distilbert"].update(readout="c\nls"),
        r"variant 'distilbert': read-out 'c\\nls' is not in the registry",
    ),
    "pages of text for the name of an entry": (
        "variants.yaml",
        lambda v: v.update({"x" * 101: v["distilbert"]}),
        r"variants\.yaml, names of entries: key 'names\.\d+': String should have at most 100 characters",
    ),
    "a number without end": (
        "metrics.yaml",
        lambda v: v["spearman"].update(times=float("inf")),
        r"metrics\.yaml, metric 'spearman': key 'times': Input should be a finite number",
    ),
    "a parameter that is no number": (
        "variants.yaml",
        lambda v: v["unsup_simcse_bert_base"]["recipe"].update(learning_rate=float("nan")),
        r"variant 'unsup_simcse_bert_base', recipe: key 'learning_rate': Input should be a finite number",
    ),
    "a number of hundreds of digits": (
        "variants.yaml",
        lambda v: v["unsup_simcse"]["recipe"].update(batch_size=10**400),
        r"variants\.yaml, line \d+: the number 1[0]{19}\.\.\. is too large",
    ),
    "a seed below zero": (
        "scales.yaml",
        lambda v: v["demo"].update(seeds=[-1]),
        r"scale 'demo': key 'seeds\.0': Input should be greater than or equal to 0",
    ),
    "a file whose name has braces": (
        "datasets.yaml",
        lambda v: v["sick"]["files"][0].update(name="SICK{1}.txt"),
        r"dataset 'sick': key 'files\.0\.name': 'SICK\{1\}\.txt' has a brace, which Snakemake takes for a wildcard",
    ),
    "a file with a control character": (
        "datasets.yaml",
        lambda v: v["sick"]["files"][0].update(name="SICK\0.txt"),
        r"dataset 'sick': key 'files\.0\.name': .*has characters that do not print",
    ),
    "a file twice": (
        "datasets.yaml",
        lambda v: v["sick"]["files"].append(v["sick"]["files"][0]),
        r"dataset 'sick': the file 'SICK_train\.txt' is listed twice",
    ),
    "a file with the name of the record": (
        "datasets.yaml",
        lambda v: v["sick"]["files"][0].update(name="made.json"),
        r"dataset 'sick': the file 'made\.json' is listed twice, or has the name of the record",
    ),
    "a placeholder of a source": (
        "datasets.yaml",
        lambda v: v["sick"]["sources"][0].update(path="{file}"),
        r"dataset 'sick': key 'sources\.0\.mirror\.path': '\{file\}' may have no other braces than those of \{name\}",
    ),
    "a published folder outside": (
        "made.yaml",
        lambda v: v["dsbats_sn"].update(publish="../../elsewhere"),
        r"made 'dsbats_sn': key 'publish': .*must be a relative path that stays in its folder",
    ),
    "a row set without rows": (
        "rowsets.yaml",
        lambda v: v.update(dict.fromkeys(v)),
        r"registry/rowsets\.yaml, row set '\w+': the rows must be a list",
    ),
    "tasks of a scale that are a list": (
        "scales.yaml",
        lambda v: v["demo"].update(suites={"sts": {"tasks": ["stsb"]}}),
        r"scales\.yaml, scale 'demo': key 'suites\.sts\.tasks': Input should be a valid dictionary",
    ),
    "a task of a scale that is a list": (
        "scales.yaml",
        lambda v: v["demo"].update(suites={"sts": {"tasks": {"stsb": ["dev"]}}}),
        r"scales\.yaml, scale 'demo': key 'suites\.sts\.tasks\.stsb': Input should be a valid dictionary",
    ),
    "pages of text for a name": (
        "variants.yaml",
        lambda v: v["distilbert"].update(backbone="x" * 5000),
        r"backbone 'x{80}\.\.\.' is not in the registry",
    ),
    "unknown key of a recipe": (
        "variants.yaml",
        lambda v: v["unsup_simcse_bert_base"]["recipe"].update(learnig_rate=1),
        r"variants\.yaml, variant 'unsup_simcse_bert_base', recipe: unknown key 'learnig_rate'; did you mean 'learning_rate'",
    ),
    "unknown key of an objective": (
        "variants.yaml",
        lambda v: v["unsup_simcse"]["recipe"]["objective"].update(temprature=1),
        r"variant 'unsup_simcse_bert_base', recipe, objective: unknown key 'temprature'; did you mean 'temperature'",
    ),
    "unknown kind of an objective": (
        "variants.yaml",
        lambda v: v["unsup_simcse"]["recipe"]["objective"].update(kind="contrastiv"),
        r"objective kind 'contrastiv' is not in sembench/training/objectives; did you mean 'contrastive'",
    ),
    "a parameter of another objective": (
        "variants.yaml",
        lambda v: v["unsup_simcse"]["recipe"]["objective"].update(negatives="third_pairs"),
        r"recipe, objective: unknown key 'negatives'",
    ),
    "a head on another read-out": (
        "variants.yaml",
        lambda v: v["unsup_simcse_distilbert_first_last"]["recipe"]["objective"].update(head="mlp"),
        r"the head 'mlp' belongs on read-out 'cls', not 'first_last'; set head: none",
    ),
    "a read-out to select by": (
        "variants.yaml",
        lambda v: v["unsup_simcse"]["recipe"].update(select_by="clss"),
        r"recipe, select_by: read-out 'clss' is not in the registry; did you mean 'cls'",
    ),
    "a base": (
        "variants.yaml",
        lambda v: v["unsup_simcse_bert_base"].update(extends="unsup_simse"),
        r"variant 'unsup_simse' is not in registry/variants\.yaml; did you mean 'unsup_simcse'",
    ),
    "a circle of bases": (
        "variants.yaml",
        lambda v: v["unsup_simcse"].update(extends="unsup_simcse_bert_base"),
        "extends itself",
    ),
    "a list of bases": (
        "variants.yaml",
        lambda v: v["unsup_simcse_bert_base"].update(extends=["unsup_simcse"]),
        "'extends' must be one name",
    ),
    "a backbone": (
        "variants.yaml",
        lambda v: v["distilbert"].update(backbone="distilbert_base_case"),
        r"backbone 'distilbert_base_case' is not in the registry; did you mean 'distilbert_base_cased'",
    ),
    "a temperature out of range": (
        "variants.yaml",
        lambda v: v["unsup_simcse"]["recipe"]["objective"].update(temperature=-1),
        r"key 'temperature': Input should be greater than 0 \(given: -1\)",
    ),
    "a start": (
        "variants.yaml",
        lambda v: v["analogy_on_simcse_bert"].update(start="unsup_simcse_bert_bas"),
        r"variant 'unsup_simcse_bert_bas' is not in the registry; did you mean 'unsup_simcse_bert_base'",
    ),
    "an untrained start": (
        "variants.yaml",
        lambda v: v["analogy_on_simcse_bert"].update(start="bert_base"),
        r"variant 'analogy_on_simcse_bert': 'bert_base' is not trained; start from a trained variant",
    ),
    "a start on another backbone": (
        "variants.yaml",
        lambda v: v["analogy_on_simcse_bert"].update(start="unsup_simcse_roberta_base"),
        r"'unsup_simcse_roberta_base' has the backbone roberta_base, not bert_base_uncased; use the same",
    ),
    "a circle of starts": (
        "variants.yaml",
        lambda v: v["analogy_bert"].update(start="simcse_on_analogy_bert"),
        r"variant '\w+': starts from itself through '\w+'; break the circle",
    ),
    "an untouched encoder that starts from a run": (
        "variants.yaml",
        lambda v: v["distilbert"].update(start="analogy_distilbert"),
        r"variant 'distilbert': an encoder without a recipe is not trained; drop 'start'",
    ),
    "data that the objective cannot read": (
        "variants.yaml",
        lambda v: v["analogy_distilbert"].update(data="enwiki_sentences"),
        r"'analogy_distilbert': objective relation does not train on enwiki_sentences, which has no column",
    ),
    "a trained variant without data": (
        "variants.yaml",
        lambda v: v["unsup_simcse"].pop("data"),
        r"variant 'unsup_simcse_bert_base': it is trained but names no data; add the key 'data'",
    ),
    "a scale of a variant": (
        "variants.yaml",
        lambda v: v["distilbert"].update(scales={"dmeo": {}}),
        r"variant 'distilbert', scales: scale 'dmeo' is not in the registry; did you mean 'demo'",
    ),
    "a role of a made data set": (
        "made.yaml",
        lambda v: v["dsbats_sn"]["inputs"].update(batz=v["dsbats_sn"]["inputs"].pop("bats")),
        r"made\.yaml, data set 'dsbats_sn', inputs: role 'batz' is not in the registry; did you mean 'bats'",
    ),
    "an input of a made data set": (
        "made.yaml",
        lambda v: v["dsbats_sn"]["inputs"].update(bats="batts"),
        r"made\.yaml, data set 'dsbats_sn', inputs: data set 'batts' is not in the registry; did you mean 'bats'",
    ),
    "a parameter of a maker": (
        "made.yaml",
        lambda v: v["dsbats4cl"].update(rowz=1),
        r"made\.yaml, data set 'dsbats4cl': unknown key 'rowz'; did you mean 'rows'",
    ),
    "a converter": (
        "backbones.yaml",
        lambda v: v["minilm"]["convert"].update(kind="copi"),
        r"backbone 'minilm', convert: converter kind 'copi' is not in sembench/encoders/convert; did you mean 'copy'",
    ),
    "a read-out that the backbone lacks": (
        "backbones.yaml",
        lambda v: v["distilbert_base_cased"].update(readout="pooler"),
        r"backbone 'distilbert_base_cased': read-out 'pooler' is not in the registry",
    ),
    "a transform": (
        "transforms.yaml",
        lambda v: v["whitening_nli"].update(fitted_on="nli_sentence"),
        r"transform 'whitening_nli': data set 'nli_sentence' is not in the registry; did you mean 'nli_sentences'",
    ),
    "a parameter of a protocol": (
        "suites.yaml",
        lambda v: v["transfer"]["defaults"].update(tenasity=3),
        r"suites\.yaml, suite 'transfer', task 'mr': unknown key 'tenasity'; did you mean 'tenacity'",
    ),
    "data that a protocol does not read": (
        "suites.yaml",
        lambda v: v["sts"]["tasks"]["stsb"].update(data="mrpc"),
        r"task 'stsb': protocol sts does not read the format of mrpc \(mrpc\); it reads ",
    ),
    "a task at a scale": (
        "scales.yaml",
        lambda v: v["demo"]["suites"]["geometry"]["tasks"].update(stbs={}),
        r"scale 'demo', suite 'geometry': task 'stbs' is not in suite geometry; did you mean 'stsb'",
    ),
    "a key of a scale": (
        "scales.yaml",
        lambda v: v["demo"].update(sedes=[1]),
        r"scale 'demo': unknown key 'sedes'; did you mean 'seeds'",
    ),
    "a substitute": (
        "scales.yaml",
        lambda v: v["smoke"]["substitutes"].update(wiki_1m="smoke_wikki"),
        "'smoke_wikki' is not in the registry; did you mean 'smoke_wiki'",
    ),
    "a checksum's name": (
        "datasets.yaml",
        lambda v: v["sick"]["files"][0].update(sha265="0"),
        r"dataset 'sick': unknown key 'files\.0\.sha265'; did you mean 'sha256'",
    ),
    "a file outside its folder": (
        "datasets.yaml",
        lambda v: v["sick"]["files"][0].update(name="../../etc/passwd"),
        "relative path that stays in its folder",
    ),
    "a source outside its mirror": (
        "datasets.yaml",
        lambda v: v["sick"]["sources"][0].update(path="../../{name}"),
        "relative path that stays in its folder",
    ),
    "a gain of a gain": (
        "tables/beyond_table_cross.yaml",
        lambda v: v["columns"][3].update(gain_of="gain_srsd"),
        r"column 'gain_stsb'.*gain_of must not name a gain, which 'gain_srsd' is",
    ),
    "a row twice": (
        "tables/beyond_table_cross.yaml",
        lambda v: v["groups"][0]["rows"].append(first_row(v)),
        r"row 'distilbert'.* twice",
    ),
    "a row before": (
        "tables/beyond_table_cross.yaml",
        lambda v: v["groups"][0]["rows"][1].update(before="distilbrt"),
        r"row 'distilbert_simcse'.* 'distilbrt' .*did you mean 'distilbert'",
    ),
    "a column that a gain is of": (
        "tables/beyond_table_cross.yaml",
        lambda v: v["columns"][3].update(gain_of="stsbb"),
        r"column 'gain_stsb'.* 'stsbb' .*did you mean 'stsb'",
    ),
    "a variant of a row": (
        "tables/simcse_table_5.yaml",
        lambda v: first_row(v).update(variant="glove_6b"),
        r"tables/simcse_table_5\.yaml, row 'glove_6b_50d'.*variant 'glove_6b' .*did you mean 'glove_6b_50d'",
    ),
    "a read-out of a row": (
        "tables/simcse_table_5.yaml",
        lambda v: first_row(v).update(readout="mean.whitening_nil"),
        r"row 'glove_6b_50d'.*'whitening_nil' .*did you mean 'whitening_nli'",
    ),
    "a suite of a column": (
        "tables/simcse_table_5.yaml",
        lambda v: v["columns"][0].update(suite="stss"),
        r"column 'sts12'.*suite 'stss' .*did you mean 'sts'",
    ),
    "a task of a column": (
        "tables/simcse_table_5.yaml",
        lambda v: v["columns"][0].update(task="sts21"),
        r"column 'sts12'.*task of suite sts 'sts21' .*did you mean 'sts",
    ),
    "a metric of a column": (
        "tables/simcse_table_5.yaml",
        lambda v: v["columns"][0].update(metric="spearmann"),
        r"column 'sts12'.*metric 'spearmann' .*did you mean 'spearman'",
    ),
    "a scale of a column": (
        "tables/simcse_table_5.yaml",
        lambda v: v["columns"][0].update(scales=["ful"]),
        r"column 'sts12'.*scale 'ful' .*did you mean 'full'",
    ),
    "a scale of a row": (
        "tables/simcse_table_5.yaml",
        lambda v: first_row(v).update(scales=["ful"]),
        r"row 'glove_6b_50d'.*scale 'ful' .*did you mean 'full'",
    ),
    "a column of a claim": (
        "tables/simcse_table_5.yaml",
        lambda v: v["claims"][0].update(column="stsbb"),
        r"claim.*'stsbb' .*did you mean 'stsb'",
    ),
    "a scale of a claim": (
        "tables/simcse_table_5.yaml",
        lambda v: v["claims"][0].update(scales=["ful"]),
        r"claim.*scale 'ful' .*did you mean 'full'",
    ),
    "a row set": (
        "tables/analogy_table_sts.yaml",
        lambda v: v["groups"][0].update(rows_of="nowhere"),
        r"tables/analogy_table_sts\.yaml: row set 'nowhere' is not in registry/rowsets\.yaml",
    ),
    "a word in braces": (
        "variants.yaml",
        lambda v: v["augmented_{encoder}_synonym"].update(summary="{titel} on synonyms"),
        r"variants\.yaml, entry 'augmented_\{encoder\}_synonym': word in braces 'titel' .*did you mean 'title'",
    ),
    "a variant written out that an entry with braces is already": (
        "variants.yaml",
        lambda v: v.update(augmented_distilbert_synonym=v["distilbert"]),
        r"variants\.yaml: 'augmented_distilbert_synonym' is there twice, once by 'augmented_distilbert_synonym'; rename",
    ),
    "a word in braces that is no part of a name": (
        "variants.yaml",
        lambda v: v.update({"on_{title}": v["distilbert"]}),
        r"variants\.yaml, names of entries: key 'names\.\d+': String should match pattern",
    ),
    "a key of a family": (
        "families.yaml",
        lambda v: v["distilbert"].update(unsupervised="distilbert"),
        r"families\.yaml, family 'distilbert': unknown key 'unsupervised'",
    ),
    "a scale at which a view is built by name": (
        "tables/simcse_table_1.yaml",
        lambda v: v.update(by_name=["demoo"]),
        r"simcse_table_1\.yaml, by_name: scale 'demoo' .*did you mean 'demo'",
    ),
    "a suite of a figure": (
        "figures/simcse_figure_3.yaml",
        lambda v: v["colour"].update(suite="stss"),
        r"figures/simcse_figure_3\.yaml.*suite 'stss' .*did you mean 'sts'",
    ),
    "a scale of a point": (
        "figures/simcse_figure_3.yaml",
        lambda v: v["points"][0].update(scales=["ful"]),
        r"figures/simcse_figure_3\.yaml.*scale 'ful' .*did you mean 'full'",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_named(registry_copy: Path, mistake: str) -> None:
    file, change, message = MISTAKES[mistake]
    edit(registry_copy, file, change)
    with pytest.raises(SembenchError, match=message) as caught:
        load_registry(registry_copy)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("file", "more", "message"),
    [
        ("suites.yaml", "\nsts: {title: [}\n", r"registry/suites\.yaml, line \d+"),
        ("readouts.yaml", "\ncls: {title: again, summary: again}\n", "the key 'cls' is written twice"),
        ("readouts.yaml", "\nbad: {title: \x07}\n", r"readouts\.yaml is not plain UTF-8 text"),
        ("readouts.yaml", "\nx: " + "[" * 3000 + "\n", r"readouts\.yaml"),
        (
            "readouts.yaml",
            "\nx: 2020-02-30\n",
            r"readouts\.yaml has a value that YAML cannot read .*; put it in quotes",
        ),
        ("readouts.yaml", "\nx: !!int x\n", r"readouts\.yaml has a value that YAML cannot read"),
        ("readouts.yaml", "\nx: !!timestamp x\n", r"readouts\.yaml has a value that YAML cannot read"),
        (
            "readouts.yaml",
            "\nx: !!python/object:os.system x\n",
            r"readouts\.yaml, line \d+: could not determine a constr",
        ),
        ("paper_values.csv", "simcse,simcse_table_5,glove_avg,other,6l.32,\n", r"line \d+: '6l\.32' is not a number"),
        ("paper_values.csv", "simcse,simcse_table_5,glove_avg,other,nan,\n", r"line \d+: 'nan' is not a number"),
        ("paper_values.csv", "simcse,simcse_table_5,glove_avg,avg,61.32,\n", "glove_avg, avg' is listed twice"),
        ("paper_values.csv", "simcse,simcse_table_55,glove_avg,avg,61.32,\n", "did you mean 'simcse_table_5'"),
        ("paper_values.csv", "simcse,simcse_table_5,glove_avgg,avg,61.32,\n", "'glove_avgg'.*did you mean 'glove_avg'"),
        ("paper_values.csv", "simcse,simcse_table_5,glove_avg,avgg,61.32,\n", "'avgg'.*did you mean 'avg'"),
        ("paper_values.csv", "simcse,simcse_table_5,glove_avg\n", r"line \d+: 6 columns are needed"),
    ],
)
def test_damaged_files_are_one_sentence(registry_copy: Path, file: str, more: str, message: str) -> None:
    path = registry_copy / "registry" / file
    path.write_text(path.read_text() + more)
    with pytest.raises(SembenchError, match=message) as caught:
        load_registry(registry_copy)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_utf8_is_named(registry_copy: Path) -> None:
    (registry_copy / "registry/suites.yaml").write_bytes(b"sts: \xff\xfe\n")
    with pytest.raises(SembenchError, match=r"suites\.yaml is not plain UTF-8 text"):
        load_registry(registry_copy)


def test_braces_and_formulas_in_a_caption_are_text(registry_copy: Path) -> None:
    edit(registry_copy, "tables/simcse_table_5.yaml", lambda v: v.update(caption=r"SimCSE{base} and $\mathcal{L}$"))
    plan = Plan("demo", root=registry_copy)
    assert len(plan.view_digest("simcse_table_5")) == 8


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        (
            "contrastive",
            {"batch_size": 1},
            "here: key 'batch_size': the rows of a batch are each other's negatives for",
        ),
        (
            "supervised",
            {"rows": 1},
            r"here: key 'rows': the rows .*'supervised', so there must be at least 2 \(given: 1\)",
        ),
        ("pairs", {"batch_size": 0}, r"key 'batch_size': Input should be greater than 0 \(given: 0\)"),
        (
            "contrastive",
            {"learning_rate": -1e-5},
            r"key 'learning_rate': Input should be greater than 0 \(given: -1e-05\)",
        ),
        ("contrastive", {"eval_every": 0}, r"key 'eval_every': Input should be greater than 0 \(given: 0\)"),
        ("contrastive", {"max_length": 2}, r"key 'max_length': Input should be greater than 2 \(given: 2\)"),
        ("contrastive", {"dropout": 1}, r"key 'dropout': Input should be less than 1 \(given: 1\)"),
        (
            "contrastive",
            {"objective.temperature": 0},
            r"here, objective: key 'temperature': Input should be greater than 0",
        ),
        (
            "relation",
            {"objective.temperature": 0},
            r"here, objective: key 'temperature': Input should be greater than 0",
        ),
        ("supervised", {"objective.hard_negative_weight": -1}, r"'hard_negative_weight': .* equal to 0 \(given: -1\)"),
    ],
)
def test_a_recipe_that_can_teach_nothing_is_refused(kind: str, given: dict[str, float], message: str) -> None:
    recipe: dict[str, object] = {key: value for key, value in given.items() if "." not in key}
    own = {key.partition(".")[2]: value for key, value in given.items() if "." in key}
    with pytest.raises(SembenchError, match=message):
        training_of({**recipe, "objective": {"kind": kind, **own}}, "here")


@pytest.mark.parametrize("kind", ["softmax", "defsent", "relation"])
def test_a_single_row_is_enough_where_rows_are_not_compared(kind: str) -> None:
    assert training_of({"batch_size": 1, "rows": 1, "objective": {"kind": kind}}, "here").recipe.batch_size == 1


@pytest.mark.parametrize("name", ["all", "score", "collect_scores", "fetch_sick", "make_x", "build_backbone_minilm"])
def test_a_table_may_not_take_the_name_of_a_target(registry_copy: Path, name: str) -> None:
    path = registry_copy / "registry/tables"
    (path / f"{name}.yaml").write_text((path / "simcse_table_5.yaml").read_text())
    with pytest.raises(SembenchError, match=rf"tables/{name}\.yaml: the name '{name}' is taken; rename the file"):
        load_registry(registry_copy)


def test_the_names_of_all_rules_are_taken() -> None:
    text = "\n".join(path.read_text() for path in (ROOT / "Snakefile", *(ROOT / "rules").glob("*.smk")))
    assert set(re.findall(r"^rule (\w+):", text, re.MULTILINE)) == TAKEN
    assert {*re.findall(r'f"(\w+_)\{[\w.]+\}"\n', text)} == {*TAKEN_PREFIXES}


@pytest.mark.parametrize(
    ("folder", "file"),
    [("analogy", r"results/demo/analogy/\w+\.\w+"), ("tables", r"results/demo/tables/\w+\.\w+")],
)
def test_what_is_published_has_a_place_of_its_own(registry_copy: Path, folder: str, file: str) -> None:
    edit(registry_copy, "made.yaml", lambda v: v.update(mine={**v["dsbats_sn"], "publish": folder}))
    with pytest.raises(SembenchError, match=rf"data set 'mine': {file} is written by something else as well; give"):
        Jobs(Plan("demo", root=registry_copy)).published  # noqa: B018


def test_extends_merges_deeply_and_later_values_win() -> None:
    entry = load_registry(ROOT).variant("unsup_simcse_distilbert_first_last")
    assert entry.recipe is not None
    assert entry.recipe["learning_rate"] == 2.0e-4
    assert entry.recipe["objective"] == {"kind": "contrastive", "readout": "first_last", "head": "none"}
    assert entry.data == "enwiki_sentences"
