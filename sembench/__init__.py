"""sembench: rebuilds sentence-embedding papers end to end and shows honestly what holds."""

__version__ = "0.1.0"
