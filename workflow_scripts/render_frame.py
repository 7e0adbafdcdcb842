"""Render one table that shows a data set."""

import json
from typing import TYPE_CHECKING

from sembench.core.errors import explained
from sembench.registry import Plan
from sembench.reporting.frames import write_frame

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


@explained
def main() -> None:
    """Read what the rule hands over, and write."""
    write_frame(Plan.from_config(json.loads(snakemake.params.plan)), snakemake.params.table)


main()
