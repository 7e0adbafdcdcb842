"""Transforms of sentence vectors that are fitted on vectors, one file each; see ``base``."""
