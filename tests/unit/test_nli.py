"""Inference data: every published form, triplets against a naive loop, the authors' csv file. All texts are invented."""

from __future__ import annotations

import io
import itertools
import json
import os
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from sembench.core.errors import SembenchError
from sembench.core.plugin import MAKERS
from sembench.data.frames import read_examples
from sembench.data.readers.nli import Inference, Judged, read_inference
from sembench.data.readers.nli_csv import MISSING, read_triplets

FIXTURES = Path(__file__).parents[1] / "fixtures/nli"


def make(kind: str, target: Path, inputs: dict[str, Path], **params: Any) -> tuple[pd.DataFrame, dict[str, Any]]:
    chosen = MAKERS.parse({"kind": kind, **params}, "test")
    facts = chosen.plugin.make(chosen.config, inputs, target, Path("/nowhere"), lambda line: None)
    assert sorted(path.name for path in target.iterdir()) == sorted(chosen.plugin.files)
    frame = read_examples(target / chosen.plugin.examples, chosen.plugin.columns)
    assert tuple(frame.columns) == chosen.plugin.columns
    return frame, facts


# ---------------------------------------------------------------------------------------------------------------------
# Readers
# ---------------------------------------------------------------------------------------------------------------------

PAIRS = [
    ("A kite flies.", "Something is in the air.", "entailment"),
    ("A kite flies.", "The kite is red.", "neutral"),
    ("A kite flies.", "The kite lies in a box.", "contradiction"),
    ("Two goats eat.", "Goats are there.", "-"),
    ("Two goats\u2028eat.", "Animals, two of them, eat.", "entailment"),
]
JUDGED = [Judged(*pair) for pair in PAIRS if pair[2] != "-"]


def write_jsonl(folder: Path) -> None:
    rows = [{"gold_label": label, "sentence1": f" {a}", "sentence2": f"{b}\n", "genre": "x"} for a, b, label in PAIRS]
    (folder / "made_1.0_train.jsonl").write_text("\n".join(json.dumps(row) for row in rows) + "\n\n", encoding="utf-8")


def write_txt(folder: Path) -> None:
    lines = ["gold_label\tparse\tsentence1\tsentence2\tpairID\tlabel1"]
    # The last line lacks the labels of single annotators, as lines of SNLI do. Quotation marks are text.
    lines += [f"{label}\t( ( x\t{a}\t{b}\tp" for a, b, label in PAIRS]
    (folder / "made_1.0_train.txt").write_bytes(("\r\n".join(lines) + "\r\n").encode())


def write_parallel(folder: Path) -> None:
    for name, column in zip(("s1", "s2", "labels"), zip(*PAIRS, strict=True), strict=True):
        (folder / f"{name}.train").write_text("".join(f"{text}\n" for text in column), encoding="utf-8")


def write_csv(folder: Path) -> None:
    rows = [(a, b, "why", label[0]) for a, b, label in PAIRS]
    frame = pd.DataFrame(rows, columns=["context", "statement", "reason", "gold_label"])
    frame.to_csv(folder / "Made_r1_train.csv", index=False)


@pytest.mark.parametrize("write", [write_jsonl, write_txt, write_parallel, write_csv])
def test_every_form_gives_the_same_pairs(tmp_path: Path, write: Any) -> None:
    write(tmp_path)
    (tmp_path / "made.json").write_text("{}")
    assert read_inference([tmp_path], ["train"]) == Inference(JUDGED, unlabelled=1, blank=0)


def test_splits_and_sets_follow_each_other(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    rows = {"a/x_train": "one", "a/x_dev_matched": "two", "a/x_dev_mismatched": "three", "b/x.dev.en": "four"}
    for name, text in rows.items():
        line = {"gold_label": "neutral", "sentence1": text, "sentence2": "h"}
        other = {**line, "language": "de", "sentence1": "nicht"}
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(line) + "\n" + json.dumps(other) + "\n")
    found = read_inference([tmp_path / "a", tmp_path / "b"], ["dev"])
    assert [pair.premise for pair in found.pairs] == ["two", "three", "four"]


def test_pairs_without_text_are_counted(tmp_path: Path) -> None:
    (tmp_path / "labels.dev").write_text("neutral\nneutral\n-\n")
    (tmp_path / "s1.dev").write_text("a\n \n \n")
    (tmp_path / "s2.dev").write_text("\nb\nb\n")
    assert read_inference([tmp_path], ["dev"]) == Inference([], unlabelled=1, blank=2)


