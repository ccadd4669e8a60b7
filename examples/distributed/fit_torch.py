"""Data-parallel fit in PyTorch: each process has a part of the pixels, gradients are summed over all.

torchrun --nproc-per-node 2 examples/distributed/fit_torch.py    # on CPUs; with --gpus a GPU for each process
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
import torch.distributed as distributed

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))
from examples.distributed.discs import RATE, STEPS, problem, render


def main() -> None:
    on_gpus = "--gpus" in sys.argv
    distributed.init_process_group("nccl" if on_gpus else "gloo")
    rank, count = distributed.get_rank(), distributed.get_world_size()
    device = torch.device("cuda", rank % torch.cuda.device_count()) if on_gpus else torch.device("cpu")

    start, pixels, picture = (torch.from_numpy(array).to(device) for array in problem())
    part = slice(rank * len(pixels) // count, (rank + 1) * len(pixels) // count)
    pixels, picture, size = pixels[part], picture[part], len(pixels)
    discs = start.requires_grad_()
    losses = []
    for _ in range(STEPS):
        loss = ((render(discs, pixels) - picture) ** 2).sum() / size
        (gradient,) = torch.autograd.grad(loss, discs)
        loss = loss.detach()
        for value in (loss, gradient):
            distributed.all_reduce(value)
        with torch.no_grad():
            discs -= RATE * gradient
        losses.append(loss.item())
    if rank == 0:
        print(f"{count} processes: loss {losses[0]:.6f} -> {losses[-1]:.6f}")
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
