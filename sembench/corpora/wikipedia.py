"""English sentences out of a MediaWiki XML dump (``pages-articles``), in constant memory.

Three steps: ``iter_pages`` streams the articles, ``clean`` turns wikitext into paragraphs of running prose, and
``sentences`` splits them and keeps what is usable for training. Something in the middle of a sentence that cannot be
rendered (a formula, an unknown template) leaves the character ``DAMAGE`` behind, and the sentence around it is dropped:
a sentence that lost words would be a wrong training example.

No general wikitext parser is used: rendering inside out over a stack of open brackets is linear in the page, faster
than building a tree, and lets each construct decide whether it is silent, rendered or damaging.
"""

from __future__ import annotations

import bz2
import calendar
import html
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, NamedTuple
from xml.etree import ElementTree

from sembench.core.errors import SembenchError

DAMAGE = "\ue000"
"""Private-use character that stands where words were lost."""

GAP = "\ue001"
# Stands where something invisible was removed, so that "end.<ref/>Next" does not grow together.

GLUE = "\u2060"
"""Word joiner that ``clean`` puts behind a mark which does not end a sentence; ``split_sentences`` removes it."""

BREAK = "\n\n"


def _set(words: str, separator: str | None = None) -> frozenset[str]:
    return frozenset(words.split(separator))


class Page(NamedTuple):
    """An article of the main namespace: its title and its wikitext."""

    title: str
    text: str


# ---------------------------------------------------------------------------------------------------------------------
# The dump
# ---------------------------------------------------------------------------------------------------------------------

# Expat codes that mean "the input ended too early": no element, unclosed token, partial character, unclosed CDATA.
_CUT_SHORT = frozenset({3, 5, 6, 20})


def iter_pages(path: Path, *, allow_truncated: bool = False) -> Iterator[Page]:
    """Yield the articles of a MediaWiki XML export: namespace 0, no redirects.

    Any version of the export schema is read, plain or bz2 (also multistream), and memory does not grow with the dump.

    Args:
        path: the dump; bz2 is told by its first bytes.
        allow_truncated: end quietly where the file is cut short, as an interrupted download or an excerpt may be.

    Yields:
        ``Page(title, text)`` in the order of the dump.

    Raises:
        SembenchError: the file is missing, cut short, damaged, or no MediaWiki export.
    """
    if not path.is_file():
        raise SembenchError(f"{path} does not exist; fetch the dump first or correct the path")
    try:
        with _opened(path) as stream:
            yield from _articles(stream, path)
    except ElementTree.ParseError as error:
        if error.code not in _CUT_SHORT:
            raise SembenchError(
                f"{path} is not well-formed XML ({error}); fetch it again or check that it is a MediaWiki dump"
            ) from None
        _cut_short(path, allow_truncated)
    except EOFError:
        _cut_short(path, allow_truncated)
    except OSError as error:
        # bz2 reports damaged data as an OSError without a number; one with a number is the machine's trouble.
        if error.errno is not None:
            raise
        raise SembenchError(f"{path} is a damaged bz2 file ({error}); fetch it again") from None


def _opened(path: Path) -> IO[bytes]:
    with path.open("rb") as stream:
        magic = stream.read(3)
    # The content decides and not the suffix: mirrors unpack files and keep their names.
    return bz2.open(path, "rb") if magic == b"BZh" else path.open("rb")


def _cut_short(path: Path, allowed: bool) -> None:
    if not allowed:
        raise SembenchError(f"{path} is cut short: the dump ends before its closing tag; fetch it again") from None


def _articles(stream: IO[bytes], path: Path) -> Iterator[Page]:
    events = ElementTree.iterparse(stream, events=("start", "end"))
    root: ElementTree.Element | None = None
    for event, element in events:
        if root is None:
            root = element
            if _local(root.tag) != "mediawiki":
                raise SembenchError(f"{path} is no MediaWiki dump: its root is <{_local(root.tag)}>, not <mediawiki>")
        elif event == "end" and _local(element.tag) == "page":
            page = _article(element)
            # The root as well: otherwise it would keep one empty element for each of millions of pages.
            root.clear()
            if page is not None:
                yield page


def _local(tag: str) -> str:
    # The schema's version is part of its XML namespace, which therefore is ignored.
    return tag.rpartition("}")[2]


