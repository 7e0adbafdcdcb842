"""Make one data set of registry/made.yaml, or what one of several jobs that share the work finds of it."""

from __future__ import annotations

import argparse

from sembench.core.errors import explained
from sembench.core.progress import say
from sembench.data.build import make_dataset, make_shard
from sembench.plan import Plan


@explained
def main() -> None:
    """Read the command line and make it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", help="data set of registry/made.yaml")
    parser.add_argument("--shard", help="such as 3-of-64, of as many as the scale has")
    given = parser.parse_args()
    plan = Plan.of_job()
    if given.shard:
        make_shard(plan, given.name, plan.shard(given.name, given.shard), say)
    else:
        make_dataset(plan, given.name, say)


if __name__ == "__main__":
    main()
