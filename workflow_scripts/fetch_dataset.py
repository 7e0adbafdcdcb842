"""Fetch one data set into results/data/sets, verified.

The environment may name a mirror folder (SEMBENCH_MIRROR); which kinds of source may be used is the scale's to say.
"""

from __future__ import annotations

import argparse

from sembench.core.errors import explained
from sembench.core.progress import say
from sembench.plan import Plan
from sembench.plan.layout import DATA
from sembench.sources import Site, fetch_dataset


@explained
def main() -> None:
    """Read the command line and fetch."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset", help="data set of registry/datasets.yaml")
    given = parser.parse_args()
    plan = Plan.of_job()
    site = Site(root=plan.root, data=plan.root / DATA, mirror=plan.mirror)
    fetch_dataset(plan.dataset(given.dataset), plan.entry(given.dataset), site, plan.scale.sources, say)


if __name__ == "__main__":
    main()
