import os

from sembench.core.threads import waiting

os.environ.update(waiting(os.environ))
