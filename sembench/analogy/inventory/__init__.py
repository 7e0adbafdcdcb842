"""Sense inventories behind one protocol: BabelNet over HTTP, a dump of it, and WordNet 3.0."""
