"""Corpora: the MediaWiki reader, the line reader, samples and the built file. All texts are invented."""

from __future__ import annotations

import bz2
import hashlib
import os
import time
import tracemalloc
from collections import Counter
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np
import pytest

from sembench.core.errors import SembenchError
from sembench.corpora.build import build_corpus, read_sentences
from sembench.corpora.lines import iter_lines, sample
from sembench.corpora.wikipedia import DAMAGE, GLUE, clean, is_prose, iter_pages, sentences, split_sentences

# ---------------------------------------------------------------------------------------------------------------------
# A small invented dump
# ---------------------------------------------------------------------------------------------------------------------

LAKE = """{{Use British English|date=May 2020}}
{{Infobox lake
| name = Lake Ombra
| area = {{convert|12|km2}}
| image = [[File:Ombra.jpg|thumb|A view of [[Lake Ombra|the lake]]]]
}}
'''Lake Ombra''' ({{IPAc-en|o|m|b}}; ''Ombra'' in Old Velish) is a [[freshwater|fresh water]] lake
in [[Velia]].<ref name="a">{{cite book|title=Lakes {{of}} Velia}}</ref>
It covers {{convert|12|km2|sqmi}} and is up to {{convert|5|ft|10|in}} deep.<ref name="a" /><!-- {{check [[this -->

[[File:Shore.jpg|thumb|left|The shore, with a [http://example.org link] and [[boat]]s.]]
The water feeds three [[mill]]s&nbsp;near the town.{{citation needed|date=May 2020}} Nobody drinks it.

{| class="wikitext"
! Year !! Level
|-
| 1900 || {{formatnum:1234}}
{|
| nested table
|}
|}

== History ==
* A list item that is a whole sentence.
: An indented remark that is a whole sentence.
<gallery>
Boat.jpg|A boat on the lake is shown here.
</gallery>
The lake was first mapped by {{unknown inline|42}} in the spring. The map was lost soon after that.
Its depth follows <math>d = {{x}}^2</math> at every point. {{quote|The lake is deeper than it looks.}}

== References ==
Author, A. Some book on many lakes. Printed in the capital.

=== Deeper ===
This paragraph stands below the references still.

== Culture ==
Two songs praise the lake's colour.

[[Category:Lakes of Velia]]
[[de:Ombrasee]]
"""

EXPECTED = [
    "Lake Ombra (Ombra in Old Velish) is a fresh water lake in Velia.",
    "It covers 12 square kilometres and is up to 5 feet 10 inches deep.",
    "The water feeds three mills near the town.",
    "The map was lost soon after that.",
    "The lake is deeper than it looks.",
    "Two songs praise the lake's colour.",
]


def page(title: str, text: str, namespace: int | None = 0, extra: str = "") -> str:
    ns = "" if namespace is None else f"<ns>{namespace}</ns>"
    return (
        f"<page><title>{escape(title)}</title>{ns}<id>7</id>{extra}<revision><id>9</id>"
        f"<contributor><username>text</username><id>3</id></contributor>"
        f'<text xml:space="preserve">{escape(text)}</text>'
        "</revision></page>\n"
    )


def dump(*pages: str, version: str = "0.10") -> bytes:
    head = f'<mediawiki xmlns="http://www.mediawiki.org/xml/export-{version}/" xml:lang="en">\n'
    return (head + "<siteinfo><sitename>Invented</sitename></siteinfo>\n" + "".join(pages) + "</mediawiki>\n").encode()


SMALL = dump(
    page("Lake Ombra", LAKE),
    page("Talk:Lake Ombra", "This is a remark on a talk page.", namespace=1),
    page("Ombra", "#REDIRECT [[Lake Ombra]]", extra='<redirect title="Lake Ombra" />'),
    page("Ombra lake", "#redirect [[Lake Ombra]]"),
    page("Empty", ""),
    page("Mill & town", "The old mill stands by the town. Nobody drinks it. The mill is old now."),
)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "dump.xml"
    path.write_bytes(SMALL)
    return path


# ---------------------------------------------------------------------------------------------------------------------
# Pages
# ---------------------------------------------------------------------------------------------------------------------


def test_pages_are_articles_without_redirects_and_talk(small: Path) -> None:
    pages = list(iter_pages(small))
    assert [found.title for found in pages] == ["Lake Ombra", "Mill & town"]
    assert pages[0].text == LAKE


