"""Gradients of plain functions by central differences: a reference that knows nothing of autograd."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray

Array = NDArray[np.float64]


def assert_equals_loop(
    loss: Callable[..., torch.Tensor], loop: Callable[..., float], *arrays: Array, value: float = 1e-12
) -> None:
    """Compare a loss and its gradients in float64 with a loop over numbers and its differences."""
    tensors = [torch.tensor(array, requires_grad=True) for array in arrays]
    found = loss(*tensors)
    np.testing.assert_allclose(found.item(), loop(*arrays), rtol=0, atol=value)
    gradients = torch.autograd.grad(found, tensors)
    for place, gradient in enumerate(gradients):
        np.testing.assert_allclose(gradient.numpy(), _differences(loop, arrays, place), rtol=1e-6, atol=1e-7)


def _differences(loop: Callable[..., float], arrays: tuple[Array, ...], place: int) -> Array:
    step = 1e-6
    found = np.zeros_like(arrays[place])
    for index in np.ndindex(found.shape):
        sides = []
        for sign in (1, -1):
            moved = [array.copy() for array in arrays]
            moved[place][index] += sign * step
            sides.append(loop(*moved))
        found[index] = (sides[0] - sides[1]) / (2 * step)
    return found


def cos(a: Array, b: Array) -> float:
    """Return the cosine of two vectors, written out."""
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    return float(dot / np.sqrt(sum(x * x for x in a)) / np.sqrt(sum(y * y for y in b)))
