"""Word vectors in GloVe's text format."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sembench.core.errors import SembenchError, shortened
from sembench.core.lazy import np
from sembench.encoders.convert.base import StaticConverter

if TYPE_CHECKING:
    from numpy.typing import NDArray


class GloveText(StaticConverter):
    """A word and its numbers a line; a few "words" contain spaces, so numbers are counted from the right."""

    @classmethod
    def convert(cls, config: Any, source: Path | None, target: Path) -> dict[str, Any]:
        """Read ``glove.*.txt``.

        Raises:
            SembenchError: the file has no vectors, or a line is not UTF-8 or has more or fewer numbers than the first.
        """
        from sembench.encoders.static import save_vectors

        path = _text_file(source or Path())
        with path.open("rb") as stream:
            width = stream.readline().count(b" ")
        if not width:
            raise SembenchError(f"{path}, line 1: it holds no vector; fetch it again")
        words: list[str] = []
        vectors = np.fromiter(_rows(path, width, words), dtype=np.dtype((np.float32, width)))
        save_vectors(target, words, np.asarray(vectors, dtype=np.float32))
        return {"lowercase": config.lowercase}


def _text_file(source: Path) -> Path:
    found = sorted(source.glob("glove.*.txt"))
    if len(found) != 1:
        raise SembenchError(f"{source} holds {len(found)} files named glove.*.txt instead of one; fetch it again")
    return found[0]


def _rows(path: Path, width: int, words: list[str]) -> Iterator[NDArray[np.float32]]:
    with path.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            try:
                word, *numbers = line.decode().rstrip("\n").rsplit(" ", width)
                vector = np.array(numbers, dtype=np.float32)
            except ValueError as error:
                problem = shortened(error)
                raise SembenchError(f"{path}, line {number} is damaged ({problem}); fetch it again") from None
            if len(numbers) != width:
                raise SembenchError(
                    f"{path}, line {number}: {len(numbers)} numbers where {width} are expected; fetch it again"
                )
            words.append(word)
            yield vector


PLUGIN = GloveText