@pytest.mark.parametrize("suffix", [".bz2", ".xml", ""])
def test_bz2_is_told_by_content_and_may_have_several_streams(tmp_path: Path, small: Path, suffix: str) -> None:
    packed = tmp_path / f"packed{suffix}"
    half = len(SMALL) // 2
    packed.write_bytes(bz2.compress(SMALL[:half]) + bz2.compress(SMALL[half:]))
    assert list(iter_pages(packed)) == list(iter_pages(small))


@pytest.mark.parametrize("version", ["0.3", "0.11", "9.9"])
def test_any_schema_version_and_pages_without_namespace(tmp_path: Path, version: str) -> None:
    path = tmp_path / "old.xml"
    path.write_bytes(dump(page("Old", "An old text.", namespace=None), version=version))
    assert [(found.title, found.text) for found in iter_pages(path)] == [("Old", "An old text.")]


@pytest.mark.parametrize("packed", [False, True], ids=["xml", "bz2"])
def test_truncated_dump_is_one_sentence_or_tolerated(tmp_path: Path, packed: bool) -> None:
    # Random letters do not compress, so that half of the packed file still holds whole pages.
    rng = np.random.default_rng(0)
    texts = ["".join(chr(97 + c) for c in rng.integers(0, 26, 4000)) for _ in range(900)]
    whole = dump(*(page(f"P{i}", text) for i, text in enumerate(texts)))
    data = bz2.compress(whole, 1) if packed else whole
    path = tmp_path / "cut.xml"
    path.write_bytes(data[: len(data) * 3 // 4])
    with pytest.raises(SembenchError, match=r"cut\.xml is cut short"):
        list(iter_pages(path))
    tolerated = [found.title for found in iter_pages(path, allow_truncated=True)]
    assert 300 < len(tolerated) < 900
    assert tolerated == [f"P{i}" for i in range(len(tolerated))]


def test_cut_at_every_place_is_told(tmp_path: Path) -> None:
    path = tmp_path / "cut.xml"
    for length in range(0, len(SMALL) - len("</mediawiki>\n"), 37):
        path.write_bytes(SMALL[:length])
        with pytest.raises(SembenchError, match="cut short"):
            list(iter_pages(path))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<html><body/></html>", r"no MediaWiki dump: its root is <html>"),
        (b"<mediawiki><page></wrong></mediawiki>", "not well-formed XML"),
        (b"no markup at all", "not well-formed XML"),
        (b"BZh9 this is not bz2 data at all, only its first bytes", "damaged bz2 file"),
    ],
)
def test_bad_dumps_are_one_sentence(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "bad.xml"
    path.write_bytes(content)
    with pytest.raises(SembenchError, match=message) as caught:
        list(iter_pages(path, allow_truncated=True))
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_dump(tmp_path: Path) -> None:
    with pytest.raises(SembenchError, match="does not exist"):
        list(iter_pages(tmp_path / "none.xml"))


def test_large_dump_is_streamed(tmp_path: Path) -> None:
    path = tmp_path / "large.xml"
    body = page("Page", "A sentence of some words. " * 400) + page("Talk:Page", "Talk. " * 400, namespace=1)
    path.write_bytes(dump(*([body] * 1500)))
    assert path.stat().st_size > 18_000_000
    tracemalloc.start()
    try:
        count = sum(1 for _ in iter_pages(path))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 1500
    assert peak < 3_000_000


# ---------------------------------------------------------------------------------------------------------------------
# Wikitext
# ---------------------------------------------------------------------------------------------------------------------


def test_article_becomes_prose() -> None:
    assert list(sentences(clean(LAKE))) == EXPECTED


@pytest.mark.parametrize(
    ("wikitext", "plain"),
    [
        ("The [[cat]]s sat on [[mat (rug)|the mat]].", "The cats sat on the mat."),
        ("See [[:Category:Cats|the cats]] and [[wikt:mat|mats]].", "See the cats and mats."),
        (
            "A [http://a.example/b?c=d labelled link] and [https://e.example] a bare one.",
            "A labelled link and a bare one.",
        ),
        ("A ''thin'' and '''bold''' and '''''both''''' word.", "A thin and bold and both word."),
        ("The ''Ombra'''s crew and l''''eau''' too.", "The Ombra's crew and l'eau too."),
        ("End.<ref>Note [[x|{{y}}]].</ref>Next.<ref name=b/> Last<ref>q</ref>, too.", "End. Next. Last, too."),
        ("H<sub>2</sub>O at 5&nbsp;&deg;C &amp; more<br />of it.", "H2O at 5 °C & more of it."),
        ("A <span style='x'>red</span> <small>word</small> __NOTOC__ stays.", "A red word stays."),
        ("One line\nand the next.\n\nA new paragraph.", "One line and the next.\nA new paragraph."),
        ("Gone (born {{birth date|1900|1|1}}) is he.", "Gone is he."),
        ("Gone (from {{lang-vl|x}} (old), later) is he.", "Gone is he."),
        ("Named after King, Jr.. Then ... more.", "Named after King, Jr. Then ... more."),
        ("A <nowiki>{{</nowiki> here.", f"A {DAMAGE} here."),
        ("About 10<sup>5</sup> of them.", f"About 10{DAMAGE}5 of them."),
        ("He wrote ''What now?'' In May.", f"He wrote What now?{GLUE} In May."),
        ("<!-- [[never {{closed -->Text here.", "Text here."),
        ("<source lang=c>\nint Main;\n</source>\nText here.", "Text here."),
        ("<ol><li>One item here.</li></ol>Text here.", "Text here."),
        ("<blockquote>Quoted text.</blockquote>", "Quoted text."),
        ("{{outer|{{inner|{{innermost}}}}\n}}\nText here.", "Text here."),
    ],
)
def test_clean(wikitext: str, plain: str) -> None:
    assert clean(wikitext) == plain


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("{{convert|52419|sqmi|km2|abbr=on|sp=us}}", "52,419 square miles"),
        ("{{Convert|1.7|-|1.9|kg|lb}}", "1.7–1.9 kilograms"),
        ("{{convert|3|to|5|m|sp=us}}", "3 to 5 meters"),
        ("{{convert|1|mi|km}}", "1 mile"),
        ("{{convert|300|m|ft|0|adj=on}}", "300-metre"),
        ("{{convert|-6|C|0}}", "−6 °C"),
        ("{{convert|12|e6acre|km2}}", "12 million acres"),
        ("{{convert|5|parrots}}", DAMAGE),
        ("{{convert|many|km}}", f"{DAMAGE} kilometres"),
        ("{{convert|5}}", DAMAGE),
        ("{{lang|fr|''eau''}}", "eau"),
        ("{{transl|ar|DIN|alif}}", "alif"),
        ("{{nowrap|1=five = 5 mills}}", "five = 5 mills"),
        ("{{as of|2010|7|lc=y}}", "as of July 2010"),
        ("{{As of|2012|3|4}}", "As of 4 March 2012"),
        ("{{frac|2}}", "1/2"),
        ("{{frac|3|1|4}}", "3 1/4"),
        ("{{circa|1900}}", "c. 1900"),
        ("{{formatnum:12345.5}}", "12,345.5"),
        ("{{chem|H|2|O}}", "H2O"),
        ("{{chem|Si|4|4-}}", DAMAGE),
        ("{{USS|Velia|CV-1}}", "USS Velia"),
        ("{{abbr|km|kilometre}}", "km"),
        ("{{sfn|Mole|1990}}", ""),
        ("{{lang|fr}}", DAMAGE),
        ("{{never seen}}", DAMAGE),
    ],
)
def test_templates(call: str, words: str) -> None:
    assert clean(f"There were {call} here.") == " ".join(f"There were {words} here.".split())


