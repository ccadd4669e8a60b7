"""Bodies whose compilation once took time out of all proportion, against one that has nothing to it."""

import itertools
import time

import kiln
import numpy as np

numbers = itertools.count()


def seconds(source):
    """Of processor time, for a threadgroup of 16 threads, of which each has 16 halves."""
    # Another text each time: the same one is compiled once.
    text = f"// {next(numbers)}\n{source}"
    kernel = kiln.metal_kernel(name="timed", input_names=["x"], output_names=["y"], source=text)
    start = time.process_time()
    kernel(
        inputs=[np.ones((16, 16), np.float16)],
        output_shapes=[(16, 16)],
        output_dtypes=[np.float16],
        grid=(16, 1, 1),
        threadgroup=(16, 1, 1),
    )
    return time.process_time() - start


def test_many_accesses_one_after_the_other():
    """Half of a simdgroup with numbers of its own in registers: each access is an instruction for each thread."""
    copy = min(seconds("y[16 * thread_position_in_grid.x] = x[0];") for _ in range(5))
    exchange = seconds("""
        threadgroup half s[256];
        const uint u = thread_position_in_threadgroup.x;
        half v[16];
        #pragma unroll
        for (uint i = 0; i < 16; ++i) v[i] = x[16 * u + i];
        #pragma unroll
        for (uint i = 0; i < 16; ++i) s[16 * i + (u ^ i)] = v[i] * v[15 - i];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        #pragma unroll
        for (uint i = 0; i < 16; ++i) y[16 * u + i] = v[i] + s[16 * u + i];
    """)
    assert exchange < 90 * copy  # 40 to 50; 150 where the scheduler compares all accesses with one another
