"""Makers of data sets, one file each; see ``sembench.data.maker``."""
