"""Copy the files of a data set made here to where people find them."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from sembench.core.errors import explained
from sembench.core.files import atomic_path, stamped

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


@explained
def main() -> None:
    """Read what the rule hands over, and copy."""
    published = [path for path in snakemake.output if path != snakemake.output.stamp]
    for source, target in zip(snakemake.input, published, strict=True):
        with atomic_path(Path(target)) as temporary:
            shutil.copyfile(source, temporary)
    stamped(Path(snakemake.output.stamp))


main()
