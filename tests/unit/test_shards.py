"""Dumps whose work is split among jobs: the result is that of one job, whatever the number of shards. All texts are invented."""

from __future__ import annotations

import bz2
import gzip
import itertools
import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from sembench.core.artifact import read_record
from sembench.core.errors import SembenchError
from sembench.core.frames import iter_rows, write_rows
from sembench.core.plugin import MAKERS
from sembench.data.build import make_dataset, make_shard
from sembench.data.shards import Shard
from sembench.data.wikitext.dump import Page, can_be_cut, iter_pages
from sembench.evaluation.job import ensure
from sembench.plan import Plan
from sembench.plan.layout import SHARDS
from tests.conftest import edit
from tests.unit.test_wikitext import dump, page

COUNTS = (1, 2, 3, 7, 50)


def sentences(name: str, count: int) -> str:
    return " ".join(f"This is number {n} of the {name}." for n in range(count))


def article(n: int) -> str:
    """Return a page of the dump: some are long, every fifth is no article, and all repeat a sentence."""
    return page(f"Page {n}", f"The mill is old. {sentences(f'page {n}', n * 7 % 23)}", namespace=int(n % 5 == 3))


TEXT = dump(*(article(n) for n in range(30)))


def streams(text: bytes, *cuts: int) -> bytes:
    """Return text packed as bz2, a stream for what lies between two cuts."""
    return b"".join(bz2.compress(text[a:b]) for a, b in itertools.pairwise([0, *cuts, len(text)]))


def official(text: bytes, pages: int = 4) -> bytes:
    """Return a multistream dump: a stream for the head, one for so many pages each, and one for the closing tag."""
    starts = [found.start() for found in re.finditer(b"<page>", text)]
    return streams(text, *starts[::pages], text.rindex(b"</mediawiki>"))


def somewhere(text: bytes, seed: int) -> bytes:
    """Return text in streams that begin anywhere, also within a tag, and may hold no page or many."""
    chance = random.Random(seed)
    return streams(text, *sorted(chance.sample(range(1, len(text)), 12)))


def shards_of(*paths: Path, of: int) -> Iterator[list[Page]]:
    for number in range(1, of + 1):
        ranges = Shard(number, of).ranges(paths, can_be_cut, lambda line: None)
        yield [found for path, start, end in ranges for found in iter_pages(path, start, end)]


FORMS = {
    "plain": TEXT,
    "official": official(TEXT),
    "a page a stream": official(TEXT, 1),
    "within the first tag": streams(TEXT, TEXT.index(b"<page>") + 3),
    "within the last tag": streams(TEXT, TEXT.rindex(b"</page>") + 3),
    "an empty stream": official(TEXT) + bz2.compress(b""),
    **{f"anywhere {seed}": somewhere(TEXT, seed) for seed in range(8)},
}


@pytest.mark.parametrize("form", FORMS)
def test_each_page_is_in_one_shard_and_in_order(tmp_path: Path, form: str) -> None:
    path = tmp_path / "dump"
    path.write_bytes(FORMS[form])
    whole = list(iter_pages(path))
    assert len(whole) == 24 and can_be_cut(path)
    for of in COUNTS:
        found = list(shards_of(path, of=of))
        assert [*itertools.chain(*found)] == whole
        assert of > 3 or "tag" in form or max(map(len, found)) < 20 / of + 12


@pytest.mark.parametrize(
    "pack", [bytes, lambda text: official(text, 1), lambda text: streams(text, *range(9, 900, 60))]
)
def test_a_cut_at_any_byte_has_every_page_on_one_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack) -> None:
    monkeypatch.setattr("sembench.data.wikitext.dump._AT_ONCE", 7)
    path = tmp_path / "dump"
    path.write_bytes(pack(dump(*(page(f"Page {n}", "Text. " * 9) for n in range(4)))))
    whole, size = list(iter_pages(path)), path.stat().st_size
    sides = []
    for cut in range(1, size):
        before, behind = list(iter_pages(path, 0, cut)), list(iter_pages(path, cut, size))
        assert before + behind == whole
        sides.append(len(before))
    assert sides == sorted(sides) and {0, 4} < set(sides)


