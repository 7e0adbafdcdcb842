"""Dumps of crawled senses, written and read, whole and damaged."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sembench.analogy.inventory.babelnet import BabelNetClient, BabelNetInventory
from sembench.analogy.inventory.babelnet_answers import edges_params
from sembench.analogy.inventory.base import Gloss, Inventory, Synset
from sembench.analogy.inventory.cache import AnswerCache
from sembench.analogy.inventory.crawl import crawl
from sembench.analogy.inventory.dump import DumpInventory, export_dump
from sembench.core.errors import SembenchError
from tests.unit import fake_babelnet as fake

REGULAR: list[Any] = fake.words(20)
BY_HAND: list[Any] = [*fake.INDEX]
EDGES: list[Any] = ["ancestor", "antonym", "similar", "part", "member", "substance"]
HEADER = {"format": "sembench-babelnet-dump", "format_version": 1, "babelnet": "V5_3", "created_from": "a test"}


def lexfile_of(offset: str) -> str | None:
    return "noun.animal" if offset.startswith("1") else None


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AnswerCache]:
    """Words with their synsets, some edges, other answers, and one word whose synsets are not there yet."""
    answers = AnswerCache(tmp_path_factory.mktemp("answers"))
    with fake.running(count=24) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("BABELNET_KEY", fake.KEY)
        patch.setenv("BABELNET_URL", server.url)
        client = BabelNetClient(answers)
        crawl(REGULAR + BY_HAND, client)
        crawl(BY_HAND, client, source="WN")
        for synset in (*fake.EDGES, fake.GHOST):
            client.ask("getOutgoingEdges", edges_params(synset))
        client.synset_ids(*fake.words(24)[-1])
        client.ask("getSynset", {"id": "wn:10000101n"})
        client.ask("getSynset", {"id": fake.FLORN, "targetLang": ["EN", "DE"]})
        client.ask("getSenses", {"lemma": "mulp", "searchLang": "EN"})
    yield answers


def written(path: Path, *lines: Any, header: Any = HEADER) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in (header, *lines)))
    return path


@pytest.mark.parametrize("name", ["senses.jsonl", "senses.jsonl.gz"])
@pytest.mark.parametrize("source", [None, "WN"])
def test_a_dump_answers_as_its_cache(cache: AnswerCache, tmp_path: Path, name: str, source: str | None) -> None:
    export_dump(cache, tmp_path / "new" / name, source=source)
    live = BabelNetInventory(cache, lexfile_of, source=source)
    dump: Inventory = DumpInventory(tmp_path / "new" / name, lexfile_of)
    assert dump.version == live.version == "V5_3" and dump.name == live.name
    senses: dict[str, Synset] = {}
    for lemma, pos in BY_HAND if source else REGULAR + BY_HAND:
        found = live.synsets(lemma, [pos])
        assert dump.synsets(lemma.upper(), [pos]) == found
        senses |= {synset.id: synset for synset in found}
    assert len(senses) == len(fake.SYNSETS) - (2 if source else 0) + (0 if source else 5)
    for first in senses.values():
        for second in senses.values():
            for edge in EDGES:
                assert dump.related(first, second, edge) is live.related(first, second, edge)


def test_what_was_not_fetched_is_missing_in_both(cache: AnswerCache, tmp_path: Path) -> None:
    path = tmp_path / "senses.jsonl"
    export_dump(cache, path)
    lemma, pos = fake.words(24)[-1]
    for strict, message in (
        (
            BabelNetInventory(cache),
            r"no answer to getSynset\(id=bn:10000005v, targetLang=EN\); run sembench babelnet crawl first",
        ),
        (DumpInventory(path), r"has no line for bn:10000005v; export it again after a crawl"),
    ):
        with pytest.raises(SembenchError, match=message):
            strict.synsets(lemma, [pos])
    with pytest.raises(SembenchError, match="no line for the NOUN 'nothing'"):
        DumpInventory(path).synsets("nothing", ["NOUN"])


def test_the_order_is_fixed_and_the_bytes_are_equal(cache: AnswerCache, tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl", "a.jsonl.gz", "b.jsonl.gz"):
        header = export_dump(cache, tmp_path / name)
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()
    assert (tmp_path / "a.jsonl.gz").read_bytes() == (tmp_path / "b.jsonl.gz").read_bytes()
    text = (tmp_path / "a.jsonl").read_text()
    assert gzip.decompress((tmp_path / "a.jsonl.gz").read_bytes()).decode() == text
    lines = [json.loads(line) for line in text.splitlines()]
    assert lines[0] == header and header["babelnet"] == "V5_3"
    assert header["counts"] == {"words": 20 + 8 + 1, "synsets": 5 + len(fake.SYNSETS) + 1, "edges": len(fake.EDGES) + 1}
    words = [line["lemma"] for line in lines if "lemma" in line]
    synsets = [line["id"] for line in lines if "senses" in line or "message" in line]
    assert words == sorted(words) and synsets == sorted(synsets)
    assert {"id": fake.GHOST, "message": fake.NOT_FOUND} in lines
    assert fake.KEY not in text and str(cache.folder) not in text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", "a.jsonl.gz", "b.jsonl", "b.jsonl.gz"]


def test_nothing_to_export(cache: AnswerCache, tmp_path: Path) -> None:
    with pytest.raises(SembenchError, match="holds no words, so there is nothing to export"):
        export_dump(AnswerCache(tmp_path / "none"), tmp_path / "x.jsonl")
    with pytest.raises(SembenchError, match="no words with source WIKT"):
        export_dump(cache, tmp_path / "x.jsonl", source="WIKT")
    assert not (tmp_path / "x.jsonl").exists()


def test_a_dump_that_somebody_else_made(tmp_path: Path) -> None:
    """Neither counts nor ids beside the synsets are needed, and lines may come in any order."""
    word = {"lemma": "Mulp", "pos": "VERB", "synsets": [fake.MULP], "more": 1}
    path = written(tmp_path / "mine.jsonl", fake.SYNSETS[fake.MULP], word, header={**HEADER, "more": 1})
    path.write_text(path.read_text().replace("\n", "\n\n"))
    expected = Synset(
        id=fake.MULP, pos="VERB", lemmas=("mulp",), glosses=(Gloss("whistle backwards", "WN"),), type="CONCEPT",
        wordnet="20000301v",
    )  # fmt: skip
    assert DumpInventory(path).synsets("mulp", ["VERB"]) == [expected]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"lemma": "bal", "pos": "NO', "line 3, is not a JSON object, so the file is damaged or cut off; export"),
        ("[1, 2]", "line 3, is not a JSON object"),
        ('{"lemma": "bal", "pos": "NOUN"}', "line 3, is neither a word, a synset, nor edges: it lacks an 'id'"),
        (
            '{"lemma": "bal", "pos": "ADJECTIVE", "synsets": []}',
            "line 3, needs .* one of NOUN, VERB, ADJ, ADV as 'pos'",
        ),
        ('{"lemma": 3, "pos": "ADJ", "synsets": []}', "line 3, needs a text as 'lemma'"),
        ('{"lemma": "bal", "pos": "NOUN", "synsets": "bn:00000001n"}', "line 3, .*it is not a list"),
        (
            '{"lemma": "bal", "pos": "NOUN", "synsets": ["00000001n"]}',
            "line 3, .*'00000001n' is not the id of a synset",
        ),
        ('{"lemma": "bal", "pos": "NOUN", "synsets": [7]}', "line 3, .*'id' is not a text"),
        ('{"id": "bn:1n", "senses": []}', "line 3, .*'bn:1n' is not the id"),
        ('{"id": "bn:00000001n", "senses": 4}', "line 3, .*'senses' is not a list of objects"),
        ('{"id": "bn:00000001n", "edges": {}}', "line 3, .*it is not a list"),
        ('{"senses": [{"properties": 1}]}', "line 3, .*lacks an 'id'"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, problem: str) -> None:
    path = written(tmp_path / "bad.jsonl", {"lemma": "good", "pos": "NOUN", "synsets": []})
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(SembenchError, match=rf"bad\.jsonl, {problem}"):
        DumpInventory(path)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "its first line must be the header"),
        ('{"format": "another"}\n', "its first line must be the header"),
        (json.dumps({**HEADER, "babelnet": None}), "its first line must be the header"),
        (json.dumps({**HEADER, "format_version": 2}), "has format version 2, this program reads 1"),
        (json.dumps({**HEADER, "counts": {"words": 1}}), "has 0 of 1 words; export or copy the file again"),
        ("\xff\xfe", "line 1, is not a JSON object"),
    ],
)
def test_a_bad_header_or_a_lost_end(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(SembenchError, match=problem):
        DumpInventory(path)


def test_a_dump_cut_at_the_end_of_a_line(cache: AnswerCache, tmp_path: Path) -> None:
    path = tmp_path / "senses.jsonl"
    export_dump(cache, path)
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(SembenchError, match=r"senses\.jsonl has 6 of 7 edges"):
        DumpInventory(path)


@pytest.mark.parametrize("damage", ["cut", "flipped", "plain"])
def test_a_damaged_gz(cache: AnswerCache, tmp_path: Path, damage: str) -> None:
    path = tmp_path / "senses.jsonl.gz"
    export_dump(cache, path)
    packed = path.read_bytes()
    middle = len(packed) // 2
    flipped = packed[:middle] + bytes([packed[middle] ^ 0xFF]) + packed[middle + 1 :]
    path.write_bytes({"cut": packed[:middle], "flipped": flipped, "plain": gzip.decompress(packed)}[damage])
    with pytest.raises(SembenchError, match=r"senses\.jsonl\.gz(, line \d+,)? is .*(damaged|cut off)"):
        DumpInventory(path)


def test_no_such_dump(tmp_path: Path) -> None:
    with pytest.raises(SembenchError, match=r"there is no dump .*none\.jsonl; make one with an export"):
        DumpInventory(tmp_path / "none.jsonl")
