"""An encoder that is an installed package, which encoder.json pins: nothing to convert."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sembench.encoders.convert.base import Converter
from sembench.plan.layout import ENTRY


class Package(Converter):
    """The package runs its own code; its vectors go by the name ``mean``."""

    encoder = "use"
    files = (ENTRY,)

    @classmethod
    def convert(cls, config: Any, source: Path | None, target: Path) -> dict[str, Any]:  # noqa: ARG003
        """Write nothing."""
        return {}


PLUGIN = Package
