"""Makers of the data sets of word analogies, one file each; see ``sembench.data.maker``."""