HEAD = "gold_label\tsentence1\tsentence2\n"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "x_train.jsonl",
            b'{"gold_label": "neutral", "sentence1": "a", "sentence2": "b"}\n{"gold',
            "line 2 is not a JSON",
        ),
        ("x_train.jsonl", b"[1]\n", "line 1 is not a JSON object"),
        ("x_train.jsonl", b'{"gold_label": "neutral", "sentence1": "a"}\n', "line 1: no text under 'sentence2'"),
        (
            "x_train.jsonl",
            b'{"gold_label": 1, "sentence1": "a", "sentence2": "b"}',
            "line 1: no text under 'gold_label'",
        ),
        (
            "x_train.jsonl",
            b'{"gold_label": "maybe", "sentence1": "a", "sentence2": "b"}',
            "line 1: the label 'maybe' is",
        ),
        ("x_train.jsonl", b"\n\n\xff\n", "line 3 is not UTF-8"),
        ("x_train.txt", f"{HEAD}neutral\ta\tb\nneutral\ta\n".encode(), "line 3: 2 cells separated by TABs, 3 are"),
        ("x_train.txt", f"{HEAD}yes\ta\tb\n".encode(), "line 2: the label 'yes' is none of entailment, neutral"),
        ("x_train.txt", b"gold\ta\tb\n", "line 1: the header has no column 'sentence1'"),
        ("x_train.csv", b"context,hypothesis,label\na,b\n", "line 2: 2 cells where the header has 3"),
        ("x_train.csv", b"context,hypothesis,label\na,b,e\na,b,q\n", "line 3: the label 'q' is none of"),
        ("x_train.csv", b"context,hypothesis,label\na,b,e\na,\xff,e\n", "line 3 is not UTF-8"),
        ("x_train.csv", b"context,hypothesis,label\na," + b"b" * 140000, "line 2 cannot be read"),
        ("s1.train", b"a\n", "s2.train is missing"),
        ("notes_train.md", b"a\n", "has no file of the split 'train'; correct 'splits'"),
    ],
)
def test_what_is_malformed_names_file_and_line(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SembenchError, match=message) as error:
        read_inference([tmp_path], ["train"])
    assert str(tmp_path) in str(error.value)


def test_parallel_files_have_one_length_and_a_split_has_one_form(tmp_path: Path) -> None:
    write_parallel(tmp_path)
    (tmp_path / "labels.train").write_text("neutral\n")
    with pytest.raises(SembenchError, match=r"different numbers of lines \(s1.train 5, s2.train 5, labels.train 1\)"):
        read_inference([tmp_path], ["train"])
    write_txt(tmp_path)
    with pytest.raises(SembenchError, match=r"has files in 2 forms \(parallel, txt\) of the split 'train'"):
        read_inference([tmp_path], ["train"])


def test_a_wrong_label_of_parallel_files_names_the_label_file(tmp_path: Path) -> None:
    write_parallel(tmp_path)
    (tmp_path / "labels.train").write_text("neutral\nneutral\nwhat\nneutral\nneutral\n")
    with pytest.raises(SembenchError, match=r"labels\.train, line 3: the label 'what'"):
        read_inference([tmp_path], ["train"])


# ---------------------------------------------------------------------------------------------------------------------
# Triplets
# ---------------------------------------------------------------------------------------------------------------------

