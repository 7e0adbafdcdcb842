"""Makers of the analogy data sets on invented words, what every maker promises, and the entries that choose one."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from sembench.analogy.columns import FRAME_COLUMNS, OPEN_COLUMNS, ROLES
from sembench.analogy.folds import HELD_OUT
from sembench.analogy.inventory import cache
from sembench.analogy.inventory.wordnet import WordNetInventory
from sembench.core.errors import SembenchError
from sembench.core.plugin import MAKERS, Chosen
from sembench.core.schema import Strict
from sembench.data.frames import read_examples
from sembench.data.maker import Maker

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "tests/fixtures"
RELATIONS = ["E06", "E07", "E08", "E09"]
MADE: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "registry/made.yaml").read_text())
# Keys of an entry that are no parameters of its maker.
COMMON = ("title", "licence", "cite", "inputs", "settings", "publish")


def chosen(name: str, **params: Any) -> Chosen[Any]:
    """Return the maker of an entry of registry/made.yaml, some of its parameters replaced."""
    entry = {key: value for key, value in MADE[name].items() if key not in COMMON}
    return MAKERS.parse({**entry, **params}, name)


def make(name: str, target: Path, inputs: dict[str, Path], root: Path = ROOT, **params: Any) -> dict[str, Any]:
    made = chosen(name, **params)
    made.plugin.check(made.config, root)
    facts: dict[str, Any] = made.plugin.make(made.config, inputs, target, root, lambda line: None)
    assert all((target / file).is_file() for file in made.plugin.files)
    return facts


# ---------------------------------------------------------------------------------------------------------------------
# What every maker promises
# ---------------------------------------------------------------------------------------------------------------------

# Those of other test files are made there; each kind must be made somewhere.
KINDS = {
    "caption_pairs",
    "concatenated",
    "crop",
    "duplicate_questions",
    "lines",
    "mlm_replacement",
    "next_sentences",
    "nli_csv",
    "nli_label_pairs",
    "nli_pairs",
    "nli_quadruplets",
    "nli_sentences",
    "nli_triplets",
    "paraphrases",
    "synonym_replacement",
    "word_deletion",
    "dsbats_sn",
    "dsbats4cl",
    "dsbats_open",
    "wordnet",
}


def test_every_maker_says_what_it_is() -> None:
    assert set(MAKERS.modules) >= KINDS
    for kind in MAKERS.modules:
        maker = MAKERS.get(kind)
        assert issubclass(maker, Maker) and issubclass(maker.Config, Strict) and maker.version >= 1, kind
        assert set(maker.encoders) <= {*maker.roles, *maker.optional_roles}, kind
        assert maker.files and maker.roles and not set(maker.roles) & set(maker.optional_roles), kind
        assert (maker.examples in maker.files) == bool(maker.columns), kind
        assert isinstance(maker.reads(maker.Config()), tuple) and maker.extra(maker.Config(), ROOT) == "", kind


def test_planning_loads_no_heavy_library() -> None:
    code = (
        "import sys; from sembench.core.plugin import MAKERS; import sembench.analogy.columns\n"
        "[MAKERS.get(kind) for kind in MAKERS.modules]\n"
        "print([name for name in ('torch', 'transformers', 'numpy', 'pandas', 'scipy', 'nltk') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "[]"


def test_the_entries_choose_makers_and_name_their_inputs() -> None:
    datasets = yaml.safe_load((ROOT / "registry/datasets.yaml").read_text())
    backbones = yaml.safe_load((ROOT / "registry/backbones.yaml").read_text())
    config = yaml.safe_load((ROOT / "config.yaml").read_text())
    assert not set(MADE) & set(datasets)
    for name, entry in MADE.items():
        assert entry["title"] and entry["licence"]
        if entry["kind"] not in MAKERS.modules:
            continue
        made = chosen(name)
        for role, source in entry["inputs"].items():
            assert source in (backbones if role in made.plugin.encoders else {*datasets, *MADE}), name
        allowed = {*made.plugin.roles, *made.plugin.optional_roles}
        assert set(made.plugin.roles) <= set(entry["inputs"]) <= allowed, name
        for parameter, key in entry.get("settings", {}).items():
            assert parameter in made.config.model_dump() and key in config, name


def test_fixtures_have_the_rows_that_the_registry_says() -> None:
    datasets = yaml.safe_load((ROOT / "registry/datasets.yaml").read_text())
    names = ("nli", "nli_csv", "multinli", "anli", "qqp", "flickr30k", "paranmt", "running", "trec", "subj")
    for name in (f"smoke_{each}" for each in names):
        entry = datasets[name]
        for file in entry["files"]:
            path = FIXTURES / entry["sources"][0]["path"].format(name=file["name"])
            assert len(path.read_text().splitlines()) - file.get("header", False) == file["rows"], path
    questions = (FIXTURES / "trec/train_5500.label").read_text().splitlines()
    classes = Counter(line.partition(":")[0] for line in questions)
    assert len(classes) == 6 and min(classes.values()) >= 10


# ---------------------------------------------------------------------------------------------------------------------
# The analogy data sets on invented words
# ---------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Invented words, their WordNet laid out, and a dictionary."""
    target = tmp_path_factory.mktemp("wordnet")
    facts = make("wordnet_database", target, {"files": FIXTURES / "analogy/wordnet"}, princeton=False)
    assert facts["bytes"] == sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    analogy = FIXTURES / "analogy"
    return {"bats": analogy / "mini_bats", "wordnet": target, "dictionary": analogy / "gcide"}


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory, inputs: dict[str, Path]) -> Path:
    """DSBATS-sn of four relations."""
    target = tmp_path_factory.mktemp("dsbats_sn")
    senses = {role: inputs[role] for role in ("bats", "wordnet")}
    facts = make("dsbats_sn", target, senses, relations=RELATIONS)
    assert facts == {"rows": 104, "relations": 4, "word_pairs": 104, "not_found": 0}
    return target


