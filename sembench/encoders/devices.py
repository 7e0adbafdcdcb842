"""Which device and which number format a computation uses. Always recorded with the result."""

from __future__ import annotations

import contextlib
import platform
from pathlib import Path
from typing import Any

import torch

PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def pick_device() -> torch.device:
    """Return the first GPU that is visible, else the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


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
