"""Inputs and outputs of every kind, against NumPy: what a kernel reads is what the array holds, however it lies in
memory, and what it writes is where MLX's own operations find it."""

import gc

import kiln
import kiln.mlx
import mlx.core as mx
import numpy as np
import pytest
from mlx_kernels import ADD, COPY, DOUBLE, DTYPES, STRIDED_COPY, call, call1, make, numbers, to_mlx, to_numpy

# Views, as functions of an array that mean the same for both libraries.
VIEWS = {
    "whole": lambda a: a,
    "steps": lambda a: a[::2],
    "window": lambda a: a[1:5, 2:7],
    "column": lambda a: a[:, 3],
    "row": lambda a: a[4],
    "7 of a row": lambda a: a[2, 1:8],
    "7 of a column": lambda a: a[1:8, 2],
    "one element": lambda a: a[3:4, 5:6],
    "0-dimensional": lambda a: a[3, 5],
    "empty": lambda a: a[4:4],
    "empty columns": lambda a: a[:, 4:4],
    "transposed": lambda a: a.T,
    "transposed window": lambda a: a.T[2:7, 1:5],
    "folded": lambda a: a.reshape(3, 3, 4, 2).transpose(2, 0, 3, 1),
    "with ones": lambda a: a[::3, None, :, None],
    "backwards": lambda a: a[::-1],
    "backwards twice": lambda a: a[::-1, ::-1],
    "backwards in steps": lambda a: a[7:0:-2, 6:1:-3],
    "7 backwards": lambda a: a[3, 7:0:-1],
    "transposed backwards": lambda a: a.T[::-2],
}
BROADCASTS = {
    "rows": (lambda a: a[:, :1], (9, 8)),
    "columns": (lambda a: a[0], (9, 8)),
    "more dimensions": (lambda a: a[:, None, 2:3], (3, 9, 4, 5)),
    "one element": (lambda a: a[2, 3], (7,)),
    "one element to many": (lambda a: a[2, 3], (30, 2)),
    "backwards": (lambda a: a[::-1, :1], (9, 8)),
    "to nothing": (lambda a: a[2, 3], (4, 0)),
}


def copies_of(view):
    """What a kernel that copies makes of an array, by both ways of reading it."""
    if view.ndim == 0:
        body = "out[0] = a;"
        return [call1(make(body, ensure_row_contiguous=flag), view, threads=1) for flag in (True, False)]
    return [call1(make(COPY), view), call1(make(STRIDED_COPY, ensure_row_contiguous=False), view)]


def check_copies(view, expected):
    for copy in copies_of(view):
        assert copy.dtype == view.dtype and copy.shape == expected.shape
        np.testing.assert_array_equal(to_numpy(copy), expected)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("evaluated", [True, False], ids=["evaluated", "lazy"])
def test_views(view, evaluated):
    whole = numbers((9, 8))
    array = VIEWS[view](mx.array(whole))
    if evaluated:
        mx.eval(array)
    check_copies(array, VIEWS[view](whole))


@pytest.mark.parametrize("broadcast", BROADCASTS)
def test_broadcast_arrays(broadcast):
    view, shape = BROADCASTS[broadcast]
    whole = numbers((9, 8))
    check_copies(mx.broadcast_to(view(mx.array(whole)), shape), np.broadcast_to(view(whole), shape))


