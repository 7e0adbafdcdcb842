"""Train one run. `sembench show VARIANT` prints its id, and where each value of its recipe is from."""

from __future__ import annotations

import argparse

from sembench.core.errors import explained
from sembench.plan import Plan
from sembench.training.job import train_run


@explained
def main() -> None:
    """Read the command line and train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", help="id of the run, such as unsup_simcse_distilbert.s42.0123abcd")
    given = parser.parse_args()
    plan = Plan.of_job()
    train_run(plan, plan.run(given.run))


if __name__ == "__main__":
    main()
