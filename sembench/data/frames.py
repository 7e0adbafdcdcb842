"""Examples: the frames that makers write, and that training, fitting and scoring read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from sembench.core.errors import SembenchError
from sembench.core.frames import read_frame
from sembench.core.lazy import np

if TYPE_CHECKING:
    from pandas import DataFrame

T = TypeVar("T")


def read_examples(path: Path, columns: Iterable[str]) -> DataFrame:
    """Read the examples that a maker wrote, a row an example, in the maker's order.

    Args:
        path: the parquet file that the maker calls its ``examples``.
        columns: those that the reader needs; the frame may have more.

    Raises:
        SembenchError: the file cannot be read, lacks a column, has no row, or a cell of these columns is empty.
    """
    wanted = list(columns)
    frame = read_frame(path, wanted)
    if frame.empty:
        raise SembenchError(f"{path} has no row; delete it and run again")
    for column in wanted:
        if (absent := frame[column].isna()).any():
            raise SembenchError(f"{path}, row {int(absent.argmax()) + 1}: '{column}' is empty; delete it and run again")
    return frame


def sample(items: Sequence[T], k: int | None, seed: int) -> list[T]:
    """Draw ``k`` items uniformly without replacement and return them in their old order.

    The indices come from numpy's ``Generator`` over ``PCG64``, so that a seed means the same sample on any platform.

    Args:
        items: ``n`` of them.
        k: size of the sample, 1 to ``n``; ``None`` takes everything and draws nothing.
        seed: seed of the generator, not negative.

    Returns:
        A list of length ``k`` (or ``n``).

    Raises:
        SembenchError: ``k`` is larger than ``n`` or smaller than 1.
    """
    if k is None:
        return list(items)
    if k < 1:
        raise SembenchError(f"a sample of {k} rows was asked for; ask for at least 1, or leave the number out")
    if k > len(items):
        raise SembenchError(
            f"a sample of {k} rows was asked for, but the data set has only {len(items)}; "
            "ask for fewer or take a larger data set"
        )
    generator = np.random.Generator(np.random.PCG64(seed))
    chosen = generator.choice(len(items), size=k, replace=False)
    return [items[index] for index in np.sort(chosen).tolist()]