def _article(element: ElementTree.Element) -> Page | None:
    fields = {_local(child.tag): child for child in element.iter()}
    # Exports before version 0.6 have no <ns>; their pages are taken for articles.
    namespace = (fields["ns"].text or "0").strip() if "ns" in fields else "0"
    text = (fields["text"].text or "") if "text" in fields else ""
    title = (fields["title"].text or "") if "title" in fields else ""
    # Old exports have no <redirect>, but the directive is always the first word of the text.
    redirect = "redirect" in fields or text.lstrip()[:9].lower() == "#redirect"
    return None if namespace != "0" or redirect or not text.strip() else Page(title, text)


# ---------------------------------------------------------------------------------------------------------------------
# Templates that read as words
# ---------------------------------------------------------------------------------------------------------------------


class _Template(NamedTuple):
    """A template call: normalised name, positional arguments, named arguments."""

    name: str
    args: list[str]
    named: dict[str, str]

    def arg(self, index: int) -> str:
        """Return a positional argument, counted from 0, or the damage mark where it is missing."""
        return self.args[index] if -len(self.args) <= index < len(self.args) and self.args[index] else DAMAGE


_PLURAL_UNITS = {
    "km": ("kilometre", "kilometres"),
    "m": ("metre", "metres"),
    "cm": ("centimetre", "centimetres"),
    "mm": ("millimetre", "millimetres"),
    "mi": ("mile", "miles"),
    "mile": ("mile", "miles"),
    "miles": ("mile", "miles"),
    "nmi": ("nautical mile", "nautical miles"),
    "yd": ("yard", "yards"),
    "ft": ("foot", "feet"),
    "foot": ("foot", "feet"),
    "feet": ("foot", "feet"),
    "in": ("inch", "inches"),
    "inch": ("inch", "inches"),
    "fathom": ("fathom", "fathoms"),
    "km2": ("square kilometre", "square kilometres"),
    "sqkm": ("square kilometre", "square kilometres"),
    "m2": ("square metre", "square metres"),
    "sqm": ("square metre", "square metres"),
    "sqmi": ("square mile", "square miles"),
    "sqft": ("square foot", "square feet"),
    "ha": ("hectare", "hectares"),
    "acre": ("acre", "acres"),
    "acres": ("acre", "acres"),
    "m3": ("cubic metre", "cubic metres"),
    "km3": ("cubic kilometre", "cubic kilometres"),
    "cuft": ("cubic foot", "cubic feet"),
    "cumi": ("cubic mile", "cubic miles"),
    "l": ("litre", "litres"),
    "gal": ("gallon", "gallons"),
    "usgal": ("US gallon", "US gallons"),
    "kg": ("kilogram", "kilograms"),
    "g": ("gram", "grams"),
    "mg": ("milligram", "milligrams"),
    "t": ("tonne", "tonnes"),
    "tonne": ("tonne", "tonnes"),
    "lb": ("pound", "pounds"),
    "lbs": ("pound", "pounds"),
    "oz": ("ounce", "ounces"),
    "st": ("stone", "stone"),
    "ton": ("ton", "tons"),
    "short ton": ("short ton", "short tons"),
    "long ton": ("long ton", "long tons"),
    "km/h": ("kilometre per hour", "kilometres per hour"),
    "mph": ("mile per hour", "miles per hour"),
    "kn": ("knot", "knots"),
    "knot": ("knot", "knots"),
    "m/s": ("metre per second", "metres per second"),
    "ft/s": ("foot per second", "feet per second"),
    "hp": ("horsepower", "horsepower"),
    "w": ("watt", "watts"),
    "kw": ("kilowatt", "kilowatts"),
    "mw": ("megawatt", "megawatts"),
    "ly": ("light-year", "light-years"),
    "au": ("astronomical unit", "astronomical units"),
    "pc": ("parsec", "parsecs"),
    "atm": ("standard atmosphere", "standard atmospheres"),
    "psi": ("pound per square inch", "pounds per square inch"),
    "°c": ("°C", "°C"),
    "c": ("°C", "°C"),
    "°f": ("°F", "°F"),
    "f": ("°F", "°F"),
    "k": ("K", "K"),
    "ft3": ("cubic foot", "cubic feet"),
    "oilbbl": ("barrel of oil", "barrels of oil"),
    "kpa": ("kilopascal", "kilopascals"),
    "mpa": ("megapascal", "megapascals"),
}
_SCALES = {"e3": "thousand", "e6": "million", "e9": "billion"}
_RANGES = {"-": "–", "–": "–", "to": " to ", "and": " and ", "or": " or ", "by": " by ", "x": " × ", "to(-)": " to "}
_NUMBER = re.compile(r"[-−]?\d[\d,]*(?:\.\d+)?")
_MONTHS = calendar.month_name[1:]


