"""Protocols of evaluation, one file each; see ``sembench.evaluation.protocol``."""
