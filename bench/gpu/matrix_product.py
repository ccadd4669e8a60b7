"""A product of matrices of halves on a GPU: the tiled Metal body of bench/kernels.py, with sums in float, in each of the
math modes, against cuBLAS, by way of PyTorch."""

from __future__ import annotations

from functools import partial
from typing import Any

import kiln
import torch

from bench import kernels
from bench.gpu import measure_gpu
from bench.measure import table

SIZES = (1024, 4096)
MODES = ("safe", "relaxed", "fast")
ROUNDS = 7
CALLS = 10
# Of the largest value: cuBLAS rounds its result to half, and sums differ by their order.
LIMIT = 2e-3


def _kernel(mode: str) -> Any:
    return kiln.metal_kernel(
        "simdgroup_product", ["a", "b"], ["out"], kernels.SIMDGROUP_PRODUCT, compile_options={"math_mode": mode}
    )


def run() -> tuple[dict[str, Any], list[str]]:
    torch.manual_seed(1)
    figures: dict[str, Any] = {}
    tables = []
    for size in SIZES:
        a, b = (torch.randn((size, size), device="cuda", dtype=torch.float16) for _ in range(2))
        call = kernels.simdgroup_product_call(a, b) | {"output_dtypes": [torch.float32]}
        functions: dict[str, Any] = {f"Kiln, {mode}": partial(_kernel(mode), **call) for mode in MODES}
        functions["cuBLAS"] = partial(torch.matmul, a, b)
        exact = torch.matmul(a.double(), b.double())
        differences = {}
        for name, function in functions.items():
            result = function()
            result = (result if isinstance(result, torch.Tensor) else result[0]).double()
            differences[name] = float((result - exact).abs().max() / exact.abs().max())
            if not differences[name] < LIMIT:
                raise SystemExit(f"{name}: off by {differences[name]:.1e} of the largest value")
        times = measure_gpu.in_turns(functions, ROUNDS, CALLS)
        operations = 2e-9 * size**3
        rows = [
            [
                name,
                str(samples),
                f"{operations / samples.median:.3g}",
                f"{differences[name]:.1e}",
                f"{samples.median / times['cuBLAS'].median:.2f}",
            ]
            for name, samples in times.items()
        ]
        header = ["", "median (quartiles)", "TFLOP/s", "off by", "this / cuBLAS"]
        tables.append(table(f"{size} x {size} by {size} x {size}, halves, sums in float", header, rows))
        figures[str(size)] = {
            name: samples.as_json() | {"TFLOP/s": operations / samples.median, "off_by": differences[name]}
            for name, samples in times.items()
        }
    return figures, tables
