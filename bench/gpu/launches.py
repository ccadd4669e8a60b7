"""What one small launch costs the host: 32 elements, PyTorch's arrays where the library takes them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kiln
import torch

from bench import bodies
from bench.gpu import by_hand
from bench.measure import Samples, table

ELEMENTS = 32
ROUNDS = 15
CALLS = 1000
CHAIN = 1000


def _in_turns(functions: dict[str, Callable[[], object]]) -> dict[str, Samples]:
    """The host's time for a call. The GPU keeps up: a launch takes it less."""
    values: dict[str, list[float]] = {name: [] for name in functions}
    for round_number in range(ROUNDS + 1):
        for name, function in functions.items():
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(CALLS):
                function()
            elapsed = 1e3 * (time.perf_counter() - start) / CALLS
            torch.cuda.synchronize()
            if round_number > 0:
                values[name].append(elapsed)
    return {name: Samples(tuple(times)) for name, times in values.items()}


def run() -> tuple[dict[str, Any], list[str]]:
    x = torch.linspace(-1, 1, ELEMENTS, device="cuda")
    out = torch.empty_like(x)
    kernel = bodies.exp_kernel(kiln.metal_kernel)
    cuda = kiln.cuda_kernel(
        name="exp_cuda",
        input_names=["inp"],
        output_names=["out"],
        source="int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < 32) out[i] = expf(inp[i]);",
    )
    grid, threadgroup, template = (ELEMENTS, 1, 1), (32, 1, 1), [("T", x.dtype)]
    functions: dict[str, Callable[[], object]] = {
        "Kiln, output allocated": lambda: kernel(
            inputs=[x],
            output_shapes=[x.shape],
            output_dtypes=[x.dtype],
            grid=grid,
            threadgroup=threadgroup,
            template=template,
        ),
        "Kiln, output given": lambda: kernel(
            inputs=[x], outputs=[out], grid=grid, threadgroup=threadgroup, template=template
        ),
        "Kiln, CUDA body, output allocated": lambda: cuda(
            inputs=[x], output_shapes=[x.shape], output_dtypes=[x.dtype], grid=grid, threadgroup=threadgroup
        ),
        "torch.exp, output allocated": lambda: torch.exp(x),
        "torch.exp, output given": lambda: torch.exp(x, out=out),
    }

    try:
        import cupy
    except ImportError:
        pass
    else:
        a, b = cupy.from_dlpack(x), cupy.from_dlpack(out)
        raw = cupy.RawKernel(by_hand.EXP, "exp_of")
        count = cupy.int32(ELEMENTS)
        functions["CuPy RawKernel, output given"] = lambda: raw((1,), (32,), (a, b, count))

        def with_cupys_output() -> None:
            raw((1,), (32,), (a, cupy.empty_like(a), count))

        functions["CuPy RawKernel, output allocated"] = with_cupys_output
        nothing = cupy.RawKernel('extern "C" __global__ void nothing() {}', "nothing")
        functions["CuPy RawKernel without arguments"] = lambda: nothing((1,), (32,), ())
    try:
        from bench.gpu import triton_kernels
    except ImportError:
        pass
    else:
        functions["Triton, output given"] = lambda: triton_kernels.exp_of[(1,)](x, out, ELEMENTS, BLOCK=32)
        functions["Triton, output allocated"] = lambda: triton_kernels.exp_of[(1,)](
            x, torch.empty_like(x), ELEMENTS, BLOCK=32
        )
    try:
        import warp

        from bench.gpu import warp_kernels
    except ImportError:
        pass
    else:
        warp.config.quiet = True
        warp.init()
        from_warp, to_warp = warp.from_torch(x), warp.from_torch(out)
        stream = warp.stream_from_torch(torch.cuda.current_stream())
        functions["Warp, output given"] = lambda: warp.launch(
            warp_kernels.exp_of, dim=ELEMENTS, inputs=[from_warp], outputs=[to_warp], stream=stream
        )
        functions["Warp, output allocated"] = lambda: warp.launch(
            warp_kernels.exp_of, dim=ELEMENTS, inputs=[from_warp], outputs=[warp.empty_like(from_warp)], stream=stream
        )
        recorded = warp.launch(
            warp_kernels.exp_of, dim=ELEMENTS, inputs=[from_warp], outputs=[to_warp], stream=stream, record_cmd=True
        )
        functions["Warp, a recorded launch again"] = lambda: recorded.launch(stream)
    if hasattr(torch.cuda, "_compile_kernel"):
        compiled = torch.cuda._compile_kernel(by_hand.EXP, "exp_of")
        functions["torch.cuda._compile_kernel, output given"] = lambda: compiled(
            (1, 1, 1), (32, 1, 1), (x, out, ELEMENTS)
        )
        functions["torch.cuda._compile_kernel, output allocated"] = lambda: compiled(
            (1, 1, 1), (32, 1, 1), (x, torch.empty_like(x), ELEMENTS)
        )
    times = _in_turns(functions)
    times |= _from_cpp() | _mlx_chains()
    rows = [[name, str(samples)] for name, samples in times.items()]
    figures = {name: samples.as_json() for name, samples in times.items()}
    return figures, [table(f"one launch of {ELEMENTS} elements, host time", ["", "median (quartiles)"], rows)]


