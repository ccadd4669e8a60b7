"""`_sync` functions wait for the lanes that their masks name, and each thread of a warp makes progress (CUDA, sm_70)."""

import os

import kiln
import numpy as np
import pytest
import warp_bodies
from configurations import available, call_on, has
from warp_bodies import BODIES, expected


@pytest.mark.parametrize("name", BODIES)
def test_a_warp_that_parts(name):
    for configuration, (y, engine, reason) in call_on(available(), "warp_bodies", "result", name).items():
        np.testing.assert_array_equal(y, expected(name), err_msg=str(configuration))
        takes = BODIES[name].simd and configuration[0] == "simd"
        assert engine == ("simd" if takes else "scalar"), reason


def test_why_the_scalar_engine_runs_such_bodies():
    assert warp_bodies.result("halves_swap")[2] == (
        "the SIMD engine does not take it: lanes that the mask of a _sync function names may wait at another call"
    )
    assert warp_bodies.result("a_lock_of_all_threads")[2] == (
        "the SIMD engine does not take it: a loop waits for other threads of its threadgroup"
    )


def launch(source, threads=32, header=""):
    return launch_on(np.arange(threads, dtype=np.int32), source, (threads, 1, 1), (threads, 1, 1), header)


def launch_on(x, source, grid, threadgroup, header=""):
    """An output of x's shape."""
    kernel = kiln.cuda_kernel(name="k", input_names=["x"], output_names=["y"], source=source, header=header)
    (y,) = kernel(inputs=[x], grid=grid, threadgroup=threadgroup, output_shapes=[x.shape], output_dtypes=[np.int32])
    return y


# Lanes that never come, and where the others wait.
NEVER_COME = {
    "wait_at_a_barrier": (
        "int t = threadIdx.x;\nif (t < 8)\n  y[t] = __shfl_down_sync(~0u, t, 4);\n__syncthreads();\ny[t] += 1;",
        "only 8 of 32 threads that its mask names reach the _sync function in line 3 of the source",
    ),
    "wait_with_another_function": (
        "int t = threadIdx.x;\nif (t < 8)\n  y[t] = __shfl_sync(~0u, t, 4);\nelse\n  y[t] = __ballot_sync(~0u, t);",
        "only 8 of 32 threads that its mask names reach the _sync function in line 3 of the source",
    ),
    "shuffle_in_another_direction": (
        "int t = threadIdx.x;\nif (t & 1)\n  y[t] = __shfl_up_sync(~0u, t, 1);\nelse y[t] = __shfl_down_sync(~0u, t, 1);",
        "only 16 of 32 threads that its mask names reach the _sync function in line 3 of the source",
    ),
    "wait_with_another_mask": (
        "int t = threadIdx.x;\n\nif (t < 16)\n  __syncwarp(~0u);\nelse __syncwarp(0xffff8000);\ny[t] = 1;",
        "only 16 of 32 threads that its mask names reach the _sync function in line 4 of the source",
    ),
    "shuffle_values_of_another_size": (
        "int t = threadIdx.x;\ndouble d = t;\nif (t < 16) t = __shfl_xor_sync(~0u, t, 16);\nelse\n"
        "  d = __shfl_xor_sync(~0u, d, 16);\ny[threadIdx.x] = t + (int)d;",
        "only 16 of 32 threads that its mask names reach the _sync function in line 3 of the source",
    ),
    "wait_in_a_loop_that_others_have_left": (
        "int t = threadIdx.x, r = 0;\nfor (int k = 0; k < t; ++k)\n  r += __shfl_sync(~0u, t, 31);\n"
        "y[t] = r + __any_sync(~0u, t);",
        "only 31 of 32 threads that its mask names reach the _sync function in line 3 of the source",
    ),
    "belong_to_a_tile": (
        "int t = threadIdx.x;\nauto tile = cg::tiled_partition<16>(cg::this_thread_block());\nif (t % 16 < 3)\n"
        "  y[t] = tile.shfl(t, 1);\ncg::this_thread_block().sync();\ny[t] = 1;",
        "only 3 of 16 threads that its mask names reach the _sync function in line 4 of the source",
    ),
    "wait_in_a_function": (
        "int t = threadIdx.x;\nif (t < 5) y[t] = twice(t);\n__syncthreads();\ny[t] = 1;",
        "only 5 of 32 threads that its mask names reach the _sync function in line 2 of the header",
    ),
}


@pytest.mark.parametrize("name", NEVER_COME)
def test_lanes_that_never_come_are_an_error(name):
    source, message = NEVER_COME[name]
    header = "__device__ int twice(int v) {\n  return 2 * __reduce_add_sync(~0u, v);\n}" if "twice" in source else ""
    with pytest.raises(kiln.DeviceError) as raised:
        launch(source, header=header)
    assert str(raised.value) == f"kernel `k`: {message}; the launch was ended"
    # Later launches are sound.
    np.testing.assert_array_equal(launch("y[threadIdx.x] = x[threadIdx.x] + 1;"), np.arange(1, 33))


