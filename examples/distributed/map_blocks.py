"""A function over the blocks of an array in the workers of a Dask cluster, to which it is pickled.

python examples/distributed/map_blocks.py    # needs dask[array,distributed]
"""

from __future__ import annotations

from typing import Any

import kiln
import numpy as np

swish_kernel = kiln.metal_kernel(
    name="swish",
    input_names=["x"],
    output_names=["y"],
    source="uint i = thread_position_in_grid.x; y[i] = x[i] / (1 + exp(-x[i]));",
)


# Functions of a module, which are pickled by their names.
def same_shape(x: Any) -> Any:
    return [x.shape]


def same_dtype(x: Any) -> Any:
    return [x.dtype]


def thread_per_element(x: Any) -> Any:
    return x.size


def main() -> None:
    import dask.array
    from dask.distributed import Client, LocalCluster

    swish = swish_kernel.function(
        output_shapes=same_shape, output_dtypes=same_dtype, grid=thread_per_element, threadgroup=256
    )
    x = np.linspace(-4, 4, 1_000_000, dtype=np.float32).reshape(1000, 1000)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
        y = dask.array.from_array(x, chunks=(250, 500)).map_blocks(swish, dtype=np.float32).compute()
    print("8 blocks on 2 workers:", "as on one" if np.array_equal(y, swish(x)) else "wrong")


if __name__ == "__main__":
    main()
