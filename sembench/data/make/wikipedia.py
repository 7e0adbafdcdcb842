"""English sentences out of a MediaWiki XML dump, such as Wikipedia's ``pages-articles``.

Stands in for SimCSE's sample of a million Wikipedia sentences, whose selection the paper does not describe.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sembench.core.errors import SembenchError
from sembench.core.frames import write_rows
from sembench.core.schema import Strict
from sembench.data.maker import Say
from sembench.data.shards import Shard, ShardedMaker
from sembench.data.wikitext.clean import clean
from sembench.data.wikitext.dump import can_be_cut, dump_files, iter_pages
from sembench.data.wikitext.sentences import iter_sentences

_PAGES_BETWEEN_LINES = 50_000


class Wikipedia(ShardedMaker):
    """A row for each distinct sentence, in the order of the dump.

    Exact duplicates are dropped and the first one stays, since templates repeat boilerplate. Memory does not grow with
    the dump but for a digest of each distinct sentence, 100 bytes in all.
    """

    class Config(Strict):
        """No parameters."""

    roles = ("dump",)
    files = ("sentences.parquet",)
    examples = "sentences.parquet"
    columns = ("sentence",)
    version = 2

    @classmethod
    def rows(
        cls, config: Config, inputs: Mapping[str, Path], shard: Shard, counts: Counter[str], say: Say
    ) -> Iterator[tuple[str]]:
        """Yield the sentences of a shard of the files of the role ``dump``, in the order of the numbers in their names.

        Raises:
            SembenchError: the role has no file, or a file is not a dump.
        """
        for path, start, end in shard.ranges(dump_files(inputs["dump"]), can_be_cut, say):
            for page in iter_pages(path, start, end):
                counts["pages"] += 1
                if counts["pages"] % _PAGES_BETWEEN_LINES == 0:
                    say(f"{counts['pages']} articles read, the last one in {path.name}")
                for sentence in iter_sentences(clean(page.text)):
                    yield (sentence,)

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
        """Write the distinct sentences.

        Returns:
            ``pages`` (articles read), ``rows``, ``words`` (by white space) and ``duplicates`` (dropped).

        Raises:
            SembenchError: there is no sentence.
        """
        found: Counter[str] = Counter()
        distinct = ((sentence,) for sentence in _distinct((sentence for (sentence,) in rows), found))
        if not write_rows(distinct, target / cls.examples, cls.columns):
            path = dump_files(inputs["dump"])[0]
            raise SembenchError(f"{path} has no sentence that is usable for training; give another dump")
        facts = {name: (counts + found)[name] for name in ("pages", "rows", "words", "duplicates")}
        say(f"{facts['rows']} sentences of {facts['pages']} articles, {facts['duplicates']} duplicates dropped")
        return facts


def _distinct(sentences: Iterable[str], found: Counter[str]) -> Iterator[str]:
    # 96 bits of each: no collision is to be expected even for all of Wikipedia.
    seen: set[bytes] = set()
    for sentence in sentences:
        digest = hashlib.blake2b(sentence.encode(), digest_size=12).digest()
        if digest in seen:
            found["duplicates"] += 1
            continue
        seen.add(digest)
        found["rows"] += 1
        found["words"] += len(sentence.split())
        yield sentence


PLUGIN = Wikipedia
