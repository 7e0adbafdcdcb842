"""Write the HTML page of a scale."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from sembench.core.errors import explained
from sembench.registry import Plan
from sembench.reporting.page import write_page
from sembench.results.records import read_scores

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


@explained
def main() -> None:
    """Read what the rule hands over, and write."""
    plan = Plan.from_config(json.loads(snakemake.params.plan))
    write_page(plan, read_scores([Path(snakemake.input.scores)]))


main()
