"""Render one table as csv, Markdown, LaTeX and HTML."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from sembench.core.errors import explained
from sembench.registry import Plan
from sembench.reporting.tables import write_table
from sembench.results.records import read_scores

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


@explained
def main() -> None:
    """Read what the rule hands over, and write."""
    plan = Plan.from_config(json.loads(snakemake.params.plan))
    write_table(plan, snakemake.params.table, read_scores([Path(path) for path in snakemake.input.scores]))


main()
