"""English sentences out of paragraphs, and which of them are usable for training."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sembench.data.wikitext.marks import DAMAGE, GAP, GLUE, words

_BOUNDARY = re.compile(r"[.!?…]+[\"'”’»)\]]*\s+(?=[\"'“‘«(\[]*([^\W_]))")
# Never the last word of a sentence: a name or an explanation follows.
_ABBREVIATIONS = words(
    "mr mrs ms dr prof rev fr gen col lt maj capt cpt sgt cmdr adm gov sen rep hon pres st ste mt ft messrs "
    "mme mlle e.g i.e vs cf viz ca c fl b d r a.k.a approx est esp spec trans ed eds lit arch gr lat ger op "
    "var subsp ssp al brig v supt insp bvt"
)
# Abbreviations only where a number follows ("No. 5", "pp. 3-4", "Jan. 7").
_BEFORE_NUMBER = words(
    "no nos p pp vol vols ch chap fig figs sec art nr op cit lines jan feb mar apr jun jul aug sep sept oct "
    "nov dec eq ver"
)
# May end a sentence or not: the next word decides.
_AMBIGUOUS = words("jr sr inc ltd co corp bros etc a.m p.m b.c a.d b.c.e c.e ph.d m.d b.a m.a d.c u.s u.k")
_STARTERS = words(
    "the a an it its in on at by for from to of as he she they we i you his her their our this that these "
    "those there here when where while although though however after before during since because if but and so "
    "one some many most several such each both other another all no not with without under over between among "
    "according despite following until once then thus also today later what who how why"
)
_INITIALS = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]?|[^\W\d_]")
_LOOK_AHEAD = 400


def iter_sentences(text: str) -> Iterator[str]:
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
    token = head.rstrip().rpartition(" ")[2].lstrip("\"'“‘(«[").rstrip(".")
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
    rf"[{DAMAGE}{GAP}|<>={{}}~\\\ufffc\ufffd]|&#\w|&nbsp|\[\[|\]\]|://|www\.|''|__|\(\s*\)|\"\"|,\s*(?:[,;)]|\.(?!\.))|\(\s*[,;.]|;\s*[;,.]|&\w+;|\s[,;]|"
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
