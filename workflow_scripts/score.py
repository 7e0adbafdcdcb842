"""Score one encoder on all that a batch asks for and that is not there yet."""

from __future__ import annotations

import argparse
from pathlib import Path

from sembench.core.errors import explained
from sembench.core.files import stamped
from sembench.evaluation.job import score_run
from sembench.plan import Plan


@explained
def main() -> None:
    """Read the command line and score."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", help="id of the run, such as minilm.s0.0123abcd")
    parser.add_argument("batch", nargs="?", default="all", help="views joined by +, a paper, or all")
    parser.add_argument("--done", type=Path, help="file to write when all scores are there")
    given = parser.parse_args()
    plan = Plan.of_job()
    keys = [key for key in plan.batch(given.batch) if key.run == given.run]
    score_run(plan, plan.run(given.run), keys)
    if given.done:
        stamped(given.done)


if __name__ == "__main__":
    main()