# The fixture has 14 premises with three labels each and two entailments more; the contradiction of premise 13 has no gold
# label.
FIXTURE_FACTS = {"entailment": 16, "neutral": 14, "contradiction": 13, "unlabelled": 1, "blank": 0}
WORLD = [
    ("p one", "e1", "entailment"),
    ("p two", "n1", "neutral"),
    ("p one", "c1", "contradiction"),
    ("p one", "e2", "entailment"),
    ("P  one", "c2", "contradiction"),
    ("p one", "c3", "contradiction"),
    ("p two", "e3", "entailment"),
    ("p two", "c4", "contradiction"),
    ("p two", "c5", "contradiction"),
    ("p three", "e4", "entailment"),
    ("p-three", "c6", "contradiction"),
    ("p four", "c7", "contradiction"),
]


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """A folder with the invented pairs, SNLI's form."""
    folder = tmp_path / "world"
    folder.mkdir()
    rows = [{"sentence1": a, "sentence2": b, "gold_label": label} for a, b, label in WORLD]
    (folder / "w_train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def plain(text: str, normalise: str) -> str:
    if normalise == "letters":
        return "".join(letter for letter in text.lower() if letter.isalnum())
    text = text.lower() if normalise == "case" else text
    return text if normalise == "none" else " ".join(text.split())


def naive(normalise: str, every: bool, all_labels: bool, per_premise: str) -> list[set[tuple[str, str, str]]]:
    """Return, for each triplet that is to be made, the set of those that it may be."""
    wanted = []
    for key in dict.fromkeys(plain(row[0], normalise) for row in WORLD):
        rows = [row for row in WORLD if plain(row[0], normalise) == key]
        text = rows[0][0]
        by = {name: [row[1] for row in rows if row[2] == name] for name in ("entailment", "neutral", "contradiction")}
        if not by["entailment"] or not by["contradiction"] or (all_labels and not by["neutral"]):
            continue
        positives = [[one] for one in by["entailment"]] if per_premise == "all" else [by["entailment"]]
        negatives = [[one] for one in by["contradiction"]] if every else [by["contradiction"]]
        wanted += [set(itertools.product([text], a, b)) for a in positives for b in negatives]
    return wanted


@pytest.mark.parametrize("normalise", ["none", "spaces", "case", "letters"])
@pytest.mark.parametrize("per_premise", ["one", "all"])
@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("all_labels", [False, True])
def test_triplets_follow_their_rules(
    tmp_path: Path, world: Path, normalise: str, per_premise: str, every: bool, all_labels: bool
) -> None:
    params = {"contradictions": "all" if every else "one", "require_all_labels": all_labels, "normalise": normalise}
    wanted = naive(normalise, every, all_labels, per_premise)
    for seed in range(3):
        frame, facts = make(
            "nli_triplets", tmp_path / "out", {"snli": world}, per_premise=per_premise, seed=seed, **params
        )
        rows = list(frame.itertuples(index=False, name=None))
        assert facts["rows"] == len(rows) == len(wanted)
        assert all(row in allowed for row, allowed in zip(rows, wanted, strict=True))
        assert facts["anchors"] == len({row[0] for row in rows})
        assert facts["duplicate_anchors"] == pytest.approx(1 - facts["anchors"] / len(rows), abs=1e-6)


def test_choosing_is_seeded_and_reaches_every_hypothesis(tmp_path: Path, world: Path) -> None:
    def chosen(**params: Any) -> list[tuple[str, ...]]:
        frame, _ = make("nli_triplets", tmp_path / "out", {"snli": world}, **params)
        return list(frame.itertuples(index=False, name=None))

    assert chosen(choose="first", seed=5) == [("p one", "e1", "c1"), ("p two", "e3", "c4")]
    assert chosen(seed=3) == chosen(seed=3)
    drawn = {row for seed in range(40) for row in chosen(seed=seed)}
    assert {row[1:] for row in drawn if row[0] == "p one"} == set(itertools.product(("e1", "e2"), ("c1", "c3")))


def test_triplets_of_the_fixture_by_hand(tmp_path: Path) -> None:
    frame, facts = make("nli_triplets", tmp_path / "one", {"snli": FIXTURES})
    assert facts == {
        **FIXTURE_FACTS,
        **{"premises": 14, "with_both": 13, "with_all": 13, "rows": 13, "anchors": 13, "duplicate_anchors": 0.0},
    }
    assert frame.iloc[0]["negative"] == "A baker is sleeping until noon."
    _, facts = make("nli_triplets", tmp_path / "all", {"snli": FIXTURES, "mnli": FIXTURES}, per_premise="all")
    # 13 premises, two of them with a second entailment, each twice.
    assert (facts["rows"], facts["entailment"], facts["premises"]) == (30, 32, 14)
    assert facts["duplicate_anchors"] == pytest.approx(1 - 13 / 30, abs=1e-6)


def test_the_official_rows_are_explained_or_not(tmp_path: Path, world: Path) -> None:
    official = tmp_path / "official"
    official.mkdir()
    rows = ["p one,e2,c1", "p one ,e1,c3", "p one,e1,c2", "p two,c4,e3", "nowhere,e1,c1"]
    (official / "nli_for_simcse.csv").write_text("sent0,sent1,hard_neg\n" + "\n".join(rows) + "\n")
    _, facts = make("nli_triplets", tmp_path / "a", {"snli": world, "official": official})
    assert (facts["official_rows"], facts["official_explained"]) == (5, 2)
    _, facts = make("nli_triplets", tmp_path / "b", {"snli": world, "official": official}, normalise="case")
    assert facts["official_explained"] == 3


def test_no_triplet_at_all_is_an_error(tmp_path: Path) -> None:
    write_jsonl(tmp_path)
    (tmp_path / "made_1.0_train.jsonl").write_text('{"gold_label": "neutral", "sentence1": "a", "sentence2": "b"}\n')
    with pytest.raises(SembenchError, match="has no premise with both labels of a triplet; check 'splits'"):
        make("nli_triplets", tmp_path / "out", {"snli": tmp_path})


# ---------------------------------------------------------------------------------------------------------------------
# Pairs and sentences
# ---------------------------------------------------------------------------------------------------------------------


def test_pairs_of_the_fixture_by_hand(tmp_path: Path) -> None:
    frame, facts = make("nli_pairs", tmp_path / "out", {"snli": FIXTURES})
    assert facts == {"rows": 43, **FIXTURE_FACTS}
    assert frame["label"].value_counts().to_dict() == {"entailment": 16, "neutral": 14, "contradiction": 13}
    assert frame.iloc[3].tolist() == [
        "A baker is baking bread in the early morning.",
        "There is a baker.",
        "entailment",
    ]


def test_sentences_of_the_fixture_by_hand(tmp_path: Path) -> None:
    frame, facts = make("nli_sentences", tmp_path / "out", {"snli": FIXTURES})
    # 14 premises and 43 hypotheses with a gold label; the thirteenth repeats two hypotheses of the first.
    lines = [line.split("\t") for line in (FIXTURES / "invented_1.0_train.txt").read_text().splitlines()[1:]]
    expected = list(dict.fromkeys(text for cells in lines if cells[0] != "-" for text in cells[5:7]))
    assert frame["sentence"].tolist() == expected
    assert facts["rows"] == facts["unique"] == len(expected)
    part, facts = make("nli_sentences", tmp_path / "part", {"snli": FIXTURES}, rows=10, seed=1)
    assert (len(part), facts["rows"], facts["unique"]) == (10, 10, len(expected))
    assert [text for text in expected if text in set(part["sentence"])] == part["sentence"].tolist()
    with pytest.raises(SembenchError, match="a sample of 1000 rows was asked for"):
        make("nli_sentences", tmp_path / "much", {"snli": FIXTURES}, rows=1000)


# ---------------------------------------------------------------------------------------------------------------------
# The authors' file
# ---------------------------------------------------------------------------------------------------------------------

CSV = 'sent0,sent1,hard_neg\n"One, two",three,four\nnull,"He said ""NA""",NA\r\n  spaces ,x,\nlast,N/A,None of them\n'


def write_file(folder: Path, content: bytes) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "nli_for_simcse.csv").write_bytes(content)
    return folder


