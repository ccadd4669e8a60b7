"""Data-parallel fit in MLX: each process has a part of the pixels, gradients are summed over all.

mlx.launch -n 2 --backend ring python examples/distributed/fit_mlx.py
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import mlx.core as mx

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))
from examples.distributed.discs import RATE, STEPS, problem, render


def main() -> None:
    group = mx.distributed.init()
    rank, count = group.rank(), group.size()
    discs, pixels, picture = (mx.array(array) for array in problem())
    size = pixels.shape[0]
    part = slice(rank * size // count, (rank + 1) * size // count)
    pixels, picture = pixels[part], picture[part]

    def loss(discs: Any) -> Any:
        return ((render(discs, pixels) - picture) ** 2).sum() / size

    losses = []
    for _ in range(STEPS):
        value, gradient = mx.value_and_grad(loss)(discs)
        value, gradient = mx.distributed.all_sum(value), mx.distributed.all_sum(gradient)
        discs = discs - RATE * gradient
        losses.append(value.item())
    if rank == 0:
        print(f"{count} processes: loss {losses[0]:.6f} -> {losses[-1]:.6f}", flush=True)


if __name__ == "__main__":
    main()
