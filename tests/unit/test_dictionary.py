"""DSBATS-open: cleaning of dictionary definitions, the readers, and the builder on invented entries."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pandas as pd
import pytest

from sembench.analogy.bats import SEMANTIC, WordPair, read_bats, read_corrections
from sembench.analogy.dictionary import (
    NAMES,
    OPEN_COLUMNS,
    PAIR_COLUMNS,
    Gcide,
    OpenOptions,
    build_dsbats_open,
    clean,
    letters,
    read_sentence_pairs,
    wordnet_letters,
)
from sembench.analogy.rules import Choice, RelationRule, load_rules
from sembench.core.errors import SembenchError
from tests.packages import packaged
from tests.unit.wordnet_database import ENTRIES, real_wordnet, write_database

ROOT = Path(__file__).parents[2]
OWN = ROOT / "registry/dsbats_open.tsv"
REGISTRY = load_rules(ROOT / "registry/relations.yaml")


# ----------------------------------------------------------------------------------------------------- cleaning


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("A small beast of the marsh.", "A small beast of the marsh."),
        ("A small beast; as, a glim in the reeds.", "A small beast."),
        ("A small beast; -- used of glims only.", "A small beast."),
        ("A lamp at the bow, -- once lit with wax.", "A lamp at the bow."),
        ("A small beast. It sleeps all day.", "A small beast."),
        ("A small beast, esp. Marsh glims. It sleeps.", "A small beast, esp. Marsh glims."),
        ("A small beast of the marsh, etc. See Glim.", "A small beast of the marsh, etc."),
        ("Hence, to call like a glim.", "To call like a glim."),
        ("(Sailing) A lamp at the bow.", "A lamp at the bow."),
        ("A beast, e. g. a glim or an omber.", "A beast, e. g. a glim or an omber."),
    ],
)
def test_a_definition_becomes_one_sentence(text: str, sentence: str) -> None:
    assert clean(text) == sentence


@pytest.mark.parametrize(
    "text",
    [
        "",
        "See Glim, under the Marsh.",
        "Same as the marsh glim.",
        "imp. of Glim in verse.",
        "Fig.: A very small person.",
        "A beast.",
        "a small beast of the marsh.",
        "A small beast of the marsh [Obs.].",
        "A small beast of the\n[Edition of 1913]",
        "A small beast of the",
        "A small beast of the family Glimid.",
        "A small beast (Glimus minor; a glim.",
        "A call as in l, heard at night.",
        "A small beast , with horns.",
        "The following: (a) A beast. (b) Its call.",
        "A beast with horns (?).",
    ],
)
def test_pointers_short_and_damaged_texts_are_dropped(text: str) -> None:
    assert clean(text) == ""


def test_letters_by_hand() -> None:
    assert letters('The 2 "Glims" (of old).') == "theglimsofold"


def test_definitions_of_wordnet_are_known_with_and_without_label(tmp_path: Path) -> None:
    write_database(tmp_path, ENTRIES)
    known = wordnet_letters(tmp_path)
    assert {letters("A small beast of the marsh; sleeps all day."), letters("A lamp hung at the bow.")} <= known
    assert "sailingalamphungatthebow" in known
    with pytest.raises(SembenchError, match=r"data\.noun does not exist"):
        wordnet_letters(tmp_path / "elsewhere")


# -------------------------------------------------------------------------------------------------------- GCIDE


def group(tag: str | None, *texts: str) -> dict[str, object]:
    return {"part_of_speech": tag, "definitions": [{"text": text, "examples": []} for text in texts]}


def gcide(folder: Path, known: frozenset[str] = frozenset(), **entries: list[dict[str, object]]) -> Gcide:
    files: dict[str, dict[str, object]] = {}
    for word, groups in entries.items():
        files.setdefault(word[0].upper(), {})[word.replace("_", " ")] = {"entry": word, "pos": groups}
    for letter, content in files.items():
        (folder / f"words_{letter}.json").write_text(json.dumps(content))
    return Gcide(folder, known)


def test_definitions_by_part_of_speech_in_order(tmp_path: Path) -> None:
    entries = [
        group("v. i.", "To call like a glim."),
        group("a. & n.", "Seen in the marsh.", "See Marsh at large."),
        group("prop. n.", "A town in the marsh.", "Seen in the marsh."),
        group("adv.", "In a marshy way."),
        group("imp.", "Called like a glim."),
        group(None, "Nobody knows what."),
    ]
    found = gcide(tmp_path, glim=entries)
    assert found.sentences("glim", "NOUN") == ["Seen in the marsh.", "A town in the marsh."]
    assert found.sentences("glim", "VERB") == ["To call like a glim."]
    assert found.sentences("glim", "ADJ") == ["Seen in the marsh."]
    assert found.sentences("glim", "ADV") == ["In a marshy way."]
    assert found.sentences("gloom", "NOUN") == found.sentences("ångström", "NOUN") == []


def test_words_of_several_parts_and_known_definitions(tmp_path: Path) -> None:
    known = frozenset({letters("a small beast of the marsh")})
    found = gcide(tmp_path, known, marsh_glim=[group("n.", "A small beast of the marsh.", "A shy beast of the reeds.")])
    assert found.sentences("marsh_glim", "NOUN") == ["A shy beast of the reeds."]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, r"words_G\.json is missing"),
        ("{", "is not JSON"),
        ("[]", "holds no entries by word"),
        ('{"glim": {"pos": [{"definitions": []}]}}', "entry 'glim': not of the form"),
        ('{"glim": ["a small beast"]}', "entry 'glim': not of the form"),
    ],
)
def test_broken_files_are_named(tmp_path: Path, text: str | None, message: str) -> None:
    if text is not None:
        (tmp_path / "words_G.json").write_text(text)
    with pytest.raises(SembenchError, match=message):
        Gcide(tmp_path).sentences("glim", "NOUN")


# ------------------------------------------------------------------------------------------------- written pairs


def write(folder: Path, *lines: str, header: str = "\t".join(PAIR_COLUMNS)) -> Path:
    path = folder / "pairs.tsv"
    path.write_text("".join(f"{line}\n" for line in (header, *lines)), encoding="utf-8")
    return path


LINE = 'E07\tMarsh glim\thoot\tA "shy" beast.\tIts call at night.'


def test_written_pairs_are_read(tmp_path: Path) -> None:
    frame = read_sentence_pairs(write(tmp_path, LINE), "mine")
    assert list(frame.columns) == OPEN_COLUMNS
    assert frame.to_numpy().tolist() == [
        ["E07", "marsh_glim", "hoot", 'A "shy" beast.', "Its call at night.", "mine"],
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("E07\tglim\thoot\tA shy beast.", r"pairs\.tsv, line 3: needs relation, source"),
        (LINE + "\tmore", "line 3: needs"),
        ("E07\tglim\thoot\tA shy beast.\t ", "line 3: needs .* none of them empty"),
        ("E70\tglim\thoot\tA shy beast.\tIts call.", "line 3: relation 'E70' is not in BATS"),
        ("E07\tglim\thoot\tA shy beast.\tA shy beast", "line 3: both sentences are the same"),
        (LINE, "line 3: repeats line 2"),
        ("\n\nE07\tglim\thoot", "line 5: needs"),
    ],
)
def test_malformed_lines_are_named(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(SembenchError, match=message):
        read_sentence_pairs(write(tmp_path, LINE, line), "mine")


@pytest.mark.parametrize("blank", ["", " ", "\t\t\t\t", "\r"])
def test_a_line_without_text_is_no_row(tmp_path: Path, blank: str) -> None:
    other = LINE.replace("hoot", "hum")
    frame = read_sentence_pairs(write(tmp_path, blank, LINE, blank, other, blank, blank), "mine")
    assert frame["target"].tolist() == ["hoot", "hum"]
    with pytest.raises(SembenchError, match="holds no pair"):
        read_sentence_pairs(write(tmp_path, blank, blank), "mine")


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ('"A ""shy"" beast."', 'A "shy" beast.'),
        ('"""Shy"" beasts."', '"Shy" beasts.'),
        ('"""A shy beast."""', '"A shy beast."'),
        ('"A shy beast."', '"A shy beast."'),
        ('"Shy" and "wild"', '"Shy" and "wild"'),
        ('A ""shy"" beast.', 'A ""shy"" beast.'),
        ('"A "shy" ""beast""."', '"A "shy" ""beast""."'),
        ('5" high beast', '5" high beast'),
    ],
)
def test_cells_in_quotes_of_a_spreadsheet_are_unquoted(tmp_path: Path, cell: str, text: str) -> None:
    line = f"E07\tglim\thoot\t{cell}\tIts call at night."
    assert read_sentence_pairs(write(tmp_path, line), "mine")["source_gloss"].tolist() == [text]


