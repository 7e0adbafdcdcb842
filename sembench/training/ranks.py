"""Several processes that train one run together, each on a GPU of its own (data parallelism, as under ``torchrun``).

Every process encodes its share of a batch's rows; the vectors are gathered, and each process computes the loss of the
whole batch. Objectives know nothing of it. The mean of the gradients over the processes is then the gradient of the
loss, as it would be in one process, for the encoder and for layers behind the gathering alike.

In a process that trains alone all functions here do nothing.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor, distributed, nn

from sembench.core.errors import SembenchError

# Which gradient the mean over the processes is: of the loss of the whole batch, or a share of it (official code).
Gradient = Literal["whole", "share"]
# For a step of the others, or a dev score of the first one; a process that is lost ends the rest by then.
PATIENCE = timedelta(minutes=30)
# Numbers that pass between the processes at a time: 100 MB in float32.
_BUCKET = 25_000_000
# Seconds that the first process has for saying what is wrong with all of them, before another one says it.
_FIRST_SPEAKS = 5.0
Result = TypeVar("Result")


def started() -> bool:
    """Tell whether this process is one of several, as its environment says (that of ``torchrun``)."""
    return "RANK" in os.environ and "WORLD_SIZE" in os.environ


@contextlib.contextmanager
def joined(device: torch.device) -> Iterator[None]:
    """Meet the other processes, if there are any."""
    if not started():
        yield
        return
    _end_with_parent()
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    distributed.init_process_group(backend, timeout=PATIENCE)
    try:
        yield
    except SembenchError:
        if not is_first():
            time.sleep(_FIRST_SPEAKS)
        raise
    # Not after an error: the others may not answer any more.
    distributed.destroy_process_group()


def _end_with_parent() -> None:
    """Let Linux send SIGTERM when whoever started this process is gone: it saves and ends, as its locks have."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)


def count() -> int:
    """Return the number of processes."""
    return distributed.get_world_size() if distributed.is_initialized() else 1


def rank() -> int:
    """Return the number of this process, from 0."""
    return distributed.get_rank() if distributed.is_initialized() else 0


def is_first() -> bool:
    """Tell whether this is the process that scores, prints and writes."""
    return rank() == 0


def check(processes: int) -> None:
    """Compare the processes that there are with those that a recipe asks for.

    Raises:
        SembenchError: there are others.
    """
    if count() != processes:
        raise SembenchError(
            f"the recipe says 'processes: {processes}', and {count()} take part; start so many, or change the recipe"
        )


# ------------------------------------------------------------------------------------------------- what passes between


def shares(rows: int) -> list[range]:
    """Return the rows of each process: neighbours, as evenly as they can be divided."""
    bounds = [rows * number // count() for number in range(count() + 1)]
    return [range(*bound) for bound in itertools.pairwise(bounds)]


def encoded(counts: Sequence[int], encode: Callable[[Sequence[int]], Tensor], gradient: Gradient = "whole") -> Tensor:
    """Return the vectors of all rows, (sum of counts, width), of which each process encodes its share with gradient.

    Dropout masks differ from process to process. Whatever else is drawn is the same in all of them, since their
    random generators stay the same: an encoding process draws from one that is seeded anew by its number.

    Args:
        counts: how many vectors each row has, the same in every process.
        encode: numbers of rows to their vectors, in order.
        gradient: see ``Gradient``.
    """
    if count() == 1:
        return encode(range(len(counts)))
    sizes = [sum(counts[i] for i in share) for share in shares(len(counts))]
    own = shares(len(counts))[rank()]
    seed = int(torch.randint(1 << 60, ()))
    devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    with torch.random.fork_rng(devices):
        torch.manual_seed(seed + rank())
        # Without a row of its own a process takes part all the same: the others wait for gradients of every weight.
        vectors = encode(own or [0])[: sizes[rank()]]
    weight = count() if gradient == "whole" else 1
    gathered: Tensor = _Gathered.apply(vectors, sizes, weight)  # type: ignore[no-untyped-call]
    return gathered


class _Gathered(torch.autograd.Function):
    """The rows of all processes, in order, with gradient for one's own.

    Each process computes the same loss, so the gradient at its own rows is all there without the others. The mean over
    the processes will divide it by their number; ``weight`` says how often it counts.
    """

    @staticmethod
    def forward(ctx: Any, own: Tensor, sizes: Sequence[int], weight: int) -> Tensor:
        begin = sum(sizes[: rank()])
        ctx.own, ctx.weight = slice(begin, begin + sizes[rank()]), weight
        # What is gathered has one shape.
        padded = own.new_zeros(max(sizes), *own.shape[1:])
        padded[: len(own)] = own
        parts = [torch.empty_like(padded) for _ in sizes]
        distributed.all_gather(parts, padded)
        return torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        return gradients[0][ctx.own] * ctx.weight, None, None


def average_gradients(model: nn.Module) -> None:
    """Replace each gradient by its mean over the processes."""
    if count() == 1:
        return
    gradients = [each.grad for each in model.parameters() if each.grad is not None]
    for bucket in _buckets(gradients):
        flat = torch.cat([gradient.flatten() for gradient in bucket])
        distributed.all_reduce(flat)
        flat /= count()
        for gradient, mean in zip(bucket, torch.split(flat, [each.numel() for each in bucket]), strict=True):
            gradient.copy_(mean.view_as(gradient))


def _buckets(tensors: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    bucket: list[Tensor] = []
    for tensor in tensors:
        if bucket and sum(each.numel() for each in bucket) + tensor.numel() > _BUCKET:
            yield bucket
            bucket = []
        bucket.append(tensor)
    if bucket:
        yield bucket


def from_first(make: Callable[[], Result]) -> Result:
    """Return what the first process makes, in all of them."""
    if count() == 1:
        return make()
    found: list[Any] = [make() if is_first() else None]
    distributed.broadcast_object_list(found, device=torch.device("cpu"))
    result: Result = found[0]
    return result


def largest(number: int) -> int:
    """Return the largest of the processes' numbers; none goes on before all have said theirs."""
    if count() == 1:
        return number
    found = torch.tensor(number)
    distributed.all_reduce(found, distributed.ReduceOp.MAX)
    return int(found)
