"""Wikitext to paragraphs of running prose: links, tags, headings, emphasis, and the asides that lost something."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

from sembench.data.wikitext.marks import BREAK, DAMAGE, FRACTION, GAP, GLUE, words
from sembench.data.wikitext.templates import render_template

_HIDDEN_LINK = re.compile(r"\s*(?:file|image|category|media)\s*:", re.IGNORECASE)
_INTERWIKI = re.compile(r"(?:[a-z]{2,3}(?:-[a-z-]+)?|simple):\S")
_SISTER = re.compile(r"(?:wikt|wiktionary|w|s|wikisource|b|q|commons|wikipedia|m|d|species):", re.IGNORECASE)


def _render_link(body: str) -> str:
    """Return the visible label of a link whose inner brackets are already rendered."""
    if _HIDDEN_LINK.match(body):
        return GAP
    target, bar, label = body.partition("|")
    if bar:
        # A second bar belongs to no plain link; what follows the last one is what the writer meant to show.
        return label.rpartition("|")[2] or target.split("(")[0].strip()
    if _INTERWIKI.match(target):
        # Without a leading colon a link to another language is a side-bar entry, not text.
        return GAP
    target = target.strip().lstrip(":")
    return _SISTER.sub("", target, count=1) if _SISTER.match(target) else target


# Shown nowhere, or only where the page is a template of another one; without an end they reach to that of the page.
_HIDDEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<includeonly\b[^<>]*(?<!/)>.*?(?:</includeonly\s*>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_NOTES = ("ref", "references", "s", "strike", "del")
_FORMULAS = ("math", "code", "nowiki", "chem", "ce", "tt", "kbd", "samp", "hiero")
_BLOCKS = ("pre", "source", "syntaxhighlight", "gallery", "timeline", "imagemap", "score", "poem", "table", "ol", "ul")
# Content is bounded so that many unclosed tags cost linear and not quadratic time.
_ELEMENT = re.compile(
    rf"<({'|'.join((*_NOTES, *_FORMULAS, *_BLOCKS))})\b([^<>]*?)(?:/>|>(.{{0,30000}}?)</\1\s*>)",
    re.DOTALL | re.IGNORECASE,
)


def _replace_element(match: re.Match[str]) -> str:
    name, content = match.group(1).lower(), match.group(3)
    if name == "nowiki" and not content:
        # Keeps two words apart for the parser and not for the reader: "[[dog]]<nowiki/>s".
        return ""
    if name in _NOTES or content is None:
        return GAP
    return DAMAGE if name in _FORMULAS else BREAK


# Of three closing brackets the last two belong to the construct: the first closes an inner "[" or "{".
_BRACKET = re.compile(
    r"\{\{|\}\}(?!\}(?!\}))|\[\[|\]\](?!\](?!\]))|^[ \t:*#]*\{\||^[ \t]*\|\}(?!\})",
    re.MULTILINE,
)
_OPENER_OF = {"}}": "{{", "]]": "[[", "|}": "{|"}


class _Frame(NamedTuple):
    """An open bracket: its kind, whether it begins a line, and the rendered text since."""

    kind: str
    at_line_start: bool
    parts: list[str]


def _resolve(text: str) -> str:
    """Render templates, links and tables inside out, in one pass over the brackets."""
    stack = [_Frame("", True, [])]
    depth = {"": 1, "{{": 0, "[[": 0, "{|": 0}
    end = 0
    for match in _BRACKET.finditer(text):
        stack[-1].parts.append(text[end : match.start()])
        token, end = match.group().strip(" \t:*#"), match.end()
        if token not in _OPENER_OF:
            at_line_start = match.start() == 0 or text[match.start() - 1] == "\n"
            stack.append(_Frame(token, at_line_start, []))
            depth[token] += 1
        else:
            _close(stack, depth, _OPENER_OF[token])
    stack[-1].parts.append(text[end:])
    return _collapse(stack, depth, 0)


def _close(stack: list[_Frame], depth: dict[str, int], kind: str) -> None:
    # A link may not end outside of the template it began in; templates and tables do close over unclosed links.
    if not depth[kind] or (kind == "[[" and stack[-1].kind != kind):
        return
    opened = len(stack) - 1
    while stack[opened].kind != kind:
        opened -= 1
    at_line_start = stack[opened].at_line_start
    body = _collapse(stack, depth, opened)
    if kind == "{{":
        stack[-1].parts.append(render_template(body, at_line_start))
    else:
        # Cells of a table are no running text.
        stack[-1].parts.append(_render_link(body) if kind == "[[" else BREAK)


def _collapse(stack: list[_Frame], depth: dict[str, int], first: int) -> str:
    """Remove the frames from ``first`` on and return their text in order."""
    texts = []
    for frame in stack[first:]:
        texts.append("".join(frame.parts))
        depth[frame.kind] -= 1
    del stack[first:]
    # An opening bracket without its partner spoils its own sentence and not the rest of the page.
    return DAMAGE.join(texts)


_POWER = re.compile(r"(?<=\d)(?:</sub\s*>)?\s*<sup\b[^<>]*>", re.IGNORECASE)
_ITEM_TAG = re.compile(r"<(?:li|dt|dd)\b[^<>]*>", re.IGNORECASE)
_BLOCK_TAG = re.compile(r"</?(?:blockquote|div|center|p|hr|h\d|dl|section)\b[^<>]*>", re.IGNORECASE)
_BR_TAG = re.compile(r"<br\b[^<>]*>", re.IGNORECASE)
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_MAGIC_WORD = re.compile(r"__[A-Z]+__")


def _strip_tags(text: str) -> str:
    if "<" in text:
        # "10<sup>5</sup>" would read as 105.
        text = _POWER.sub(DAMAGE, text)
        text = _ITEM_TAG.sub("\n* ", text)
        text = _BLOCK_TAG.sub(BREAK, text)
        text = _BR_TAG.sub(" ", text)
        text = _TAG.sub("", text)
    return _MAGIC_WORD.sub("", text)


# Citations written as plain paragraphs stand in these sections.
_BACK_MATTER = words(
    "references|notes|footnotes|citations|sources|external links|further reading|bibliography|see also|"
    "works cited|notes and references|references and notes|notes and citations|primary sources|secondary sources|"
    "literature|general references|specific references|gallery|filmography|discography|publications|"
    "selected bibliography",
    "|",
)
_NOT_PROSE_START = tuple("*#:;|! \t{}")
_INVISIBLE = str.maketrans("", "", "\u00ad\u200b\u200c\u200d\u200e\u200f\ufeff" + GAP + FRACTION)
_MARKS = str.maketrans("", "", GAP + DAMAGE + FRACTION)
_WORD = re.compile(r"[^\W_]{2}")


def _paragraphs(text: str) -> Iterator[str]:
    """Yield the prose paragraphs: neighbouring lines are one paragraph, as MediaWiki shows them."""
    lines: list[str] = []
    skip_level = 0
    for line in (*text.split("\n"), ""):
        level, title = _heading(line)
        if level:
            if not skip_level or level <= skip_level:
                skip_level = level if title in _BACK_MATTER else 0
        elif not skip_level and not line.startswith(_NOT_PROSE_START) and _WORD.search(line):
            lines.append(line)
            continue
        if lines:
            yield " ".join(lines)
            lines = []


def _heading(line: str) -> tuple[int, str]:
    """Return the level and the lower-case title of a heading line, level 0 for any other line."""
    if "=" not in line:
        return 0, ""
    # What a template or note left there is no part of the title.
    line = line.translate(_MARKS).strip()
    if not (line.startswith("=") and line.endswith("=") and len(line) > 2):
        return 0, ""
    level = min(len(line) - len(line.lstrip("=")), len(line) - len(line.rstrip("=")))
    return level, " ".join(_unescaped(line.strip("=")).split()).strip("': ").lower()


_EXTERNAL_LINK = re.compile(r"\[(?:(?:https?|ftp|news|irc|mailto):|//)[^\s\[\]]*\s*([^\[\]]*)\]", re.IGNORECASE)
_POSSESSIVE_ITALIC = re.compile(r"(?<=[^\W_])'''(?=s\b)")
_BOLD_RUN = re.compile(r"(?<!')'''(?!')")
_FOUR_QUOTES = re.compile(r"(?<!')''''(?!')")
_TITLE_MARK = re.compile(r"([!?])(?=''(?!'))")
_QUOTES = re.compile(r"'{2,}")
_GAP_BEFORE_WORD = re.compile(rf"{GAP}+(?=\w)")
_BETWEEN_DIGITS = re.compile(rf"(?<=\d){FRACTION}")
# An aside in brackets after a space, and one with brackets inside; unrolled, so that backtracking stays linear.
_ASIDES = (
    re.compile(rf"[\s{GAP}]+\([^()]*\)"),
    re.compile(rf"[\s{GAP}]+\([^()]*(?:\([^()]*\)[^()]*)+\)"),
)
_EMPTY_BRACKETS = re.compile(r"\s*\(\s*[,;:]*\s*\)|\s*\[\s*\]")
_ASIDE_EDGE = re.compile(r"\(\s*[,;]\s*|\(\s+|[,;]?\s+(?=\))")
_TWO_STOPS = re.compile(r"(?<!\.)\.\.(?!\.)")
_SPACE_BEFORE_MARK = re.compile(r"\s+(?=[,;:!?](?:\s|$)|\.(?:\s|$|[\"”]))")


def _tidy(text: str) -> str:
    """Turn the inline markup of one paragraph into plain text."""
    text = _EXTERNAL_LINK.sub(r"\1", " ".join(text.split()))
    if "''" in text:
        text = _plain_quotes(text)
    text = " ".join(_unescaped(text).split())
    # An aside that lost something can go as a whole: the sentence around it stays complete.
    if DAMAGE in text:
        for aside in _ASIDES:
            text = aside.sub(lambda match: "" if DAMAGE in match.group() else match.group(), text)
    text = _BETWEEN_DIGITS.sub(" ", text)
    text = _GAP_BEFORE_WORD.sub(" ", text).translate(_INVISIBLE)
    text = _EMPTY_BRACKETS.sub("", text)
    if "(" in text:
        text = _ASIDE_EDGE.sub(lambda match: "(" if match.group().startswith("(") else "", text)
    text = _SPACE_BEFORE_MARK.sub("", " ".join(text.split()))
    # "[[Martin Luther King, Jr.]]." brings its own full stop.
    return _TWO_STOPS.sub(".", text)


def _unescaped(text: str) -> str:
    # Editors escape twice what they paste: "&amp;#233;", "&amp;nbsp;".
    return html.unescape(html.unescape(text)) if "&" in text else text


def _plain_quotes(text: str) -> str:
    # A question or exclamation mark that ends a title does not end the sentence.
    text = _TITLE_MARK.sub(rf"\1{GLUE}", text)
    # "''Title'''s" is an italic title and a possessive; it shows as an odd number of bold marks.
    # Four marks are an apostrophe beside bold and count with it.
    if (len(_BOLD_RUN.findall(text)) + len(_FOUR_QUOTES.findall(text))) % 2:
        text = _POSSESSIVE_ITALIC.sub("'", text)
    return _QUOTES.sub("", _FOUR_QUOTES.sub("'", text))


def clean(wikitext: str) -> str:
    """Return the running prose of a page, one paragraph per line.

    Gone are templates, tables, references, comments, files, categories, language links, headings, lists, galleries,
    formulas, code, magic words, emphasis and tags, and the sections behind the article (references and the like); link
    labels, quotations and templates that read as words (measures, foreign words, dates) stay.

    Args:
        wikitext: the source of a page as MediaWiki stores it.

    Returns:
        Paragraphs separated by a line feed, white space collapsed; ``DAMAGE`` marks a place where words were lost,
        ``GLUE`` a mark that ends no sentence.
    """
    text = _HIDDEN.sub("", wikitext)
    text = _ELEMENT.sub(_replace_element, text)
    text = _strip_tags(_resolve(text))
    tidied = (_tidy(paragraph) for paragraph in _paragraphs(text))
    return "\n".join(paragraph for paragraph in tidied if paragraph)