def test_unclosed_brackets_spoil_one_sentence_only() -> None:
    text = "A good sentence stands here. A [[bad link stands here. One more good one follows."
    assert [s for s in split_sentences(clean(text)) if DAMAGE not in s] == [
        "A good sentence stands here.",
        "One more good one follows.",
    ]
    assert clean("Text with ]] and }} strays.") == "Text with and strays."


@pytest.mark.parametrize(
    "text",
    [
        "{{" * 50_000,
        "[[" * 50_000,
        "[[{{" * 30_000 + "}}" * 30_000,
        "[http://x " * 20_000,
        "(" * 50_000 + DAMAGE,
        "''a" * 50_000,
    ],
)
def test_hostile_brackets_take_linear_time(text: str) -> None:
    start = time.perf_counter()
    list(sentences(clean(text)))
    assert time.perf_counter() - start < 5


# ---------------------------------------------------------------------------------------------------------------------
# Sentences
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pieces",
    [
        ["It rains.", "The sun is gone!", "Is it?", "Yes."],
        ["Dr. Mole met Mrs. Hare at St. Olm.", "They spoke of Prof. Ash."],
        ["The U.S. Navy came.", "It left the U.S. in May.", "He saw the U.S.", "The end."],
        ["Some tools, e.g. Hammers and i.e. Saws, etc., are sold.", "Others (cf. Fig. 3) are not."],
        ["J. R. Mole and A. B. Hare wrote it.", "It sold."],
        ["It has vitamin C.", "The rest is water."],
        ["It grew 2.5 km in 1999.", "30 men left."],
        ["See No. 5 and vol. 2 of it.", "He said no.", "I agree."],
        ['"It rains," he said.', '"It does."', "They left."],
        ['He said "It rains. It always does." and left.', "They stayed."],
        ["The mill (built in May. Burnt in June.) was old.", "It fell."],
        ["It fell (in May).", "(It was cold.)", "They left."],
        ["She died at 5 p.m. Monday.", "He came at 5 p.m.", "The rest slept."],
        ["Mole Inc. Hare & Co. sold it.", "Nobody bought it."],
        ["It was in Mole v. Hare that it was said.", "So be it."],
        ["“It rains. It does.”", "They left."],
        ["An open ( bracket does not swallow.", "The rest goes on."],
        ["Élan came.", "Österreich followed."],
    ],
)
def test_split(pieces: list[str]) -> None:
    assert list(split_sentences(" ".join(pieces))) == pieces


