"""Convert a backbone's fetched files into an ordinary model folder."""

from __future__ import annotations

import argparse

from sembench.core.errors import explained, unknown
from sembench.encoders.backbones import build_backbone
from sembench.registry import load_registry
from sembench.registry.layout import backbone, dataset_folder


@explained
def main() -> None:
    """Read the command line and convert."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("backbone")
    given = parser.parse_args()
    backbones = load_registry().backbones
    if given.backbone not in backbones:
        raise unknown("backbone", given.backbone, backbones, "registry/backbones.yaml")
    entry = backbones[given.backbone]
    source = dataset_folder(entry.dataset) if entry.dataset else None
    build_backbone(given.backbone, entry, source, backbone(given.backbone))


if __name__ == "__main__":
    main()
