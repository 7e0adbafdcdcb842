"""Which device and which number format a computation uses. Always recorded with the result."""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock, Timeout
from threadpoolctl import threadpool_limits

_held: list[FileLock] = []  # a lock ends with its object
PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


@functools.cache
def pick_device() -> torch.device:
    """Return the device of this process, always the same: a GPU of its own where there are several, else the CPU."""
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    device = lent_device([_gpu_name(index) for index in range(count)], Path(tempfile.gettempdir()))
    if device.type == "cuda":
        torch.cuda.set_device(device)  # so that the plain name "cuda" means it as well
    return device


def lent_device(gpus: Sequence[str], locks: Path) -> torch.device:
    """Return the first GPU that no other process of this user has borrowed; it is ours until the process ends.

    Args:
        gpus: names of the visible GPUs that are the same in every process; none means the CPU.
        locks: folder in which borrowed GPUs are locked.

    A single visible GPU is taken without a lock: whoever started the process chose it. Where all of several are
    borrowed, they are shared evenly by process number.
    """
    if len(gpus) < 2:
        return torch.device("cuda:0" if gpus else "cpu")
    for index, name in enumerate(gpus):
        lock = FileLock(locks / f"sembench-{os.getuid()}-{name}.lock")
        with contextlib.suppress(Timeout):
            lock.acquire(timeout=0)
            _held.append(lock)
            return torch.device("cuda", index)
    return torch.device("cuda", os.getpid() % len(gpus))


def _gpu_name(index: int) -> str:
    # Indices count visible GPUs only, so that two processes may number the same GPU differently.
    return str(getattr(torch.cuda.get_device_properties(index), "uuid", index))


def use_threads(number: int) -> None:
    """Compute with so many threads, whatever the machine has: the order of sums, and so the last bits, depend on it."""
    torch.set_num_threads(number)
    threadpool_limits(number)


def resolve_precision(asked: str, device: torch.device) -> str:
    """Return ``fp32``, ``bf16`` or ``fp16``; ``auto`` becomes bf16 where the hardware multiplies it fast, else fp32.

    On a processor without AVX-512 BF16 or AMX, bf16 would be emulated and slower than fp32.
    """
    if asked != "auto":
        return asked
    fast = torch.cuda.is_bf16_supported() if device.type == "cuda" else _cpu_has_bf16()
    return "bf16" if fast else "fp32"


def _cpu_has_bf16() -> bool:
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported()) and "avx512_bf16" in _cpuinfo("flags").split()


def _cpuinfo(field: str) -> str:
    """Return the first value of a field of Linux's processor description, or nothing elsewhere."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith(field):
                return line.split(":", 1)[1].strip()
    return ""


def autocast(precision: str, device: torch.device) -> torch.autocast:
    """Return the autocast context of a precision; for fp32 it does nothing."""
    return torch.autocast(device.type, dtype=PRECISIONS[precision], enabled=precision != "fp32")


def hardware(device: torch.device) -> dict[str, Any]:
    """Return what ran the computation: processor, threads, GPU."""
    gpu = torch.cuda.get_device_name(device) if device.type == "cuda" else None
    return {"cpu": _cpuinfo("model name") or platform.processor(), "cores": torch.get_num_threads(), "gpu": gpu}
