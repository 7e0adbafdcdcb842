"""A place to fetch to, with data sets planned in the plainest way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sembench.core.artifact import Artifact
from sembench.registry.models import Dataset, SourceKind
from sembench.sources import FileState, Site, fetch_dataset, verify_dataset


def planned(name: str, dataset: Dataset) -> Artifact:
    """Return a data set's artefact, in a folder without a key."""
    files = tuple(file.name for file in dataset.files)
    params = dataset.model_dump(mode="json", include={"files"})
    return Artifact("dataset", name, params, (), Path("results/data/sets") / name, files)


@dataclass(frozen=True)
class Place:
    """A project's folder with its site."""

    root: Path
    mirror: Path | None = None

    @property
    def site(self) -> Site:
        return Site(self.root, self.root / "results/data", self.mirror)

    def folder(self, name: str) -> Path:
        return self.root / "results/data/sets" / name

    def fetch(
        self,
        name: str,
        dataset: Dataset,
        kinds: Sequence[SourceKind],
        say: Callable[[str], None] = lambda _: None,
    ) -> dict[str, Any]:
        return fetch_dataset(planned(name, dataset), dataset, self.site, kinds, say)

    def verify(self, name: str, dataset: Dataset) -> list[FileState]:
        return verify_dataset(planned(name, dataset), dataset, self.site)
