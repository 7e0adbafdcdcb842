"""Join score records into one file."""

from pathlib import Path
from typing import TYPE_CHECKING

from sembench.core.errors import explained
from sembench.results.records import read_scores, write_parquet

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


@explained
def main() -> None:
    """Read what the rule hands over, and write."""
    write_parquet(read_scores([Path(path) for path in snakemake.input.scores]), Path(snakemake.output.scores))


main()
