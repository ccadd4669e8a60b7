"""Calls that nobody thought of, through every interface: right ones give what NumPy gives, any others an error that says
which argument is wrong."""

from __future__ import annotations

import decimal
import fractions
import re

import kiln
import ml_dtypes
import mlx.core as mx
import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from interfaces import EIGHT, INTERFACES, METHODS, Interface, Item, raising
from mlx_kernels import DTYPES, to_mlx, to_numpy


def seeded(examples):
    """The same calls each time; ``--hypothesis-seed`` and more examples are for a look by hand."""
    return settings(
        derandomize=True,
        database=None,
        deadline=None,
        max_examples=examples,
        suppress_health_check=list(HealthCheck),
    )


RUNNING = [interface for interface in INTERFACES if interface.generation != "cuda"]

# ---- Right calls

# Each thread reads one element, by the strides; the last elements of the output belong to no thread.
SOURCE = """
    uint3 p = thread_position_in_grid, n = threads_per_grid;
    uint i = p.x + n.x * (p.y + n.y * p.z);
    uint size = 1;
    for (int d = 0; d < x_ndim; ++d) size *= x_shape[d];
    out[i] = size ? x[elem_to_loc<int64_t>(i % size, x_shape, x_strides, x_ndim)] * T(N) + T(number) : T(3);
"""


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


@seeded(200)
@given(
    x=views(),
    factor=st.integers(0, 2),
    number=st.integers(0, 2),
    grid=st.tuples(*[st.integers(0, 7)] * 3),
    threadgroup=st.tuples(st.integers(1, 40), st.integers(1, 5), st.integers(1, 5)),
    unreached=st.integers(0, 3),
    contiguous=st.booleans(),
    interface=st.sampled_from(RUNNING),
)
def test_a_right_call(x, factor, number, grid, threadgroup, unreached, contiguous, interface):
    threads = int(np.prod(grid))
    before = x.tobytes()
    made = {"source": SOURCE, "ensure_row_contiguous": contiguous}
    if not interface.by_name:
        made["input_names"] = ["x", "number"]
    inputs = {"x": to_mlx(x) if interface.library == "mlx" else x, "number": number}
    template = {"T": x.dtype.name, "N": factor}
    result = interface.call(
        made=made,
        inputs=inputs if interface.by_name else list(inputs.values()),
        template=template if interface.by_name else list(template.items()),
        grid=grid,
        threadgroup=threadgroup,
        output_shapes=Item((threads + unreached,)),
        output_dtypes=Item(x.dtype.name),
        init_value=1,
    )
    out = interface.first(result)
    expected = np.ones(threads + unreached, x.dtype)
    if x.size:
        elements = np.resize(np.ascontiguousarray(x), threads)
        expected[:threads] = elements * x.dtype.type(factor) + x.dtype.type(number)
    else:
        expected[:threads] = 3
    assert out.dtype == expected.dtype
    np.testing.assert_array_equal(out, expected)
    assert x.tobytes() == before


# ---- Any calls