def _number(text: str) -> str:
    text = text.strip()
    if not _NUMBER.fullmatch(text):
        return DAMAGE
    whole, point, decimals = text.replace(",", "").replace("-", "−").partition(".")
    sign, digits = ("−", whole[1:]) if whole.startswith("−") else ("", whole)
    return f"{sign}{int(digits):,}{point}{decimals}"


def _convert(template: _Template) -> str:
    # Only the first measure is written; the converted one in brackets adds nothing to a sentence.
    args = template.args
    plain = template.named.get("adj", "") in ("", "on", "off")
    if len(args) < 2 or not plain or template.named.get("disp", "") not in ("", "b", "br", "or", "sqbr", "comma"):
        return DAMAGE
    value, i = _number(args[0]), 1
    while i + 1 < len(args) and args[i].strip() in _RANGES:
        value += _RANGES[args[i].strip()] + _number(args[i + 1])
        i += 2
    measure = _measure(value, args[i] if i < len(args) else "", template)
    # "5 ft 10 in" is written as two value and unit pairs; a lone number there would be a precision.
    if i + 2 < len(args) and args[i + 2].strip().lower() in _PLURAL_UNITS and _NUMBER.fullmatch(args[i + 1].strip()):
        measure += " " + _measure(_number(args[i + 1]), args[i + 2], template)
    return measure


def _measure(value: str, unit: str, template: _Template) -> str:
    unit = unit.strip().lower()
    if unit[:2] in _SCALES:
        value, unit = f"{value} {_SCALES[unit[:2]]}", unit[2:]
    names = _PLURAL_UNITS.get(unit)
    if names is None:
        return DAMAGE
    adjective = template.named.get("adj") == "on" and not names[0].startswith("°")
    name = names[0] if adjective or value in ("1", "−1") else names[1]
    if template.named.get("sp") == "us":
        name = name.replace("metre", "meter").replace("litre", "liter")
    return f"{value}{'-' if adjective else ' '}{name.replace(' ', '-') if adjective else name}"


def _as_of(template: _Template) -> str:
    if "alt" in template.named:
        return template.named["alt"]
    year, *rest = template.args or [DAMAGE]
    month = rest[0].strip() if rest else ""
    if month.isdigit() and 1 <= int(month) <= 12:
        month = _MONTHS[int(month) - 1]
    date = " ".join(part for part in (rest[1].strip() if len(rest) > 1 else "", month, year.strip()) if part)
    words = "since" if template.named.get("since") else "as of"
    return f"{words if template.named.get('lc') else words.capitalize()} {date}"


def _fraction(template: _Template) -> str:
    parts = [part.strip() for part in template.args]
    # One number is a denominator, two are a fraction, three begin with the whole part.
    shapes = {1: "1/{}", 2: "{}/{}", 3: "{} {}/{}"}
    return shapes[len(parts)].format(*parts) if len(parts) in shapes else DAMAGE


def _quotation(template: _Template) -> str:
    # A block of its own: its sentences are prose, but they do not continue the sentence before.
    return BREAK + (template.named.get("text") or template.named.get("quote") or template.arg(0)) + BREAK


def _ship(template: _Template) -> str:
    return f"{template.name.upper()} {template.arg(0)}"


def _first(template: _Template) -> str:
    return template.arg(0)


def _last(template: _Template) -> str:
    return template.arg(-1)


def _lang(template: _Template) -> str:
    return template.arg(1)


def _formula(template: _Template) -> str:
    # A charge behind a count runs together with it: "Si", "4", "4-" would read as Si44-.
    if len(template.args) > 1 and re.search(r"\d[-+−]$", template.args[-1]):
        return DAMAGE
    return "".join(template.args) or DAMAGE