def test_what_cannot_be_cut_is_read_by_the_shard_in_which_it_begins(tmp_path: Path) -> None:
    for name, content in (
        ("d1.xml.bz2", bz2.compress(TEXT)),
        ("d2.xml.gz", gzip.compress(TEXT)),
        ("d3.xml", b'<?xml version="1.0" encoding="iso-8859-1"?>' + TEXT),
        ("d4.xml", b"<!-- a remark -->" + TEXT),
    ):
        (tmp_path / name).write_bytes(content)
        assert not can_be_cut(tmp_path / name)
    for name, root in (("d5.xml", b'<?xml version="1.0" encoding="UTF-8"?>\n'), ("d6.xml", b"\xef\xbb\xbf")):
        (tmp_path / name).write_bytes(root + TEXT)
        assert can_be_cut(tmp_path / name)
    (tmp_path / "d9.txt").write_bytes(b"")
    paths = sorted(tmp_path.iterdir())
    said: list[str] = []
    for of in COUNTS:
        read = [each for n in range(1, of + 1) for each in Shard(n, of).ranges(paths, can_be_cut, said.append)]
        assert list(dict.fromkeys(path for path, _, _ in read)) == paths
        for path in paths:
            edges = [(start, end) for each, start, end in read if each == path]
            assert edges[0][0] == 0 and edges[-1][1] == path.stat().st_size
            assert all(end == start for (_, end), (start, _) in itertools.pairwise(edges))
            assert len(edges) == 1 or can_be_cut(path)
    for name in "ab":
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(b"", mtime=0))
    equal = [tmp_path / "a.gz", tmp_path / "b.gz"]
    assert [[path.name for path, _, _ in Shard(n, 2).ranges(equal, can_be_cut, print)] for n in (1, 2)] == [
        ["a.gz"],
        ["b.gz"],
    ]
    assert said[0] == "d1.xml.bz2 cannot be cut, so shard 1 of 2 reads all of it"
    assert len(said) == 5 * (len(COUNTS) - 1)


# ---------------------------------------------------------------------------------------------------------------- makers


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder with a dump of several files, of which one repeats what is in another."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "articles1.bz2").write_bytes(official(TEXT))
    (folder / "articles2.xml").write_bytes(dump(*(article(n) for n in range(25, 40))))
    (folder / "articles10.gz").write_bytes(gzip.compress(dump(*(article(n) for n in range(40, 44)))))
    return folder


def joined(kind: str, source: Path, target: Path, of: int, **params: int) -> tuple[bytes, dict[str, object]]:
    """Return what a maker writes from its shards, and its facts."""
    chosen = MAKERS.parse({"kind": kind, **params}, "test")
    inputs = {chosen.plugin.roles[0]: source}
    counts: Counter[str] = Counter()
    for number in range(1, of + 1):
        own: Counter[str] = Counter()
        rows = chosen.plugin.rows(chosen.config, inputs, Shard(number, of), own, lambda line: None)
        write_rows(rows, target / f"{number}.parquet", chosen.plugin.columns, empty=True)
        counts += own
    rows = itertools.chain.from_iterable(iter_rows(target / f"{number}.parquet") for number in range(1, of + 1))
    facts = chosen.plugin.join(chosen.config, inputs, rows, counts, target, lambda line: None)
    return (target / chosen.plugin.examples).read_bytes(), facts


@pytest.mark.parametrize(("kind", "params"), [("wikipedia", {}), ("next_sentences", {"within": 3, "seed": 5})])
def test_the_number_of_shards_changes_no_byte(kind: str, params: dict[str, int], source: Path, tmp_path: Path) -> None:
    if kind == "next_sentences":
        (source / "articles11.txt").write_text(f" = Mill = \n {sentences('mill', 9)} \n")
    chosen = MAKERS.parse({"kind": kind, **params}, "test")
    inputs = {chosen.plugin.roles[0]: source}
    facts = chosen.plugin.make(chosen.config, inputs, tmp_path / "one", tmp_path, lambda line: None)
    one = (tmp_path / "one" / chosen.plugin.examples).read_bytes()
    # By hand: of 44 pages (25 to 29 stand in two files) every fifth is none; the mill stands on all, and in the text.
    articles = [n for n in [*range(30), *range(25, 44)] if n % 5 != 3]
    counted = facts["pages"] if kind == "wikipedia" else facts["articles"] - 1
    assert counted == len(articles) == 39
    if kind == "wikipedia":
        distinct = 1 + sum(n * 7 % 23 for n in set(articles))
        assert facts["rows"] == distinct
        assert facts["duplicates"] == sum(1 + n * 7 % 23 for n in articles) - distinct
    for of in COUNTS:
        assert joined(kind, source, tmp_path / str(of), of, **params) == (one, facts)


# ------------------------------------------------------------------------------------------------------- through the plan


