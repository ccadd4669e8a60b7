"""What a launch costs inside programs of PyTorch and JAX: microseconds per call, beside the alternatives.

make bench-frameworks           on the CPU
python -m bench.frameworks --device cuda   on a GPU

The kernel does next to nothing, so that what is measured is what stands around it. A program without the launch is
subtracted where the table says "over the program without it". All are measured in turns of a few calls, and the shortest
counts: on a busy machine longer ones would all be interrupted. An alternative that is not there is left out, and the
table says why.
"""

from __future__ import annotations

import argparse
import functools
import importlib.metadata
import os
import shutil
import subprocess
import tempfile
import time
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import kiln
import numpy as np

from bench import measure, stored_programs

kernel = kiln.metal_kernel("next_one", ["x"], ["y"], "uint i = thread_position_in_grid.x; y[i] = x[i] + 1;")
function = kernel.function(
    output_shapes=lambda x: [x.shape],
    output_dtypes=lambda x: [x.dtype],
    grid=lambda x: (x.size, 1, 1),
    threadgroup=(256, 1, 1),
)
function.vjp(lambda x, cotangent, _: cotangent)

SIZE = 256


CALLS = 8


def microseconds(calls: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    best = dict.fromkeys(calls, float("inf"))
    for call in calls.values():
        for _ in range(20):
            call()
    for _ in range(rounds):
        for name, call in calls.items():
            begin = time.perf_counter()
            for _ in range(CALLS):
                call()
            best[name] = min(best[name], (time.perf_counter() - begin) / CALLS * 1e6)
    return best


def over(best: dict[str, float], kind: str, title: str, names: Sequence[str]) -> list[list[str]]:
    return [
        [f"{title}, {name}, over the program without it", f"{best[f'{kind} {name}'] - best[f'{kind} without']:.1f}"]
        for name in names
        if f"{kind} {name}" in best
    ]


def launch(x: Any) -> Any:
    (y,) = kernel(
        inputs=[x], output_shapes=[(SIZE,)], output_dtypes=["float32"], grid=(SIZE, 1, 1), threadgroup=(256, 1, 1)
    )
    return y


def empty_operators(folder: str) -> Any:
    """What an operator in C++ costs that does nothing."""
    import torch

    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        raise ImportError("there is no C++ compiler")
    root, library = Path(torch.__file__).parent, f"{folder}/empty.so"
    subprocess.run(
        [
            compiler,
            "-O2",
            "-std=c++20",
            "-shared",
            "-fPIC",
            Path(__file__).with_name("frameworks_operator.cpp"),
            "-o",
            library,
            f"-I{root}/include",
            f"-I{root}/include/torch/csrc/api/include",
            f"-L{root}/lib",
            "-ltorch_cpu",
            "-lc10",
        ],
        check=True,
    )
    torch.ops.load_library(library)
    operators = torch.ops.bench_empty
    torch.library.register_fake("bench_empty::launch", lambda text, inputs, sizes: [inputs[0].new_empty(sizes[:1])])
    torch.library.register_fake("bench_empty::tensor", lambda x: torch.empty_like(x))
    return operators


def triton_operator(device: str) -> Any:
    import torch

    if device != "cuda":
        raise ImportError("Triton needs a GPU")
    import triton  # noqa: F401 (whether it is there)

    from bench.gpu.triton_kernels import next_one

    def add(x: Any) -> Any:
        y = torch.empty_like(x)
        torch.library.wrap_triton(next_one)[(1,)](x, y, SIZE, BLOCK=SIZE)
        return y

    add.__annotations__ = {"x": torch.Tensor, "return": torch.Tensor}
    return torch.library.triton_op("bench::triton_next_one", add, mutates_args=())


def torch_steps(device: str, folder: str, absent: dict[str, str]) -> dict[str, Callable[[Any], Any]]:
    import torch

    @torch.library.custom_op("bench::next_one", mutates_args=(), schema="(Tensor x) -> Tensor")
    def custom(x: Any) -> Any:
        return x + 1

    custom.register_fake(lambda x: torch.empty_like(x))
    steps: dict[str, Callable[[Any], Any]] = {"without": lambda x: x, "function": function, "custom_op": custom}
    try:
        operators = empty_operators(folder)
        text = "a" * 800
        steps["empty operator in C++, one tensor"] = lambda x: operators.tensor(x)
        steps["empty operator in C++, parameters of kiln::launch"] = lambda x: operators.launch(
            text, [x], [SIZE, SIZE, 1, 1, 256, 1, 1]
        )[0]
    except (ImportError, OSError, subprocess.CalledProcessError) as error:
        absent["empty operator in C++"] = str(error)
    try:
        steps["triton_op"] = triton_operator(device)
    except ImportError as error:
        absent["triton_op"] = str(error)
    return steps


def model_of(step: Callable[[Any], Any]) -> Any:
    """A module whose code is its own: Dynamo looks through what it has compiled of a piece of code at each call."""
    import torch

    def forward(self: Any, x: Any) -> Any:
        return self.step(torch.sin(x)) * 2

    own = types.FunctionType(forward.__code__.replace(), globals(), closure=forward.__closure__)
    model: Any = type("Model", (torch.nn.Module,), {"forward": own})()
    model.step = step
    return model


def rows_of_torch(rounds: int, device: str, absent: dict[str, str]) -> list[list[str]]:
    import torch

    x = torch.ones(SIZE, device=device)
    wanting = torch.ones(SIZE, requires_grad=True, device=device)
    calls: dict[str, Callable[[], Any]] = {
        "torch.sin": lambda: torch.sin(x),
        "kernel": lambda: launch(x),
        "function": lambda: function(x),
        "function, a gradient wanted": lambda: function(wanting),
    }
    # A package that cannot be loaded ends the process.
    fault = stored_programs.fault_of_packages(device)
    if fault is not None:
        absent["AOTInductor's package"] = fault
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        steps = torch_steps(device, folder, absent)
        for name, step in steps.items():
            if name not in ("without", "function"):
                calls[name] = functools.partial(step, x)
            compiled = torch.compile(model_of(step), fullgraph=True)
            calls[f"compile {name}"] = functools.partial(compiled, x)
            if fault is None and name in ("without", "function"):
                package = torch._inductor.aoti_compile_and_package(
                    torch.export.export(model_of(step), (x,)), package_path=f"{folder}/{name}.pt2"
                )
                loaded = torch._inductor.aoti_load_package(package)
                calls[f"package {name}"] = functools.partial(loaded, x)
        best = microseconds({name: call for name, call in calls.items() if "gradient" not in name}, rounds)
    best |= microseconds({name: call for name, call in calls.items() if "gradient" in name}, rounds)
    rows = [[f"PyTorch: {name}", f"{best[name]:.1f}"] for name in calls if not name.startswith(("compile", "package"))]
    names = [name for name in steps if name != "without"]
    rows += over(best, "compile", "PyTorch: torch.compile", names)
    return rows + over(best, "package", "PyTorch: AOTInductor's package", ["function"])


def warp_kernel() -> Callable[[Any], Any]:
    import warp

    from bench.warp_kernels import next_one

    warp.config.quiet = True
    kernel = warp.jax_kernel(next_one)
    return lambda x: kernel(x)[0]


def rows_of_jax(rounds: int, device: str, absent: dict[str, str]) -> list[list[str]]:
    import jax
    import jax.numpy as jnp

    def callback(x: Any) -> Any:
        return jax.pure_callback(lambda x: np.asarray(x) + 1, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    x = jax.device_put(jnp.ones(SIZE), jax.devices(device)[0])
    of_numpy = np.ones(SIZE, np.float32)
    empty = jax.jit(lambda x: x)

    def program(step: Callable[[Any], Any]) -> Callable[[], Any]:
        compiled: Any = jax.jit(lambda x: step(jnp.sin(x)) * 2)
        return lambda: compiled(x).block_until_ready()

    steps: dict[str, Callable[[Any], Any]] = {"without": lambda x: x, "function": function, "pure_callback": callback}
    try:
        steps["Warp's jax_kernel"] = warp_kernel()
    except (ImportError, AttributeError) as error:
        absent["Warp's jax_kernel"] = str(error)
    calls: dict[str, Callable[[], Any]] = {
        "jnp.sin": lambda: jnp.sin(x).block_until_ready(),
        "an empty program of jax.jit": lambda: empty(x).block_until_ready(),
        "kernel": lambda: launch(x),
        "function": lambda: function(x).block_until_ready(),
    }
    # By themselves: what comes after a callback to Python finds colder caches.
    best = microseconds(calls, rounds)
    direct = list(calls)
    others: dict[str, Callable[[], Any]] = {
        "jax.dlpack.from_dlpack of NumPy's array": lambda: jax.dlpack.from_dlpack(of_numpy),
        "jax.device_put of NumPy's array": lambda: jax.device_put(of_numpy).block_until_ready(),
    }
    direct += others
    best |= microseconds(others | {f"jit {name}": program(step) for name, step in steps.items()}, rounds)
    rows = [[f"JAX: {name}", f"{best[name]:.1f}"] for name in direct]
    return rows + over(best, "jit", "JAX: jit", [name for name in steps if name != "without"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=600, help="fewer or more of them write no results")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    given = parser.parse_args()
    rounds, device = given.rounds, given.device
    absent: dict[str, str] = {}
    load = os.getloadavg()[0]
    x = np.ones(SIZE, np.float32)
    best = microseconds({"kernel": lambda: launch(x), "function": lambda: function(x)}, rounds)
    rows = [[f"NumPy: {name}", f"{time:.1f}"] for name, time in best.items()]
    rows += rows_of_torch(rounds, device, absent) + rows_of_jax(rounds, device, absent)
    place = "the CPU" if device == "cpu" else "a GPU"
    print(measure.table(f"A launch of 256 threads on {place}", ["", "microseconds"], rows))
    for name, reason in absent.items():
        print(f"without {name}: {reason}")
    if rounds == parser.get_default("rounds"):
        versions = {name: importlib.metadata.version(name) for name in ("torch", "jax")}
        figures = {"load_before": load, "versions": versions, "microseconds": {name: float(t) for name, t in rows}}
        figures["absent"] = absent
        name = "frameworks" if device == "cpu" else "gpu_frameworks"
        print(f"\nwritten to {measure.write(name, figures)}")


if __name__ == "__main__":
    main()
