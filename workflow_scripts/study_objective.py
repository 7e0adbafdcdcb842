"""Follow free vectors under the objectives that a figure compares."""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from sembench.core.errors import explained
from sembench.core.files import atomic_path
from sembench.registry import load_registry
from sembench.registry.models import CurveFigure
from sembench.training.study import study


@explained
def main() -> None:
    """Read the command line, follow the vectors, and write the curves."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("figure", help="figure of registry/figures with a study")
    parser.add_argument("--out", type=Path, required=True, help="csv to write")
    given = parser.parse_args()
    torch.set_num_threads(1)
    spec = load_registry().figures[given.figure]
    assert isinstance(spec, CurveFigure)
    with atomic_path(given.out) as temporary:
        study(spec.study).to_csv(temporary, index=False)


if __name__ == "__main__":
    main()
