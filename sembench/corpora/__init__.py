"""Corpora: readers of the training text, from one-sentence-per-line files and from MediaWiki dumps."""
