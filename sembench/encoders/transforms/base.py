"""What a transform of sentence vectors is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from sembench.core.schema import Strict

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]
    State = dict[str, NDArray[Any]]
else:
    # Names to import, whose meaning costs numpy.
    Vectors = State = Any

C = TypeVar("C", bound=Strict)


class Transform(ABC, Generic[C]):
    """Base of the plug-ins: fitted once on vectors under one read-out, then applied to others under the same one."""

    Config: ClassVar[type[Strict]]
    version: ClassVar[int] = 1

    @classmethod
    @abstractmethod
    def fit(cls, config: C, vectors: Vectors, seed: int) -> State:
        """Return all that applying needs.

        Args:
            config: parameters.
            vectors: (n, width) float32.
            seed: of what is random in the fit.

        Raises:
            SembenchError: the transform is undefined for these vectors.
        """

    @classmethod
    @abstractmethod
    def apply(cls, config: C, vectors: Vectors, state: Mapping[str, NDArray[Any]]) -> Vectors:
        """Return transformed vectors, float32 of shape (n, width) or less wide, from vectors (n, width)."""
