"""Copy the files of a data set made here to where people find them."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from sembench.core.artifact import opened
from sembench.core.errors import explained
from sembench.core.files import atomic_path, stamped
from sembench.plan import Plan

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


@explained
def main() -> None:
    """Read what the rule hands over, and copy."""
    plan = Plan.of_job()
    folder = opened(plan.root, plan.made(snakemake.params.name))
    published = [path for path in snakemake.output if path != snakemake.output.stamp]
    for source, target in zip(snakemake.input.files, published, strict=True):
        with atomic_path(Path(target)) as temporary:
            shutil.copyfile(folder / Path(source).relative_to(folder.relative_to(plan.root)), temporary)
    stamped(Path(snakemake.output.stamp))


main()
