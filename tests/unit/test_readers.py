"""Readers of sentence pairs and of labelled items: what they make of good files, and what they say of broken ones."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from sembench.core.errors import SembenchError
from sembench.data.readers.labelled import TREC_CLASSES, Labelled, read_labelled
from sembench.data.readers.pairs import read_pairs
from sembench.evaluation.protocol import sample_hash
from sembench.registry.models import Dataset

HEADER = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n"


def dataset(reader: str, *names: str, header: bool = False) -> Dataset:
    files = [{"name": name, "header": header} for name in names]
    entry = {"title": "t", "licence": "l", "files": files, "sources": [{"kind": "fixture"}]}
    return Dataset.model_validate(entry).model_copy(update={"reader": reader})


STS = dataset("sts", "STS.input.part.txt", "STS.gs.part.txt")
MRPC = dataset("mrpc", *(f"msr_paraphrase_{part}.txt" for part in ("train", "test")), header=True)
TREC = dataset("trec", "train_5500.label", "TREC_10.label")
SUBJ = dataset("subj", "subj.objective", "subj.subjective")


# ----------------------------------------------------------------------------------------------------------- pairs


def write(folder: Path, name: str, text: str) -> None:
    (folder / name).write_bytes(text.encode())


def test_sts_reader_skips_pairs_without_a_gold_score(tmp_path: Path) -> None:
    write(tmp_path, "STS.input.part.txt", "A b.\tC d.\tsource\nE\tF\nG\tH\r\n")
    write(tmp_path, "STS.gs.part.txt", "4\n\n0.5\n")
    pairs = read_pairs(STS, tmp_path, "part")
    assert (pairs.first, pairs.second, pairs.gold.tolist()) == (["A b.", "G"], ["C d.", "H"], [4.0, 0.5])


def test_only_line_feeds_end_a_line(tmp_path: Path) -> None:
    write(tmp_path, "STS.input.part.txt", "A\u2028b.\tC\u0085d.\nE\tF\n")
    write(tmp_path, "STS.gs.part.txt", "4\n1\n")
    assert read_pairs(STS, tmp_path, "part").first == ["A\u2028b.", "E"]


@pytest.mark.parametrize(
    ("inputs", "golds", "message"),
    [
        ("A\tB\n", "", r"STS\.gs\.part\.txt is empty"),
        ("", "1\n", r"STS\.input\.part\.txt is empty"),
        ("A\tB\nC\tD\n", "1\n", "has 2 lines but"),
        ("A\tB\nC\n", "1\n2\n", "line 2: 1 tab-separated columns where 2 are needed"),
        ("A\tB\nC\tD\n", "1\nnan\n", "line 2: the gold score 'nan' is not a number from 0 to 5"),
        ("A\tB\nC\tD\n", "1\n-1\n", "line 2: the gold score '-1' is not"),
        ("A\tB\nC\tD\n", "1\n99\n", "line 2: the gold score '99' is not"),
        ("A\tB\nC\tD\n", "1\n5.001\n", "line 2: the gold score '5.001' is not"),
        ("A\tB\nC\tD\n", "1\n1e308\n", "line 2: the gold score '1e308' is not"),
        ("A\tB\nC\tD\n", "1\n1_0\n", "line 2: the gold score '1_0' is not"),
        ("A\tB\nC\tD\n", "1\n\u0664\n", "line 2: the gold score '\u0664' is not"),
        ("1\tA\tB\n2\tC\tD\n", "1\n2\n", "line 1: the sentence '1' has no letter; .* column is missing or too many"),
        ("A\tB\nC\t \n", "1\n2\n", "line 2: the sentence ' ' has no letter"),
        ("A\tB\nC\tD\n", "1\nhigh\n", "line 2: the gold score 'high'"),
        ("A\tB\n", "\n \n", r"STS\.gs\.part\.txt is empty"),
    ],
)
def test_broken_sts_files_are_named(tmp_path: Path, inputs: str, golds: str, message: str) -> None:
    write(tmp_path, "STS.input.part.txt", inputs)
    write(tmp_path, "STS.gs.part.txt", golds)
    with pytest.raises(SembenchError, match=message):
        read_pairs(STS, tmp_path, "part")


def test_stsb_reader_takes_columns_five_to_seven(tmp_path: Path) -> None:
    write(tmp_path, "sts-dev.csv", 'main\tf\ty\t1\t2.5\tHe said "no.\tShe, too.\textra\n')
    pairs = read_pairs(dataset("stsb", "sts-dev.csv"), tmp_path, "dev")
    assert (pairs.first, pairs.second, pairs.gold.tolist()) == (['He said "no.'], ["She, too."], [2.5])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("0\tmain\tf\t2012\t1\t2.5\tA b.\tC d.", "line 1: the sentence '2.5' has no letter"),
        ("main\tx\tf\t1\t2012\t2.5\tA b.\tC d.", "line 1: the gold score '2012' is not a number from 0 to 5"),
        ("main\tf\t2012\t1\tx\t2.5\tA b.\tC d.", "line 1: the gold score 'x' is not"),
        ("main\tf\t2012\t1\t2.5\t7\tA b.\tC d.", "line 1: the sentence '7' has no letter"),
        ("main\tf\t2012\t1\t\tA b.\tC d.", "line 1: the gold score '' is not"),
        ("main\t2012\t1\t2.5\tA b.\tC d.\tE f.", "line 1: the gold score 'A b.' is not"),
    ],
)
def test_stsb_with_a_column_more_or_less_is_refused(tmp_path: Path, line: str, message: str) -> None:
    write(tmp_path, "sts-dev.csv", f"{line}\n")
    with pytest.raises(SembenchError, match=message):
        read_pairs(dataset("stsb", "sts-dev.csv"), tmp_path, "dev")


@pytest.mark.parametrize("score", ["0.9", "5.1", "", "-3"])
def test_scores_of_sick_are_from_1_to_5(tmp_path: Path, score: str) -> None:
    sick = dataset("sick", "SICK_test_annotated.txt", header=True)
    text = f"pair_ID\tsentence_A\tsentence_B\trelatedness_score\n1\tA a\tB b\t{score}\n"
    write(tmp_path, "SICK_test_annotated.txt", text)
    with pytest.raises(SembenchError, match=f"line 2: the gold score '{score}' is not a number from 1 to 5"):
        read_pairs(sick, tmp_path, "test_annotated")


def test_sick_reader_goes_by_the_header(tmp_path: Path) -> None:
    sick = dataset("sick", "SICK_test_annotated.txt", header=True)
    write(tmp_path, "SICK_test_annotated.txt", "pair_ID\trelatedness_score\tsentence_B\tsentence_A\n1\t3.5\tB b\tA a\n")
    pairs = read_pairs(sick, tmp_path, "test_annotated")
    assert (pairs.first, pairs.second, pairs.gold.tolist()) == (["A a"], ["B b"], [3.5])
    write(tmp_path, "SICK_test_annotated.txt", "pair_ID\tsentence_A\tsentence_B\n1\tA\tB\n")
    with pytest.raises(SembenchError, match="column 'relatedness_score' is missing"):
        read_pairs(sick, tmp_path, "test_annotated")


def test_sample_hash_sees_texts_and_scores(tmp_path: Path) -> None:
    def hashed(text: str, gold: str) -> str:
        write(tmp_path, "STS.input.part.txt", text)
        write(tmp_path, "STS.gs.part.txt", gold)
        return sample_hash(read_pairs(STS, tmp_path, "part").rows())

    base = hashed("A\tB\n", "1\n")
    assert base == hashed("A\tB\tignored\n", "1.0\n")
    assert len({base, hashed("A\tC\n", "1\n"), hashed("A\tB\n", "2\n")}) == 3


def test_a_data_set_without_pairs_is_named(tmp_path: Path) -> None:
    with pytest.raises(SembenchError, match=r"holds no sentence pairs \(reader: trec\)"):
        read_pairs(TREC, tmp_path, "train")
    with pytest.raises(SembenchError, match=r"holds no labelled items \(reader: sts\)"):
        read_labelled(STS, tmp_path, "part")


SIZES = {
    "sts12": {"MSRpar": 750, "MSRvid": 750, "SMTeuroparl": 459, "surprise.OnWN": 750, "surprise.SMTnews": 399},
    "sts13": {"FNWN": 189, "headlines": 750, "OnWN": 561},
    "sts14": {"deft-forum": 450, "deft-news": 300, "headlines": 750, "images": 750, "OnWN": 750, "tweet-news": 750},
    "sts15": {"answers-forums": 375, "answers-students": 750, "belief": 375, "headlines": 750, "images": 750},
    "sts16": {
        "answer-answer": 254,
        "headlines": 249,
        "plagiarism": 230,
        "postediting": 244,
        "question-question": 209,
    },
}


@pytest.mark.realdata
@pytest.mark.parametrize("task", SIZES)
@pytest.mark.parametrize("form", ["sts_original", "senteval/downstream/STS"])
def test_real_subsets_have_the_published_sizes(task: str, form: str) -> None:
    folder = Path(os.environ["SEMBENCH_MIRROR"]) / form / f"{task.upper()}-en-test"
    for subset, size in SIZES[task].items():
        [path] = folder.rglob(f"*.input.{subset}.txt")
        entry = dataset("sts", path.name, path.name.replace("input", "gs"))
        assert len(read_pairs(entry, path.parent, subset)) == size


# -------------------------------------------------------------------------------------------------- labelled items


def labelled_texts(items: Labelled) -> list[tuple[object, ...]]:
    return list(zip(*items.columns, items.labels.tolist(), strict=True))


def test_mrpc_keeps_case_and_quotes_and_joins_blanks(tmp_path: Path) -> None:
    text = HEADER + '1\t7\t8\tHe  said " Stop .\tHe said stop .\r\n0\t9\t10\t"A" left\u2028late .\tB \'s "\r\n'
    write(tmp_path, "msr_paraphrase_train.txt", text)
    items = read_labelled(MRPC, tmp_path, "train")
    assert labelled_texts(items) == [('He said " Stop .', "He said stop .", 1), ('"A" left late .', "B 's \"", 0)]
    assert items.sentences == ['He said " Stop .', '"A" left late .', "He said stop .", "B 's \""]
    assert next(iter(items.rows())) == ('He said " Stop .', "He said stop .", "1.000000")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"msr_paraphrase_train\.txt is empty"),
        (HEADER, "the split 'train' holds no item"),
        ("Quality\t#1 ID\t#2 ID\t#1 String\n1\t7\t8\tA\n", "line 1: the column '#2 String' is missing"),
        (HEADER + "1\t7\t8\tA b .\tC d .\n1\t7\t8\tA b .\n", "line 3: 4 tab-separated columns where 5 are needed"),
        (HEADER + "2\t7\t8\tA\tB\n", "line 2: the label '2' is neither 0 nor 1"),
    ],
)
def test_broken_files_of_mrpc_are_named(tmp_path: Path, text: str, message: str) -> None:
    write(tmp_path, "msr_paraphrase_train.txt", text)
    with pytest.raises(SembenchError, match=message):
        read_labelled(MRPC, tmp_path, "train")


def test_a_missing_file_and_an_unknown_split_are_named(tmp_path: Path) -> None:
    with pytest.raises(SembenchError, match=r"msr_paraphrase_test\.txt is missing"):
        read_labelled(MRPC, tmp_path, "test")
    with pytest.raises(SembenchError, match="split 'tests' is not in the data set 't'; did you mean 'test'"):
        read_labelled(MRPC, tmp_path, "tests")


def test_trec_is_latin_1_and_its_coarse_class_counts(tmp_path: Path) -> None:
    (tmp_path / "train_5500.label").write_bytes(
        "NUM:date When : was  it\xf0 ?\nABBR:exp What is A.B. ?\n".encode("latin-1")
    )
    items = read_labelled(TREC, tmp_path, "train")
    assert labelled_texts(items) == [("When : was it\xf0 ?", 5), ("What is A.B. ?", 0)]


@pytest.mark.parametrize("line", ["ANIMAL:x What ?", "NUM What ?", "NUM:date", "NUM:date  "])
def test_broken_lines_of_trec_are_named(tmp_path: Path, line: str) -> None:
    write(tmp_path, "TREC_10.label", f"NUM:date When ?\n{line}\n")
    with pytest.raises(SembenchError, match=r"TREC_10\.label, line 2: '.*' is no 'CLASS:kind question'"):
        read_labelled(TREC, tmp_path, "test")


def test_subj_joins_two_files_with_objective_as_class_1(tmp_path: Path) -> None:
    write(tmp_path, "subj.objective", "a plot\nanother  plot\n")
    write(tmp_path, "subj.subjective", "a view\n")
    assert labelled_texts(read_labelled(SUBJ, tmp_path, "all")) == [("a plot", 1), ("another plot", 1), ("a view", 0)]
    write(tmp_path, "subj.subjective", "a view\n\nb\n")
    with pytest.raises(SembenchError, match=r"subj\.subjective, line 2 is empty"):
        read_labelled(SUBJ, tmp_path, "all")


SST = dataset("sst", *(f"sentiment-{part}" for part in ("train", "dev", "test")))
POLARITY = {
    "mr": dataset("mr", "rt-polarity.pos", "rt-polarity.neg"),
    "cr": dataset("cr", "custrev.pos", "custrev.neg"),
    "mpqa": dataset("mpqa", "mpqa.pos", "mpqa.neg"),
}


@pytest.mark.parametrize("reader", POLARITY)
def test_polarity_is_two_files_in_latin_1_whose_repeated_lines_stay(tmp_path: Path, reader: str) -> None:
    positive, negative = (file.name for file in POLARITY[reader].files)
    (tmp_path / positive).write_bytes("a caf\xe9  `` here \x85 there \ngood \ngood \r\n".encode("latin-1"))
    (tmp_path / negative).write_bytes(b"bad \n")
    found = labelled_texts(read_labelled(POLARITY[reader], tmp_path, "all"))
    assert found == [("a caf\xe9 `` here there", 1), ("good", 1), ("good", 1), ("bad", 0)]


def test_empty_lines_are_items_where_the_published_files_have_them(tmp_path: Path) -> None:
    """SentEval counts them: 3,775 items of CR and 10,606 of MPQA. In MR and SUBJ an empty line is damage."""
    for reader, entry in POLARITY.items():
        positive, negative = (file.name for file in entry.files)
        write(tmp_path, positive, "good\n \n")
        write(tmp_path, negative, "\nbad\n")
        if reader == "mr":
            with pytest.raises(SembenchError, match=r"rt-polarity\.pos, line 2 is empty"):
                read_labelled(entry, tmp_path, "all")
        else:
            items = read_labelled(entry, tmp_path, "all")
            assert labelled_texts(items) == [("good", 1), ("", 1), ("", 0), ("bad", 0)]
            assert items.take(items.senteval_order()).columns[0][:2] == ["", ""]


def test_sst_is_text_and_label_in_utf_8(tmp_path: Path) -> None:
    write(tmp_path, "sentiment-dev", "\ufeffa  caf\u00e9\u00a0noir \t1\r\nso\u2028so\t0\nso so\t0\n")
    items = read_labelled(SST, tmp_path, "dev")
    assert labelled_texts(items) == [("a caf\u00e9 noir", 1), ("so so", 0), ("so so", 0)]


@pytest.mark.parametrize("line", ["good", "good\t2", "good\t", "\t1", "good\t1\t0", "good\t1.0", "1\tgood"])
def test_broken_lines_of_sst_are_named(tmp_path: Path, line: str) -> None:
    write(tmp_path, "sentiment-test", f"good\t1\n{line}\n")
    with pytest.raises(
        SembenchError, match=r"sentiment-test, line 2: (.* is no 'text<tab>0' or '1'|1 tab-separated col)"
    ):
        read_labelled(SST, tmp_path, "test")


def test_a_split_of_one_class_is_no_task(tmp_path: Path) -> None:
    write(tmp_path, "sentiment-train", "good\t1\nbetter\t1\n")
    with pytest.raises(SembenchError, match="all 2 items of the split 'train' have the same class"):
        read_labelled(SST, tmp_path, "train")


def test_rows_are_sorted_by_lengths_then_label() -> None:
    columns = (["a b", "c", "d", "e", "f"], ["g", "h i", "j k", "l m", "n"])
    items = Labelled("train", columns, np.array([1, 1, 0, 1, 1]))
    order = items.senteval_order()
    found = items.take(order)
    assert order.tolist() == [4, 2, 1, 3, 0]
    assert found.columns[0] == ["f", "d", "c", "e", "a b"]
    assert found.labels.tolist() == [1, 0, 1, 1, 1]


@pytest.mark.realdata
def test_the_real_transfer_tasks_have_their_published_sizes() -> None:
    base = Path(os.environ["SEMBENCH_MIRROR"]) / "senteval/downstream"
    train, test = (read_labelled(MRPC, base / "MRPC", part) for part in ("train", "test"))
    assert (len(train), len(test)) == (4076, 1725)
    # Two thirds are paraphrases: 2,753 of training and 1,147 of test.
    assert (int(train.labels.sum()), int(test.labels.sum())) == (2753, 1147)
    assert any('"' in text for text in train.columns[0])
    assert any(text != text.lower() for text in train.columns[0])
    train, test = (read_labelled(TREC, base / "TREC", part) for part in ("train", "test"))
    assert (len(train), len(test)) == (5452, 500)
    # Li and Roth's counts of the coarse classes.
    assert dict(zip(TREC_CLASSES, np.bincount(test.labels).tolist(), strict=True)) == {
        "ABBR": 9,
        "DESC": 138,
        "ENTY": 94,
        "HUM": 65,
        "LOC": 81,
        "NUM": 113,
    }
    assert np.bincount(train.labels).tolist() == [86, 1162, 1250, 1223, 835, 896]
    assert np.bincount(read_labelled(SUBJ, base / "SUBJ", "all").labels).tolist() == [5000, 5000]
    sizes = {"mr": ("MR", [5331, 5331]), "cr": ("CR", [1368, 2407]), "mpqa": ("MPQA", [7294, 3312])}
    for reader, (folder, counts) in sizes.items():
        assert np.bincount(read_labelled(POLARITY[reader], base / folder, "all").labels).tolist() == counts
    parts = [read_labelled(SST, base / "SST/binary", split) for split in ("train", "dev", "test")]
    assert [len(part) for part in parts] == [67349, 872, 1821]