def test_title_mark_does_not_split_and_glue_is_removed() -> None:
    text = clean("In ''What is Rain?'' The Mole says nothing. He is tired.")
    assert list(split_sentences(text)) == ["In What is Rain? The Mole says nothing.", "He is tired."]


def test_no_sentence_spans_paragraphs_and_space_is_collapsed() -> None:
    assert list(sentences("The mill  is old and\nThe town is\t very new.")) == ["The town is very new."]


@pytest.mark.parametrize(
    "sentence",
    [
        "The mill is old.",
        "12 men left the town.",
        '"The mill is old," he said.',
        "Is the mill (built in May) old?",
        "He thought of it, and, by now, forgot.",
        "Our friend ... has gone home.",
        "In 1961, the mill burnt.",
        "Élan is a word.",
    ],
)
def test_prose(sentence: str) -> None:
    assert is_prose(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "The mill is",
        "The mill is old:",
        "the mill is old.",
        "Too short.",
        "Word " * 128 + "end.",
        "The mill (is old.",
        "The mill )is( old.",
        'The "mill is old.',
        "The {{mill}} is old.",
        "The [[mill]] is old.",
        "The mill | is old.",
        "The mill <b> is old.",
        "The mill x = 5 is old.",
        f"The {DAMAGE} is old.",
        "The mill at http://mill.example is old.",
        "The mill () is old.",
        "The mill was built by the.",
        "The mill, , is old.",
        "The mill is old.Next it fell.",
        "12, 13, 14, 15, 16 and 17.",
        "",
    ],
)
def test_not_prose(sentence: str) -> None:
    assert not is_prose(sentence)


def test_word_limits() -> None:
    assert is_prose("Word " * 127 + "end.")
    assert is_prose("Four words are enough.")
    assert not is_prose("Three are few.")


# ---------------------------------------------------------------------------------------------------------------------
# Lines and samples
# ---------------------------------------------------------------------------------------------------------------------


def test_lines_are_stripped_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_bytes("\ufeff First title \r\n\r\n   \nA line\u2028with a separator.\nlower | case\n\tÉnd".encode())
    assert list(iter_lines(path)) == ["First title", "A line\u2028with a separator.", "lower | case", "Énd"]


def test_invalid_utf8_names_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_bytes(b"good\n\nbad \xff here\n")
    with pytest.raises(SembenchError, match=r"lines\.txt, line 3 is not UTF-8 \(byte 0xff"):
        list(iter_lines(path))


def test_missing_lines(tmp_path: Path) -> None:
    with pytest.raises(SembenchError, match="does not exist"):
        list(iter_lines(tmp_path / "none.txt"))


def test_sample_follows_numpy_and_keeps_order() -> None:
    items = [f"s{i}" for i in range(1000)]
    indices = np.sort(np.random.Generator(np.random.PCG64(7)).choice(1000, 50, replace=False))
    assert sample(items, 50, 7) == [items[i] for i in indices]
    assert sample(items, 50, 7) != sample(items, 50, 8)
    assert len(set(sample(items, 50, 8))) == 50


