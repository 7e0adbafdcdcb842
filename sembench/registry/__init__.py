"""Known things as data: data sets, backbones, variants, suites, tables, figures, scales, and the papers' values."""

from sembench.registry.check import load_registry
from sembench.registry.load import Registry, project_root

__all__ = ["Registry", "load_registry", "project_root"]
