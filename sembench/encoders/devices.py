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
from threadpoolctl import threadpool_limits
from torch import Tensor

from sembench.core.cards import lent

PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


@functools.cache
def pick_device() -> torch.device:
    """Return the device of this process, always the same: a GPU of its own where there are several, else the CPU."""
    cards = visible_cards()
    if not cards:
        return torch.device("cpu")
    device = torch.device("cuda", _own_card(cards))
    torch.cuda.set_device(device)  # so that the plain name "cuda" means it as well
    return device


def _own_card(cards: Sequence[str]) -> int:
    """Return the place of this process's card.

    A single visible one is taken without a lock, and so is that of a process among several that train one run: whoever
    started the process chose it.
    """
    if len(cards) == 1:
        return 0
    return int(os.environ["LOCAL_RANK"]) if "LOCAL_RANK" in os.environ else lent_cards(1)[0]


def visible_cards() -> list[str]:
    """Return the names of the visible GPUs, which are the same in every process; without a GPU none."""
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return [_gpu_name(index) for index in range(count)]


def lent_cards(number: int) -> list[int]:
    """Return the places of visible GPUs that no other process of this user has borrowed; see ``cards.lent``."""
    return lent(visible_cards(), number, Path(tempfile.gettempdir()))


def lent_environment(number: int) -> dict[str, str]:
    """Return the variable by which processes see that many GPUs, lent to this one; without any GPU nothing."""
    cards = visible_cards()
    if not cards:
        return {}
    shown = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = shown.split(",") if shown else [str(place) for place in range(len(cards))]
    return {"CUDA_VISIBLE_DEVICES": ",".join(names[place] for place in lent_cards(number))}


def _gpu_name(index: int) -> str:
    # Indices count visible GPUs only, so that two processes may number the same GPU differently.
    return str(getattr(torch.cuda.get_device_properties(index), "uuid", index))


def sent(values: Tensor, device: torch.device) -> Tensor:
    """Return a tensor of the processor on a device; a GPU's work goes on meanwhile, and nobody waits for it."""
    return values.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else values.to(device)


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
