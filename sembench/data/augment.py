"""Discrete augmentations: a sentence beside a changed copy of itself (SimCSE, Table 1).

They work on whole words, separated by white space (SimCSE, issue 231). What becomes of a row depends on the seed, on
its number and on the sentence alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from sembench.data.chance import generator
from sembench.data.frames import read_examples
from sembench.data.maker import Say
from sembench.data.pairs import Pair, PairMaker, write_pairs

if TYPE_CHECKING:
    from numpy.random import Generator


# The words of a sentence and random numbers of its own -> the words of the changed copy.
Change = Callable[[list[str], "Generator"], list[str]]


class Augmenter(PairMaker):
    """Base of the augmentations: a row for each sentence of the role ``sentences``, in its order.

    A sentence in which nothing can be changed is its own positive, as in SimCSE itself.
    """

    roles: ClassVar[tuple[str, ...]] = ("sentences",)

    @classmethod
    def change(cls, config: Any, inputs: Mapping[str, Path]) -> Change:
        """Return what makes the words of a sentence, one or more, those of its changed copy, one or more.

        Raises:
            SembenchError: an input is not as it should be.
        """
        raise NotImplementedError

    @classmethod
    def copies(
        cls,
        config: Any,
        inputs: Mapping[str, Path],
        sentences: Iterator[list[str]],
        say: Say,
    ) -> Iterator[list[str]]:
        """Yield the words of each sentence's changed copy; one of ``change`` and this is a subclass's to say.

        Args:
            config: the kind's parameters.
            inputs: as of ``make``.
            sentences: the words of each sentence; those without any stay so.
            say: takes a line for the log.
        """
        change = cls.change(config, inputs)
        for row, words in enumerate(sentences):
            yield change(words, generator(config.seed, row)) if words else words

    @classmethod
    def make(cls, config: Any, inputs: Mapping[str, Path], target: Path, root: Path, say: Say) -> dict[str, Any]:
        """Read the sentences and write each with its changed copy.

        Returns:
            What ``write_pairs`` says of the rows, and how many are ``unchanged``.

        Raises:
            SembenchError: an input is not as it should be.
        """
        source = inputs["sentences"] / "sentences.parquet"
        sentences = read_examples(source, ["sentence"])["sentence"]
        counts = Counter(unchanged=0)

        def pairs() -> Iterator[Pair]:
            copies = cls.copies(config, inputs, (sentence.split() for sentence in sentences), say)
            for sentence, changed in zip(sentences, copies, strict=True):
                counts["unchanged"] += changed == sentence.split()
                yield Pair(sentence, " ".join(changed))

        facts = {**write_pairs(pairs(), target / cls.examples, f"{source} holds no sentence"), **counts}
        say(f"{facts['rows']} sentences, {facts['unchanged']} of them unchanged, overlap {facts['overlap']}")
        return facts


def share(words: int, percent: int) -> int:
    """Return ``percent`` % of so many words, the nearest whole number (half of one counts), at most all but one."""
    return min((words * percent + 50) // 100, words - 1)
