"""Heavy libraries that load when they are first used.

Planning reads what every plug-in is: its parameters, its version, what it needs. That must not cost the seconds that
torch, pandas and scipy take to load, so plug-in files take these libraries from here. Type checkers see the real ones.
What a library must give while the file loads (a base class, a decorator) cannot come from here.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import torch
    from torch import nn
    from torch.nn import functional
else:

    class _Lazy:
        """In place of a module, which it loads when one of its names is first used."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, attribute: str) -> Any:
            return getattr(importlib.import_module(self._name), attribute)

    np = _Lazy("numpy")
    pd = _Lazy("pandas")
    torch = _Lazy("torch")
    nn = _Lazy("torch.nn")
    functional = _Lazy("torch.nn.functional")

__all__ = ["functional", "nn", "np", "pd", "torch"]
