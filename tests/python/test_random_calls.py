"""Calls that nobody thought of: arrays of any shape, layout and dtype, of both libraries, over any grid."""

import kiln
import kiln.mlx
import mlx.core as mx
import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mlx_kernels import DTYPES, to_mlx, to_numpy

# Each thread reads one element, by the strides; the last elements of the output belong to no thread.
SOURCE = """
    uint3 p = thread_position_in_grid, n = threads_per_grid;
    uint i = p.x + n.x * (p.y + n.y * p.z);
    uint size = 1;
    for (int d = 0; d < x_ndim; ++d) size *= x_shape[d];
    out[i] = size ? x[elem_to_loc<int64_t>(i % size, x_shape, x_strides, x_ndim)] * T(N) + T(number) : T(3);
"""
KERNELS = {
    (library, contiguous): module.metal_kernel(
        "random_call", ["x", "number"], ["out"], SOURCE, ensure_row_contiguous=contiguous
    )
    for library, module in (("numpy", kiln), ("mlx", kiln.mlx))
    for contiguous in (True, False)
}


@st.composite
def views(draw):
    """Part of an array: turned, with steps, backwards, with dimensions of one element repeated."""
    dtype = DTYPES[draw(st.sampled_from(["uint8", "int16", "int32", "int64", "float16", "bfloat16", "float32"]))]
    shape = draw(st.lists(st.integers(0, 6), min_size=1, max_size=4))
    array = np.arange(np.prod(shape, dtype=int)).astype(dtype).reshape(shape)
    steps = st.sampled_from([1, 1, 2, 3, -1, -2])
    array = array[tuple(slice(None, None, draw(steps)) for _ in shape)]
    array = array.transpose(draw(st.permutations(range(array.ndim))))
    if draw(st.booleans()):
        array = np.broadcast_to(array, (draw(st.integers(1, 3)), *array.shape))
    return array


@settings(derandomize=True, database=None, deadline=None, max_examples=150, suppress_health_check=list(HealthCheck))
@given(
    x=views(),
    factor=st.integers(0, 2),
    number=st.integers(0, 2),
    grid=st.tuples(*[st.integers(0, 7)] * 3),
    threadgroup=st.tuples(st.integers(1, 40), st.integers(1, 5), st.integers(1, 5)),
    unreached=st.integers(0, 3),
    kernel=st.sampled_from(list(KERNELS)),
)
def test_a_call_of_any_shape(x, factor, number, grid, threadgroup, unreached, kernel):
    threads = int(np.prod(grid))
    library, _ = kernel
    before = x.tobytes()
    (out,) = KERNELS[kernel](
        inputs=[to_mlx(x) if library == "mlx" else x, number],
        template=[("T", x.dtype.name), ("N", factor)],
        grid=grid,
        threadgroup=threadgroup,
        output_shapes=[(threads + unreached,)],
        output_dtypes=[x.dtype.name],
        init_value=1,
    )
    out = to_numpy(out) if isinstance(out, mx.array) else out
    expected = np.ones(threads + unreached, x.dtype)
    if x.size:
        elements = np.resize(np.ascontiguousarray(x), threads)
        expected[:threads] = elements * x.dtype.type(factor) + x.dtype.type(number)
    else:
        expected[:threads] = 3
    assert out.dtype == expected.dtype
    np.testing.assert_array_equal(out, expected)
    assert x.tobytes() == before
