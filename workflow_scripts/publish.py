"""Copy the files of a data set made here to where people find them."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from sembench.core.artifact import opened
from sembench.core.errors import explained
from sembench.core.files import atomic_path, stamped
from sembench.plan import Plan
from sembench.plan.jobs import Jobs


@explained
def main() -> None:
    """Read the command line and copy."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", help="data set of registry/made.yaml that is published")
    parser.add_argument("--stamp", type=Path, help="file to write last")
    given = parser.parse_args()
    plan = Plan.of_job()
    opened(plan.root, plan.made(given.name))
    for source, target in Jobs(plan).published[given.name].files.items():
        with atomic_path(plan.root / target) as temporary:
            shutil.copyfile(plan.root / source, temporary)
    if given.stamp:
        stamped(given.stamp)


if __name__ == "__main__":
    main()