def test_pandas_writes_what_is_read(tmp_path: Path) -> None:
    texts = ['A "shy" beast.', '"Shy" beasts.', 'A beast that says "hoot"', "A beast."]
    frame = pd.DataFrame([("E07", "glim", f"hoot{i}", text, "Its call.") for i, text in enumerate(texts)])
    frame.to_csv(tmp_path / "pairs.tsv", sep="\t", index=False, header=PAIR_COLUMNS)
    assert read_sentence_pairs(tmp_path / "pairs.tsv", "mine")["source_gloss"].tolist() == texts


def test_malformed_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(SembenchError, match=r"none\.tsv does not exist"):
        read_sentence_pairs(tmp_path / "none.tsv", "mine")
    with pytest.raises(SembenchError, match="line 1: the header must be relation source"):
        read_sentence_pairs(write(tmp_path, LINE, header="relation\tsource"), "mine")
    with pytest.raises(SembenchError, match="holds no pair"):
        read_sentence_pairs(write(tmp_path), "mine")
    path = tmp_path / "latin.tsv"
    path.write_bytes(("\t".join(PAIR_COLUMNS) + "\n").encode() + b"E07\tgl\xefm\thoot\ta b c\td e f\n")
    with pytest.raises(SembenchError, match="is not UTF-8"):
        read_sentence_pairs(path, "mine")
    path.write_text("")
    with pytest.raises(SembenchError, match="line 1: the header"):
        read_sentence_pairs(path, "mine")


