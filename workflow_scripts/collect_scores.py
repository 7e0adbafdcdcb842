"""Join all score records of the scale into one file."""

from __future__ import annotations

import argparse
from pathlib import Path

from sembench.core.errors import explained
from sembench.core.files import stamped
from sembench.core.frames import write_parquet
from sembench.plan import Plan
from sembench.results.store import read_scores


@explained
def main() -> None:
    """Read all that the plan shows, and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stamp", type=Path, help="file to write last")
    given = parser.parse_args()
    plan = Plan.of_job()
    scores = read_scores(plan.root, [plan.score(key) for key in plan.batch("all")])
    write_parquet(scores, plan.root / plan.layout.collected)
    if given.stamp:
        stamped(given.stamp)


if __name__ == "__main__":
    main()