def _from_cpp() -> dict[str, Samples]:
    """Of ``launch_cost.cpp``, which a bundle has as a program; nothing where there is no compiler either."""
    here = Path(__file__).parent
    library = next(Path(kiln.__file__).parent.glob("libkiln.so*"))
    program = here / "launch_cost"
    with tempfile.TemporaryDirectory() as folder:
        if not program.exists():
            compiler = shutil.which("c++")
            if not compiler:
                return {}
            program = Path(folder) / "launch_cost"
            include = here.parent.parent / "include"
            command = [
                compiler,
                "-std=c++20",
                "-O2",
                f"-I{include}",
                str(here / "launch_cost.cpp"),
                str(library),
                "-ldl",
            ]
            subprocess.run([*command, "-o", str(program)], check=True)
        search = os.pathsep.join(filter(None, [str(library.parent), os.environ.get("LD_LIBRARY_PATH")]))
        environment = {
            **os.environ,
            "LD_LIBRARY_PATH": search,
            "KILN_COMPILER": str(library.parent / "libkiln_compiler.so"),
        }
        output = subprocess.run([program], check=True, capture_output=True, text=True, env=environment).stdout
    return {name: Samples(tuple(us / 1000 for us in rounds)) for name, rounds in json.loads(output).items()}


def _mlx_chains() -> dict[str, Samples]:
    """A graph of many small kernels in MLX; nothing where MLX has no GPU."""
    try:
        import mlx.core as mx
    except ImportError:
        return {}
    if not mx.is_available(mx.gpu):
        return {}
    import kiln.mlx

    value = mx.linspace(-1, 1, ELEMENTS)
    mx.eval(value)
    text = "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < 32) out[i] = tanhf(inp[i]);"

    def make(interface: Callable[..., Any], name: str, source: str) -> Any:
        return interface(name=name, input_names=["inp"], output_names=["out"], source=source)

    metal = "uint i = thread_position_in_grid.x; out[i] = tanh(inp[i]);"
    kernels = {
        "Kiln, Metal body": make(kiln.mlx.metal_kernel, "tanh_metal", metal),
        "Kiln, CUDA body": make(kiln.mlx.cuda_kernel, "tanh_cuda", text),
        "MLX cuda_kernel": make(mx.fast.cuda_kernel, "tanh_mlx", text),
    }
    call = {
        "grid": (ELEMENTS, 1, 1),
        "threadgroup": (32, 1, 1),
        "output_shapes": [(ELEMENTS,)],
        "output_dtypes": [mx.float32],
    }

    def chain(kernel):
        current = value
        for _ in range(CHAIN):
            current = kernel(inputs=[current], **call)[0]
        mx.eval(current)

    def single(kernel):
        for _ in range(CHAIN):
            mx.eval(kernel(inputs=[value], **call))

    values: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        for name, kernel in kernels.items():
            for kind, function in ((f"a graph of {CHAIN}", chain), ("one per eval", single)):
                start = time.perf_counter()
                function(kernel)
                values.setdefault(f"MLX array, {kind}: {name}", []).append(1e3 * (time.perf_counter() - start) / CHAIN)
    return {name: Samples(tuple(times[1:])) for name, times in values.items()}
