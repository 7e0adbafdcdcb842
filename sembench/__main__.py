"""``python -m sembench`` is the command ``sembench``."""

from sembench.cli import main

main()