# What it writes depends on nothing but the grid.
SEVENS = """
    uint3 p = thread_position_in_grid, n = threads_per_grid;
    out[p.x + n.x * (p.y + n.y * p.z)] = 7;
"""
ODD = [
    raising(method, error("it says"))
    for error in (TypeError, ValueError)
    for method in (*("__index__", "__float__", "__bool__", "__iter__", "__len__", "__dlpack__"),)
] + [
    raising("__getitem__", ValueError("it says"), __len__=lambda self: 2),
    raising("__getitem__", IndexError("it says"), __len__=lambda self: 2),
]
INTS = [
    0,
    1,
    2,
    8,
    -1,
    2**31 - 1,
    2**31,
    -(2**31),
    2**32,
    2**53 + 1,
    2**62,
    2**63 - 1,
    2**63,
    2**64,
    -(2**63) - 1,
]
NUMBERS = st.one_of(
    st.integers(-3, 40),
    st.sampled_from(INTS),
    st.builds(lambda: 10**5000),
    st.booleans(),
    st.floats(),
    st.complex_numbers(),
    st.sampled_from([np.int8(3), np.uint64(2**63), np.float16(2), np.complex64(1j), np.True_, np.float64("nan")]),
    st.sampled_from(
        [fractions.Fraction(1, 3), fractions.Fraction(10**400), decimal.Decimal("NaN"), ml_dtypes.bfloat16(1)]
    ),
)
TEXTS = st.one_of(
    st.text(max_size=6),
    st.sampled_from(["x", "out", "T", "N", "int", "half", "a b", "\ud800", "a\0b", "größe", "€", "float32", "float64"]),
    st.binary(max_size=4),
)
NUMPY_ARRAYS = st.one_of(
    views(),
    st.sampled_from(["f8", "c16", "g", "O", "U3", "S2", "V4", "M8[s]", "m8[D]", ">f4", ">i8", "i4,f4", "?"]).map(
        lambda dtype: np.zeros((2, 3), dtype)
    ),
    st.sampled_from([np.array(3), np.array(2.5), np.array([3]), np.zeros(0), np.ones((3, 0, 2)), np.float32(2)]),
    st.sampled_from([ml_dtypes.int4, ml_dtypes.float8_e5m2, ml_dtypes.bfloat16]).map(lambda dtype: np.ones(3, dtype)),
)
MLX_ARRAYS = st.one_of(
    views().map(to_mlx),
    st.sampled_from([lambda: mx.array(3), lambda: mx.array(2.5), lambda: mx.array([3]), lambda: mx.zeros((0, 2))]).map(
        lambda make: make()
    ),
)
DTYPE_LIKE = st.one_of(
    st.sampled_from(list(DTYPES)),
    st.sampled_from([*DTYPES.values(), *(dtype.type for dtype in DTYPES.values())]),
    st.sampled_from(
        [mx.float32, mx.bool_, mx.complex64, mx.float64, np.float64, np.complex128, np.dtype("M8[s]"), int, str]
    ),
)
ANYTHING = st.recursive(
    st.one_of(
        st.none(),
        NUMBERS,
        TEXTS,
        NUMPY_ARRAYS,
        MLX_ARRAYS,
        DTYPE_LIKE,
        st.integers(0, len(ODD) - 1).map(ODD.__getitem__),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(
            st.one_of(st.text(max_size=3), st.sampled_from(["x", "out", "T"]), st.integers(0, 3)), inner, max_size=3
        ),
        st.lists(inner, max_size=2).map(iter),
        st.builds(lambda items: (item for item in items), st.lists(inner, max_size=2)),
    ),
    max_leaves=5,
)
DIMENSION = st.one_of(st.integers(0, 5), st.sampled_from([-1, 2**60, 2**62, 2**63, np.int8(2), True, np.array(3)]))
EXTENT = st.one_of(st.integers(0, 5), st.sampled_from([-1, 2**31, 2**64, np.uint8(3), True, np.array(2)]))


def lists(items, **sizes):
    return st.one_of(st.lists(items, **sizes), st.lists(items, **sizes).map(tuple))


ARGUMENTS = {
    "inputs": st.one_of(NUMPY_ARRAYS, MLX_ARRAYS, NUMBERS, ANYTHING).map(Item),
    "output_shapes": st.one_of(lists(DIMENSION, max_size=4), ANYTHING).map(Item),
    "output_dtypes": st.one_of(DTYPE_LIKE, TEXTS, ANYTHING).map(Item),
    "grid": st.one_of(lists(EXTENT, min_size=2, max_size=4), ANYTHING),
    "threadgroup": st.one_of(lists(EXTENT, min_size=2, max_size=4), ANYTHING),
    "init_value": st.one_of(NUMBERS, NUMPY_ARRAYS, MLX_ARRAYS, ANYTHING),
    "verbose": st.one_of(st.just(False), ANYTHING),
    "stream": st.one_of(st.none(), st.sampled_from([mx.cpu, mx.default_stream(mx.cpu), "cpu"]), ANYTHING),
    "template": st.one_of(
        st.dictionaries(TEXTS, st.one_of(NUMBERS, DTYPE_LIKE, ANYTHING), max_size=3),
        st.lists(st.tuples(TEXTS, st.one_of(NUMBERS, DTYPE_LIKE)), max_size=3),
        ANYTHING,
    ),
    "container": st.tuples(st.sampled_from(["inputs", "output_shapes", "output_dtypes"]), ANYTHING),
}
MADE = {
    "name": TEXTS,
    "source": TEXTS,
    "header": st.one_of(st.just("// nothing"), TEXTS, ANYTHING),
    "input_names": st.one_of(st.lists(TEXTS, max_size=2), ANYTHING),
    "output_names": st.one_of(st.lists(TEXTS, max_size=2), ANYTHING),
    "ensure_row_contiguous": st.one_of(st.booleans(), NUMBERS, ANYTHING),
    "atomic_outputs": st.one_of(st.booleans(), NUMBERS, ANYTHING),
    "shared_memory": st.one_of(NUMBERS, ANYTHING),
    "compile_options": st.one_of(
        st.dictionaries(
            st.sampled_from(["math_mode", "bounds", "specialize", "include_dirs", "writable_inputs", "speed"]),
            st.one_of(st.sampled_from(["safe", "relaxed", "fast", "on", "off", "quick", True, False]), ANYTHING),
            max_size=2,
        ),
        ANYTHING,
    ),
}