def test_blocks_that_are_no_whole_warps():
    y = launch(
        "int t = threadIdx.x, r;\nif (t & 1) r = __shfl_xor_sync(~0u, t, 1); else r = __shfl_xor_sync(~0u, t, 1);\ny[t] = r;",
        threads=44,
    )
    np.testing.assert_array_equal(y, np.arange(44) ^ 1)


@pytest.mark.parametrize("number", ["gridDim.x", "blockIdx.x", "(blockDim.x * 65)"])
def test_numbers_that_are_no_threads(number):
    """Multiples of 32 that a launch has, but not below 1024, as the number of a warp's first thread is."""
    blocks = 2100
    x = np.random.default_rng(5).integers(0, 100, (blocks, 32)).astype(np.int32)
    source = f"""
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31, r;
    unsigned n = ({number} & ~31u) | lane;
    if (n < 2080 + 8) r = __shfl_sync(~0u, x[i] * 3, 20); else r = __shfl_sync(~0u, x[i] * 5 + 2000, 1);
    y[i] = r;
    """
    of_block = {"gridDim.x": np.full(blocks, blocks), "blockIdx.x": np.arange(blocks)}
    n = (of_block.get(number, np.full(blocks, 2080)) & ~31)[:, None] | np.arange(32)
    np.testing.assert_array_equal(launch_on(x, source, (x.size, 1, 1), (32, 1, 1)), from_one_or_twenty(x, n < 2088))


def test_the_number_in_the_row_is_not_that_in_the_threadgroup():
    x = np.random.default_rng(6).integers(0, 100, (4, 32)).astype(np.int32)
    source = """
    int i = threadIdx.y * 64 + threadIdx.x, lane = i & 31, r;
    if ((threadIdx.x & ~31u | lane) + 8 < (i & ~31u) + 16)
      r = __shfl_sync(~0u, x[i] * 3, 20);
    else
      r = __shfl_sync(~0u, x[i] * 5 + 2000, 1);
    y[i] = r;
    """
    goes_first = (np.arange(4)[:, None] >= 2) | (np.arange(32) < 8)
    np.testing.assert_array_equal(launch_on(x, source, (64, 2, 1), (64, 2, 1)), from_one_or_twenty(x, goes_first))


def from_one_or_twenty(x, goes_first):
    """By warps: what lane 20 passes to those that go first, and lane 1 to the others."""
    passed = np.where(goes_first, x * 3, x * 5 + 2000)
    return np.where(goes_first, passed[:, 20:21], passed[:, 1:2])


def test_warps_of_rows_and_columns():
    source = """
    int i = threadIdx.y * blockDim.x + threadIdx.x, r;
    if (threadIdx.y & 1) r = __shfl_xor_sync(~0u, x[i], 8); else r = __shfl_xor_sync(~0u, x[i], 8);
    y[i] = r;
    """
    x = np.arange(64, dtype=np.int32) * 3
    np.testing.assert_array_equal(launch_on(x, source, (8, 8, 1), (8, 8, 1)), x[np.arange(64) ^ 8])


def test_metal_keeps_its_rule():
    kernel = kiln.metal_kernel(
        name="k",
        input_names=["x"],
        output_names=["y"],
        source="""
        uint t = thread_position_in_grid.x;
        int r;
        if (t % 32 < 16) r = simd_shuffle_xor(x[t], 16); else r = simd_shuffle_xor(x[t], 16);
        y[t] = r;
        """,
    )
    x = np.arange(1, 33, dtype=np.int32)
    (y,) = kernel(inputs=[x], grid=(32, 1, 1), threadgroup=(32, 1, 1), output_shapes=[(32,)], output_dtypes=[np.int32])
    np.testing.assert_array_equal(y, 0)
    assert kernel.history[-1].engine == "simd" or not has("x86-64-v3")


def test_threadgroups_that_wait_for_one_another():
    """A barrier of the grid made of an atomic: the threads of all blocks wait until all have come."""
    kernel = kiln.cuda_kernel(
        name="k",
        input_names=["x"],
        output_names=["y", "count"],
        source="""
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (threadIdx.x == 0) {
          atomicAdd(&count[0], 1);
          while (atomicAdd(&count[0], 0) < (int)gridDim.x);
        }
        __syncthreads();
        y[i] = x[i] + count[0];
        """,
    )
    x = np.arange(64, dtype=np.int32)
    blocks = 2 if len(os.sched_getaffinity(0)) > 1 else 1
    y, _ = kernel(
        inputs=[x],
        grid=(64, 1, 1),
        threadgroup=(64 // blocks, 1, 1),
        output_shapes=[(64,), (1,)],
        output_dtypes=[np.int32, np.int32],
        init_value=0,
    )
    np.testing.assert_array_equal(y, x + blocks)
