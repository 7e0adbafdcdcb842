"""Layers that compute what transformers' do, faster in training on a processor; each takes over its module in place.

* Dropout draws its masks from a fast generator; torch draws them on one thread, at a tenth of the speed.
* In bf16 activations stay bf16 between layers, where autocast casts them up after each normalisation and down before
  each product. Weights are kept, updated and normalised with in float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

# A mask compares 16 random bits with a threshold, so that a probability is met to half of this.
_STEPS = 1 << 16


def kept(count: int, p: float) -> tuple[Tensor, float]:
    """Draw which of ``count`` elements stay when each is dropped with probability ``p``, below 1.

    Returns:
        A bool tensor (count,), true where an element stays, and the factor that keeps the expected value.

    Each mask is a stream of numpy's SFC64 of its own, seeded from torch's generator. So torch's is the only state: a
    run that goes on, and a pass that is computed again for its gradient, draw the same masks without more ado.
    """
    threshold = min(round((1 - p) * _STEPS), _STEPS - 1)
    seed = int(torch.randint(1 << 62, ()))
    bits = np.random.SFC64(seed).random_raw(-(-count // 4)).view(np.uint16)[:count]
    return torch.from_numpy(bits < threshold), _STEPS / threshold


def kept_factors(count: int, p: float, dtype: torch.dtype) -> Tensor:
    """Return what dropout multiplies ``count`` elements by, (count,): 0, or the factor of those that stay."""
    if p >= 1:
        return torch.zeros(count, dtype=dtype)
    mask, factor = kept(count, p)
    return mask.to(dtype).mul_(factor)


class FastDropout(nn.Dropout):
    """``torch.nn.Dropout`` with masks of :func:`kept`."""

    def forward(self, values: Tensor) -> Tensor:
        """Return values of the same shape."""
        if not self.training or not self.p:
            return values
        return values * kept_factors(values.numel(), self.p, values.dtype).view_as(values)


class FastLayerNorm(nn.LayerNorm):
    """``torch.nn.LayerNorm`` whose output in bf16 training is bf16; sums are float32 within."""

    def forward(self, values: Tensor) -> Tensor:
        """Return values of the same shape."""
        found = super().forward(values)
        return found.bfloat16() if _bf16(self) else found


class FastLinear(nn.Linear):
    """``torch.nn.Linear`` that in bf16 training casts input and weight once for forward and backward."""

    def forward(self, values: Tensor) -> Tensor:
        """Map (..., in) to (..., out)."""
        if not _bf16(self):
            return super().forward(values)
        result: Tensor = _Linear.apply(values, self.weight, self.bias)  # type: ignore[no-untyped-call]
        return result


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        flat, weight = values.bfloat16().flatten(0, -2), weight.bfloat16()
        ctx.save_for_backward(flat, weight)
        ctx.biased = bias is not None
        with torch.autocast("cpu", enabled=False):
            found = functional.linear(flat, weight, None if bias is None else bias.bfloat16())
        return found.view(*values.shape[:-1], -1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        flat, weight = ctx.saved_tensors
        above = gradients[0].flatten(0, -2).contiguous()
        below = (above @ weight).view(*gradients[0].shape[:-1], -1)
        return below, (above.t() @ flat).float(), above.sum(0).float() if ctx.biased else None


def _bf16(module: nn.Module) -> bool:
    """Tell whether a module is trained in bf16; in evaluation it is what it was."""
    return module.training and torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") == torch.bfloat16


FAST = {nn.Dropout: FastDropout, nn.LayerNorm: FastLayerNorm, nn.Linear: FastLinear}


def quicken(model: nn.Module) -> None:
    """Let the fast layers take over those of a model, with their weights and names."""
    for module in model.modules():
        if type(module) in FAST:
            module.__class__ = FAST[type(module)]
