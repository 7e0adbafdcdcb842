"""The reader of BATS: traps on small files, the mini-BATS of the fixtures, and the real one where it is at hand."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from sembench.analogy.bats import (
    RELATION_IDS,
    SEMANTIC,
    Correction,
    WordPair,
    bats_file,
    read_bats,
    read_cells,
    read_corrections,
)
from sembench.core.errors import SembenchError

ROOT = Path(__file__).parents[2]
MINI = ROOT / "tests/fixtures/analogy/mini_bats"
CORRECTIONS = ROOT / "registry/corrections.tsv"


def write(folder: Path, text: str, name: str = "E07 [animal - sound].txt") -> Path:
    path = folder / "3_Encyclopedic_semantics" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return folder


def test_answers_become_pairs_with_ranks(tmp_path: Path) -> None:
    write(tmp_path, "glim\thoot/low_hoot\r\nBEAST\troar\n")
    assert read_bats(tmp_path, ["E07"]) == [
        WordPair("E07", "glim", "hoot", 1),
        WordPair("E07", "glim", "low_hoot", 2),
        WordPair("E07", "beast", "roar", 1),
    ]


def test_empty_repeated_and_own_answers_are_left_out(tmp_path: Path) -> None:
    write(tmp_path, "glim\thoot//glim/hoot/ howl /\n")
    assert [(p.target, p.rank) for p in read_bats(tmp_path, ["E07"])] == [("hoot", 1), ("howl", 2)]
    [cell] = read_cells(tmp_path, "E07")
    assert (cell.empty, cell.repeated, cell.itself) == (2, 1, 1)


@pytest.mark.parametrize("text", ["glim hoot\n", "glim\n", "\thoot\n", "glim\thoot\thowl\n"])
def test_a_malformed_line_names_file_and_line(tmp_path: Path, text: str) -> None:
    write(tmp_path, "beast\troar\n" + text)
    with pytest.raises(SembenchError, match=r"E07 \[animal - sound\]\.txt, line 2: expected"):
        read_bats(tmp_path, ["E07"])


def test_a_source_without_answers_is_an_error(tmp_path: Path) -> None:
    write(tmp_path, "glim\t//\n")
    with pytest.raises(SembenchError, match="line 1: 'glim' has no answer"):
        read_bats(tmp_path, ["E07"])


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_an_empty_cluster_is_an_error(tmp_path: Path, text: str) -> None:
    write(tmp_path, text)
    with pytest.raises(SembenchError, match="holds no word pair"):
        read_bats(tmp_path, ["E07"])


def test_unknown_and_missing_relations(tmp_path: Path) -> None:
    with pytest.raises(SembenchError, match="relation 'E70' is not in BATS"):
        read_bats(tmp_path, ["E70"])
    with pytest.raises(SembenchError, match="no file of relation E08"):
        read_bats(write(tmp_path, "glim\thoot\n"), ["E08"])


def test_files_are_found_with_and_without_title(tmp_path: Path) -> None:
    (tmp_path / "E07.txt").write_text("glim\thoot\n")
    (tmp_path / "E070 other.txt").write_text("no pair")
    assert bats_file(tmp_path, "E07").name == "E07.txt"
    write(tmp_path, "glim\thoot\n")
    with pytest.raises(SembenchError, match="2 files of relation E07"):
        bats_file(tmp_path, "E07")


def test_not_utf8_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "E07.txt").write_bytes(b"glim\th\xf6\n")
    with pytest.raises(SembenchError, match="not UTF-8"):
        read_bats(tmp_path, ["E07"])


def test_corrections_replace_and_remove(tmp_path: Path) -> None:
    write(tmp_path, "glim\thoof/howl/hoot/x\nbeast\thoof\n")
    table = [Correction("E07", "glim", "hoof", "hoot", "typo"), Correction("E07", "glim", "x", "", "no word")]
    assert [(p.source, p.target, p.rank) for p in read_bats(tmp_path, ["E07"], table)] == [
        ("glim", "hoot", 1),
        ("glim", "howl", 2),
        ("beast", "hoof", 1),
    ]


def test_the_shipped_corrections_are_sound() -> None:
    table = read_corrections(CORRECTIONS)
    assert ("E07", "cat", "meu", "mew") in {(c.relation, c.source, c.wrong, c.right) for c in table}
    assert all(c.wrong != c.right and c.why for c in table)
    assert len({(c.relation, c.source, c.wrong) for c in table}) == len(table)


def test_corrections_that_are_not_utf8_or_missing_are_named(tmp_path: Path) -> None:
    path = tmp_path / "corrections.tsv"
    with pytest.raises(SembenchError, match=r"corrections\.tsv does not exist"):
        read_corrections(path)
    path.write_bytes("relation\tsource\twrong\tright\twhy\nE07\tcat\tmeu\tmew\tr\u00e9sum\u00e9\n".encode("latin-1"))
    with pytest.raises(SembenchError, match=r"corrections\.tsv is not UTF-8"):
        read_corrections(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tb\n", "line 1: the header"),
        ("relation\tsource\twrong\tright\twhy\nE07\tcat\tmeu\n", "line 2: needs"),
        ("relation\tsource\twrong\tright\twhy\nE77\tcat\tmeu\tmew\ttypo\n", "line 2: relation 'E77'"),
    ],
)
def test_broken_corrections_name_their_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "corrections.tsv"
    path.write_text(text)
    with pytest.raises(SembenchError, match=message):
        read_corrections(path)


def test_the_mini_bats_has_every_semantic_relation() -> None:
    lines = {key: len(read_cells(MINI, key)) for key in SEMANTIC}
    assert len(lines) == 20
    assert min(lines.values()) >= 12
    # The oddities of the real files are in it.
    assert sum(cell.empty for cell in read_cells(MINI, "L01")) == 1
    assert sum(cell.repeated for cell in read_cells(MINI, "L01")) == 1
    assert sum(cell.itself for cell in read_cells(MINI, "L06")) == 1
    assert b"\r\n" in bats_file(MINI, "L08").read_bytes()


# ---------------------------------------------------------------------------------------------------------------------
# The real files: the numbers are those counted by other means when they were first looked at
# ---------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def bats() -> Path:
    return Path(os.environ["SEMBENCH_MIRROR"]) / "BATS_3.0"


@pytest.mark.realdata
def test_real_totals(bats: Path) -> None:
    pairs = read_bats(bats)
    assert len(pairs) == 6560
    assert len({word for pair in pairs for word in (pair.source, pair.target)}) == 4786
    assert sum(pair.rank == 1 for pair in pairs) == 1000
    assert {len(read_cells(bats, key)) for key in RELATION_IDS} == {50}
    assert WordPair("E01", "abuja", "nigeria", 1) in pairs


@pytest.mark.realdata
def test_real_traps_by_line(bats: Path) -> None:
    cells = {key: read_cells(bats, key) for key in SEMANTIC}
    repeated = Counter({key: sum(cell.repeated > 0 for cell in found) for key, found in cells.items()})
    empty = Counter({key: sum(cell.empty > 0 for cell in found) for key, found in cells.items()})
    itself = Counter({key: sum(cell.itself > 0 for cell in found) for key, found in cells.items()})
    assert +repeated == {"L01": 9, "L02": 24, "L03": 14, "L09": 10, "L06": 2, "L07": 2, "L04": 1}
    assert +empty == {"L01": 16, "L02": 9, "L04": 2, "L09": 2, "L08": 1}
    assert +itself == {"L06": 4, "L04": 1, "L07": 1}


@pytest.mark.realdata
def test_every_correction_meets_its_answer(bats: Path) -> None:
    for c in read_corrections(CORRECTIONS):
        answers = {cell.source: cell.answers for cell in read_cells(bats, c.relation)}[c.source]
        assert c.wrong in answers, c
