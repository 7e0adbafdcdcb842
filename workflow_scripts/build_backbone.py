"""Convert a backbone's fetched files into an ordinary model folder."""

from __future__ import annotations

import argparse

from sembench.core.errors import explained
from sembench.encoders.backbones import make_backbone
from sembench.plan import Plan


@explained
def main() -> None:
    """Read the command line and convert."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("backbone", help="backbone of registry/backbones.yaml")
    given = parser.parse_args()
    make_backbone(Plan.of_job(), given.backbone)


if __name__ == "__main__":
    main()