def test_sample_of_everything() -> None:
    assert sample("abc", None, 0) == ["a", "b", "c"]
    assert sample("abc", 3, 0) == ["a", "b", "c"]


def test_sample_is_uniform() -> None:
    counts = Counter(item for seed in range(4000) for item in sample(range(10), 3, seed))
    # Each item is expected 1200 times with a standard deviation of sqrt(4000 * 0.3 * 0.7) = 29.
    assert all(abs(counts[item] - 1200) < 5 * 29 for item in range(10))


@pytest.mark.parametrize(("k", "message"), [(4, "sample of 4 .* only 3"), (0, "sample of 0"), (-1, "sample of -1")])
def test_impossible_sample(k: int, message: str) -> None:
    with pytest.raises(SembenchError, match=message):
        sample("abc", k, 0)


# ---------------------------------------------------------------------------------------------------------------------
# The built corpus
# ---------------------------------------------------------------------------------------------------------------------


def test_build_from_dump_drops_duplicates(tmp_path: Path, small: Path) -> None:
    target = tmp_path / "new" / "corpus.txt"
    small.write_bytes(SMALL.replace(b"The mill is old now.", b"The mill is old now. The old mill stands by the town."))
    statistics = build_corpus("mediawiki", small, target)
    expected = [*EXPECTED, "The old mill stands by the town.", "The mill is old now."]
    assert read_sentences(target) == expected
    assert target.read_bytes() == ("\n".join(expected) + "\n").encode()
    assert statistics == {
        "reader": "mediawiki",
        "sentences": 8,
        "words": sum(len(line.split()) for line in expected),
        "pages": 2,
        "duplicates_dropped": 1,
        "sha256": hashlib.sha256(target.read_bytes()).hexdigest(),
    }


def test_build_from_lines_keeps_duplicates(tmp_path: Path) -> None:
    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_bytes(b"Title\r\n\nSame line\nSame line\n")
    statistics = build_corpus("lines", source, target)
    assert read_sentences(target) == ["Title", "Same line", "Same line"]
    assert (statistics["sentences"], statistics["words"], statistics["duplicates_dropped"]) == (3, 5, 0)
    assert "pages" not in statistics


@pytest.mark.parametrize("content", [b"good\n\xff\n", b"\n \n"], ids=["broken", "empty"])
def test_failed_build_leaves_the_old_file_alone(tmp_path: Path, content: bytes) -> None:
    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_bytes(content)
    target.write_text("old\n")
    with pytest.raises(SembenchError):
        build_corpus("lines", source, target)
    assert target.read_text() == "old\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt", "out.txt"]


def test_unknown_reader_and_empty_corpus(tmp_path: Path, small: Path) -> None:
    with pytest.raises(SembenchError, match="corpus reader 'csv' is not known"):
        build_corpus("csv", small, tmp_path / "out.txt")  # type: ignore[arg-type]
    (tmp_path / "empty.txt").write_text("\n")
    with pytest.raises(SembenchError, match="holds no sentence"):
        read_sentences(tmp_path / "empty.txt")


# ---------------------------------------------------------------------------------------------------------------------
# The real excerpt
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.realdata
@pytest.mark.skipif("SEMBENCH_MIRROR" not in os.environ, reason="SEMBENCH_MIRROR names no mirror folder")
def test_real_excerpt(tmp_path: Path) -> None:
    (source,) = (Path(os.environ["SEMBENCH_MIRROR"]) / "enwiki_dump_excerpt").glob("*.bz2")
    elements = bz2.decompress(source.read_bytes()).decode()
    assert elements.count("<page>") == 206
    # A hundred pages are redirects, the only page outside of the main namespace among them.
    assert elements.count("<redirect ") == 100
    statistics = build_corpus("mediawiki", source, tmp_path / "corpus.txt")
    assert statistics["pages"] == 206 - 100
    found = read_sentences(tmp_path / "corpus.txt")
    assert statistics["sentences"] == len(found) == len(set(found)) > 15_000
    leftovers = ("{{", "}}", "[[", "]]", "|", "<", "=", "''", "http:", "&nbsp;", "File:", "Category:", DAMAGE, GLUE)
    assert not [line for line in found if any(mark in line for mark in leftovers)]
    assert 18 < statistics["words"] / len(found) < 26
