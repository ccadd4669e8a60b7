"""Threadgroup memory that is written again before others are known to have read it, as published bodies do."""

import re

import kiln
import numpy as np
import pytest

# The largest of a row and the sum of what is left, of 256 threads a row; both go through the same array.
REDUCE = """
    threadgroup float shared[32];
    uint lane = thread_index_in_simdgroup, simdgroup = simdgroup_index_in_threadgroup;
    if (OUT_OF_ROW) return;
    float v = x[thread_position_in_grid.x];
    float largest = simd_max(v);
    if (lane == 0) shared[simdgroup] = largest;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    largest = simd_max(lane < simdgroups_per_threadgroup ? shared[lane] : -INFINITY);
    BARRIER
    float sum = simd_sum(largest - v);
    if (lane == 0) shared[simdgroup] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    sum = simd_sum(lane < simdgroups_per_threadgroup ? shared[lane] : 0);
    y[thread_position_in_grid.x] = sum;
"""


def kernel_of(source):
    return kiln.metal_kernel(name="reduce", input_names=["x"], output_names=["y"], source=source)


def call(x):
    return {
        "inputs": [x],
        "output_shapes": [x.shape],
        "output_dtypes": ["float32"],
        "grid": (x.size, 1, 1),
        "threadgroup": (x.shape[1], 1, 1),
    }


@pytest.mark.parametrize("leave", ["false", "thread_position_in_grid.x >= 4096"])
@pytest.mark.parametrize("barrier", ["", "threadgroup_barrier(mem_flags::mem_threadgroup);"])
def test_reads_come_before_the_next_writes(barrier, leave):
    x = np.random.default_rng(0).integers(0, 1000, (16, 256)).astype(np.float32)
    kernel = kernel_of(REDUCE.replace("BARRIER", barrier).replace("OUT_OF_ROW", leave))
    (y,) = kernel(**call(x))
    expected = (x.max(1, keepdims=True) - x).sum(1, keepdims=True)
    np.testing.assert_array_equal(y, np.broadcast_to(expected, x.shape))
    assert kernel.history[0].engine == "simd"


def waits(source):
    compiled = kernel_of(source).compile(**call(np.zeros((16, 256), np.float32)))
    if compiled.engine != "simd":
        pytest.skip("the processor has no AVX2")
    lanes = compiled.stages()["lanes"]
    return len(re.findall(r"call i64 @__kiln_wait", lanes))


def test_barriers_are_added_only_where_memory_is_used_again():
    whole = REDUCE.replace("OUT_OF_ROW", "false")
    with_own = waits(whole.replace("BARRIER", "threadgroup_barrier(mem_flags::mem_threadgroup);"))
    assert waits(whole.replace("BARRIER", "")) == with_own
    # Another array for the sums.
    apart = whole.replace("BARRIER", "threadgroup float sums[32];").split("float sum = ", 1)
    assert waits(apart[0] + "float sum = " + apart[1].replace("shared[", "sums[")) == with_own - 1
    # Some simdgroups only: nobody may wait there.
    some = whole.replace("BARRIER", "").replace("float sum = ", "float sum = 0; if (simdgroup < 4) sum = ")
    some = some.replace("largest = simd_max(lane", "if (simdgroup < 4) largest = simd_max(lane")
    assert waits(some) == with_own - 1


def test_no_barrier_on_one_of_several_ways_besides_one_that_returns():
    source = """
    threadgroup float shared[8];
    uint lane = thread_index_in_simdgroup, simdgroup = simdgroup_index_in_threadgroup;
    float v = x[thread_position_in_grid.x];
    if (lane == 0) shared[simdgroup] = v;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float first = shared[simdgroup];
    switch (simdgroup) {
      case 0: y[thread_position_in_grid.x] = 0; return;
      case 1:
        first = simd_sum(first);
        simdgroup_barrier(mem_flags::mem_threadgroup);
        if (lane == 0) shared[1] = first;
        simdgroup_barrier(mem_flags::mem_threadgroup);
        first = shared[1];
        break;
      case 2: first = -first; break;
    }
    y[thread_position_in_grid.x] = simd_max(first);
"""
    x = np.arange(1, 513, dtype=np.float32).reshape(2, 256)
    (y,) = kernel_of(source)(**call(x))
    expected = np.repeat(x[:, ::32] * np.array([0, 32, -1, 1, 1, 1, 1, 1]), 32, axis=1)
    np.testing.assert_array_equal(y, expected)
