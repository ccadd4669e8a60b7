"""What a launch costs inside programs of PyTorch and JAX, on the CPU: microseconds per call, beside the alternatives.

make bench-frameworks

The kernel does next to nothing, so that what is measured is what stands around it. A program without the launch is
subtracted where the table says "over the program without it". All are measured in turns, and the shortest time counts.
"""

from __future__ import annotations

import argparse
import functools
import importlib.metadata
import os
import tempfile
import time
from collections.abc import Callable
from typing import Any

import kiln
import numpy as np

from bench import measure

kernel = kiln.metal_kernel("next_one", ["x"], ["y"], "uint i = thread_position_in_grid.x; y[i] = x[i] + 1;")
function = kernel.function(
    output_shapes=lambda x: [x.shape],
    output_dtypes=lambda x: [x.dtype],
    grid=lambda x: (x.size, 1, 1),
    threadgroup=(256, 1, 1),
)
function.vjp(lambda x, cotangent, _: cotangent)

SIZE = 256


def microseconds(calls: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    best = dict.fromkeys(calls, float("inf"))
    for call in calls.values():
        for _ in range(20):
            call()
    for _ in range(rounds):
        for name, call in calls.items():
            begin = time.perf_counter()
            for _ in range(200):
                call()
            best[name] = min(best[name], (time.perf_counter() - begin) / 200 * 1e6)
    return best


def launch(x: Any) -> Any:
    (y,) = kernel(
        inputs=[x], output_shapes=[(SIZE,)], output_dtypes=["float32"], grid=(SIZE, 1, 1), threadgroup=(256, 1, 1)
    )
    return y


def rows_of_torch(rounds: int) -> list[list[str]]:
    import torch

    @torch.library.custom_op("bench::next_one", mutates_args=(), schema="(Tensor x) -> Tensor")
    def custom(x: Any) -> Any:
        return x + 1

    custom.register_fake(lambda x: torch.empty_like(x))
    x = torch.ones(SIZE)
    wanting = torch.ones(SIZE, requires_grad=True)

    class Model(torch.nn.Module):
        def __init__(self, step: Callable[[Any], Any]) -> None:
            super().__init__()
            self.step = step

        def forward(self, x: Any) -> Any:
            return self.step(torch.sin(x)) * 2

    steps: dict[str, Callable[[Any], Any]] = {"without": lambda x: x, "function": function, "custom_op": custom}
    calls: dict[str, Callable[[], Any]] = {
        "torch.sin": lambda: torch.sin(x),
        "kernel": lambda: launch(x),
        "function": lambda: function(x),
        "function, a gradient wanted": lambda: function(wanting),
        "custom_op": lambda: custom(x),
    }
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        for name, step in steps.items():
            compiled = torch.compile(Model(step), fullgraph=True)
            calls[f"compile {name}"] = functools.partial(compiled, x)
            if name != "custom_op":
                package = torch._inductor.aoti_compile_and_package(
                    torch.export.export(Model(step), (x,)), package_path=f"{folder}/{name}.pt2"
                )
                loaded = torch._inductor.aoti_load_package(package)
                calls[f"package {name}"] = functools.partial(loaded, x)
        best = microseconds({name: call for name, call in calls.items() if "gradient" not in name}, rounds)
    best |= microseconds({name: call for name, call in calls.items() if "gradient" in name}, rounds)
    rows = [[f"PyTorch: {name}", f"{best[name]:.1f}"] for name in calls if not name.startswith(("compile", "package"))]
    for kind, title in (("compile", "torch.compile"), ("package", "AOTInductor's package")):
        rows += [
            [
                f"PyTorch: {title}, {name}, over the program without it",
                f"{best[f'{kind} {name}'] - best[f'{kind} without']:.1f}",
            ]
            for name in ("function", "custom_op")
            if f"{kind} {name}" in best
        ]
    return rows


def rows_of_jax(rounds: int) -> list[list[str]]:
    import jax
    import jax.numpy as jnp

    def callback(x: Any) -> Any:
        return jax.pure_callback(lambda x: np.asarray(x) + 1, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    x = jnp.ones(SIZE)

    def program(step: Callable[[Any], Any]) -> Callable[[], Any]:
        compiled: Any = jax.jit(lambda x: step(jnp.sin(x)) * 2)
        return lambda: compiled(x).block_until_ready()

    calls: dict[str, Callable[[], Any]] = {
        "kernel": lambda: launch(x),
        "function": lambda: function(x).block_until_ready(),
        "without": program(lambda x: x),
        "jit function": program(function),
        "jit pure_callback": program(callback),
    }
    best = microseconds(calls, rounds)
    rows = [[f"JAX: {name}", f"{best[name]:.1f}"] for name in ("kernel", "function")]
    for name in ("function", "pure_callback"):
        rows.append([f"JAX: jit, {name}, over the program without it", f"{best[f'jit {name}'] - best['without']:.1f}"])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15, help="fewer or more of them write no results")
    rounds = parser.parse_args().rounds
    load = os.getloadavg()[0]
    x = np.ones(SIZE, np.float32)
    best = microseconds({"kernel": lambda: launch(x), "function": lambda: function(x)}, rounds)
    rows = [[f"NumPy: {name}", f"{time:.1f}"] for name, time in best.items()]
    rows += rows_of_torch(rounds) + rows_of_jax(rounds)
    print(measure.table("A launch of 256 threads on the CPU", ["", "microseconds"], rows))
    if rounds == parser.get_default("rounds"):
        versions = {name: importlib.metadata.version(name) for name in ("torch", "jax")}
        figures = {"load_before": load, "versions": versions, "microseconds": {name: float(t) for name, t in rows}}
        print(f"\nwritten to {measure.write('frameworks', figures)}")


if __name__ == "__main__":
    main()
