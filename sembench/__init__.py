"""sembench: rebuilds sentence-embedding papers end to end and shows honestly what holds."""

import os

from sembench.core.threads import waiting

__version__ = "0.1.0"

os.environ.update(waiting(os.environ))  # read when torch loads
