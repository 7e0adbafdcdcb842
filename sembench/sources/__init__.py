"""Getting files from wherever they lie: verified, resumable, and never half-written."""

from __future__ import annotations

from sembench.registry.available import availability
from sembench.sources.fetch import fetch_dataset, fetch_planned, verify_dataset
from sembench.sources.order import Site
from sembench.sources.verify import FileState

__all__ = ["FileState", "Site", "availability", "fetch_dataset", "fetch_planned", "verify_dataset"]
