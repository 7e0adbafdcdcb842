"""A sentence with the next one, or with one of the next few, as its positive: SimCSE, Table 2.

The published sample of a million sentences is not contiguous, so running text is needed: a MediaWiki dump, or plain
text with headings such as WikiText. Two sentences count as neighbours only within a paragraph and if no sentence
between them was unusable for training.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from sembench.core.schema import Strict
from sembench.data.chance import generator
from sembench.data.maker import Say
from sembench.data.pairs import Pair, PairMaker, write_pairs
from sembench.data.readers.running import Article, read_articles
from sembench.data.shards import Shard, ShardedMaker
from sembench.data.wikitext.clean import clean
from sembench.data.wikitext.dump import can_be_cut, dump_files, iter_pages
from sembench.data.wikitext.sentences import is_prose, split_sentences

_ARTICLES_BETWEEN_LINES = 50_000
_PLAIN = ".txt"


class NextSentences(PairMaker, ShardedMaker):
    """A row for each sentence that is followed by another, in the order of the text.

    Of rows with the same first sentence the first one stays, since templates repeat boilerplate. Which of the next
    sentences is taken depends on the seed, the title of the article and the place in it alone.
    """

    class Config(Strict):
        """Parameters."""

        within: int = Field(1, gt=0, description="1: the next sentence; 3: one of the next three, as far as there are")
        seed: int = Field(0, ge=0)

    roles = ("text",)

    @classmethod
    def rows(
        cls, config: Config, inputs: Mapping[str, Path], shard: Shard, counts: Counter[str], say: Say
    ) -> Iterator[Pair]:
        """Yield the pairs of a shard of the files of the role ``text``: ``.txt`` is plain text, others are dumps.

        Raises:
            SembenchError: there is no file, or a file is not as it should be.
        """
        for path, start, end in shard.ranges(dump_files(inputs["text"]), _can_be_cut, say):
            for article in _articles(path, start, end):
                counts["articles"] += 1
                if counts["articles"] % _ARTICLES_BETWEEN_LINES == 0:
                    say(f"{counts['articles']} articles read, the last one in {path.name}")
                yield from _pairs(article, config)

    @classmethod
    def join(
        cls,
        config: Config,
        inputs: Mapping[str, Path],
        rows: Iterable[Sequence[str]],
        counts: Counter[str],
        target: Path,
        say: Say,
    ) -> dict[str, Any]:
        """Write the pairs whose first sentence does not repeat that of an earlier one.

        Returns:
            What ``write_pairs`` says of the rows; ``articles``, and ``duplicates`` that were dropped.

        Raises:
            SembenchError: no two sentences follow each other.
        """
        nothing = (
            f"{dump_files(inputs['text'])[0]} has no two usable sentences that follow each other; give another text"
        )
        counts["duplicates"] = 0
        pairs = _distinct((Pair(*row) for row in rows), counts)
        found = write_pairs(pairs, target / cls.examples, nothing, distinct=True)
        facts = {**found, **{name: counts[name] for name in ("articles", "duplicates")}}
        say(", ".join(f"{name} {value}" for name, value in facts.items()))
        return facts


def _can_be_cut(path: Path) -> bool:
    return path.suffix != _PLAIN and can_be_cut(path)


def _articles(path: Path, start: int, end: int) -> Iterator[Article]:
    if path.suffix == _PLAIN:
        return read_articles(path)
    return (Article(page.title, clean(page.text).split("\n")) for page in iter_pages(path, start, end))


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


def _pairs(article: Article, config: NextSentences.Config) -> Iterator[Pair]:
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