def _circa(template: _Template) -> str:
    return f"c. {template.arg(0)}"


def _literal(text: str) -> Callable[[_Template], str]:
    return lambda _: text


_RENDERED: dict[str, Callable[[_Template], str]] = {
    **dict.fromkeys(("convert", "cvt"), _convert),
    **dict.fromkeys(("nowrap", "nobr", "small", "smaller", "big", "larger", "sc", "smallcaps", "sub", "var"), _first),
    **dict.fromkeys(("abbr", "tooltip", "vanchor", "visible anchor", "nihongo", "ill", "flag", "flagcountry"), _first),
    **dict.fromkeys(("noitalic", "em", "strong", "italics correction", "keypress", "not a typo", "sic"), _first),
    **dict.fromkeys(("transl", "transliteration"), _last),
    **dict.fromkeys(("quote", "cquote", "blockquote", "quotation", "rquote", "bq", "centered pull quote"), _quotation),
    **dict.fromkeys(("uss", "hms", "rms", "ss", "hmas", "hmcs"), _ship),
    **dict.fromkeys(("nbsp", "spaces", "space", "thinsp", "thin space", "sp"), _literal(" ")),
    **dict.fromkeys(("ndash", "–", "en dash", "endash"), _literal("–")),
    **dict.fromkeys(("mdash", "—", "em dash", "emdash"), _literal("—")),
    **dict.fromkeys(("snd", "spaced ndash", "spnd", "spaced en dash"), _literal(" – ")),
    **dict.fromkeys(("'", "apostrophe"), _literal("'")),
    **dict.fromkeys(("circa", "c."), _circa),
    **dict.fromkeys(("chem", "chem2"), _formula),
    **dict.fromkeys(("frac", "fraction"), _fraction),
    "'s": _literal("'s"),
    "as of": _as_of,
    "lang": _lang,
    "okina": _literal("ʻ"),
    "eqm": _literal('"'),
}

# Notes, marks and anchors: the reader of the page sees at most a superscript, so nothing is lost without them.
_SILENT = _set(
    "who|when|why|which|where|by whom|according to whom|dubious|rp|r|efn|refn|ref|notetag|note|sfn|sfnp|sfnm|"
    "sfnref|harvnb|harvid|fact|citation needed|citation needed span|dead link|page needed|failed verification|"
    "verify source|verification needed|verify credibility|not in citation given|inconsistent citations|"
    "unreliable source?|update after|update inline|update-inline|specify|vague|weasel inline|weasel-inline|"
    "pov-statement|or|original research inline|synthesis-inline|synthesis inline|full citation needed|full|"
    "self-published inline|third-party inline|better source|better source needed|quote needed|need quotation|"
    "request quotation|cite quote|primary source inline|lopsided|disambiguation needed|dn|examples|"
    "example needed|attribution needed|contradict-inline|chronology citation needed|wayback|webarchive|clear|"
    "clear left|clear right|-|shy|wbr|zwj|zwnj|flagicon|increase|decrease|steady|toc|toc right|toc left|"
    "toc limit|defaultsort|clarify span|anchor|anchors|br|cn|clarify|clarification needed|clarifyme|definition|"
    "year needed|nowrap begin|nowrap end|ipac-en|respell|ipa-en|cref|cref2|sister|nbhyph|portal|commons|"
    "commons category|listen|link language|icon|subscription required|registration required|no italic title|"
    "see below|ref label|refimprove inline|medical citation needed|medcn|mcn|when?|who?|peacock term|"
    "peacock inline|time fact|relevance inline|date missing|volume needed|jargon-statement|jargon inline|"
    "technical inline|awkward|copy edit inline|copyedit inline|tone-inline|elucidate|huh|what|whom|how|how often|"
    "compared to?|like whom?|page number|page numbers needed|pn|citequote|season needed|episode needed",
    "|",
)
_SILENT_PREFIXES = ("cite ", "citation/", "vcite", "use ", "pp-", "infobox", "taxobox", "harvard citation", "vandalism")