# How messages name what is wrong: arguments by their names; inputs, outputs and template arguments by their own, or by
# what they are.
NAMES = re.compile(
    r"`(name|input_names|output_names|source|header|ensure_row_contiguous|atomic_outputs|shared_memory|"
    r'compile_options(?:\["\w+"\])?|'
    r"inputs|output_shapes|output_dtypes|grid|threadgroup|template|init_value|verbose|stream)`"
    r"|([Ii]nput|[Oo]utput)( name)? `|Expected math_mode to be|compile option `|[Tt]emplate argument|Name `"
    r"|The call (is missing the|has no) argument|at least one output",
    re.DOTALL,
)
# Python's own, of arguments that a function does not have; both begin with the function's name.
PYTHONS = re.compile(r"(metal_kernel|cuda_kernel|MetalKernel\.\w+)\(\) ")
ERRORS = (ValueError, TypeError, MemoryError, kiln.UnsupportedError, kiln.CompileError)


@st.composite
def calls(draw):
    """An interface, a method, and a few arguments with anything in the place of what is right."""
    interface = draw(st.sampled_from(INTERFACES))
    names = draw(st.lists(st.sampled_from(list(ARGUMENTS)), max_size=3, unique=True))
    changes = {name: draw(ARGUMENTS[name]) for name in names}
    if "container" in changes:
        name, value = changes.pop("container")
        changes[name] = value
    if interface.generation == "class":
        # Its calls have inputs for keywords, and so has its `template`; it takes no stream.
        changes.pop("stream", None)
        for name in ("inputs", "template"):
            value = changes.get(name)
            keywords = isinstance(value, dict) and all(type(key) is str for key in value)
            if name in changes and not (isinstance(value, Item) or keywords):
                del changes[name]
    made = {}
    if draw(st.integers(0, 3)) == 0:
        names = draw(st.lists(st.sampled_from(list(MADE)), max_size=2, unique=True))
        made = {name: draw(MADE[name]) for name in names}
    return interface, draw(st.sampled_from(METHODS)), made, changes


def integers(values):
    return [int(value) for value in values] if np.ndim(values) else [int(values)]


def check_result(interface, result, made, changes):
    """Sevens where there are threads, then the initial value."""
    shape, grid = changes.get("output_shapes", (8,)), changes.get("grid", (8, 1, 1))
    if isinstance(shape, Item):
        shape = shape.value
    elif "output_shapes" in changes:
        shape = next(iter(shape.values() if isinstance(shape, dict) else shape))
    shape, threads = integers(shape), int(np.prod(integers(grid)))
    assert type(result) is (dict if interface.by_name else list)
    out = interface.first(result)
    assert out.shape == tuple(shape)
    flat = out.reshape(-1)
    assert np.all(flat[:threads] == np.array(7).astype(flat.dtype))
    init_value = changes.get("init_value")
    if init_value is not None and isinstance(init_value, int) and abs(init_value) < 100 and flat.dtype.kind in "if":
        assert np.all(flat[threads:] == flat.dtype.type(init_value))


@seeded(600)
@given(call=calls())
def test_any_call(call):
    interface, method, made, changes = call
    made = {"source": SEVENS, **made}
    try:
        result = interface.call(method, made, **changes)
        if method == "__call__":
            interface.first(result)  # MLX computes it where it is read
    except ERRORS as error:
        message = str(error)
        if not (type(error) is TypeError and PYTHONS.match(message)):
            assert message.startswith(interface.prefix), message
            if type(error) in (ValueError, TypeError):
                assert NAMES.search(message), message
    else:
        if method == "source_for":
            assert type(result) is str
        elif method == "compile":
            assert type(result) is kiln.CompiledKernel
        elif made["source"] is SEVENS and "output_names" not in made:
            check_result(interface, result, made, changes)
    assert interface.works()


def test_what_the_checks_above_take_for_a_name():
    for message in (
        "[metal_kernel] Expected `grid` to be an int or 1 to 3 ints but got float.",
        "[metal_kernel] Input `x` does not fit into int64: 9223372036854775808.",
        "[metal_kernel] Must specify at least one output.",
    ):
        assert NAMES.search(message)
    for message in ("[metal_kernel] std::bad_cast", "it says", "[metal_kernel] iteration over a 0-d array"):
        assert not NAMES.search(message)
    interface = Interface(kiln, "list")
    check_result(interface, interface.call(made={"source": SEVENS}), {}, {})
    assert to_numpy(to_mlx(EIGHT)).tolist() == EIGHT.tolist()
