"""Write the HTML page of the scale."""

from __future__ import annotations

import argparse
from pathlib import Path

from sembench.core.errors import explained
from sembench.core.files import stamped
from sembench.plan import Plan
from sembench.reporting.page import write_page


@explained
def main() -> None:
    """Read the command line and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stamp", type=Path, help="file to write last")
    given = parser.parse_args()
    write_page(Plan.of_job())
    if given.stamp:
        stamped(given.stamp)


if __name__ == "__main__":
    main()
