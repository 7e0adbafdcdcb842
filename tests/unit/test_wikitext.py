"""From a MediaWiki dump to sentences, and the maker of the corpus. All texts are invented."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import time
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pandas as pd
import pytest

from sembench.core.errors import SembenchError
from sembench.data.make.wikipedia import Wikipedia
from sembench.data.wikitext.clean import clean
from sembench.data.wikitext.dump import iter_pages
from sembench.data.wikitext.marks import DAMAGE, GLUE
from sembench.data.wikitext.sentences import is_prose, iter_sentences, split_sentences

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
@pytest.mark.parametrize("packer", [bz2, gzip, lzma])
def test_packer_is_told_by_content_and_may_have_several_streams(
    tmp_path: Path, small: Path, packer: Any, suffix: str
) -> None:
    packed = tmp_path / f"packed{suffix}"
    half = len(SMALL) // 2
    packed.write_bytes(packer.compress(SMALL[:half]) + packer.compress(SMALL[half:]))
    assert list(iter_pages(packed)) == list(iter_pages(small))


@pytest.mark.parametrize("packer", [bz2, gzip, lzma])
def test_damaged_pack_is_one_sentence(tmp_path: Path, packer: Any) -> None:
    data = bytearray(packer.compress(SMALL))
    path = tmp_path / "damaged.xml"
    for place in range(12, len(data) - 12, 97):
        flipped = bytearray(data)
        flipped[place] ^= 0x55
        path.write_bytes(flipped)
        with pytest.raises(SembenchError, match=r"damaged\.xml is (?:damaged|cut short|not well-formed)"):
            list(iter_pages(path))


@pytest.mark.parametrize(
    ("head", "packer"),
    [
        (b"7z\xbc\xaf\x27\x1c", "7z"),
        (b"\x28\xb5\x2f\xfd", "zstd"),
        (b"\x04\x22\x4d\x18", "lz4"),
        (b"Rar!\x1a\x07", "rar"),
        (b"\x1f\x9d\x90", "compress"),
        (lzma.compress(b"x", format=lzma.FORMAT_ALONE), "lzma"),
    ],
    ids=["7z", "zstd", "lz4", "rar", "compress", "lzma"],
)
def test_packers_without_a_library_here_are_refused_by_name(tmp_path: Path, head: bytes, packer: str) -> None:
    path = tmp_path / "dump.xml.bz2"
    path.write_bytes(head + b"more")
    with pytest.raises(SembenchError, match=rf"dump\.xml\.bz2 is packed with {packer}; unpack it"):
        list(iter_pages(path))


def test_of_a_page_the_last_revision_and_its_main_text_count(tmp_path: Path) -> None:
    path = tmp_path / "history.xml"
    slot = "<content><role>data</role><model>json</model><text>{}</text></content>"
    path.write_bytes(
        dump(
            "<page><title>Lake</title><ns>0</ns><revision><text>Old words.</text></revision>"
            f"<revision><model>wikitext</model><text>New words.</text>{slot}<sha1/></revision></page>",
            "<page><title>Q7</title><ns>0</ns><revision><model>wikibase-item</model><text>{}</text></revision></page>",
        )
    )
    assert [tuple(found) for found in iter_pages(path)] == [("Lake", "New words.")]


def test_other_packers_are_refused_by_name(tmp_path: Path, small: Path) -> None:
    path = tmp_path / "dump.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(small)
    with pytest.raises(SembenchError, match=r"dump\.zip is packed with zip; unpack it"):
        list(iter_pages(path))


@pytest.mark.parametrize("version", ["0.3", "0.11", "9.9"])
def test_any_schema_version_and_pages_without_namespace(tmp_path: Path, version: str) -> None:
    path = tmp_path / "old.xml"
    path.write_bytes(dump(page("Old", "An old text.", namespace=None), version=version))
    assert [(found.title, found.text) for found in iter_pages(path)] == [("Old", "An old text.")]


@pytest.mark.parametrize("packer", [bz2, gzip, lzma])
def test_cut_pack_is_told(tmp_path: Path, packer: Any) -> None:
    data = packer.compress(SMALL)
    path = tmp_path / "cut.xml"
    for length in range(8, len(data), 97):
        path.write_bytes(data[:length])
        with pytest.raises(SembenchError, match=r"cut\.xml is cut short"):
            list(iter_pages(path))


def test_cut_at_every_place_is_told(tmp_path: Path) -> None:
    path = tmp_path / "cut.xml"
    for length in range(0, len(SMALL) - len("</mediawiki>\n"), 37):
        path.write_bytes(SMALL[:length])
        with pytest.raises(SembenchError, match="cut short"):
            list(iter_pages(path))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<html><body/></html>", r"not a MediaWiki dump: its root is <html>"),
        (b"<mediawiki><page></wrong></mediawiki>", "not well-formed XML"),
        (b"no markup at all", "not well-formed XML"),
        (
            b"<?xml version='1.0' encoding='klingon'?><mediawiki/>",
            "cannot be read .unknown encoding: klingon.; save it as",
        ),
        (b"<?xml version='1.0' encoding='shift_jis'?><mediawiki/>", "cannot be read .multi-byte encodings"),
        (b"<!DOCTYPE m [<!ENTITY a SYSTEM '/etc/passwd'>]><mediawiki>&a;</mediawiki>", "not well-formed XML"),
        (gzip.compress(SMALL) + b"garbage", r"bad\.xml is damaged"),
        (b"BZh9 this is not bz2 data at all, only its first bytes", r"bad\.xml is damaged"),
    ],
)
def test_bad_dumps_are_one_sentence(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "bad.xml"
    path.write_bytes(content)
    with pytest.raises(SembenchError, match=message) as caught:
        list(iter_pages(path))
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
    assert list(iter_sentences(clean(LAKE))) == EXPECTED


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
    "inside",
    [
        "<nowiki/>",
        "<nowiki />",
        "<nowiki></nowiki>",
        "<!-- c -->",
        "<wbr>",
        "<wbr/>",
        "<includeonly>x</includeonly>",
        "{{shy}}",
        "{{wbr}}",
        "{{zwj}}",
        "{{ZWNJ}}",
        "{{zwsp}}",
        "{{word joiner}}",
        "{{anchor|a|b}}",
        "{{nowrap end}}",
        "&shy;",
        "&zwj;",
        "&#173;",
        "&#x200B;",
        "__NOTOC__",
        "''",
        "<span id='a'></span>",
        "&#x2060;",
        "&NoBreak;",
        "&lrm;",
        "\u202a",
        "{{lrm}}",
        "{{zero-width space}}",
        "{{nowrapbegin}}",
        "{{DEFAULTSORT:Dog}}",
        "{{DISPLAYTITLE:''Dog''}}",
        "[[Category:Dogs]]",
        "[[de:Hund]]",
        "__notoc__",
        "<noinclude/>",
        "<onlyinclude></onlyinclude>",
        "<section begin=x />",
        "<templatestyles src='x.css' />",
        "<indicator name='x'>y</indicator>",
        "<!-- a --><!-- b -->",
    ],
)
def test_what_is_invisible_inside_a_word_leaves_no_blank(inside: str) -> None:
    assert clean(f"Two [[dog]]{inside}s and cat{inside}s ran.") == "Two dogs and cats ran."


@pytest.mark.parametrize(
    ("wikitext", "plain"),
    [
        ("The l&#233;on and l&amp;#233;on and l&amp;#xe9;on.", "The léon and léon and léon."),
        ("A&nbsp;mill and&amp;nbsp;a&amp;#160;lake.", "A mill and a lake."),
        ("At &amp;#91;home&amp;#93; of Mole &amp;amp; Hare.", "At [home] of Mole & Hare."),
    ],
)
def test_entities_may_be_escaped_twice(wikitext: str, plain: str) -> None:
    assert clean(wikitext) == plain


@pytest.mark.parametrize(
    ("wikitext", "plain"),
    [
        ("Mole Q&ETH and A&not B and Q&copy.", "Mole Q&ETH and A&not B and Q&copy."),
        ("A &#150; B at &#8217;noon&#8217;.", "A – B at ’noon’."),
        ("It is &lt;here&gt; &frac12; an &Eacute;cole.", "It is <here> ½ an École."),
    ],
)
def test_only_what_ends_with_a_semicolon_is_an_entity(wikitext: str, plain: str) -> None:
    assert clean(wikitext) == plain


@pytest.mark.parametrize("left", ["5&nbspkm", "the &#bad; one", "the &#160 one", "the \ufffd one"])
def test_what_is_left_of_an_entity_is_no_prose(left: str) -> None:
    assert not is_prose(f"The mill is {left} here.")


@pytest.mark.parametrize(
    ("wikitext", "plain"),
    [
        ("The mill\n<!-- c -->\nis old.", "The mill is old."),
        ("The mill\n <!-- c --> <!-- d --> \nis old.", "The mill is old."),
        ("The mill\n<!-- a\n\nb -->\nis old.", "The mill is old."),
        ("The mill is old.\n\n<!-- c -->\nIt fell.", "The mill is old.\nIt fell."),
        ("The mill is old.\n<!-- c -->\n\nIt fell.", "The mill is old.\nIt fell."),
        ("The mill\n<!-- c -->is old.", "The mill is old."),
    ],
)
def test_a_comment_alone_in_its_line_takes_the_line_along(wikitext: str, plain: str) -> None:
    assert clean(wikitext) == plain


@pytest.mark.parametrize(
    ("wikitext", "plain"),
    [
        ("Ombra (pronounced {{IPAc-en|o|m}}; ''Shade'') is deep.", "Ombra is deep."),
        ("Ombra ({{IPAc-en|o|m}}; ''Shade'') is deep.", "Ombra (Shade) is deep."),
        ("Ombra {{IPAc-en|o|m}}, the lake, is deep.", "Ombra, the lake, is deep."),
        ("It is pronounced {{IPAc-en|o|m}} here.", f"It is {DAMAGE} here."),
        ("It sounds like {{respell|OM|brah}} here.", f"It sounds {DAMAGE} here."),
    ],
)
def test_how_a_word_is_pronounced_is_an_aside_unless_the_sentence_says_it(wikitext: str, plain: str) -> None:
    assert clean(wikitext) == plain


@pytest.mark.parametrize(
    ("wikitext", "plain"),
    [
        ("A [[media:x.ogg|song]] and [[media:x.ogg]] here.", f"A song and {DAMAGE} here."),
        ("The lake<sup>[1]</sup> is in 1990<sup>[a]</sup> here.", "The lake is in 1990 here."),
        ("It is 1010<sub>2</sub> here.", f"It is 1010{DAMAGE}2 here."),
        ("A <ref name='a<b'>Note one. Note two is here.</ref> word.", "A word."),
        ("A <ref>Note never closed. It rains.", f"A {DAMAGE}Note never closed. It rains."),
        ("It rains.<mapframe>{'type': 1}</mapframe>It pours.", "It rains.\nIt pours."),
        ("A <maplink text='x'/> word.", f"A {DAMAGE} word."),
        ("<table><tr><td><table><tr><td>a</td></tr></table></td><td>A cell here.</td></tr></table>Text.", "Text."),
        ("<ul><li>a<ul><li>b</li></ul></li><li>An item here.</li></ul>Text here.", "Text here."),
        ("Of __init__ and __NOTOC__ here.", "Of __init__ and here."),
    ],
)
def test_elements_and_links(wikitext: str, plain: str) -> None:
    assert clean(wikitext) == plain


def test_a_note_between_sentences_leaves_a_blank() -> None:
    assert clean("It rains.{{sfn|Mole|1990}}It pours.<ref name=a/>It ends.") == "It rains. It pours. It ends."


@pytest.mark.parametrize(
    ("wikitext", "plain"),
    [
        ("It is 3{{frac|1|2}} inches.", "It is 3 1/2 inches."),
        ("It is 3 {{frac|1|2}} inches.", "It is 3 1/2 inches."),
        ("It is 3&nbsp;{{fraction|1|2}} inches.", "It is 3 1/2 inches."),
        ("It is (3{{frac|1|2}}) or ({{frac|2}}).", "It is (3 1/2) or (1/2)."),
        ("It is a-{{frac|3|1|4}}-inch one.", "It is a-3 1/4-inch one."),
    ],
)
def test_fraction_behind_a_whole_number(wikitext: str, plain: str) -> None:
    assert clean(wikitext) == plain


@pytest.mark.parametrize(
    "heading",
    [
        "References",
        "{{anchor|r}}References",
        "References {{anchor|r}}",
        "{{unknown|r}} References",
        "''References'':",
        "[[w:x|References]]",
        "<span id='r'>References</span>",
        "References<ref>a</ref>",
        "See&nbsp;also",
        "See  also",
        "<!-- c -->References",
        "Notes & references",
        "Notes &amp; references",
        "Cited sources, links and further reading",
        "References / Notes",
        "References (in German)",
        "Selected publications",
        "External link",
        "{{DEFAULTSORT:x}}References{{lrm}}",
    ],
)
@pytest.mark.parametrize("behind", ["", " ", "{{anchor|r}}", "<!-- c -->"])
def test_back_matter_is_seen_under_any_heading(heading: str, behind: str) -> None:
    text = f"The lake is deep.\n\n== {heading} =={behind}\nMole, A. A book on lakes.\n\n== Use ==\nIt feeds a mill."
    assert clean(text) == "The lake is deep.\nIt feeds a mill."


@pytest.mark.parametrize(
    "heading",
    ["<h2>References</h2>", "<h3 id='r'>See also</h3>", "'''References'''", ";References", "; '''Notes''':"],
)
def test_back_matter_is_seen_under_what_stands_in_for_a_heading(heading: str) -> None:
    text = f"The lake is deep.\n\n{heading}\nMole, A. A book on lakes.\n\n== Use ==\nIt feeds a mill."
    assert clean(text) == "The lake is deep.\nIt feeds a mill."


@pytest.mark.parametrize(
    "heading", ["Notes on use", "References to the lake", "Lakes and references", "and", "()", "Reference works"]
)
def test_other_sections_stay(heading: str) -> None:
    assert clean(f"== {heading} ==\nIt feeds a mill.") == "It feeds a mill."


def test_bold_words_at_the_beginning_are_no_heading() -> None:
    assert clean("'''Notes''' are made of sound.") == "Notes are made of sound."


def test_includeonly_is_not_shown_and_its_siblings_are() -> None:
    siblings = "<noinclude>all</noinclude> <onlyinclude>there</onlyinclude>"
    assert clean(f"It is<includeonly>\n\nNothing\n</includeonly> {siblings}.") == "It is all there."
    assert clean("All is shown.<includeonly> To the end.\n\nNothing more.") == "All is shown."
    assert clean("All <includeonly/>is shown.") == "All is shown."


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
        ("{{convert|5|kn}}", "5 knots"),
        ("{{convert|5|kN}}", DAMAGE),
        ("{{convert|5|MW}}", "5 megawatts"),
        ("{{convert|5|mW}}", DAMAGE),
        ("{{convert|5|ST}}", DAMAGE),
        ("{{lang|fr|''eau''}}", "eau"),
        ("{{transl|ar|DIN|alif}}", "alif"),
        ("{{nowrap|1=five = 5 mills}}", "five = 5 mills"),
        ("{{as of|2010|7|lc=y}}", "as of July 2010"),
        ("{{As of|2012|3|4}}", "As of 4 March 2012"),
        ("{{as of|2010|bare=yes}}", "2010"),
        ("{{as of|2010|7|31|df=US|lc=y}}", "as of July 31, 2010"),
        ("{{as of|2010|pre=early|post=,|lc=y}}", "as of early 2010,"),
        ("{{as of|2010|since=y|lc=y}}", "since 2010"),
        ("{{frac|2}}", "1/2"),
        ("{{sfrac|3|1|4}}", "3 1/4"),
        ("{{frac|3|1|4}}", "3 1/4"),
        ("{{circa|1900}}", "c. 1900"),
        ("{{circa|1900|1910}}", "c. 1900 – c. 1910"),
        ("{{circa}} 1900", "c. 1900"),
        ("{{sic|Gou|vernor}}", "Gouvernor"),
        ("{{sic|teh|hide=y}}", "teh"),
        ("{{sic|?}}", ""),
        ("words {{sic}}", "words"),
        ("{{citation needed span|ten mills|date=May 2020}}", "ten mills"),
        ("{{clarify span|ten mills}}", "ten mills"),
        ("{{visible anchor|a|b|text=ten mills}}", "ten mills"),
        ("{{ill|Mole Hare|de|Mole}}", "Mole Hare"),
        ("{{interlanguage link|Mole Hare|de|lt=Mole}}", "Mole"),
        ("{{flagcountry|Velia}}", "Velia"),
        ("{{flagcountry|VEL}}", DAMAGE),
        ("{{harvnb|Mole|1990}}", DAMAGE),
        ("mills{{#tag:ref|A note.|group=n}}", "mills"),
        ("{{not a typo|Gou|vernor}}", "Gouvernor"),
        ("{{key press|Ctrl|C}}", "Ctrl+C"),
        ("a well{{nbhyph}}known", "a well-known"),
        ("{{formatnum:12345.5}}", "12,345.5"),
        ("{{chem|H|2|O}}", "H2O"),
        ("{{chem|Si|4|4-}}", DAMAGE),
        ("{{chem2|H2O}}", "H2O"),
        ("{{chem2|SO4(2-)}}", DAMAGE),
        ("{{USS|Velia|CV-1}}", "USS Velia"),
        ("{{USS|Velia|CV-1|2}}", "Velia"),
        ("{{HMS|Velia|1901|6}}", "Velia"),
        ("{{HMS|Velia|1901|1}}", DAMAGE),
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
        "<ref>" * 20_000,
        "<!--" * 50_000,
        "\n<!-- c --> x" * 20_000,
        "== " + "a/" * 20_000 + " ==",
    ],
)
def test_hostile_brackets_take_linear_time(text: str) -> None:
    start = time.perf_counter()
    list(iter_sentences(clean(text)))
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
    assert list(iter_sentences("The mill  is old and\nThe town is\t very new.")) == ["The town is very new."]


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
# The maker
# ---------------------------------------------------------------------------------------------------------------------


def make(folder: Path, target: Path) -> tuple[dict[str, Any], list[str]]:
    facts = Wikipedia.make(Wikipedia.Config(), {"dump": folder}, target, folder, lambda _: None)
    frame = pd.read_parquet(target / "sentences.parquet")
    assert list(frame.columns) == ["sentence"]
    return facts, frame["sentence"].tolist()


def test_make_drops_duplicates_also_across_files(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("made.json", ".part"):
        (folder / name).write_text("no dump")
    more = dump(page("More", "The old mill stands by the town. Something else is new here."))
    (folder / "articles10.xml.bz2").write_bytes(bz2.compress(more))
    (folder / "articles2.xml").write_bytes(SMALL)
    facts, found = make(folder, tmp_path / "new" / "out")
    assert found == [
        *EXPECTED,
        "The old mill stands by the town.",
        "The mill is old now.",
        "Something else is new here.",
    ]
    assert facts == {"pages": 3, "rows": 9, "words": sum(len(line.split()) for line in found), "duplicates": 1}
    assert [path.name for path in (tmp_path / "new" / "out").iterdir()] == ["sentences.parquet"]


def test_make_writes_in_pieces(tmp_path: Path, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = make(small.parent, tmp_path / "whole")[1]
    monkeypatch.setattr("sembench.core.frames._ROWS_AT_ONCE", 3)
    assert make(small.parent, tmp_path / "pieces")[1] == whole


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "holds no dump; fetch it again"),
        ({"a.xml": dump(page("A", "Nothing here"))}, r"a\.xml has no sentence that is usable"),
        ({"a.xml": SMALL[:-30]}, r"a\.xml is cut short"),
    ],
    ids=["none", "empty", "cut"],
)
def test_failed_make_leaves_the_old_file_alone(tmp_path: Path, files: dict[str, bytes], message: str) -> None:
    source, target = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    target.mkdir()
    for name, content in files.items():
        (source / name).write_bytes(content)
    (target / "sentences.parquet").write_text("old")
    with pytest.raises(SembenchError, match=message):
        make(source, target)
    assert [(path.name, path.read_text()) for path in target.iterdir()] == [("sentences.parquet", "old")]


@pytest.mark.realdata
@pytest.mark.skipif("SEMBENCH_MIRROR" not in os.environ, reason="SEMBENCH_MIRROR names no mirror folder")
def test_real_excerpt(tmp_path: Path) -> None:
    folder = Path(os.environ["SEMBENCH_MIRROR"]) / "enwiki_dump_excerpt"
    elements = bz2.decompress(next(folder.glob("*.bz2")).read_bytes()).decode()
    assert elements.count("<page>") == 206
    # A hundred pages are redirects, the only page outside of the main namespace among them.
    assert elements.count("<redirect ") == 100
    facts, found = make(folder, tmp_path)
    assert facts["pages"] == 206 - 100
    assert facts["rows"] == len(found) == len(set(found)) > 15_000
    leftovers = ("{{", "}}", "[[", "]]", "|", "<", "=", "''", "http:", "&nbsp;", "File:", "Category:", DAMAGE, GLUE)
    assert not [line for line in found if any(mark in line for mark in leftovers)]
    assert 18 < facts["words"] / len(found) < 26
