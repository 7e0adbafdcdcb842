"""A sentence with the next one, or with one of the next few, as its positive: SimCSE, Table 2.

The published sample of a million sentences is not contiguous, so running text is needed: a MediaWiki dump, or plain
text with headings such as WikiText. Two sentences count as neighbours only within a paragraph and if no sentence
between them was unusable for training.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from sembench.core.schema import Strict
from sembench.data.chance import generator
from sembench.data.maker import Say
from sembench.data.pairs import Pair, PairMaker, write_pairs
from sembench.data.readers.running import Article, read_articles
from sembench.data.wikitext.clean import clean
from sembench.data.wikitext.dump import dump_files, iter_pages
from sembench.data.wikitext.sentences import is_prose, split_sentences

_ARTICLES_BETWEEN_LINES = 50_000


class NextSentences(PairMaker):
    """A row for each sentence that is followed by another, in the order of the text.

    Of rows with the same first sentence the first one stays, since templates repeat boilerplate. Which of the next
    sentences is taken depends on the seed, the title of the article and the place in it alone.
    """

    class Config(Strict):
        """Parameters."""

        within: int = Field(1, gt=0, description="1: the next sentence; 3: one of the next three, as far as there are")
        seed: int = Field(0, ge=0)

    roles = ("text",)
    # A complete dump is a day's work of one core.
    local = False

    @classmethod
    def make(cls, config: Config, inputs: Mapping[str, Path], target: Path, root: Path, say: Say) -> dict[str, Any]:
        """Read all files of the role ``text``, ``.txt`` as plain text and others as dumps, and write the pairs.

        Returns:
            What ``write_pairs`` says of the rows; ``articles``, and ``duplicates`` that were dropped.

        Raises:
            SembenchError: there is no file, a file is not as it should be, or no two sentences follow each other.
        """
        paths = dump_files(inputs["text"])
        counts: Counter[str] = Counter(articles=0, duplicates=0)
        articles = (article for path in paths for article in _READERS.get(path.suffix, _dumped)(path))
        pairs = _distinct(_pairs(articles, config, counts, say), counts)
        nothing = f"{paths[0]} has no two usable sentences that follow each other; give another text"
        facts = {**write_pairs(pairs, target / cls.examples, nothing), **counts}
        say(", ".join(f"{name} {value}" for name, value in facts.items()))
        return facts


def _dumped(path: Path) -> Iterator[Article]:
    return (Article(page.title, clean(page.text).split("\n")) for page in iter_pages(path))


_READERS: Mapping[str, Callable[[Path], Iterator[Article]]] = {".txt": read_articles}


def runs(paragraph: str) -> Iterator[list[str]]:
    """Yield the longest runs of usable sentences that follow each other in a paragraph."""
    run: list[str] = []
    for sentence in split_sentences(" ".join(paragraph.split())):
        if is_prose(sentence):
            run.append(sentence)
        else:
            yield run
            run = []
    yield run


def _pairs(articles: Iterable[Article], config: NextSentences.Config, counts: Counter[str], say: Say) -> Iterator[Pair]:
    for article in articles:
        counts["articles"] += 1
        if counts["articles"] % _ARTICLES_BETWEEN_LINES == 0:
            say(f"{counts['articles']} articles read")
        sentence = 0
        for run in (run for paragraph in article.paragraphs for run in runs(paragraph)):
            yield from _following(run, sentence, article.title, config)
            sentence += len(run)


def _following(run: Sequence[str], before: int, title: str, config: NextSentences.Config) -> Iterator[Pair]:
    for place in range(len(run) - 1):
        reach = min(config.within, len(run) - 1 - place)
        step = int(generator(config.seed, title, before + place).integers(reach)) if reach > 1 else 0
        yield Pair(run[place], run[place + 1 + step])


def _distinct(pairs: Iterable[Pair], counts: Counter[str]) -> Iterator[Pair]:
    seen: set[bytes] = set()
    for pair in pairs:
        digest = hashlib.blake2b(pair.first.encode(), digest_size=12).digest()
        if digest in seen:
            counts["duplicates"] += 1
            continue
        seen.add(digest)
        yield pair


PLUGIN = NextSentences