def _render_template(body: str, at_line_start: bool) -> str:
    """Return the words of a template call whose inner brackets are already rendered."""
    raw_name, bar, rest = body.partition("|")
    name = " ".join(raw_name.replace("_", " ").lower().split())
    if name.startswith("formatnum:"):
        return _number(name[10:])
    if name in _SILENT or name.startswith(_SILENT_PREFIXES) or name.startswith("defaultsort:"):
        return GAP
    renderer = _RENDERED.get(name)
    if renderer is not None:
        return renderer(_template(name, rest if bar else ""))
    # A call over several lines that begins a line is a box, and text may follow its closing braces directly.
    return BREAK if at_line_start and "\n" in body else DAMAGE


def _template(name: str, rest: str) -> _Template:
    args: list[str] = []
    named: dict[str, str] = {}
    for part in rest.split("|") if rest else []:
        key, equals, value = part.partition("=")
        key = key.strip()
        if equals and re.fullmatch(r"[\w -]{1,20}", key):
            named[key.lower()] = value.strip()
        else:
            args.append(part.strip())
    # "1=..." is the long way to write a positional argument.
    while str(len(args) + 1) in named:
        args.append(named[str(len(args) + 1)])
    return _Template(name, args, named)


# ---------------------------------------------------------------------------------------------------------------------
# Links
# ---------------------------------------------------------------------------------------------------------------------

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


# ---------------------------------------------------------------------------------------------------------------------
# Wikitext to paragraphs
# ---------------------------------------------------------------------------------------------------------------------

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_NOTES = ("ref", "references", "s", "strike", "del")
_FORMULAS = ("math", "code", "nowiki", "chem", "ce", "tt", "kbd", "samp", "hiero")
_BLOCKS = ("pre", "source", "syntaxhighlight", "gallery", "timeline", "imagemap", "score", "poem", "table", "ol", "ul")
# Content is bounded so that many unclosed tags cost linear and not quadratic time.
_ELEMENT = re.compile(
    rf"<({'|'.join((*_NOTES, *_FORMULAS, *_BLOCKS))})\b([^<>]*?)(?:/>|>(.{{0,30000}}?)</\1\s*>)",
    re.DOTALL | re.IGNORECASE,
)


def _replace_element(match: re.Match[str]) -> str:
    name = match.group(1).lower()
    if name in _NOTES or match.group(3) is None:
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
        stack[-1].parts.append(_render_template(body, at_line_start))
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
_BACK_MATTER = _set(
    "references|notes|footnotes|citations|sources|external links|further reading|bibliography|see also|"
    "works cited|notes and references|references and notes|notes and citations|primary sources|secondary sources|"
    "literature|general references|specific references|gallery|filmography|discography|publications|"
    "selected bibliography",
    "|",
)
_NOT_PROSE_START = tuple("*#:;|! \t{}")
_INVISIBLE = str.maketrans("", "", "\u00ad\u200b\u200c\u200d\u200e\u200f\ufeff" + GAP)
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
    line = line.rstrip()
    if not (line.startswith("=") and line.endswith("=") and len(line) > 2):
        return 0, ""
    level = min(len(line) - len(line.lstrip("=")), len(line) - len(line.rstrip("=")))
    return level, line.strip("=").strip("' ").lower()


_EXTERNAL_LINK = re.compile(r"\[(?:(?:https?|ftp|news|irc|mailto):|//)[^\s\[\]]*\s*([^\[\]]*)\]", re.IGNORECASE)
_POSSESSIVE_ITALIC = re.compile(r"(?<=[^\W_])'''(?=s\b)")
_BOLD_RUN = re.compile(r"(?<!')'''(?!')")
_FOUR_QUOTES = re.compile(r"(?<!')''''(?!')")
_TITLE_MARK = re.compile(r"([!?])(?=''(?!'))")
_QUOTES = re.compile(r"'{2,}")
_GAP_BEFORE_WORD = re.compile(rf"{GAP}+(?=\w)")
# An aside in brackets after a space, and one with brackets inside; unrolled, so that backtracking stays linear.
_ASIDES = (
    re.compile(rf"[\s{GAP}]+\([^()]*\)"),
    re.compile(rf"[\s{GAP}]+\([^()]*(?:\([^()]*\)[^()]*)+\)"),
)
_EMPTY_BRACKETS = re.compile(r"\s*\(\s*[,;:]*\s*\)|\s*\[\s*\]")
_ASIDE_EDGE = re.compile(r"\(\s*[,;]\s*|\(\s+|[,;]?\s+(?=\))")
_SPACE_BEFORE_MARK = re.compile(r"\s+(?=[,;:!?](?:\s|$)|\.(?:\s|$|[\"”]))")


