"""The one-sentence-per-line corpus of SimCSE (``wiki1m_for_simcse.txt``) and seeded samples of any corpus."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

from sembench.core.errors import SembenchError

T = TypeVar("T")


def iter_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 text file without surrounding white space, skipping blank ones.

    Nothing else is filtered: the SimCSE file also holds page titles and headings, and the paper trains on them.

    Args:
        path: text file, one sentence per line; a byte order mark and CRLF line ends are accepted.

    Yields:
        One stripped line after the other, in constant memory.

    Raises:
        SembenchError: the file is missing, or a line is not UTF-8.
    """
    if not path.is_file():
        raise SembenchError(f"{path} does not exist; fetch the corpus first or correct the path")
    with path.open("rb") as stream:
        # Bytes are split at line feeds alone: text mode would also split at a lone carriage return.
        for number, raw in enumerate(stream, start=1):
            line = _decoded(raw, number, path)
            if line:
                yield line


def _decoded(raw: bytes, number: int, path: Path) -> str:
    # A byte order mark can only stand before the first line; anywhere else it is a character of the text.
    codec = "utf-8-sig" if number == 1 else "utf-8"
    try:
        return raw.decode(codec).strip()
    except UnicodeDecodeError as error:
        problem = f"byte {error.object[error.start]:#04x}, {error.reason}"
        raise SembenchError(
            f"{path}, line {number} is not UTF-8 ({problem}); convert the file to UTF-8 or fetch it again"
        ) from None


def sample(items: Sequence[T], k: int | None, seed: int) -> list[T]:
    """Draw ``k`` items uniformly without replacement and return them in corpus order.

    The indices come from numpy's ``Generator`` over ``PCG64``, so that a seed means the same sample on any platform.

    Args:
        items: the corpus, of length ``n``.
        k: size of the sample, 1 to ``n``; ``None`` takes everything and draws nothing.
        seed: seed of the generator, not negative.

    Returns:
        A list of length ``k`` (or ``n``).

    Raises:
        SembenchError: ``k`` is larger than the corpus or smaller than 1.
    """
    if k is None:
        return list(items)
    if k < 1:
        raise SembenchError(f"a sample of {k} sentences was asked for; ask for at least 1, or leave the number out")
    if k > len(items):
        raise SembenchError(
            f"a sample of {k} sentences was asked for, but the corpus has only {len(items)}; "
            "ask for fewer or take a larger corpus"
        )
    generator = np.random.Generator(np.random.PCG64(seed))
    chosen = generator.choice(len(items), size=k, replace=False)
    return [items[index] for index in np.sort(chosen).tolist()]