def test_missing_cells_are_those_of_pandas() -> None:
    """Independent of the reader: pandas decides, as in the authors' code."""
    words = [*MISSING, "na", "Null", "NONE", "none", "-", "?", "NA ", "nothing", "0"]
    read = pd.read_csv(io.StringIO("\n".join(["a,b", *(f'"{word}",x' for word in words)])))
    assert [bool(flag) for flag in read["a"].isna()] == [word in MISSING for word in words]


def test_the_official_quirk(tmp_path: Path) -> None:
    folder = write_file(tmp_path / "in", CSV.encode())
    frame, facts = make("nli_csv", tmp_path / "out", {"csv": folder})
    # What the authors' code makes of the file: pandas reads it, missing cells become one blank.
    expected = pd.read_csv(io.StringIO(CSV)).fillna(" ")
    assert frame.to_numpy().tolist() == expected.to_numpy().tolist()
    assert facts == {"rows": 4, "missing_cells": 4, "dropped": 0, "anchors": 4, "duplicate_anchors": 0.0}
    kept, facts = make("nli_csv", tmp_path / "keep", {"csv": folder}, missing="keep")
    assert kept.iloc[1].tolist() == ["null", 'He said "NA"', "NA"]
    assert (facts["rows"], facts["dropped"]) == (4, 0)
    few, facts = make("nli_csv", tmp_path / "drop", {"csv": folder}, missing="drop")
    assert few["anchor"].tolist() == ["One, two"]
    assert (facts["rows"], facts["dropped"]) == (1, 3)