def lines_of(folder: Path) -> Counter[str]:
    """Return the number of word pairs of the invented BATS by relation."""
    return Counter(
        {
            path.name[:3]: sum(line.count("/") + 1 for line in path.read_text().splitlines())
            for path in folder.rglob("*.txt")
            if path.name[:3] in RELATIONS
        }
    )


def test_wordnet_is_read_where_it_was_laid(inputs: dict[str, Path]) -> None:
    inventory = WordNetInventory(inputs["wordnet"] / "corpora" / "wordnet")
    assert len(inventory) > 50
    assert not (inputs["wordnet"] / "corpora/wordnet/data.noun").stat().st_mode & 0o022


def test_another_database_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SembenchError, match=r"data\.noun is not WordNet 3\.0"):
        make("wordnet_database", tmp_path / "out", {"files": FIXTURES / "analogy/wordnet"})


def test_definition_pairs_and_their_companions(pairs: Path, inputs: dict[str, Path]) -> None:
    frame = read_examples(pairs / "dsbats_sn.parquet", FRAME_COLUMNS)
    sizes = pd.read_csv(pairs / "sizes.csv", index_col="relation")
    # Every invented word has one sense and one definition, so word pairs are definition pairs.
    assert sizes["word_pairs"].to_dict() == sizes["definition_pairs"].to_dict() == dict(lines_of(inputs["bats"]))
    assert Counter(frame["relation"]) == lines_of(inputs["bats"])
    report = pd.read_csv(pairs / "filter_report.tsv", sep="\t", keep_default_na=False)
    assert list(report.columns) == ["relation", "side", "word", "synset", "kept", "reason", "gloss"]
    assert (report["kept"] == (report["reason"] == "")).all()
    assert (pairs / "not_found.tsv").read_text() == "relation\tside\tword\n"


def test_rows_of_three_pairs_keep_the_held_out_words_away(pairs: Path, tmp_path: Path) -> None:
    frame = read_examples(pairs / "dsbats_sn.parquet", FRAME_COLUMNS)
    held = set((frame["source"] + "|" + frame["target"])[frame["fold"] == HELD_OUT])
    assert held
    for name, shown in (("dsbats4cl", True), ("dsbats4cl_held_out", False)):
        facts = make(name, tmp_path / name, {"pairs": pairs}, rows=60)
        rows = pd.read_parquet(tmp_path / name / "dsbats4cl.parquet")
        used = len(frame) if shown else int((frame["fold"] != HELD_OUT).sum())
        assert facts == {"rows": 240, "relations": 4, "definition_pairs": used}
        words = {word for role in ROLES for word in rows[f"{role}_pair"]}
        assert bool(words & held) is shown
        for role in ROLES:
            exchanged = rows[f"{role}_inverted"]
            sources = rows[f"{role}_source_gloss"].where(~exchanged, rows[f"{role}_target_gloss"])
            kept = frame if shown else frame[frame["fold"] != HELD_OUT].reset_index(drop=True)
            assert sources.tolist() == kept["source_gloss"].iloc[rows[f"{role}_row"]].tolist()


