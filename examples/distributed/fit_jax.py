"""Data-parallel fit in JAX: `shard_map` over all devices, of one process or of several.

python examples/distributed/fit_jax.py                            # four CPU devices, or the GPUs that are there
python examples/distributed/fit_jax.py localhost:4000 2 0         # the first of two processes, and in another shell
python examples/distributed/fit_jax.py localhost:4000 2 1         # the second
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=4")
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))
import kiln.jax

from examples.distributed.discs import RATE, STEPS, problem, render


def main() -> None:
    if len(sys.argv) == 4:
        address, processes, process = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
        jax.distributed.initialize(address, processes, process)
    mesh = Mesh(np.array(jax.devices()), ("devices",))
    cut, whole = NamedSharding(mesh, PartitionSpec("devices")), NamedSharding(mesh, PartitionSpec())

    def on_devices(array: Any, sharding: Any) -> Any:
        return jax.make_array_from_callback(array.shape, sharding, lambda index: array[index])

    start, pixels, picture = problem()
    # As `render.sharding` says: parts of the pixels, all discs, whose gradients JAX sums.
    on_all = kiln.jax.on_mesh(render, mesh, "devices")

    def loss(discs: Any, pixels: Any, picture: Any) -> Any:
        return jnp.mean((on_all(discs, pixels) - picture) ** 2)

    def step(discs: Any, pixels: Any, picture: Any) -> Any:
        value, gradient = jax.value_and_grad(loss)(discs, pixels, picture)
        return discs - RATE * gradient, value

    compiled_step: Any = jax.jit(step)
    discs = on_devices(start, whole)
    pixels, picture = on_devices(pixels, cut), on_devices(picture, cut)
    losses = []
    for _ in range(STEPS):
        discs, value = compiled_step(discs, pixels, picture)
        losses.append(float(value))
    if jax.process_index() == 0:
        print(f"{len(jax.devices())} devices: loss {losses[0]:.6f} -> {losses[-1]:.6f}")


if __name__ == "__main__":
    main()
