"""Fetch one data set into results/data/sets, verified.

The environment may name a mirror folder (SEMBENCH_MIRROR); which kinds of source may be used is the scale's to say.
"""

from __future__ import annotations

import argparse

from sembench.core.errors import explained
from sembench.core.progress import say
from sembench.plan import Plan
from sembench.sources import fetch_planned


@explained
def main() -> None:
    """Read the command line and fetch."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset", help="data set of registry/datasets.yaml")
    given = parser.parse_args()
    fetch_planned(Plan.of_job(), given.dataset, say)


if __name__ == "__main__":
    main()
