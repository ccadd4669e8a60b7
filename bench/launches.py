"""What one small launch costs from Python: 32 elements, output allocated."""

from __future__ import annotations

from typing import Any

import kiln
import kiln.mlx
import mlx.core as mx
import numpy as np

from bench import bodies, measure

ELEMENTS = 32
ROUNDS = 15
CALLS = 2000
CHAIN = 1000


def run(progress) -> tuple[dict[str, Any], list[str]]:
    progress("small launches")
    a = np.linspace(-1, 1, ELEMENTS, dtype=np.float32)
    b = mx.array(a)
    mx.eval(b)
    numpy_kernel, mlx_kernel = bodies.exp_kernel(kiln.metal_kernel), bodies.exp_kernel(kiln.mlx.metal_kernel)
    numpy_call, mlx_call = bodies.exp_call(a, a.dtype), bodies.exp_call(b, b.dtype)

    single = {
        "Kiln, NumPy array": lambda: numpy_kernel(**numpy_call),
        "Kiln, MLX array, one per eval": lambda: mx.eval(mlx_kernel(**mlx_call)),
        "mx.exp, one per eval": lambda: mx.eval(mx.exp(b)),
        "numpy.exp": lambda: np.exp(a),
    }
    try:
        from bench import warp_kernels
    except ImportError:
        progress("NVIDIA Warp is not installed: `make bench` installs it")
    else:
        single["Warp, CPU back end, output given"] = warp_kernels.SmallLaunch(a)
    times = measure.in_turns(single, ROUNDS, CALLS)

    def chain(step):
        def evaluate():
            value = b
            for _ in range(CHAIN):
                value = step(value)
            mx.eval(value)

        return evaluate

    def kiln_step(value):
        return mlx_kernel(**(mlx_call | {"inputs": [value]}))[0]

    chains = {
        f"Kiln, MLX array, graph of {CHAIN}": chain(kiln_step),
        f"mx.tanh, graph of {CHAIN}": chain(mx.tanh),
    }
    for name, samples in measure.in_turns(chains, ROUNDS).items():
        times[name] = measure.Samples(tuple(value / CHAIN for value in samples.values))

    rows = []
    for name, s in times.items():
        low, high = s.quartiles
        rows.append([name, f"{1e3 * s.median:.2f} µs ({1e3 * low:.2f} to {1e3 * high:.2f})"])
    figures = {name: samples.as_json() for name, samples in times.items()}
    return figures, [measure.table(f"one launch of {ELEMENTS} elements", ["", "median (quartiles)"], rows)]
