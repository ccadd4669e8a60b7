"""Bodies that multiply a matrix by a vector: each simdgroup computes a part of the same in a loop. Numbers are whole and
small, so that any order of sums gives the same."""

import numpy as np

from bodies import body

_ROWS = 4  # of a simdgroup


def _loop(
    words, vector="x", place="{width} * word + {k}", width=8, condition="true", row="m[(first + r) * words + word]"
):
    loads = "\n".join(f"v[{k}] = {vector}[{place.format(width=width, k=k)}]; sum += v[{k}];" for k in range(width))
    return f"""
        if ({condition}) for (uint word = lane; word < {words}; word += threads_per_simdgroup) {{
          float v[{width}], sum = 0;
          {loads}
          for (int r = 0; r < {_ROWS}; ++r) {{
            int w = {row};
            float dot = 0;
            for (int k = 0; k < {width}; ++k) dot = fma(float((w >> k) & 1), v[k], dot);
            totals[r] += dot + sum;
          }}
        }}
    """


def _product(vector, matrix, words, width=8):
    vector = np.pad(vector.astype(np.int64), (0, max(0, words * width - len(vector))))[: words * width]
    turned = vector.reshape(words, width)
    bits = (matrix[:, :, None] >> np.arange(width)) & 1
    return (bits * turned + turned).sum((1, 2))


def _add(name, loops, reference, words=512, simdgroups=2, groups=3, length=None, dtype=np.float32, width=8):
    rows = _ROWS * simdgroups * groups
    body(
        f"""
        uint words = m_shape[1];
        uint lane = thread_index_in_simdgroup, first = thread_position_in_grid.y * {_ROWS};
        float totals[{_ROWS}] = {{0}};
        {loops}
        for (int r = 0; r < {_ROWS}; ++r) {{
          float total = simd_sum(totals[r]);
          if (lane == 0) y[first + r] = total;
        }}
        """,
        name=name,
        inputs=lambda rng: {
            "x": rng.integers(-8, 9, length or words * width).astype(dtype),
            "z": rng.integers(-8, 9, words * width).astype(np.float32),
            "m": rng.integers(0, 256, (rows, words), dtype=np.int32),
        },
        outputs={"y": ((rows,), "float32")},
        grid=(32, simdgroups * groups, 1),
        threadgroup=(32, simdgroups, 1),
        constructs="simdgroup.sum functions.fma",
    )(lambda x, z, m: reference(x, z, m).astype(np.float32))


def _of_one(x, z, m):
    return _product(x, m, m.shape[1])


def _first_rows_alone(x, z, m):
    return np.where(np.arange(len(m)) // _ROWS % 2 == 0, _product(x, m, m.shape[1]), 0)


def _shifted(x, z, m):
    return np.concatenate([_product(x[g:], m[_ROWS * g : _ROWS * (g + 1)], m.shape[1]) for g in range(len(m) // _ROWS)])


_add("product_with_a_vector", _loop("words"), _of_one)
_add("product_of_many_simdgroups", _loop("words"), _of_one, simdgroups=5, groups=7)
_add("product_with_halves", _loop("words"), _of_one, dtype=np.float16)
_add("product_of_some_simdgroups", _loop("words", condition="first % 8 == 0"), _first_rows_alone)
_add("product_past_the_end", _loop("words"), _of_one, length=4000)
_add(
    "two_products",
    _loop("words") + _loop("words", vector="z"),
    lambda x, z, m: _product(x, m, m.shape[1]) + _product(z, m, m.shape[1]),
)
_add(
    "product_in_a_loop",
    f"for (int turn = 0; turn < 3; ++turn) {{ {_loop('words', row='(m[(first + r) * words + word] >> turn) & 255')} }}",
    lambda x, z, m: sum(_product(x, m >> turn & 255, m.shape[1]) for turn in range(3)),
)
_add(
    "product_with_a_value_after_the_loop",
    "float last = 0;"
    + _loop("words", place="{width} * word + {k}").replace("for (int r", "last = sum; for (int r", 1)
    + "totals[0] += last;",
    lambda x, z, m: _of_one(x, z, m) + np.where(np.arange(len(m)) % _ROWS == 0, x[-8 * 32 :].astype(np.int64).sum(), 0),
)
_add(
    "product_with_other_parts_of_a_vector",
    _loop("words", place="{width} * word + {k} + first / 4"),
    _shifted,
    length=4200,
)
_add("product_with_a_long_vector", _loop("words"), _of_one, words=2048)