def _tidy(text: str) -> str:
    """Turn the inline markup of one paragraph into plain text."""
    text = _EXTERNAL_LINK.sub(r"\1", " ".join(text.split()))
    if "''" in text:
        text = _plain_quotes(text)
    text = " ".join(html.unescape(text).split())
    # An aside that lost something can go as a whole: the sentence around it stays complete.
    if DAMAGE in text:
        for aside in _ASIDES:
            text = aside.sub(lambda match: "" if DAMAGE in match.group() else match.group(), text)
    text = _GAP_BEFORE_WORD.sub(" ", text).translate(_INVISIBLE)
    text = _EMPTY_BRACKETS.sub("", text)
    if "(" in text:
        text = _ASIDE_EDGE.sub(lambda match: "(" if match.group().startswith("(") else "", text)
    text = _SPACE_BEFORE_MARK.sub("", " ".join(text.split()))
    # "[[Martin Luther King, Jr.]]." brings its own full stop.
    return _TWO_STOPS.sub(".", text)


_TWO_STOPS = re.compile(r"(?<!\.)\.\.(?!\.)")


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
    text = _COMMENT.sub("", wikitext)
    text = _ELEMENT.sub(_replace_element, text)
    text = _strip_tags(_resolve(text))
    tidied = (_tidy(paragraph) for paragraph in _paragraphs(text))
    return "\n".join(paragraph for paragraph in tidied if paragraph)


# ---------------------------------------------------------------------------------------------------------------------
# Paragraphs to sentences
# ---------------------------------------------------------------------------------------------------------------------

_BOUNDARY = re.compile(r"[.!?…]+[\"'”’»)\]]*\s+(?=[\"'“‘«(\[]*([^\W_]))")
_LAST_WORD = re.compile(r"(\S+?)[\"'”’»)\]]*\s*$")
# Never the last word of a sentence: a name or an explanation follows.
_ABBREVIATIONS = _set(
    "mr mrs ms dr prof rev fr gen col lt maj capt cpt sgt cmdr adm gov sen rep hon pres st ste mt ft messrs "
    "mme mlle e.g i.e vs cf viz ca c fl b d r a.k.a approx est esp spec trans ed eds lit arch gr lat ger op "
    "var subsp ssp al brig v supt insp bvt"
)
# Abbreviations only where a number follows ("No. 5", "pp. 3-4", "Jan. 7").
_BEFORE_NUMBER = _set(
    "no nos p pp vol vols ch chap fig figs sec art nr op cit lines jan feb mar apr jun jul aug sep sept oct "
    "nov dec eq ver"
)
# May end a sentence or not: the next word decides.
_AMBIGUOUS = _set("jr sr inc ltd co corp bros etc a.m p.m b.c a.d b.c.e c.e ph.d m.d b.a m.a d.c u.s u.k")
_STARTERS = _set(
    "the a an it its in on at by for from to of as he she they we i you his her their our this that these "
    "those there here when where while although though however after before during since because if but and so "
    "one some many most several such each both other another all no not with without under over between among "
    "according despite following until once then thus also today later what who how why"
)
_INITIALS = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]?|[^\W\d_]")
_LOOK_AHEAD = 400


def sentences(text: str) -> Iterator[str]:
    """Split paragraphs into English sentences and yield those that ``is_prose`` accepts.

    Args:
        text: paragraphs separated by line feeds, as ``clean`` returns them.

    Yields:
        Sentences with single spaces, in order; no sentence spans two paragraphs.
    """
    for paragraph in text.split("\n"):
        for sentence in split_sentences(" ".join(paragraph.split())):
            if is_prose(sentence):
                yield sentence


