"""English sentences out of a MediaWiki XML dump, such as Wikipedia's ``pages-articles``.

Stands in for SimCSE's sample of a million Wikipedia sentences, whose selection the paper does not describe.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from sembench.core.errors import SembenchError
from sembench.core.frames import write_rows
from sembench.core.schema import Strict
from sembench.data.maker import Maker, Say
from sembench.data.wikitext.clean import clean
from sembench.data.wikitext.dump import dump_files, iter_pages
from sembench.data.wikitext.sentences import iter_sentences

_PAGES_BETWEEN_LINES = 50_000


class Wikipedia(Maker):
    """A row for each distinct sentence, in the order of the dump.

    Exact duplicates are dropped and the first one stays, since templates repeat boilerplate. Memory does not grow with
    the dump but for a 12-byte digest of each distinct sentence.
    """

    class Config(Strict):
        """No parameters."""

    roles = ("dump",)
    files = ("sentences.parquet",)
    examples = "sentences.parquet"
    columns = ("sentence",)
    version = 2
    # A complete dump is a day's work of one core.
    local = False

    @classmethod
    def make(cls, config: Config, inputs: Mapping[str, Path], target: Path, root: Path, say: Say) -> dict[str, Any]:
        """Read all files of the role ``dump``, in the order of the numbers in their names, and write the sentences.

        Returns:
            ``pages`` (articles read), ``rows``, ``words`` (by white space) and ``duplicates`` (dropped).

        Raises:
            SembenchError: the role has no file, a file is not a dump, or no sentence was found.
        """
        paths = dump_files(inputs["dump"])
        facts = {"pages": 0, "rows": 0, "words": 0, "duplicates": 0}
        rows = ((sentence,) for sentence in _distinct(_found(paths, facts, say), facts))
        if not write_rows(rows, target / cls.examples, cls.columns):
            raise SembenchError(f"{paths[0]} has no sentence that is usable for training; give another dump")
        say(f"{facts['rows']} sentences of {facts['pages']} articles, {facts['duplicates']} duplicates dropped")
        return facts


def _found(paths: Iterable[Path], facts: dict[str, int], say: Say) -> Iterator[str]:
    for path in paths:
        for page in iter_pages(path):
            facts["pages"] += 1
            if facts["pages"] % _PAGES_BETWEEN_LINES == 0:
                say(f"{facts['pages']} articles read, {facts['rows']} sentences")
            yield from iter_sentences(clean(page.text))


def _distinct(sentences: Iterable[str], facts: dict[str, int]) -> Iterator[str]:
    # 96 bits of each: no collision is to be expected even for all of Wikipedia.
    seen: set[bytes] = set()
    for sentence in sentences:
        digest = hashlib.blake2b(sentence.encode(), digest_size=12).digest()
        if digest in seen:
            facts["duplicates"] += 1
            continue
        seen.add(digest)
        facts["rows"] += 1
        facts["words"] += len(sentence.split())
        yield sentence


PLUGIN = Wikipedia