def test_the_fixture_by_hand(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "nli_for_simcse.csv").write_bytes((FIXTURES / "nli_for_simcse.csv").read_bytes())
    frame, facts = make("nli_csv", tmp_path / "out", {"csv": tmp_path / "in"})
    assert facts == {"rows": 24, "missing_cells": 1, "dropped": 0, "anchors": 24, "duplicate_anchors": 0.0}
    assert frame.iloc[17]["negative"] == " "
    assert frame.iloc[0]["anchor"] == "A baker is baking bread, early in the morning."


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"line 1: the header must be sent0,sent1,hard_neg, not $"),
        (b"a,b,c\n", "line 1: the header must be sent0,sent1,hard_neg, not a,b,c"),
        (b"sent0\tsent1\thard_neg\n", "separated by commas"),
        (b"sent0,sent1,hard_neg\na,b,c\na,b\n", "line 3: 2 cells where 3 are needed"),
        (b"sent0,sent1,hard_neg\nOne, two,b,c\n", "line 2: 4 cells where 3 are needed; put a sentence with commas"),
        (b'sent0,sent1,hard_neg\na,b,"c\nd,e,f\n', "line 3: a sentence goes over several lines; balance the quotation"),
        (b"sent0,sent1,hard_neg\na,b,c\na,\xff,c\n", "line 3 is not UTF-8"),
        (b"sent0,sent1,hard_neg\na,b," + b"c" * 140000, "line 2 cannot be read \\(field larger"),
        (b"sent0,sent1,hard_neg\na,b,c\n\nd,e,f\n", "line 3: 0 cells where 3 are needed"),
        (b"sent0,sent1,hard_neg\n", "holds no triplet"),
    ],
)
def test_a_malformed_csv_names_file_and_line(tmp_path: Path, content: bytes, message: str) -> None:
    folder = write_file(tmp_path / "in", content)
    with pytest.raises(SembenchError, match=message) as error:
        make("nli_csv", tmp_path / "out", {"csv": folder})
    assert str(folder / "nli_for_simcse.csv") in str(error.value)
    assert not (tmp_path / "out").exists()


def test_a_missing_csv(tmp_path: Path) -> None:
    with pytest.raises(SembenchError, match="does not exist"):
        list(read_triplets(tmp_path / "none.csv"))


# ---------------------------------------------------------------------------------------------------------------------
# The real files
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.realdata
def test_real_triplets_of_snli_and_xnli(tmp_path: Path) -> None:
    mirror = Path(os.environ.get("SEMBENCH_MIRROR", ""))
    inputs = {"snli": mirror / "senteval/downstream/SNLI", "mnli": mirror / "xnli_en"}
    frame, facts = make("nli_triplets", tmp_path / "out", inputs, splits=["dev", "test"])
    # SNLI's own counts: 9,842 and 9,824 pairs with a gold label; XNLI has three for each of 2,500 premises.
    assert facts["entailment"] + facts["neutral"] + facts["contradiction"] == 9842 + 9824 + 7500
    assert (facts["rows"], facts["premises"], facts["with_all"]) == (8363, 9141, 7677)
    assert frame["anchor"].nunique() == 8363


@pytest.mark.realdata
def test_real_jsonl_agrees_with_sentevals_form(tmp_path: Path) -> None:
    mirror = Path(os.environ.get("SEMBENCH_MIRROR", ""))
    official = read_inference([mirror / "snli_1.0_sample"], ["dev"])
    senteval = read_inference([mirror / "senteval/downstream/SNLI"], ["dev"])
    assert official.unlabelled == 16

    def letters(pair: Judged) -> tuple[str, str]:
        # SentEval's text is tokenised.
        return plain(pair.premise, "letters"), plain(pair.hypothesis, "letters")

    labels = {letters(pair): pair.label for pair in senteval.pairs}
    agree = [labels.get(letters(pair)) == pair.label for pair in official.pairs]
    assert len(agree) == 1273
    assert sum(agree) >= 0.99 * len(agree)
