"""WordNet as an inventory, on an invented database; some facts on the real one where it is at hand."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nltk.data
import pytest

from sembench.analogy.inventory.wordnet import WordNetInventory, spellings
from sembench.analogy.inventory.wordnet_files import definition, prepare_wordnet
from sembench.core.errors import SembenchError
from tests.unit.wordnet_database import ENTRIES, Entry, real_inventory, write_database


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[WordNetInventory, dict[str, str]]:
    folder = tmp_path_factory.mktemp("wordnet")
    keys = write_database(folder, ENTRIES)
    return WordNetInventory(folder), keys


@pytest.fixture(scope="module")
def real() -> WordNetInventory:
    return real_inventory()


@pytest.mark.parametrize(
    ("gloss", "expected"),
    [
        ("a small bird", "a small bird"),
        ('a bird; "it sang"; "they sing"', "a bird"),
        ('a bird: "it sang"', "a bird"),
        ('a bird, "it sang"', "a bird"),
        ("a bird; also its song; rare", "a bird; also its song; rare"),
        ('used in phrases such as "bird in hand" and others', 'used in phrases such as "bird in hand" and others'),
        ('a bird; "it sang"- A. Poet', "a bird"),
        ("a bird; - A. Poet", "a bird"),
        ('a bird;"it sang"', "a bird"),
        ("the group -OH", "the group -OH"),
        ("a bird ;", "a bird"),
        ("a well-known bird", "a well-known bird"),
        ("  a   bird  ", "a bird"),
        ('(music) a song; "the song"', "(music) a song"),
    ],
)
def test_a_definition_is_the_gloss_without_examples_and_citations(gloss: str, expected: str) -> None:
    assert definition(gloss) == expected


def test_spellings_move_hyphens_and_spaces() -> None:
    assert spellings("Bow wow") == ("bow_wow", "bow-wow", "bowwow")
    assert spellings("x-ray_tube") == ("x-ray_tube", "x_ray_tube", "x-ray-tube", "xraytube")


def test_senses_come_in_order_and_complete(made) -> None:
    inventory, keys = made
    glim, lamp, call = inventory.synsets("glim", ("NOUN", "VERB"))
    assert [glim.id, lamp.id, call.id] == [keys["glim"], keys["lamp"], keys["call"]]
    assert (glim.lexfile, glim.type, glim.pos, glim.lemmas) == (
        "noun.animal",
        "CONCEPT",
        "NOUN",
        ("glim", "marsh glim"),
    )
    assert [gloss.text for gloss in glim.glosses] == ["a small beast of the marsh; sleeps all day"]
    assert lamp.glosses[0].text == "(sailing) a lamp hung at the bow"
    assert f"wn:{glim.wordnet}" == glim.id
    assert glim.found_as is None


def test_an_instance_is_a_named_entity(made) -> None:
    [port] = made[0].synsets("port ombra", ("NOUN",))
    assert port.type == "NAMED_ENTITY"


def test_variants_of_hyphen_and_base_forms_of_nouns_are_found(made) -> None:
    inventory, keys = made
    assert [(s.id, s.found_as) for s in inventory.synsets("glim_wick", ("NOUN",))] == [(keys["wick"], "glim-wick")]
    assert [(s.id, s.found_as) for s in inventory.synsets("leaves", ("NOUN",))] == [(keys["leaf"], "leaf")]
    assert [s.found_as for s in inventory.synsets("glims", ("NOUN", "VERB"))] == ["glim", "glim"]
    assert inventory.synsets("glims", ("VERB",)) == []
    assert inventory.synsets("nothing_of_the_kind", ("NOUN", "VERB", "ADJ", "ADV")) == []


@pytest.mark.parametrize(
    ("first", "second", "edge", "expected"),
    [
        ("glim", "beast", "ancestor", True),
        ("glim", "thing", "ancestor", True),
        ("thing", "glim", "ancestor", False),
        ("ombra", "thing", "ancestor", True),
        ("herd", "glim", "member", True),
        ("glim", "herd", "member", False),
        ("lamp", "wick", "part", True),
        ("lamp", "wax", "substance", True),
        ("lamp", "wax", "part", False),
        ("bright", "dull", "antonym", True),
        ("bright", "dim", "antonym", True),
        ("radiant", "dull", "antonym", True),
        ("radiant", "dim", "antonym", True),
        ("radiant", "bright", "antonym", False),
        ("radiant", "bright", "similar", True),
        ("bright", "dull", "similar", False),
    ],
)
def test_edges_of_the_graph(made, first: str, second: str, edge, expected: bool) -> None:
    inventory, keys = made
    assert inventory.related(inventory.synset(keys[first]), inventory.synset(keys[second]), edge) is expected


@pytest.mark.parametrize("key", ["wn:00000001n", "wn:99999999n", "bn:00000001n", "glim"])
def test_an_unknown_id_is_one_sentence(made, key: str) -> None:
    with pytest.raises(SembenchError, match="not a synset of WordNet"):
        made[0].synset(key)


def test_threads_see_the_same_senses(tmp_path: Path) -> None:
    many = [
        Entry(f"e{i}", "n", "noun.animal", [f"beast{i}", f"brute{i}"], f"beast number {i} of all") for i in range(300)
    ]
    write_database(tmp_path, many)
    words = [f"{kind}{i}" for i in range(300) for kind in ("beast", "brute")]
    alone = [WordNetInventory(tmp_path).synsets(word, ("NOUN",)) for word in words[:40]]
    shared = WordNetInventory(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda word: shared.synsets(word, ("NOUN",)), words * 3))
    assert found[:40] == alone
    assert all(len(senses) == 1 for senses in found)
    assert found[:600] == found[600:1200] == found[1200:]


def test_preparing_strips_carriage_returns_and_write_rights(tmp_path: Path) -> None:
    write_database(tmp_path / "packed", ENTRIES, "\r\n")
    before = list(nltk.data.path)
    with pytest.raises(SembenchError, match="CRLF"):
        WordNetInventory(tmp_path / "packed")
    folder = prepare_wordnet(tmp_path / "packed", tmp_path / "root", check=None)
    assert folder == tmp_path / "root/corpora/wordnet"
    write_database(tmp_path / "plain", ENTRIES)
    for path in folder.iterdir():
        assert path.read_bytes() == (tmp_path / "plain" / path.name).read_bytes()
        assert not path.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    assert not folder.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    assert len(WordNetInventory(folder)) == len(ENTRIES)
    assert nltk.data.path == before


def test_another_database_is_refused(tmp_path: Path) -> None:
    write_database(tmp_path / "packed", ENTRIES)
    with pytest.raises(SembenchError, match="is not WordNet 3"):
        prepare_wordnet(tmp_path / "packed", tmp_path / "root")
    assert not (tmp_path / "root").exists()


def test_missing_and_broken_files_are_named(tmp_path: Path) -> None:
    write_database(tmp_path, ENTRIES)
    (tmp_path / "index.noun").write_text("glim n two 0 2 0 00000001\n")
    with pytest.raises(SembenchError, match="no readable WordNet"):
        WordNetInventory(tmp_path)
    (tmp_path / "data.verb").unlink()
    with pytest.raises(SembenchError, match=r"data\.verb does not exist"):
        WordNetInventory(tmp_path)
    with pytest.raises(SembenchError, match=r"data\.verb does not exist"):
        prepare_wordnet(tmp_path, tmp_path / "root", check=None)


def test_real_wordnet_has_its_size_and_offsets(real: WordNetInventory) -> None:
    assert len(real) == 117_659
    # The offsets that BabelNet's ids refer to.
    assert real.synsets("dog", ("NOUN",))[0].id == "wn:02084071n"
    assert real.synsets("otter", ("NOUN",))[1].id == "wn:02444819n" or real.synset("wn:02444819n").lemmas == ("otter",)
    assert real.synsets("bow_wow", ("NOUN",))[0].found_as == "bow-wow"
    assert {s.found_as for s in real.synsets("grapes", ("NOUN",))} == {"grape"}


def test_real_nltk_reads_the_prepared_folder(real: WordNetInventory) -> None:
    # All members of a closure by nltk's own hypernym paths, an independent way through the same graph.
    dog = real._reader.synset("dog.n.01")
    paths = {f"wn:{s.offset():08d}n" for path in dog.hypernym_paths() for s in path} - {"wn:02084071n"}
    first = real.synset("wn:02084071n")
    assert all(real.related(first, real.synset(key), "ancestor") for key in paths)
