"""Random numbers that belong to one item: the same whatever else is drawn, in which order, and by how many jobs."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from sembench.core.lazy import np

if TYPE_CHECKING:
    from numpy.random import Generator


def generator(seed: int, *item: int | str) -> Generator:
    """Return numpy's ``Generator`` over ``PCG64`` for one item.

    Args:
        seed: of all items.
        item: what names the item among all others.
    """
    # Not numpy's own way to seed from several numbers: for it, 5 and (5, 0) are the same.
    digest = hashlib.blake2b(repr((seed, *item)).encode(), digest_size=16).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "big")))
