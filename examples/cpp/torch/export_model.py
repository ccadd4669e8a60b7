"""Stores a model with a kernel in it for a program in C++: python export_model.py model.pt2"""

import sys
from typing import Any

import kiln
import torch

swish_kernel = kiln.metal_kernel(
    name="swish",
    input_names=["x"],
    output_names=["y"],
    source="uint i = thread_position_in_grid.x; y[i] = x[i] / (1.0f + exp(-x[i]));",
)
swish = swish_kernel.function(
    output_shapes=lambda x: [x.shape],
    output_dtypes=lambda x: [x.dtype],
    grid=lambda x: (x.size, 1, 1),
    threadgroup=(256, 1, 1),
)


class Model(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return swish(torch.sin(x)) * 2


def main(path: str) -> None:
    # Of any number of rows.
    program = torch.export.export(Model(), (torch.ones(8, 5),), dynamic_shapes=({0: torch.export.Dim("rows")},))
    torch._inductor.aoti_compile_and_package(program, package_path=path)


if __name__ == "__main__":
    main(sys.argv[1])
