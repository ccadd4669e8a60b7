"""Grid sample and its gradient on a GPU: the Metal bodies, unmodified, guards on, safe mode, against the same written by
hand in CUDA, PyTorch's own, and MLX's operations."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import kiln
import torch
import torch.nn.functional

from bench import bodies
from bench.gpu import by_hand, measure_gpu
from bench.measure import table

SHAPE = (8, 1024, 1024, 64)
GRID = (8, 256, 256, 2)
ROUNDS = 9
CALLS = 10


def _largest_difference(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a - b).abs().max() / b.abs().max())


def _mlx_operations(x: torch.Tensor, grid: torch.Tensor, cotangents: torch.Tensor) -> dict[str, list[float]]:
    """Milliseconds of MLX's operations, forward and vjp; empty where MLX has no GPU."""
    import time

    try:
        import mlx.core as mx
    except ImportError:
        return {}
    if not mx.is_available(mx.gpu):
        return {}
    arrays = [mx.array(a.cpu().numpy()) for a in (x, grid, cotangents)]
    mx.eval(arrays)

    def timed(function) -> list[float]:
        times = []
        for _ in range(2 + ROUNDS):
            mx.synchronize()
            start = time.perf_counter()
            mx.eval(function())
            mx.synchronize()
            times.append(1e3 * (time.perf_counter() - start))
        return times[2:]

    return {
        "forward": timed(lambda: bodies.sample_by_operations(*arrays[:2])),
        "vjp": timed(lambda: mx.vjp(bodies.sample_by_operations, arrays[:2], [arrays[2]])[1]),
    }


def run() -> tuple[dict[str, Any], list[str]]:
    torch.manual_seed(1)
    x = torch.randn(SHAPE, device="cuda")
    grid = torch.rand(GRID, device="cuda") * 2.2 - 1.1  # beyond every border
    cotangents = torch.randn((*GRID[:3], SHAPE[3]), device="cuda")
    sizes = {"height": SHAPE[1], "width": SHAPE[2], "channels": SHAPE[3], "places": GRID[1] * GRID[2]}
    count = cotangents.numel()

    forward, vjp = bodies.forward_kernel(kiln.metal_kernel), bodies.vjp_kernel(kiln.metal_kernel)
    forward_call, vjp_call = bodies.forward_call(x, grid), bodies.vjp_call(x, grid, cotangents)
    out, x_grad, grid_grad = torch.empty_like(cotangents), torch.empty_like(x), torch.empty_like(grid)
    kernels = {
        name: (by_hand.Kernel("grid_sample", by_hand.FORWARD, s), by_hand.Kernel("grid_sample_vjp", by_hand.VJP, s))
        for name, s in (("run-time shapes", None), ("constant shapes", sizes))
    }

    def hand_forward(kernel):
        kernel([x, grid, out], count, sizes)
        return out

    def hand_vjp(kernel):
        x_grad.zero_()
        grid_grad.zero_()
        kernel([x, grid, cotangents, x_grad, grid_grad], count, sizes)
        return x_grad, grid_grad

    def torch_forward():
        return torch.nn.functional.grid_sample(x.permute(0, 3, 1, 2), grid, align_corners=False)

    functions: dict[str, dict[str, Callable[[], Any]]] = {
        "forward": {
            "Kiln": lambda: forward(**forward_call)[0],
            **{f"CUDA by hand, {name}": partial(hand_forward, pair[0]) for name, pair in kernels.items()},
            "torch grid_sample": torch_forward,
        },
        "vjp": {
            "Kiln": lambda: vjp(**vjp_call),
            **{f"CUDA by hand, {name}": partial(hand_vjp, pair[1]) for name, pair in kernels.items()},
        },
    }
    differences = {
        "forward": _largest_difference(functions["forward"]["Kiln"](), hand_forward(kernels["run-time shapes"][0])),
    }
    for name, a, b in zip(
        ("x's gradient", "grid's gradient"),
        functions["vjp"]["Kiln"](),
        hand_vjp(kernels["run-time shapes"][1]),
        strict=True,
    ):
        differences[name] = _largest_difference(a, b)

    figures: dict[str, Any] = {"differences": differences}
    rows = []
    operations = _mlx_operations(x, grid, cotangents)
    for kind, alternatives in functions.items():
        times = measure_gpu.in_turns(alternatives, ROUNDS, CALLS)
        if kind in operations:
            times["MLX's operations"] = type(times["Kiln"])(tuple(operations[kind]))
        ours = times["Kiln"].median
        for name, samples in times.items():
            rows.append([f"{kind}, {name}", str(samples), f"{ours / samples.median:.2f}"])
        figures[kind] = {name: samples.as_json() for name, samples in times.items()}
    history = [(launch.engine, launch.specialized) for kernel in (forward, vjp) for launch in kernel.history[-1:]]
    figures["history"] = history
    title = f"grid sample, x {SHAPE}, grid {GRID}, float32"
    for name, difference in differences.items():
        if not difference < 1e-4:
            raise SystemExit(f"{name} differs by {difference:.1e} of the largest value")
    return figures, [table(title, ["", "median (quartiles)", "Kiln / this"], rows)]
