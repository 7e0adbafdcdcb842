"""sembench: rebuilds sentence-embedding papers end to end and shows honestly what holds."""

__version__ = "0.1.0"

import os

from sembench.core.threads import waiting

os.environ.update(waiting(os.environ))  # read when torch loads
