"""Templates that read as words (measures, dates, foreign words, quotations), and those that show nothing."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable
from typing import NamedTuple

from sembench.data.wikitext.marks import BREAK, DAMAGE, FRACTION, GAP, SOUND, words


class _Template(NamedTuple):
    """A template call: normalised name, positional arguments, named arguments."""

    name: str
    args: list[str]
    named: dict[str, str]

    def arg(self, index: int) -> str:
        """Return a positional argument, counted from 0, or the damage mark where it is missing."""
        return self.args[index] if -len(self.args) <= index < len(self.args) and self.args[index] else DAMAGE


# Capitals count: "kn" is a knot and "kN" a force, "st" a stone and "ST" a short ton.
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
    "L": ("litre", "litres"),
    "gal": ("gallon", "gallons"),
    "USgal": ("US gallon", "US gallons"),
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
    "W": ("watt", "watts"),
    "kW": ("kilowatt", "kilowatts"),
    "MW": ("megawatt", "megawatts"),
    "ly": ("light-year", "light-years"),
    "AU": ("astronomical unit", "astronomical units"),
    "pc": ("parsec", "parsecs"),
    "atm": ("standard atmosphere", "standard atmospheres"),
    "psi": ("pound per square inch", "pounds per square inch"),
    "°C": ("°C", "°C"),
    "C": ("°C", "°C"),
    "°F": ("°F", "°F"),
    "F": ("°F", "°F"),
    "K": ("K", "K"),
    "ft3": ("cubic foot", "cubic feet"),
    "oilbbl": ("barrel of oil", "barrels of oil"),
    "kPa": ("kilopascal", "kilopascals"),
    "MPa": ("megapascal", "megapascals"),
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
    if i + 2 < len(args) and args[i + 2].strip() in _PLURAL_UNITS and _NUMBER.fullmatch(args[i + 1].strip()):
        measure += " " + _measure(_number(args[i + 1]), args[i + 2], template)
    return measure


def _measure(value: str, unit: str, template: _Template) -> str:
    unit = unit.strip()
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
    day = rest[1].strip() if len(rest) > 1 else ""
    american = day and template.named.get("df", "").lower() == "us"
    date = f"{month} {day}, {year.strip()}" if american else " ".join(filter(None, (day, month, year.strip())))
    before, after = template.named.get("pre", ""), template.named.get("post", "")
    date = f"{before} {date}{after}".strip()
    if template.named.get("bare"):
        return date
    words = "since" if template.named.get("since") else "as of"
    return f"{words if template.named.get('lc') else words.capitalize()} {date}"


def _fraction(template: _Template) -> str:
    parts = [part.strip() for part in template.args]
    # One number is a denominator, two are a fraction, three begin with the whole part.
    shapes = {1: "1/{}", 2: "{}/{}", 3: "{} {}/{}"}
    return FRACTION + shapes[len(parts)].format(*parts) if len(parts) in shapes else DAMAGE


def _quotation(template: _Template) -> str:
    # A block of its own: its sentences are prose, but they do not continue the sentence before.
    return BREAK + (template.named.get("text") or template.named.get("quote") or template.arg(0)) + BREAK


# A third parameter chooses what is shown: the name alone, with its prefix as without it, or with the number.
_SHIP_FORMS = {"": "{0} {1}", "2": "{1}", "3": "{0} {1}", "6": "{1}"}


def _ship(template: _Template) -> str:
    form = template.args[2] if len(template.args) > 2 else ""
    return _SHIP_FORMS.get(form, DAMAGE).format(template.name.upper(), template.arg(0))


def _in_other_wiki(template: _Template) -> str:
    return template.named.get("lt") or template.arg(0)


def _anchored(template: _Template) -> str:
    return template.named.get("text") or template.arg(0)


def _country(template: _Template) -> str:
    # A code is shown as the country's name.
    return DAMAGE if template.arg(0).isupper() else template.arg(0)


def _as_written(template: _Template) -> str:
    # Alone it is a note on the word before.
    return GAP if template.args in ([], [""], ["?"]) else _joined(template)


def _first(template: _Template) -> str:
    return template.arg(0)


def _last(template: _Template) -> str:
    return template.arg(-1)


def _lang(template: _Template) -> str:
    return template.arg(1)


def _chem2(template: _Template) -> str:
    # One formula; brackets with a charge, subscripts of its own and arrows are drawn otherwise than written.
    return template.arg(0) if re.fullmatch(r"[A-Za-z0-9]+", template.arg(0)) else DAMAGE


def _formula(template: _Template) -> str:
    # A charge behind a count runs together with it: "Si", "4", "4-" would read as Si44-.
    if len(template.args) > 1 and re.search(r"\d[-+−]$", template.args[-1]):
        return DAMAGE
    return _joined(template)


def _circa(template: _Template) -> str:
    return " – ".join(f"c. {year}" for year in template.args) or "c."


def _joined(template: _Template) -> str:
    return "".join(template.args) or DAMAGE


def _keys(template: _Template) -> str:
    return "+".join(template.args) or DAMAGE


def _literal(text: str) -> Callable[[_Template], str]:
    return lambda _: text


_RENDERED: dict[str, Callable[[_Template], str]] = {
    **dict.fromkeys(("convert", "cvt"), _convert),
    **dict.fromkeys(("nowrap", "nobr", "small", "smaller", "big", "larger", "sc", "smallcaps", "sub", "var"), _first),
    **dict.fromkeys(("abbr", "tooltip", "nihongo", "flag"), _first),
    **dict.fromkeys(("noitalic", "em", "strong", "italics correction"), _first),
    **dict.fromkeys(("citation needed span", "clarify span"), _first),
    **dict.fromkeys(("vanchor", "visible anchor"), _anchored),
    **dict.fromkeys(("ill", "interlanguage link", "interlanguage link multi"), _in_other_wiki),
    **dict.fromkeys(("ipac-en", "ipa-en", "respell"), _literal(SOUND)),
    **dict.fromkeys(("transl", "transliteration"), _last),
    **dict.fromkeys(("quote", "cquote", "blockquote", "quotation", "rquote", "bq", "centered pull quote"), _quotation),
    **dict.fromkeys(("uss", "hms", "rms", "ss", "hmas", "hmcs"), _ship),
    **dict.fromkeys(("nbsp", "spaces", "space", "thinsp", "thin space", "sp"), _literal(" ")),
    **dict.fromkeys(("ndash", "–", "en dash", "endash"), _literal("–")),
    **dict.fromkeys(("mdash", "—", "em dash", "emdash"), _literal("—")),
    **dict.fromkeys(("snd", "spaced ndash", "spnd", "spaced en dash"), _literal(" – ")),
    **dict.fromkeys(("'", "apostrophe"), _literal("'")),
    **dict.fromkeys(("circa", "c."), _circa),
    **dict.fromkeys(("frac", "fraction", "sfrac"), _fraction),
    **dict.fromkeys(("nbhyph", "nbhyphen", "non-breaking hyphen"), _literal("-")),
    **dict.fromkeys(("key press", "keypress"), _keys),
    "chem": _formula,
    "chem2": _chem2,
    "flagcountry": _country,
    "not a typo": _joined,
    "sic": _as_written,
    "'s": _literal("'s"),
    "as of": _as_of,
    "lang": _lang,
    "okina": _literal("ʻ"),
    "eqm": _literal('"'),
}

# Notes, marks and anchors: the reader of the page sees at most a superscript, so nothing is lost without them.
_SILENT = words(
    "who|when|why|which|where|by whom|according to whom|dubious|rp|r|efn|refn|ref|notetag|note|sfn|sfnp|sfnm|"
    "sfnref|harvid|harv|harvard citation|fact|citation needed|dead link|page needed|failed verification|"
    "verify source|verification needed|verify credibility|not in citation given|inconsistent citations|"
    "unreliable source?|update after|update inline|update-inline|specify|vague|weasel inline|weasel-inline|"
    "pov-statement|or|original research inline|synthesis-inline|synthesis inline|full citation needed|full|"
    "self-published inline|third-party inline|better source|better source needed|quote needed|need quotation|"
    "request quotation|cite quote|primary source inline|lopsided|disambiguation needed|dn|examples|"
    "example needed|attribution needed|contradict-inline|chronology citation needed|wayback|webarchive|clear|"
    "clear left|clear right|-|flagicon|increase|decrease|steady|toc|toc right|toc left|"
    "toc limit|br|cn|clarify|clarification needed|clarifyme|definition|"
    "year needed|cref|cref2|sister|portal|commons|"
    "commons category|listen|link language|icon|subscription required|registration required|"
    "see below|ref label|refimprove inline|medical citation needed|medcn|mcn|when?|who?|peacock term|"
    "peacock inline|time fact|relevance inline|date missing|volume needed|jargon-statement|jargon inline|"
    "technical inline|awkward|copy edit inline|copyedit inline|tone-inline|elucidate|huh|what|whom|how|how often|"
    "compared to?|like whom?|page number|page numbers needed|pn|citequote|season needed|episode needed|"
    "short description|good article|featured article",
    "|",
)
# Invisible even inside a word: what stands on both sides belongs together.
_INVISIBLE = words(
    "shy|soft hyphen|wbr|zwsp|zwj|zwnj|wj|word joiner|anchor|anchors|nowrap begin|nowrap end|nobr begin|nobr end|"
    "nowrapbegin|nowrapend|no italic title|italic title|lowercase title|defaultsort|lrm|rlm|zwnbsp|zero width space|"
    "zero width joiner|zero width non-joiner|zero-width space|zero-width joiner|zero-width non-joiner",
    "|",
)
_INVISIBLE_PREFIXES = ("defaultsort:", "displaytitle:")
_SILENT_PREFIXES = ("cite ", "citation/", "vcite", "use ", "pp-", "infobox", "taxobox", "vandalism", "#tag:ref")


def render_template(body: str, at_line_start: bool) -> str:
    """Return the words of a template call whose inner brackets are already rendered."""
    raw_name, bar, rest = body.partition("|")
    name = " ".join(raw_name.replace("_", " ").lower().split())
    if name.startswith("formatnum:"):
        return _number(name[10:])
    if name in _INVISIBLE or name.startswith(_INVISIBLE_PREFIXES):
        return ""
    if name in _SILENT or name.startswith(_SILENT_PREFIXES):
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
