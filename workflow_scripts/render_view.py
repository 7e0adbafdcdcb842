"""Render one table or figure."""

from pathlib import Path
from typing import TYPE_CHECKING

from sembench.core.errors import explained
from sembench.core.files import stamped
from sembench.plan import Plan
from sembench.reporting.render import write_view

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


@explained
def main() -> None:
    """Read what the rule hands over, and write."""
    write_view(Plan.of_job(), snakemake.params.key)
    stamped(Path(snakemake.output.stamp))


main()
