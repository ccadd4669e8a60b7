"""Grid sample: Kiln, MLX's operations, NVIDIA Warp's CPU back end, and C++ by hand, on the same arrays."""

from __future__ import annotations

import ctypes
import functools
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kiln.mlx
import mlx.core as mx
import numpy as np

from bench import bodies, measure

SHAPE = (1, 1024, 1024, 64)
GRID = (1, 256, 256, 2)
ROUNDS, CALLS = 10, 5


def _compile_by_hand(folder: Path) -> ctypes.CDLL:
    library = folder / "by_hand.so"
    source = Path(__file__).parent / "by_hand.cpp"
    subprocess.run(
        [
            *("g++", "-std=c++20", "-O3", "-march=native", "-ffast-math", "-shared", "-fPIC", "-pthread"),
            *("-o", str(library), str(source)),
        ],
        check=True,
    )
    return ctypes.CDLL(str(library))


class ByHand:
    """Calls of by_hand.cpp, with fresh outputs as the others have."""

    def __init__(self, folder: Path, threads: int):
        self._library = _compile_by_hand(folder)
        self._threads = threads

    def _call(self, name: str, arrays: list[np.ndarray], x: np.ndarray, grid: np.ndarray) -> None:
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
        sizes = [*x.shape, grid.shape[1] * grid.shape[2]]
        getattr(self._library, name)(*pointers, *map(ctypes.c_int64, sizes), ctypes.c_int(self._threads))

    def forward(self, x: np.ndarray, grid: np.ndarray) -> np.ndarray:
        out = np.empty((*grid.shape[:3], x.shape[3]), np.float32)
        self._call("grid_sample", [x, grid, out], x, grid)
        return out

    def vjp(self, x: np.ndarray, grid: np.ndarray, cotangents: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x_grad, grid_grad = np.empty_like(x), np.empty_like(grid)
        self._call("grid_sample_vjp", [x, grid, cotangents, x_grad, grid_grad], x, grid)
        return x_grad, grid_grad


def _relative_difference(a: Any, b: Any) -> float:
    a, b = np.asarray(a), np.asarray(b)
    return float(np.abs(a - b).max() / np.abs(b).max())


def run(progress) -> tuple[dict[str, Any], list[str]]:
    rng = np.random.default_rng(1)
    x = rng.standard_normal(SHAPE, dtype=np.float32)
    # Places spread evenly, some of them beyond the borders.
    grid = rng.uniform(-1.1, 1.1, GRID).astype(np.float32)
    cotangents = rng.standard_normal((*GRID[:3], SHAPE[3]), dtype=np.float32)
    mx_x, mx_grid, mx_cotangents = mx.array(x), mx.array(grid), mx.array(cotangents)
    mx.eval(mx_x, mx_grid, mx_cotangents)

    forward = bodies.forward_kernel(kiln.mlx.metal_kernel)
    vjp = bodies.vjp_kernel(kiln.mlx.metal_kernel)
    threads = measure.machine()["threads"]

    def kiln_forward():
        outputs = forward(**bodies.forward_call(mx_x, mx_grid))
        mx.eval(outputs)
        return outputs[0]

    def kiln_vjp():
        outputs = vjp(**bodies.vjp_call(mx_x, mx_grid, mx_cotangents))
        mx.eval(outputs)
        return outputs

    def mlx_forward(function):
        out = function(mx_x, mx_grid)
        mx.eval(out)
        return out

    def mlx_vjp(function):
        _, gradients = mx.vjp(function, [mx_x, mx_grid], [mx_cotangents])
        mx.eval(gradients)
        return gradients

    operations = {
        "MLX's operations": bodies.sample_by_operations,
        "MLX's operations, tuned": bodies.sample_by_fewer_operations,
    }

    with tempfile.TemporaryDirectory() as folder:
        by_hand = ByHand(Path(folder), threads)
        forwards: dict[str, Callable[[], Any]] = {
            "Kiln": kiln_forward,
            **{name: functools.partial(mlx_forward, function) for name, function in operations.items()},
            "C++ by hand": lambda: by_hand.forward(x, grid),
        }
        vjps: dict[str, Callable[[], Any]] = {
            "Kiln": kiln_vjp,
            **{name: functools.partial(mlx_vjp, function) for name, function in operations.items()},
            "C++ by hand": lambda: by_hand.vjp(x, grid, cotangents),
        }
        progress("grid sample: comparing results")
        expected = by_hand.forward(x, grid)
        expected_gradients = by_hand.vjp(x, grid, cotangents)
        differences: dict[str, dict[str, float]] = {"forward": {}, "vjp": {}}
        warp_compile_ms = None
        try:
            from bench import warp_kernels
        except ImportError:
            progress("NVIDIA Warp is not installed: `make bench` installs it")
        else:
            sampler = warp_kernels.GridSample(x, grid)
            warp_compile_ms = sampler.compile_ms
            forwards["Warp, CPU back end"] = sampler.forward
            vjps["Warp, CPU back end"] = lambda: sampler.vjp(cotangents)
        for name, function in forwards.items():
            differences["forward"][name] = _relative_difference(function(), expected)
        for name, function in vjps.items():
            differences["vjp"][name] = max(
                _relative_difference(a, b) for a, b in zip(function(), expected_gradients, strict=True)
            )
        for which in differences.values():
            for name, difference in which.items():
                if not difference < 1e-4:
                    raise SystemExit(f"grid sample: the result of {name} is off by {difference:.1e}")

        progress("grid sample: timing forward")
        forward_times = measure.in_turns(forwards, ROUNDS, CALLS, settles=True)
        progress("grid sample: timing vjp")
        vjp_times = measure.in_turns(vjps, ROUNDS, CALLS, settles=True)

    figures: dict[str, Any] = {"x": SHAPE, "grid": GRID, "dtype": "float32", "warp_first_compile_ms": warp_compile_ms}
    tables = []
    for title, times in (("forward", forward_times), ("vjp", vjp_times)):
        figures[title] = {
            name: samples.as_json()
            | {"kiln_is_faster_by": samples.median / times["Kiln"].median, "difference": differences[title][name]}
            for name, samples in times.items()
        }
        rows = [
            [name, str(s), f"{s.median / times['Kiln'].median:.2f}", f"{s.behind_others_median:.3g} ms"]
            for name, s in times.items()
        ]
        header = ["", "median (quartiles)", "to Kiln's", "right behind another"]
        tables.append(measure.table(f"grid sample {title}, x {SHAPE}, grid {GRID}", header, rows))
    return figures, tables