def test_the_test_set_of_the_dictionary(inputs: dict[str, Path], tmp_path: Path) -> None:
    facts = make("dsbats_open", tmp_path / "out", inputs, relations=RELATIONS)
    assert facts == {"rows": 104, "relations": 4, "written": 0}
    frame = read_examples(tmp_path / "out" / "dsbats_open.parquet", [*OPEN_COLUMNS, "fold"])
    assert set(frame["origin"]) == {"GCIDE"}
    with (tmp_path / "out" / "open_sizes.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert {row["relation"]: int(row["definition_pairs"]) for row in rows} == dict(lines_of(inputs["bats"]))
    assert all(row["GCIDE"] == row["definition_pairs"] for row in rows)


def test_a_test_set_of_ones_own_takes_its_place(inputs: dict[str, Path], tmp_path: Path) -> None:
    own = tmp_path / "mine.tsv"
    head = "relation\tsource\ttarget\tsource_sentence\ttarget_sentence\n"
    own.write_text(
        f"{head}E06\tcat\tkitten\tA small beast.\tIts young.\nL01\tcat\tbeast\tA small beast.\tA living thing.\n"
    )
    facts = make("dsbats_open", tmp_path / "out", inputs, relations=RELATIONS, own=str(own))
    assert facts == {"rows": 1, "relations": 1, "written": 1}
    frame = pd.read_parquet(tmp_path / "out" / "dsbats_open.parquet")
    assert frame.loc[0, OPEN_COLUMNS].tolist() == ["E06", "cat", "kitten", "A small beast.", "Its young.", "own"]
    with pytest.raises(
        SembenchError, match=r"mine\.tsv has no pair of the relations E07, E08; add some to 'relations'"
    ):
        make("dsbats_open", tmp_path / "out", inputs, relations=["E07", "E08"], own=str(own))
    with pytest.raises(SembenchError, match=r"there is no file .*gone\.tsv'; correct the key 'srsd_pairs'"):
        make("dsbats_open", tmp_path / "out", inputs, own="gone.tsv")


# ---------------------------------------------------------------------------------------------------------------------
# What a key is made of
# ---------------------------------------------------------------------------------------------------------------------


def test_every_file_that_is_read_is_declared(inputs: dict[str, Path], pairs: Path, tmp_path: Path) -> None:
    """A project with nothing but the declared files is enough, so none can change unseen."""
    given = {
        "dsbats_sn": {role: inputs[role] for role in ("bats", "wordnet")},
        "dsbats4cl": {"pairs": pairs},
        "dsbats_open": inputs,
    }
    for name, roles in given.items():
        made = chosen(name)
        root = tmp_path / name
        for file in made.plugin.reads(made.config):
            (root / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / file, root / file)
        params: dict[str, Any] = {"rows": 20} if name == "dsbats4cl" else {"relations": RELATIONS}
        assert make(name, root / "out", roles, root=root, **params)["rows"] > 0
        for file in made.plugin.reads(made.config):
            (root / file).rename(root / "away")
            with pytest.raises(SembenchError, match=Path(file).name):
                make(name, root / "again", roles, root=root, **params)
            (root / "away").rename(root / file)


def test_a_users_files_are_read_too() -> None:
    dump = chosen("dsbats_sn", inventory="dump", dump="/home/me/senses.jsonl.gz")
    assert "/home/me/senses.jsonl.gz" in dump.plugin.reads(dump.config)
    own = chosen("dsbats_open", own="mine.tsv")
    assert own.plugin.reads(own.config)[-1] == "mine.tsv"
    assert chosen("dsbats_open").plugin.reads(chosen("dsbats_open").config)[-1] == "registry/dsbats_open.tsv"


def test_stored_answers_of_babelnet_decide_too(tmp_path: Path) -> None:
    made = chosen("dsbats_sn", inventory="babelnet")
    before = made.plugin.extra(made.config, tmp_path)
    answers = cache.AnswerCache(tmp_path / cache.FOLDER)
    answers.put("getSynset", {"id": "bn:00000001n"}, 200, {"senses": []})
    after = made.plugin.extra(made.config, tmp_path)
    assert len(after) == 16 and after != before
    answers.put("getSynset", {"id": "bn:00000001n"}, 200, {"senses": []})
    assert made.plugin.extra(made.config, tmp_path) == after
    # A temporary file of a process that was killed is no answer.
    (next((tmp_path / cache.FOLDER).rglob("*.json")).parent / ".x.json").write_text("")
    assert made.plugin.extra(made.config, tmp_path) == after
    wordnet = chosen("dsbats_sn")
    assert wordnet.plugin.extra(wordnet.config, tmp_path) == ""


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"inventory": "dump"}, "'inventory: dump' and 'dump: FILE' belong together"),
        ({"dump": "x.jsonl"}, "belong together"),
        ({"inventory": "wordnetz"}, "key 'inventory'"),
        ({"relations": ["E70"]}, r"relation 'E70' is not in BATS 3\.0"),
        ({"relations": []}, "key 'relations'"),
        ({"sense": 3}, "unknown key 'sense'; did you mean 'senses'"),
    ],
)
def test_mistakes_in_parameters(params: dict[str, Any], message: str) -> None:
    with pytest.raises(SembenchError, match=f"dsbats_sn: .*{message}"):
        chosen("dsbats_sn", **params)


def test_relations_without_rules_are_found_before_anything_runs() -> None:
    for name in ("dsbats_sn", "dsbats_open"):
        made = chosen(name, relations=["D01"])
        with pytest.raises(SembenchError, match=r"relation D01 has no filter in registry/relations\.yaml"):
            made.plugin.check(made.config, ROOT)
    made = chosen("dsbats_sn", inventory="dump", dump="gone.jsonl")
    with pytest.raises(SembenchError, match=r"there is no file '.*gone\.jsonl'; correct the key 'dump'"):
        made.plugin.check(made.config, ROOT)


def test_only_wordnet_is_asked_for_every_part_of_speech() -> None:
    assert chosen("dsbats_sn").config.options.every_pos
    assert not chosen("dsbats_sn", inventory="babelnet").config.options.every_pos
    assert not chosen("dsbats_sn", every_pos=False).config.options.every_pos
    json.dumps(chosen("dsbats_sn").params)
