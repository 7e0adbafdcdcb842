"""Makers whose input is so large that several jobs read it: each finds the rows of its shard, and one joins them.

A shard is a range of bytes of all input files laid end to end; what begins within it is its own. So the joined rows are
those that one job alone would find, in the same order, whatever the number of shards, which is part of no key.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sembench.data.maker import Maker, Say


class Shard(NamedTuple):
    """One of ``of`` parts of some files, ``number`` counted from 1."""

    number: int = 1
    of: int = 1

    def __str__(self) -> str:
        return f"shard {self.number} of {self.of}"

    def ranges(
        self, paths: Sequence[Path], can_be_cut: Callable[[Path], bool], say: Say
    ) -> Iterator[tuple[Path, int, int]]:
        """Yield which bytes of which files are the shard's: file, first byte, and the one behind the last.

        A file that cannot be cut belongs whole to the shard in which it begins.
        """
        sizes = [path.stat().st_size for path in paths]
        total, offset = sum(sizes), 0
        first, behind = (total * number // self.of for number in (self.number - 1, self.number))
        for path, size in zip(paths, sizes, strict=True):
            if self.of > 1 and can_be_cut(path):
                start, end = (min(max(edge - offset, 0), size) for edge in (first, behind))
                if start < end:
                    yield path, start, end
            # An empty file at the end begins behind all shards.
            elif first <= offset < behind or (offset == total and self.number == self.of):
                if self.of > 1:
                    say(f"{path.name} cannot be cut, so {self} reads all of it")
                yield path, 0, size
            offset += size


class ShardedMaker(Maker):
    """Base of these makers; ``columns`` are text."""

    sharded = True

    @classmethod
    def rows(
        cls, config: Any, inputs: Mapping[str, Path], shard: Shard, counts: Counter[str], say: Say
    ) -> Iterator[Sequence[str]]:
        """Yield the rows of a shard in the order of the input, those that repeat included.

        Args:
            config: the kind's parameters.
            inputs: role to the folder of the data set that plays it.
            shard: which part of them.
            counts: what was counted up to the row; those of all shards are added.
            say: takes a line for the log.

        Raises:
            SembenchError: an input is not as it should be.
        """
        raise NotImplementedError

    @classmethod
    def join(
        cls,
        config: Any,
        inputs: Mapping[str, Path],
        rows: Iterable[Sequence[str]],
        counts: Counter[str],
        target: Path,
        say: Say,
    ) -> dict[str, Any]:
        """Write ``files`` from the rows of all shards, in their order, and return facts as ``make``.

        Raises:
            SembenchError: there is no row.
        """
        raise NotImplementedError

    @classmethod
    def make(cls, config: Any, inputs: Mapping[str, Path], target: Path, root: Path, say: Say) -> dict[str, Any]:
        """Join the rows of all of the input, without a file between; see there."""
        counts: Counter[str] = Counter()
        return cls.join(config, inputs, cls.rows(config, inputs, Shard(), counts, say), counts, target, say)
