"""Known things as data: data sets, backbones, variants, suites, tables, figures, scales, and the papers' values."""

from sembench.registry.load import Registry, load_registry, project_root
from sembench.registry.plan import Plan, PlannedPoint, PlannedRow, RunSpec

__all__ = ["Plan", "PlannedPoint", "PlannedRow", "Registry", "RunSpec", "load_registry", "project_root"]
