"""Inputs as callers have them: views, numbers, few elements, none (docs/language.md 3.1, 3.2)."""

import numpy as np

from bodies import DTYPES, body


def _matrix(rng):
    return rng.normal(size=(6, 8)).astype(np.float32)


_VIEWS = {
    "contiguous": lambda rng: _matrix(rng),
    "transposed": lambda rng: _matrix(rng).T,
    "permuted": lambda rng: rng.normal(size=(3, 4, 5)).astype(np.float32).transpose(2, 0, 1),
    "sliced": lambda rng: _matrix(rng)[1:5:2, 2:7],
    "every_second": lambda rng: _matrix(rng)[:, ::2],
    "column": lambda rng: _matrix(rng)[:, 3],
    "broadcast": lambda rng: np.broadcast_to(rng.normal(size=(5, 1)).astype(np.float32), (3, 5, 4)),
    "one_for_all": lambda rng: np.broadcast_to(np.float32(2.5), (4, 3)),
    "reversed": lambda rng: rng.normal(size=20).astype(np.float32)[::-1],
    "reversed_both": lambda rng: _matrix(rng)[::-1, ::-1],
    "reversed_rows": lambda rng: _matrix(rng)[::-2],
    "inner_offset": lambda rng: rng.normal(size=30).astype(np.float32)[11:],
    "seven_elements": lambda rng: rng.normal(size=7).astype(np.float32),
    "eight_elements": lambda rng: rng.normal(size=8).astype(np.float32),
    "seven_of_a_column": lambda rng: rng.normal(size=(7, 3)).astype(np.float32)[:, 1],
    "one_element": lambda rng: rng.normal(size=(1, 1)).astype(np.float32),
    "unit_dimensions": lambda rng: rng.normal(size=(1, 6, 1, 4)).astype(np.float32),
    "five_dimensions": lambda rng: rng.normal(size=(2, 3, 2, 2, 3)).astype(np.float32).swapaxes(0, 4),
}

for _name, _make in _VIEWS.items():
    _shape = _make(np.random.default_rng(0)).shape
    _count = int(np.prod(_shape))

    # Copied: the body sees the elements one after the other.
    def _copied(x, shape=_shape):
        strides = np.cumprod([1, *shape[::-1]])[: len(shape)][::-1]
        return np.ascontiguousarray(x) * np.float32(2), np.array(shape, np.int32), strides.astype(np.int64), x.ndim

    body(
        """
    uint i = thread_position_in_grid.x;
    out[i] = x[i] * 2;
    if (i < uint(x_ndim)) {
      shape[i] = x_shape[i];
      strides[i] = x_strides[i];
    }
    if (i == 0) ndim[0] = x_ndim;
    """,
        name=f"copied_{_name}",
        inputs=lambda rng, make=_make: {"x": make(rng)},
        outputs={
            "out": (_shape, "float32"),
            "shape": ((len(_shape),), "int32"),
            "strides": ((len(_shape),), "int64"),
            "ndim": ((), "int32"),
        },
        grid=(max(_count, len(_shape)), 1, 1),
        threadgroup=(16, 1, 1),
        constructs="layouts.copied layouts.shape_arguments "
        + ("layouts.few_elements " if _count < 8 else "")
        + ("layouts.negative_strides" if "reversed" in _name else ""),
    )(_copied)

    # As it is: the body follows the strides, which may be negative.
    body(
        """
    uint i = thread_position_in_grid.x;
    if (i >= uint(count)) return;
    out[i] = x[elem_to_loc<int64_t>(i, x_shape, x_strides, x_ndim)] * 2;
    """,
        name=f"strided_{_name}",
        inputs=lambda rng, make=_make, count=_count: {"x": make(rng), "count": count},
        outputs={"out": (_shape, "float32")},
        grid=(_count + 5, 1, 1),
        threadgroup=(16, 1, 1),
        ensure_row_contiguous=False,
        constructs="layouts.strided layouts.shape_arguments mlx.elem_to_loc "
        + ("layouts.few_elements " if _count < 8 else "")
        + ("layouts.negative_strides" if "reversed" in _name else ""),
    )(lambda x, count: x * np.float32(2))


# ---- Arrays of no dimension, and Python's numbers


class _Index:
    """Something that is an int to Python."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


for _name, _value, _dtype in (
    ("bool", True, "bool"),
    ("int", -7, "int32"),
    ("large_int", 2**40 + 1, "int64"),
    ("negative_large_int", -(2**31) - 1, "int64"),
    ("largest_int32", 2**31 - 1, "int32"),
    ("float", 0.1, "float32"),
    ("float_inf", float("-inf"), "float32"),
    ("complex", 1.5 - 2.5j, "complex64"),
    ("zero_dimensional", np.float16(1.5).reshape(()), "float16"),
    ("zero_dimensional_uint64", np.array(2**63 + 1, np.uint64), "uint64"),
):

    def _number(value, dtype=_dtype):
        size = {"bool": 1, "float16": 2}.get(dtype, DTYPES[dtype].itemsize)
        return np.array([value] * 3, DTYPES[dtype]), np.array([size], np.int32)

    body(
        """
    uint i = thread_position_in_grid.x;
    out[i] = value;
    if (i == 0) size[0] = sizeof(value);
    """,
        name=f"number_{_name}",
        inputs=lambda rng, value=_value: {"value": value},
        outputs={"out": ((3,), _dtype), "size": ((1,), "int32")},
        grid=(3, 1, 1),
        threadgroup=(3, 1, 1),
        constructs="layouts.python_number" if not isinstance(_value, np.ndarray) else "layouts.zero_dimensional",
    )(_number)


@body(
    """
    uint i = thread_position_in_grid.x;
    out[i] = x[i] * scale + bias[0] + table[i % 3] + (flag ? limit : 0);
    """,
    inputs=lambda rng: {
        "x": rng.integers(0, 99, (2, 5), np.int32),
        "scale": 3,
        "bias": np.array([10], np.int32),
        "table": np.array([[100, 200, 300]], np.int32),
        "flag": False,
        "limit": _Index(5),
    },
    outputs={"out": ((10,), "int32")},
    grid=(10, 1, 1),
    threadgroup=(10, 1, 1),
    constructs="layouts.python_number layouts.few_elements address_spaces.constant",
)
def numbers_and_small_arrays(x, scale, bias, table, flag, limit):
    return (x.reshape(-1) * scale + bias[0] + table[0][np.arange(10) % 3]).astype(np.int32)


for _name, _dtype in ((name, name) for name in DTYPES if name not in ("float32",)):

    def _strided(rng, dtype=_dtype):
        base = rng.integers(0, 2 if dtype == "bool" else 100, (5, 9))
        return base.astype(np.float32).astype(DTYPES[dtype])[::-1, 1::3]

    body(
        """
    uint2 at = thread_position_in_grid.xy;
    int64_t place = elem_to_loc<int64_t>(at.x + at.y * x_shape[1], x_shape, x_strides, x_ndim);
    out[at.y * threads_per_grid.x + at.x] = x[place];
    """,
        name=f"strided_dtype_{_name}",
        inputs=lambda rng, make=_strided: {"x": make(rng)},
        outputs={"out": ((5, 3), _dtype)},
        grid=(3, 5, 1),
        threadgroup=(3, 5, 1),
        ensure_row_contiguous=False,
        constructs="layouts.strided layouts.negative_strides mlx.elem_to_loc",
    )(lambda x: np.ascontiguousarray(x))
