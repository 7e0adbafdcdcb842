"""Join score records into one file."""

from pathlib import Path
from typing import TYPE_CHECKING

from sembench.core.errors import explained
from sembench.core.files import stamped
from sembench.core.frames import write_parquet
from sembench.plan import Plan
from sembench.results.store import read_scores

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


@explained
def main() -> None:
    """Read all that the plan shows, and write."""
    plan = Plan.of_job()
    scores = read_scores(plan.root, [plan.score(key) for key in plan.batch("all")])
    write_parquet(scores, Path(snakemake.output.scores))
    stamped(Path(snakemake.output.stamp))


main()
