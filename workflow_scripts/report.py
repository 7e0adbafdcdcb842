"""Write the HTML page of a scale."""

from pathlib import Path
from typing import TYPE_CHECKING

from sembench.core.errors import explained
from sembench.core.files import stamped
from sembench.plan import Plan
from sembench.reporting.page import write_page

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


@explained
def main() -> None:
    """Read what the rule hands over, and write."""
    write_page(Plan.of_job())
    stamped(Path(snakemake.output.stamp))


main()