def test_the_shipped_pairs_are_sentences_of_names() -> None:
    own = read_sentence_pairs(OWN, "own")
    assert set(own["relation"]) == set(NAMES)
    assert own.groupby("relation").size().min() >= 8
    texts = [*own["source_gloss"], *own["target_gloss"]]
    assert len(set(map(letters, texts))) == len(texts)
    assert all(text[0].isupper() and text.endswith(".") and len(text.split()) >= 3 for text in texts)


# ------------------------------------------------------------------------------------------------------ building


NOUN, VERB = Choice(pos="NOUN"), Choice(pos="VERB")
RULES = {
    "E07": RelationRule(
        name="animal:sound", source=(Choice(pos="NOUN", lexfiles=["noun.animal"]),), target=(NOUN, VERB)
    ),
    "E09": RelationRule(name="thing:colour", source=(NOUN,), target=(Choice(pos="NOUN", gloss="colou?r"),)),
    "L05": RelationRule(
        name="member:group",
        source=(NOUN, Choice(pos="VERB", fallback=True)),
        target=(Choice(pos="NOUN", words=["herd"]),),
    ),
    "L08": RelationRule(name="word:synonym", symmetric=True, same="pos", source=(VERB, NOUN), target=(VERB, NOUN)),
}


@pytest.fixture
def words(tmp_path: Path) -> Gcide:
    return gcide(
        tmp_path,
        glim=[
            group("n.", "A lamp at the bow.", "A small beast of the marsh.", "A large animal with a hoot.", "A bird.")
        ],
        hoot=[group("v. i.", "To call at night.", "To cry like the glim."), group("n.", "The call of an owl.")],
        green=[group("n.", "A lawn to play on.", "The color of growing leaves.")],
        herd=[group("n.", "A number of beasts together."), group("v. t.", "To drive beasts together.")],
        run=[group("v. i.", "To move in haste.", "To flow as water.")],
    )


def built(words: Gcide, *pairs: WordPair, **options: object) -> list[tuple[str, str, str, str, str]]:
    keys = tuple(dict.fromkeys(pair.relation for pair in pairs))
    frame = build_dsbats_open(pairs, words, None, RULES, OpenOptions(**{"relations": keys, **options}))
    assert set(frame["origin"]) <= {"GCIDE"}
    return list(frame[OPEN_COLUMNS[:5]].itertuples(index=False, name=None))


