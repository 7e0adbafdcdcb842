"""Wikitext to paragraphs of running prose: links, tags, headings, emphasis, and the asides that lost something."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

from sembench.data.wikitext.marks import BREAK, COMMENT, DAMAGE, FRACTION, GAP, GLUE, SOUND, words
from sembench.data.wikitext.templates import render_template

_PICTURE = re.compile(r"\s*(?:file|image)\s*:", re.IGNORECASE)
_CATEGORY = re.compile(r"\s*category\s*:", re.IGNORECASE)
_MEDIA = re.compile(r"\s*media\s*:", re.IGNORECASE)
_INTERWIKI = re.compile(r"(?:[a-z]{2,3}(?:-[a-z-]+)?|simple):\S")
_SISTER = re.compile(r"(?:wikt|wiktionary|w|s|wikisource|b|q|commons|wikipedia|m|d|species):", re.IGNORECASE)


def _render_link(body: str) -> str:
    """Return the visible label of a link whose inner brackets are already rendered."""
    if _PICTURE.match(body):
        return GAP
    if _CATEGORY.match(body):
        return ""
    target, bar, label = body.partition("|")
    if bar:
        # A second bar belongs to no plain link; what follows the last one is what the writer meant to show.
        return label.rpartition("|")[2] or target.split("(")[0].strip()
    if _INTERWIKI.match(target):
        # Without a leading colon a link to another language is a side-bar entry, not text.
        return ""
    if _MEDIA.match(target):
        return DAMAGE
    target = target.strip().lstrip(":")
    return _SISTER.sub("", target, count=1) if _SISTER.match(target) else target


# Shown nowhere, or only where the page is a template of another one; without an end they reach to that of the page.
_HIDDEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<includeonly\b[^<>]*(?<!/)>.*?(?:</includeonly\s*>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_NOTES = ("ref", "references", "s", "strike", "del")
_FORMULAS = ("math", "code", "nowiki", "chem", "ce", "tt", "kbd", "samp", "hiero", "maplink")
_BLOCKS = (
    *("pre", "source", "syntaxhighlight", "gallery", "timeline", "imagemap", "score", "poem", "table", "ol", "ul"),
    *("mapframe", "graph", "templatedata", "inputbox", "categorytree"),
)
# Shown beside the page's title, or nowhere.
_ASIDE = ("indicator", "templatestyles")
_NAMES = "|".join((*_NOTES, *_FORMULAS, *_BLOCKS, *_ASIDE))
# Attributes are bounded so that many unclosed tags cost linear and not quadratic time.
_OPENING = re.compile(rf"<({_NAMES})\b([^>]{{0,500}}?)(/?)>", re.IGNORECASE)
_CLOSING = {name: re.compile(rf"</{name}\s*>", re.IGNORECASE) for name in _NAMES.split("|")}
# An end that is further away belongs to another element.
_LONGEST = 30_000


def _hide(match: re.Match[str]) -> str:
    return COMMENT if match.group().startswith("<!") else ""


_COMMENT_LINE = re.compile(rf"\n[ \t]*{COMMENT}[ \t{COMMENT}]*(?=\n|\Z)")


def _without_elements(text: str) -> str:
    """Put what each element shows in its place; one without an end spoils the sentence in which it begins."""
    parts: list[str] = []
    closings: dict[str, re.Match[str] | None] = {}
    end = 0
    for match in _OPENING.finditer(text):
        if match.start() < end:
            continue
        name, start = match[1].lower(), match.end()
        parts.append(text[end : match.start()])
        end = start
        if match[3]:
            parts.append(_shown(name, ""))
            continue
        # The nearest end is looked for once, however many elements begin before it.
        if name not in closings or ((found := closings[name]) and found.start() < start):
            closings[name] = _CLOSING[name].search(text, start)
        closing = closings[name]
        if closing is None or closing.start() - start > _LONGEST:
            parts.append(DAMAGE)
        else:
            parts.append(_shown(name, text[start : closing.start()]))
            end = closing.end()
    return "".join((*parts, text[end:]))


def _shown(name: str, content: str) -> str:
    if name in _ASIDE or (name == "nowiki" and not content):
        # An empty one keeps two words apart for the parser and not for the reader: "[[dog]]<nowiki/>s".
        return ""
    if name in _NOTES:
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


_MARK_OF_A_NOTE = re.compile(r"<sup\b[^<>]*>\s*\[[^\[\]<>]{1,20}\]\s*</sup\s*>", re.IGNORECASE)
_POWER = re.compile(r"(?<=\d)(?:</su[bp]\s*>)?\s*<su[bp]\b[^<>]*>", re.IGNORECASE)
# Cells as well: of a table in a table, more is left than the inner one's end.
_ITEM_TAG = re.compile(r"<(?:li|dt|dd|td|th|caption)\b[^<>]*>", re.IGNORECASE)
_BLOCK_TAG = re.compile(r"</?(?:blockquote|div|center|p|hr|dl|table|tr|td|th|caption|ol|ul)\b[^<>]*>", re.IGNORECASE)
_HEADING_TAG = re.compile(r"<(/?)h([1-6])\b[^<>]*>", re.IGNORECASE)
_BR_TAG = re.compile(r"<br\b[^<>]*>", re.IGNORECASE)
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_MAGIC_WORD = re.compile(
    r"__(?:(?:no|force)?toc|no(?:editsection|gallery|index|newsectionlink|contentconvert|titleconvert|cc|tc|global)"
    r"|newsectionlink|index|hiddencat|expectunusedcategory|expectednooutputcategory|staticredirect|disambig)__",
    re.IGNORECASE,
)


def _heading_mark(match: re.Match[str]) -> str:
    mark = "=" * int(match[2])
    return f"{mark}\n" if match[1] else f"\n{mark}"


def _strip_tags(text: str) -> str:
    if "<" in text:
        text = _MARK_OF_A_NOTE.sub(GAP, text)
        # "10<sup>5</sup>" would read as 105.
        text = _POWER.sub(DAMAGE, text)
        text = _HEADING_TAG.sub(_heading_mark, text)
        text = _ITEM_TAG.sub("\n* ", text)
        text = _BLOCK_TAG.sub(BREAK, text)
        text = _BR_TAG.sub(" ", text)
        text = _TAG.sub("", text)
    return _MAGIC_WORD.sub("", text)


# Citations written as plain paragraphs stand in these sections.
_BACK_MATTER = words(
    "references|reference|reference list|notes|footnotes|endnotes|citations|sources|links|external link|external links|"
    "further reading|bibliography|see also|works cited|works consulted|literature|gallery|filmography|discography|"
    "publications",
    "|",
)
_TITLE_PARTS = re.compile(r"\s*(?:[,/&]|\band\b)\s*")
_KIND_OF_MATTER = re.compile(
    r"(?:additional|cited|explanatory|general|inline|online|other|primary|published|secondary|select|selected|specific)\s+"
)
_IN_BRACKETS = re.compile(r"\s*\([^()]*\)")
_NOT_PROSE_START = tuple("*#:;|! \t{}")
# Soft hyphen, joiners, marks and embeddings of direction, byte order mark; emoji are drawn in colour by U+FE0F.
_UNSEEN = "\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufe0e\ufe0f\ufeff"
_INVISIBLE = re.compile(f"[{_UNSEEN}{GAP}{FRACTION}]")
_MARKS = str.maketrans("", "", GAP + DAMAGE + FRACTION + SOUND)
_WORD = re.compile(r"[^\W_]{2}")


def _paragraphs(text: str) -> Iterator[str]:
    """Yield the prose paragraphs: neighbouring lines are one paragraph, as MediaWiki shows them."""
    lines: list[str] = []
    skip_level = 0
    for line in (*text.split("\n"), ""):
        level, title = _heading(line)
        if level:
            if not skip_level or level <= skip_level:
                skip_level = level if _is_back_matter(title) else 0
        elif not skip_level and not line.startswith(_NOT_PROSE_START) and _WORD.search(line):
            lines.append(line)
            continue
        if lines:
            yield " ".join(lines)
            lines = []


def _heading(line: str) -> tuple[int, str]:
    """Return the level and the lower-case title of a heading line, level 0 for any other line."""
    if "=" in line:
        # What a template or note left there is no part of the title.
        bare = line.translate(_MARKS).strip()
        if bare.startswith("=") and bare.endswith("=") and len(bare) > 2:
            level = min(len(bare) - len(bare.lstrip("=")), len(bare) - len(bare.rstrip("=")))
            return level, _title(bare.strip("="))
    elif line.startswith((";", "'''")) and len(line) < 100 and _is_back_matter(title := _title(line)):
        # What stands in for a heading of the lowest level.
        return _PSEUDO_LEVEL, title
    return 0, ""


_PSEUDO_LEVEL = 7


def _title(text: str) -> str:
    return " ".join(_IN_BRACKETS.sub("", _unescaped(text.translate(_MARKS))).split()).strip("';: ").lower()


def _is_back_matter(title: str) -> bool:
    parts = [_KIND_OF_MATTER.sub("", part, count=1) for part in _TITLE_PARTS.split(title)]
    return all(part in _BACK_MATTER for part in parts)


_EXTERNAL_LINK = re.compile(r"\[(?:(?:https?|ftp|news|irc|mailto):|//)[^\s\[\]]*\s*([^\[\]]*)\]", re.IGNORECASE)
_POSSESSIVE_ITALIC = re.compile(r"(?<=[^\W_])'''(?=s\b)")
_BOLD_RUN = re.compile(r"(?<!')'''(?!')")
_FOUR_QUOTES = re.compile(r"(?<!')''''(?!')")
_TITLE_MARK = re.compile(r"([!?])(?=''(?!'))")
_QUOTES = re.compile(r"'{2,}")
_GAP_BEFORE_WORD = re.compile(rf"{GAP}+(?=\w)")
_SAID_TO_SOUND = re.compile(rf"\b(?:pronounced|pronunciation|as|like|is|was|or|and|to|with)[\s:,{GAP}]*{SOUND}")
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
    if SOUND in text:
        text = _SAID_TO_SOUND.sub(DAMAGE, text).replace(SOUND, GAP)
    # An aside that lost something can go as a whole: the sentence around it stays complete.
    if DAMAGE in text:
        for aside in _ASIDES:
            text = aside.sub(lambda match: "" if DAMAGE in match.group() else match.group(), text)
    text = _BETWEEN_DIGITS.sub(" ", text)
    text = _INVISIBLE.sub("", _GAP_BEFORE_WORD.sub(" ", text))
    text = _EMPTY_BRACKETS.sub("", text)
    if "(" in text:
        text = _ASIDE_EDGE.sub(lambda match: "(" if match.group().startswith("(") else "", text)
    text = _SPACE_BEFORE_MARK.sub("", " ".join(text.split()))
    # "[[Martin Luther King, Jr.]]." brings its own full stop.
    return _TWO_STOPS.sub(".", text)


_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});")


def _unescaped(text: str) -> str:
    # Editors escape twice what they paste: "&amp;#233;", "&amp;nbsp;". Without its semicolon nothing is an entity,
    # while html.unescape would make "QÐ" of "Q&ETH".
    for _ in range(2 if "&" in text else 0):
        text = _ENTITY.sub(lambda match: html.unescape(match.group()), text)
    return text


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
    text = _COMMENT_LINE.sub("", _HIDDEN.sub(_hide, wikitext)).replace(COMMENT, "")
    text = _strip_tags(_resolve(_without_elements(text)))
    tidied = (_tidy(paragraph) for paragraph in _paragraphs(text))
    return "\n".join(paragraph for paragraph in tidied if paragraph)
