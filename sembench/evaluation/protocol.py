"""What a protocol of evaluation is: it reads its data, names the sentences it needs, and scores their vectors."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from sembench.core.errors import SembenchError
from sembench.core.schema import Strict

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sembench.registry.models import Dataset
    from sembench.results.resampling import Statistic

    Vectors = NDArray[np.float32]
    VectorsOf = Callable[[Sequence[str]], Vectors]  # sentences -> (sentences, width)
else:
    # Names to import, whose meaning costs numpy.
    Vectors = VectorsOf = Any

C = TypeVar("C", bound=Strict)
Prediction = dict[str, Any]
_REMEDY = "change the key 'data' of the task in registry/suites.yaml"


@dataclass(frozen=True)
class Source:
    """Where a protocol finds its data.

    Attributes:
        folder: the fetched files of a data set, or the folder of one made here.
        dataset: the registry's entry of a fetched data set; None for one made here.
        examples: the file in ``folder`` that holds the examples of a data set made here.
        root: the project's folder, for what ``Protocol.reads`` names.
    """

    folder: Path
    dataset: Dataset | None = None
    examples: str = ""
    root: Path = Path()

    def fetched(self) -> Dataset:
        """Return the registry's entry.

        Raises:
            SembenchError: the data set is made here.
        """
        if self.dataset is None:
            raise SembenchError(f"{self.folder}: the protocol reads a fetched data set, not one made here; {_REMEDY}")
        return self.dataset

    def made(self) -> Path:
        """Return the file of a data set made here.

        Raises:
            SembenchError: the data set is a fetched one.
        """
        if not self.examples:
            raise SembenchError(f"{self.folder}: the protocol reads a data set made here, not a fetched one; {_REMEDY}")
        return self.folder / self.examples


@dataclass(frozen=True)
class Score:
    """One number of a protocol.

    Attributes:
        split: part of the data, such as test.
        metric: key of registry/metrics.yaml.
        value: raw: 0.7685, not 76.85.
        n: items that it rests on; sentences for uniformity.
        sample_hash: ``sample_hash`` of these items.
        subset: empty over all subsets.
        aggregation: how subsets are summed up: all, mean, wmean; subset for a single one.
    """

    split: str
    metric: str
    value: float
    n: int
    sample_hash: str
    subset: str = ""
    aggregation: str = "all"


class Protocol(ABC, Generic[C]):
    """Base of the plug-ins in ``sembench.evaluation.protocols``.

    A protocol knows neither the suite nor the task that it is used for: the registry names these.
    """

    Config: ClassVar[type[Strict]]
    version: ClassVar[int] = 1
    metrics: ClassVar[tuple[str, ...]]
    aggregations: ClassVar[tuple[str, ...]] = ()  # of its scores, see ``Score``; none: it does not tell
    readers: ClassVar[tuple[str, ...]] = ()  # formats of the fetched sets that it reads; none: sets made here

    def __init__(self, config: C, data: Source) -> None:
        """Read the data."""
        self.config = config
        self.data = data

    @classmethod
    def reads(cls, config: C) -> tuple[str, ...]:  # noqa: ARG003
        """Return the files of the project, beside the data set, whose content decides the scores."""
        return ()

    @classmethod
    def statistics(cls) -> Mapping[str, Statistic]:
        """Return how metrics are computed anew from predictions with the columns ``split`` and ``gold``.

        Only such a metric can be compared between systems; its items must not depend on one another.
        """
        return {}

    @classmethod
    @abstractmethod
    def splits(cls, config: C) -> tuple[str, ...]:
        """Return the splits that its scores have."""

    @property
    @abstractmethod
    def sentences(self) -> Iterable[str]:
        """All sentences, duplicates kept."""

    @abstractmethod
    def score(self, vectors: VectorsOf) -> tuple[list[Score], list[Prediction]]:
        """Score frozen vectors.

        Args:
            vectors: gives the vectors of sentences, (sentences, width) float32.

        Returns:
            Scores, and a prediction for each scored item where there is one to tell.

        Raises:
            SembenchError: a score is undefined.
        """


def sample_hash(rows: Iterable[Iterable[str]]) -> str:
    """Return 12 hex digits over evaluated items, each a row of texts and gold labels.

    Two scores are comparable only if their hashes are equal.
    """
    digest = hashlib.sha256()
    for row in rows:
        digest.update(("\t".join(row) + "\n").encode())
    return digest.hexdigest()[:12]