def test_cues_mentions_and_caps(words: Gcide) -> None:
    # No lamp among the animals; "A bird." is too short; what names the hoot goes first; nouns go before verbs.
    pair = WordPair("E07", "glim", "hoot", 1)
    assert built(words, pair, definitions=1, prefer_mention=False) == [
        ("E07", "glim", "hoot", "A small beast of the marsh.", "The call of an owl.")
    ]
    assert built(words, pair, definitions=1) == [
        ("E07", "glim", "hoot", "A large animal with a hoot.", "To cry like the glim.")
    ]
    assert len(built(words, pair, definitions=2)) == 4
    assert len(built(words, pair, definitions=0)) == 6


def test_long_definitions_and_late_answers_are_left_out(words: Gcide) -> None:
    assert built(words, WordPair("E07", "glim", "hoot", 1), max_words=3) == []
    assert built(words, WordPair("E07", "glim", "hoot", 6)) == []
    assert built(words, WordPair("E07", "glim", "hoot", 6), answers=0)


def test_required_words_in_a_definition(words: Gcide) -> None:
    found = built(words, WordPair("E09", "hoot", "green", 1))
    assert [row[4] for row in found] == ["The color of growing leaves."]


def test_fallback_and_words_of_a_choice(words: Gcide) -> None:
    assert {row[3] for row in built(words, WordPair("L05", "hoot", "herd", 1))} == {"The call of an owl."}
    assert built(words, WordPair("L05", "run", "herd", 1), definitions=1)[0][3] == "To move in haste."
    assert built(words, WordPair("L05", "hoot", "green", 1)) == []


def test_both_sides_have_the_same_part_of_speech(words: Gcide) -> None:
    found = built(words, WordPair("L08", "hoot", "herd", 1))
    assert {row[3] for row in found} == {"To call at night.", "To cry like the glim."}
    assert {row[4] for row in found} == {"To drive beasts together."}
    assert built(words, WordPair("L08", "run", "green", 1)) == []


def test_a_word_with_itself_and_equal_pairs_are_dropped(words: Gcide) -> None:
    assert built(words, WordPair("L08", "herd", "herd", 1)) == []
    assert len(built(words, WordPair("L08", "run", "herd", 1), WordPair("L08", "run", "herd", 2))) == 2


def test_written_pairs_follow_and_names_are_left_to_them(words: Gcide, tmp_path: Path) -> None:
    own = read_sentence_pairs(write(tmp_path, LINE), "own")
    pairs = [WordPair("E07", "glim", "hoot", 1), WordPair("E01", "glim", "herd", 1)]
    frame = build_dsbats_open(pairs, words, own, {**REGISTRY, **RULES})
    assert frame["origin"].tolist() == ["GCIDE"] * 4 + ["own"]
    assert set(frame["relation"]) == {"E07"}
    with pytest.raises(SembenchError, match="relation 'L02' is not in"):
        build_dsbats_open([WordPair("L02", "glim", "herd", 1)], words, own, RULES)


@pytest.fixture(scope="module")
def known() -> frozenset[str]:
    """Letters of every definition in WordNet."""
    return wordnet_letters(real_wordnet())


@pytest.mark.packages
@pytest.mark.realdata
def test_the_shipped_pairs_are_pairs_of_bats_and_unlike_wordnet(known: frozenset[str]) -> None:
    own = read_sentence_pairs(OWN, "own")
    bats = read_bats(Path(os.environ["SEMBENCH_MIRROR"]) / "BATS_3.0", SEMANTIC)
    assert set(own[OPEN_COLUMNS[:3]].itertuples(index=False, name=None)) <= {
        (p.relation, p.source, p.target) for p in bats
    }
    assert not {letters(text) for text in (*own["source_gloss"], *own["target_gloss"])} & known


@pytest.mark.packages
@pytest.mark.realdata
def test_real_definitions_cover_every_other_relation(known: frozenset[str]) -> None:
    corrections = read_corrections(ROOT / "registry/corrections.tsv")
    pairs = read_bats(Path(os.environ["SEMBENCH_MIRROR"]) / "BATS_3.0", SEMANTIC, corrections)
    frame = build_dsbats_open(pairs, Gcide(packaged("gcide"), known), None, REGISTRY)
    sizes = frame.groupby("relation").size()
    assert set(sizes.index) == set(SEMANTIC) - set(NAMES)
    assert sizes.min() >= 90
    texts = {*frame["source_gloss"], *frame["target_gloss"]}
    assert not {letters(text) for text in texts} & known
    assert all(text.isascii() and text[0].isupper() for text in texts)
