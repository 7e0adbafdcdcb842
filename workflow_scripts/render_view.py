"""Render one table or figure."""

from __future__ import annotations

import argparse
from pathlib import Path

from sembench.core.errors import explained
from sembench.core.files import stamped
from sembench.plan import Plan
from sembench.reporting.render import write_view


@explained
def main() -> None:
    """Read the command line and render."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("view", help="table or figure of the registry")
    parser.add_argument("--stamp", type=Path, help="file to write last")
    given = parser.parse_args()
    write_view(Plan.of_job(), given.view)
    if given.stamp:
        stamped(given.stamp)


if __name__ == "__main__":
    main()