@pytest.fixture
def plan(registry_copy: Path) -> Plan:
    """Scale smoke with three shards, its invented dump fetched."""
    edit(registry_copy, "scales.yaml", lambda v: v["smoke"].update(shards=3))
    plan = Plan("smoke", root=registry_copy)
    ensure(plan, plan.dataset("smoke_wiki"), lambda line: None)
    return plan


def test_a_finished_shard_is_not_made_again_and_the_set_has_the_name_of_one_made_in_one_go(plan: Plan) -> None:
    name = "wiki_next_three"
    whole = Plan("smoke")
    assert whole.shards(name) == () and plan.made(name).folder == whole.made(name).folder
    assert not Plan("demo").shards(name) and len(Plan("full").shards(name)) == 64 and not plan.shards("nli_pairs")
    first = plan.shards(name)[0]
    assert len({shard.key for shard in plan.shards(name)} - {plan.made(name).key}) == 3
    said: list[str] = []
    make_shard(plan, name, first, said.append)
    left = plan.root / SHARDS / plan.made(name).folder.name / "5-of-7"
    left.mkdir()
    make_dataset(plan, name, said.append)
    assert [line for line in said if "shard" in line] == [
        f"shard {number} of 3: {rows} rows" for number, rows in ((1, 50), (2, 40), (3, 30))
    ]
    # The workflow removes what its own jobs made; the others were made here.
    assert [path.name for path in left.parent.glob("[0-9]*")] == ["1-of-3"]
    record = read_record(plan.root, plan.made(name))
    assert record and [each["name"] for each in record["inputs"]] == ["smoke_wiki"]
    edit(plan.root, "scales.yaml", lambda v: v["smoke"].update(shards=1))
    one = Plan("smoke", root=plan.root)
    path = plan.root / plan.made(name).folder / "pairs.parquet"
    before = path.read_bytes()
    (plan.root / plan.made(name).record).unlink()
    make_dataset(one, name, said.append)
    assert path.read_bytes() == before and read_record(plan.root, plan.made(name))["facts"] == record["facts"]


def test_damage_is_one_sentence_with_file_and_shard(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    path = plan.root / plan.dataset("smoke_wiki").folder / "dump.xml"
    monkeypatch.setattr("sembench.core.artifact.sha256_of", lambda path: "0" * 64)
    record = plan.root / plan.dataset("smoke_wiki").record
    record.write_text(re.sub(r'"dump\.xml": "\w+"', f'"dump.xml": "{"0" * 64}"', record.read_text()))
    text = path.read_bytes()
    middle = text.index(b"</page>", len(text) // 2)
    path.write_bytes(text[:middle] + b"</pagr>" + text[middle + 7 :])
    make_shard(plan, "wiki_next_three", plan.shards("wiki_next_three")[0], lambda line: None)
    with pytest.raises(SembenchError, match=r"^shard 2 of 3: .*dump\.xml is not well-formed XML .*; fetch it again"):
        make_dataset(plan, "wiki_next_three", lambda line: None)
    assert [shard.name for shard in plan.shards("wiki_next_three") if (plan.root / shard.record).is_file()] == [
        "wiki_next_three, 1 of 3"
    ]
    assert not list((plan.root / plan.made("wiki_next_three").folder).glob("*.parquet"))


def test_damage_loses_no_page_silently(tmp_path: Path) -> None:
    """Whatever byte is wrong, some shard says so, or every page is there as it was."""
    whole = official(dump(*(page(f"Page {n}", "Text. " * 9) for n in range(8))), 2)
    path = tmp_path / "dump.bz2"
    path.write_bytes(whole)
    pages, damaged = list(iter_pages(path)), 0
    for at in range(10, len(whole), 7):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        try:
            found = [*itertools.chain(*shards_of(path, of=3))]
        except SembenchError as error:
            damaged += 1
            assert re.search(r"dump\.bz2 is (damaged|cut short)", str(error))
        else:
            assert found == pages  # Some bits of the format mean nothing.
    assert damaged > 50
    starts = [found.start() for found in re.finditer(b"BZh91AY", whole)]
    for end in (*starts[1:], len(whole) - 1):
        path.write_bytes(whole[:end])
        with pytest.raises(SembenchError, match=r"dump\.bz2 is cut short"):
            list(shards_of(path, of=3))


def test_an_unknown_shard_is_one_sentence(plan: Plan) -> None:
    with pytest.raises(
        SembenchError, match=r"shard '3-of-4' is not in those of data set 'wiki_next_three' at scale 's"
    ):
        plan.shard("wiki_next_three", "3-of-4")
