"""Make one data set of registry/made.yaml."""

from __future__ import annotations

import argparse

from sembench.core.errors import explained
from sembench.core.progress import say
from sembench.data.build import make_dataset
from sembench.plan import Plan


@explained
def main() -> None:
    """Read the command line and make the data set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", help="data set of registry/made.yaml")
    given = parser.parse_args()
    make_dataset(Plan.of_job(), given.name, say)


if __name__ == "__main__":
    main()