def test_strides_that_no_slice_has():
    whole = numbers((40,))
    array = mx.as_strided(mx.array(whole), (5, 4, 3), (2, -1, 7), 10)
    step = whole.itemsize
    check_copies(array, np.lib.stride_tricks.as_strided(whole[10:], (5, 4, 3), (2 * step, -step, 7 * step)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("view", ["whole", "transposed", "backwards in steps", "7 of a row", "0-dimensional", "empty"])
def test_dtypes(dtype, view):
    whole = numbers((9, 8), dtype)
    check_copies(VIEWS[view](to_mlx(whole)), VIEWS[view](whole))


def test_strides_reach_the_body():
    body = """
        uint i = thread_position_in_grid.x;
        out[i] = i < uint(a_ndim) ? a_strides[i] : a_shape[i - a_ndim];
    """
    array = mx.array(numbers((6, 5, 4)))[::-1].transpose(2, 0, 1)
    passed = call1(make(body, ensure_row_contiguous=False), array, shapes=[(6,)], dtypes=[mx.int64])
    np.testing.assert_array_equal(np.array(passed), [1, -20, 4, 4, 6, 5])
    # A copy has the strides of a copy.
    copied = call1(make(body), array, shapes=[(6,)], dtypes=[mx.int64])
    np.testing.assert_array_equal(np.array(copied), [30, 5, 1, 4, 6, 5])


def test_several_views_of_one_array():
    whole = numbers((12,))
    array = mx.array(whole)
    kernel = make(
        """
        uint i = thread_position_in_grid.x;
        out[i] = a[elem_to_loc<int64_t>(i, a_shape, a_strides, a_ndim)] - b[2 * i] * c[0];
        """,
        inputs=("a", "b", "c"),
        ensure_row_contiguous=False,
    )
    result = call1(kernel, array[5::-1], array[:11], mx.broadcast_to(array[3], (9,)), shapes=[(6,)])
    np.testing.assert_array_equal(np.array(result), whole[5::-1] - whole[:11:2] * whole[3])


# ---- Numbers among the inputs


@pytest.mark.parametrize(
    ("number", "dtype"),
    [
        (True, "bool_"),
        (-7, "int32"),
        (2**31 - 1, "int32"),
        (2**31, "int64"),
        (-(2**63), "int64"),
        (0.1, "float32"),
        (float("inf"), "float32"),
        (1 - 2.5j, "complex64"),
        (np.int64(5), "int64"),
        (np.float32(0.3), "float32"),
        (np.array(0.3, np.float16), "float16"),
    ],
    ids=repr,
)
def test_numbers(number, dtype):
    result = call1(make("out[0] = a;"), number, shapes=[(1,)], dtypes=[DTYPES[dtype].name])
    np.testing.assert_array_equal(to_numpy(result), [DTYPES[dtype].type(number)])
    text = make("out[0] = a;").source_for(
        inputs=[number], output_shapes=[(1,)], output_dtypes=[mx.int32], grid=(1, 1, 1), threadgroup=(1, 1, 1)
    )
    metal = {"bool_": "bool", "int32": "int32_t", "int64": "int64_t", "float32": "float", "float16": "float16_t"}
    assert f"const constant {metal.get(dtype, 'complex64_t')}& a" in text


def test_numbers_between_arrays():
    a = numbers((3, 5))
    body = "uint i = thread_position_in_grid.x; out[i] = flag ? a[i] * factor + shift : 0;"
    kernel = make(body, inputs=("factor", "a", "shift", "flag"))
    for flag in (True, False):
        inputs = [2.5, mx.array(a), mx.array(3, mx.int8), flag]
        result = call1(kernel, *inputs, shapes=[(3, 5)], dtypes=[mx.float32])
        np.testing.assert_array_equal(np.array(result), a * np.float32(2.5) + 3 if flag else 0 * a)


def test_numpy_arrays_become_mlx_arrays():
    a = numbers((4, 6))
    result = call1(make(DOUBLE), a.T, dtypes=[np.float32])
    assert isinstance(result, mx.array)
    np.testing.assert_array_equal(np.array(result), 2 * a.T)


# ---- Template arguments


@pytest.mark.parametrize("dtype", DTYPES)
def test_template_dtypes(dtype):
    a = np.arange(10, dtype=np.int32)
    T = getattr(mx, dtype)
    body = "uint i = thread_position_in_grid.x; out[i] = T(a[i] % N == 0 || FLAG ? a[i] : 1);"
    template = [("N", 3), ("T", T), ("FLAG", False)]
    result = call1(make(body), mx.array(a), dtypes=[T], template=template)
    np.testing.assert_array_equal(to_numpy(result), np.where(a % 3 == 0, a, 1).astype(DTYPES[dtype]))


def test_template_arguments_tell_kernels_apart():
    kernel = make("uint i = thread_position_in_grid.x; out[i] = a[i] * N + sizeof(T) * (FLAG ? 100 : 0);")
    a = mx.arange(5, dtype=mx.float32)
    variants = [(n, T, flag) for n in (-1, 0, 1, 2) for T in (mx.float16, mx.float32) for flag in (True, False)]
    results = [call1(kernel, a, template=[("N", n), ("T", T), ("FLAG", flag)]) for n, T, flag in variants]
    mx.eval(results)
    for (n, T, flag), result in zip(variants, results, strict=True):
        np.testing.assert_array_equal(np.array(result), np.arange(5) * n + T.size * (100 if flag else 0))


# ---- Outputs


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("value", [0, 1, 2.5, -3, True])
def test_init_value(dtype, value):
    if value == -3 and DTYPES[dtype].kind in "u":
        value = 200
    body = "if (thread_position_in_grid.x == 0) out[1] = a;"
    seven = to_mlx(np.array(7, DTYPES[dtype]))
    result = call1(make(body), seven, shapes=[(2, 5)], threads=3, init_value=value)
    expected = np.full((2, 5), value).astype(DTYPES[dtype])
    expected[0, 1] = 7
    np.testing.assert_array_equal(to_numpy(result), expected)


def test_init_value_of_every_output_without_a_launch():
    a = mx.zeros((3,))
    shapes, dtypes = [(4,), (2, 0), (), (3, 3)], [mx.float32, mx.int8, mx.uint64, mx.bfloat16]
    outputs = ("o", "p", "q", "r")
    kernel = make("o[0] = a[0]; p[0] = 0; *q = 0; r[0] = 0;", outputs=outputs)
    results = call(kernel, a, shapes=shapes, dtypes=dtypes, threads=0, init_value=9)
    for result, shape, dtype in zip(results, shapes, dtypes, strict=True):
        assert result.dtype == dtype
        np.testing.assert_array_equal(np.array(result.astype(mx.float32)), np.full(shape, 9, np.float32))


@pytest.mark.parametrize("dtype", ["int32", "uint32", "float32"])
def test_atomic_outputs(dtype):
    rng = np.random.default_rng(1)
    values, bins = rng.integers(0, 100, 5000), rng.integers(0, 7, 5000)
    kernel = make(
        "uint i = thread_position_in_grid.x; atomic_fetch_add_explicit(&out[bins[i]], a[i], memory_order_relaxed);",
        inputs=("a", "bins"),
        atomic_outputs=True,
    )
    arrays = mx.array(values.astype(DTYPES[dtype])), mx.array(bins.astype(np.int32))
    result = call1(kernel, *arrays, shapes=[(7,)], threads=5000, init_value=0)
    np.testing.assert_array_equal(np.array(result), np.bincount(bins, values, 7).astype(DTYPES[dtype]))


def test_outputs_of_several_shapes_and_dtypes():
    a = numbers((6, 4))
    body = """
        uint i = thread_position_in_grid.x;
        rounded[i] = rint(a[i] * 10);
        positive[i] = a[i] > 0;
        if (i < 4) first[i] = a[i];
        if (i == 0) *count = a_shape[0] * a_shape[1];
    """
    outputs = ("rounded", "positive", "first", "count")
    shapes, dtypes = [(6, 4), (2, 12), (4, 1), ()], [mx.int16, mx.bool_, mx.float16, mx.int64]
    results = call(make(body, outputs=outputs), mx.array(a), shapes=shapes, dtypes=dtypes)
    expected = [np.rint(a * 10), (a > 0).reshape(2, 12), a[0].reshape(4, 1).astype(np.float16), np.array(24)]
    assert [result.dtype for result in results] == dtypes
    for result, value in zip(results, expected, strict=True):
        np.testing.assert_array_equal(np.array(result), value)


@pytest.mark.parametrize("used", [0, 1, 2])
def test_one_of_several_outputs(used):
    a = numbers((300,))
    body = "uint i = thread_position_in_grid.x; x[i] = a[i]; y[i] = 2 * a[i]; z[i] = 3 * a[i];"
    kernel = make(body, outputs=("x", "y", "z"))

    def one():
        return call(kernel, mx.array(a) + 0, shapes=[(300,)] * 3)[used]

    # The others are dropped before evaluation; the memory of each is its own.
    results = [one() for _ in range(20)]
    gc.collect()
    mx.eval(results)
    for result in results:
        np.testing.assert_array_equal(np.array(result), (used + 1) * a)
    np.testing.assert_array_equal(np.array(one()[5:50] + 1), (used + 1) * a[5:50] + 1)


def test_no_inputs():
    body = "uint i = thread_position_in_grid.x; out[i] = i * i;"
    result = call1(make(body, inputs=()), shapes=[(5, 2)], dtypes=[mx.float32])
    np.testing.assert_array_equal(np.array(result), (np.arange(10) ** 2).reshape(5, 2))


def test_outputs_are_arrays_like_any_other():
    a = numbers((4, 6))
    doubled = 2 * a

    def result():
        return call1(make(DOUBLE), mx.array(a))

    np.testing.assert_array_equal(np.array(result()[1:3, ::-2]), doubled[1:3, ::-2])
    np.testing.assert_array_equal(np.array(result().reshape(3, 8).T), doubled.reshape(3, 8).T)
    np.testing.assert_array_equal(np.array(result().T @ mx.eye(4)), doubled.T)
    np.testing.assert_array_equal(np.array(result()[mx.array([2, 0])]), doubled[[2, 0]])
    np.testing.assert_array_equal(np.array(mx.concatenate([result(), result()], 1)), np.concatenate([doubled] * 2, 1))
    np.testing.assert_array_equal(np.array(call1(make(DOUBLE), result()[::2].T)), 2 * doubled[::2].T)
    np.testing.assert_array_equal(np.array(result().view(mx.uint32)), doubled.view(np.uint32))
    changed = result()
    changed[1] = 0
    np.testing.assert_array_equal(np.array(changed), doubled * (np.arange(4) != 1)[:, None])
    assert result().tolist() == doubled.tolist()
    assert result()[2, 3].item() == doubled[2, 3]


# ---- Memory is an array's own


def test_no_array_shares_memory_with_another():
    a = numbers((1000,))
    array = mx.array(a)
    mx.eval(array)
    memory = np.array(array, copy=False)
    # MLX's operations write into an input that nobody else holds; each of these is held.
    first = call1(make(DOUBLE), array)
    second = call1(make(DOUBLE), first)
    third = call1(make(ADD, inputs=("a", "b")), second, second)
    fourth = third + 1
    fifth = call1(make(DOUBLE), first.reshape(10, 100).T)
    mx.eval(first, second, third, fourth, fifth)
    for array, expected in ((first, 2 * a), (second, 4 * a), (third, 8 * a), (fourth, 8 * a + 1)):
        np.testing.assert_array_equal(np.array(array), expected)
    np.testing.assert_array_equal(np.array(fifth), 4 * a.reshape(10, 100).T)
    np.testing.assert_array_equal(memory, a)
    addresses = {np.array(x, copy=False).ctypes.data for x in (first, second, third, fourth, fifth)}
    assert len(addresses | {memory.ctypes.data}) == 6


def test_donated_results():
    # Nobody holds what lies between, so that MLX reuses its memory while the chain runs.
    a = numbers((5000,))
    double = make(DOUBLE)
    array = mx.array(a)
    for _ in range(20):
        array = mx.negative(call1(double, array * 0.5) + 1) - 1
        array = mx.negative(array) - 2
    np.testing.assert_allclose(np.array(array), a, rtol=0, atol=1e-4)


def test_results_of_other_libraries_stay_apart():
    with pytest.raises(TypeError, match="arrays of mlx and numpy"):
        call(make(ADD, inputs=("a", "b"), function=kiln.metal_kernel), mx.zeros(3), np.zeros(3, np.float32))
