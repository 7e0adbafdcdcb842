"""Evaluation: protocols over frozen sentence vectors, and the engine that runs them in one pass over the sentences."""
