"""What one scale builds: every name resolved, every artefact with its key, and why something cannot be had."""

from sembench.plan.artefacts import PlannedCell, Run
from sembench.plan.graph import Plan, PlannedView
from sembench.plan.needs import Needs, ScoreKey

__all__ = ["Needs", "Plan", "PlannedCell", "PlannedView", "Run", "ScoreKey"]