def split_sentences(paragraph: str) -> Iterator[str]:
    """Yield the sentences of one paragraph by rule: abbreviations, initials, quotes and brackets do not split.

    ``GLUE`` is removed.

    Args:
        paragraph: running text with single spaces.

    Yields:
        All pieces in order; joined with one space they give the paragraph back.
    """
    start = 0
    for match in _BOUNDARY.finditer(paragraph):
        following = match.group(1)
        if not (following.isupper() or following.isdigit()):
            continue
        head = paragraph[start : match.end()]
        if _is_abbreviated(head, paragraph, match) or _is_enclosed(head, paragraph, match.end()):
            continue
        yield head.rstrip().replace(GLUE, "")
        start = match.end()
    rest = paragraph[start:].strip().replace(GLUE, "")
    if rest:
        yield rest


def _is_abbreviated(head: str, paragraph: str, match: re.Match[str]) -> bool:
    """Tell whether the full stop belongs to an abbreviation, in which case the sentence goes on."""
    mark = match.group().rstrip()
    # Only one bare full stop can be part of a word; "etc.)" and "U.S.?" do end.
    if mark != ".":
        return False
    word = _LAST_WORD.search(head)
    token = (word.group(1) if word else "").lstrip("\"'“‘(«[").rstrip(".")
    lower = token.lower()
    if lower in _ABBREVIATIONS:
        # "St" and single letters are abbreviations; "plan B. The" is caught below.
        return len(token) > 1 or token.islower() or not _starts_sentence(paragraph, match.end())
    if lower in _BEFORE_NUMBER:
        return match.group(1).isdigit()
    if lower in _AMBIGUOUS or (_INITIALS.fullmatch(token) and not token.islower()):
        return not _starts_sentence(paragraph, match.end())
    return False


def _starts_sentence(paragraph: str, position: int) -> bool:
    word = re.match(r"[\"'“‘«(\[]*(\w+)\b(?!\.)", paragraph[position : position + 40])
    return word is not None and word.group(1).lower() in _STARTERS


def _is_enclosed(head: str, paragraph: str, position: int) -> bool:
    """Tell whether a bracket or quotation is open that closes soon; one that never closes must not swallow the rest."""
    ahead = paragraph[position : position + _LOOK_AHEAD]
    if head.count("(") > head.count(")"):
        close, again = ahead.find(")"), ahead.find("(")
        if close >= 0 and (again < 0 or close < again):
            return True
    if head.count('"') % 2:
        # The next mark closes the quotation only if no space stands before it.
        close = ahead.find('"')
        return close > 0 and ahead[close - 1] != " "
    return head.count("“") > head.count("”") and "”" in ahead


_START = re.compile(r"[\"'“‘(]*[^\W_]")
_END = re.compile(r"[.!?…][\"'”’)\]]*$")
# Markup that survived, addresses, and marks that betray lost words.
_LEFTOVER = re.compile(
    rf"[{DAMAGE}{GAP}|<>={{}}~\\]|\[\[|\]\]|://|www\.|''|__|\(\s*\)|\"\"|,\s*(?:[,;)]|\.(?!\.))|\(\s*[,;.]|;\s*[;,.]|&\w+;|\s[,;]|"
    r"[a-z]{2}[.,;][A-Z][a-z]|[a-z]{2}\.\d|\b(?:the|an)[.,;]|"
    r"; (?:and |or )?\d{1,2}\.$"
)
_MIN_WORDS, _MAX_WORDS, _MIN_LETTERS = 4, 128, 0.6


def is_prose(sentence: str) -> bool:
    """Tell whether a sentence is usable for training.

    It begins with an upper-case letter, a digit or an opening quote, ends with sentence punctuation, has 4 to 128
    words (by white space), consists mostly of letters, closes what it opens, and shows no trace of markup.
    """
    start = _START.match(sentence)
    if start is None or not _END.search(sentence) or _LEFTOVER.search(sentence):
        return False
    # A lower-case beginning is the rest of a broken sentence.
    if start.group()[-1].islower():
        return False
    if not _MIN_WORDS <= len(sentence.split()) <= _MAX_WORDS:
        return False
    characters = sentence.replace(" ", "")
    # Tables of numbers and formulas have few letters; dates and results at least half.
    if sum(map(str.isalpha, characters)) < _MIN_LETTERS * len(characters):
        return False
    return _is_balanced(sentence)


def _is_balanced(sentence: str) -> bool:
    for opening, closing in ("()", "[]", "“”"):
        if sentence.count(opening) != sentence.count(closing) or sentence.find(closing) < sentence.find(opening):
            return False
    return sentence.count('"') % 2 == 0
