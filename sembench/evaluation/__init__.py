"""Protocols: semantic textual similarity and the geometry of the vector space."""
