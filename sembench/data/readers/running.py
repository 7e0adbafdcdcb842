"""Plain running text with headings, such as WikiText: a paragraph a line, ``= Title =`` before each article."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from sembench.data.readers.lines import numbered_lines

_HEADING = re.compile(r"(=(?: ?=)*) .* \1")


class Article(NamedTuple):
    """A title, empty before the first one, and paragraphs of running text."""

    title: str
    paragraphs: list[str]


def read_articles(path: Path) -> Iterator[Article]:
    """Yield the articles of a text file that have a paragraph, without headings and without blank lines.

    WikiText's tokens are joined again as far as marks show where: ``5 @,@ 000 men , and`` becomes ``5,000 men, and``.

    Raises:
        SembenchError: the file is missing, or a line is not UTF-8.
    """
    article = Article("", [])
    for _, line in numbered_lines(path):
        text = " ".join(line.split())
        heading = _HEADING.fullmatch(text)
        if heading and heading[1] == "=":
            if article.paragraphs:
                yield article
            article = Article(text.strip("= "), [])
        elif text and not heading:
            article.paragraphs.append(joined(text))
    if article.paragraphs:
        yield article


_BEFORE = re.compile(r" (?=[,.;:!?%)\]]+(?: |$|\")|'(?:s|re|ve|ll|d|m)?\b|n't\b)")
_BEHIND = re.compile(r"(?<=[(\[$£€]) ")
_QUOTED = re.compile(r'" ([^"]*) "')
_INNER = re.compile(r" @([-,.])@ ")


def joined(text: str) -> str:
    """Return a line of WikiText without the blanks that its tokeniser put around marks."""
    text = _INNER.sub(r"\1", text)
    text = _QUOTED.sub(r'"\1"', text)
    return _BEHIND.sub("", _BEFORE.sub("", text))
