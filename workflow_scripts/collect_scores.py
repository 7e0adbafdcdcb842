"""Join all score records of the scale into one file."""

from __future__ import annotations

import argparse
from pathlib import Path

from sembench.core.errors import explained
from sembench.core.files import stamped
from sembench.core.frames import write_parquet
from sembench.plan import Needs, Plan
from sembench.reporting.render import scores_of


@explained
def main() -> None:
    """Read all that the plan shows (with `partial` what is there of it), and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stamp", type=Path, help="file to write last")
    given = parser.parse_args()
    plan = Plan.of_job()
    write_parquet(scores_of(plan, Needs(scores=plan.batch("all"))), plan.root / plan.layout.collected)
    if given.stamp:
        stamped(given.stamp)


if __name__ == "__main__":
    main()
