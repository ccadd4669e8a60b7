"""Measuring on a GPU: alternatives take turns, each timed by events of the GPU on PyTorch's current stream."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

import torch

from bench.measure import Samples


def in_turns(functions: dict[str, Callable[[], object]], rounds: int, calls: int) -> dict[str, Samples]:
    """Time of one call of each function on the GPU, from ``rounds`` rounds of ``calls`` calls after one round that does
    not count. What the host needs to launch hides behind the GPU's work where that takes longer."""
    for function in functions.values():
        for _ in range(calls):
            function()
    values: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda.synchronize()
            begin.record()
            for _ in range(calls):
                function()
            end.record()
            torch.cuda.synchronize()
            values[name].append(begin.elapsed_time(end) / calls)
    return {name: Samples(tuple(times)) for name, times in values.items()}


def machine() -> dict[str, Any]:
    """The GPU's part of what figures depend on."""
    properties = torch.cuda.get_device_properties(0)
    driver = subprocess.run(
        ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader", "--id=0"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    return {
        "gpu": properties.name,
        "multiprocessors": properties.multi_processor_count,
        "memory_GiB": round(properties.total_memory / 2**30),
        "driver": driver,
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
    }
