"""The names of `<simd/simd.h>`: Metal's own types, where that header is included."""

import numpy as np

from bodies import body
from bodies.types import SCALARS, values

# ---- Vectors and packed vectors, of every type


for _name, _dtype in SCALARS.items():
    body(
        f"""
        uint i = thread_position_in_grid.x;
        simd_{_name}4 a(x[4 * i], x[4 * i + 1], x[4 * i + 2], x[4 * i + 3]);
        vector_{_name}3 b = a.zyx;
        simd::{_name}2 c = b.xy;
        {_name}4 d = simd_{_name}4(vector_{_name}2(c), simd::{_name}2(a.wx));
        simd_packed_{_name}3 p = simd_{_name}3(d.xyz);
        simd::packed_{_name}4 q = vector_{_name}4(p, simd::{_name}3(b).z);
        static_assert(is_same_v<simd::{_name}4, {_name}4> && is_same_v<vector_{_name}4, {_name}4>, "");
        static_assert(is_same_v<simd_{_name}2, {_name}2> && is_same_v<simd::{_name}3, {_name}3>, "");
        static_assert(is_same_v<simd_packed_{_name}2, packed_{_name}2>, "");
        static_assert(is_same_v<simd_packed_{_name}4, simd::packed_{_name}4>, "");
        ((device simd_packed_{_name}4*)out)[i] = q;
        """,
        name=f"simd_names_of_{_name}",
        header="#include <simd/simd.h>",
        inputs=lambda rng, dtype=_dtype: {"x": values(rng, dtype, (20, 4))},
        outputs={"out": ((20, 4), _dtype)},
        grid=(20, 1, 1),
        threadgroup=(20, 1, 1),
        constructs="types.simd_names types.swizzle_read",
    )(lambda x: np.stack([x[:, 2], x[:, 1], x[:, 3], x[:, 0]], axis=1))


# ---- Matrices


for _name in ("half", "float"):
    _sizes = [(columns, rows) for columns in (2, 3, 4) for rows in (2, 3, 4)]
    _lines = []
    for _index, (_columns, _rows) in enumerate(_sizes):
        _size = f"{_name}{_columns}x{_rows}"
        _lines += [
            f'static_assert(is_same_v<simd::{_size}, {_size}> && is_same_v<matrix_{_size}, {_size}>, "");',
            f"simd_{_size} m{_index}; m{_index}[1].y = {_index + 1}; out[{_index}] = m{_index}[1].y * s[0];",
        ]
    body(
        "\n".join(_lines),
        name=f"simd_names_of_matrices_of_{_name}",
        header='#include "simd/matrix_types.h"',
        inputs=lambda rng, dtype=SCALARS[_name]: {"s": np.array([2], dtype)},
        outputs={"out": ((9,), SCALARS[_name])},
        grid=(1, 1, 1),
        threadgroup=(1, 1, 1),
        constructs="types.simd_names types.matrices types.matrix_components",
    )(lambda s: np.arange(1, 10).astype(s.dtype) * s[0])


# ---- Beside other names


@body(
    """
    uint i = thread_position_in_grid.x;
    out[i] = simd_min(x[i]) + simd_max(x[i]) + dot(twice({x[i], 1}), 1) + simd_sum(simd_float2(1).x);
    """,
    header="""
    #include <metal_stdlib>
    #include <simd/simd.h>
    using namespace metal;
    using namespace simd;
    typedef float2 simd_float2;       // the same type again
    simd_float2 twice(vector_float2 v) { return float2x2(2) * v; }
    """,
    inputs=lambda rng: {"x": np.arange(32, dtype=np.float32)},
    outputs={"out": ((32,), "float32")},
    grid=(32, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="types.simd_names simdgroup.min simdgroup.max simdgroup.sum structure.include_metal",
)
def simd_names_beside_functions(x):
    return x.min() + x.max() + 2 * x + np.float32(2) + np.float32(32)


@body(
    """
    #include <simd/simd.h>
    uint i = thread_position_in_grid.x;
    simd_float4 v = ((const device vector_float4*)x)[i];
    ((device simd::float4*)out)[i] = v.wzyx;
    """,
    inputs=lambda rng: {"x": rng.normal(size=(8, 4)).astype(np.float32)},
    outputs={"out": ((8, 4), "float32")},
    grid=(8, 1, 1),
    threadgroup=(8, 1, 1),
    constructs="types.simd_names types.swizzle_read",
)
def simd_names_where_the_body_includes_them(x):
    return x[:, ::-1]


@body(
    """
    uint i = thread_position_in_grid.x;
    simd_float4 v = {x[i], 2};
    int vector_float4 = 3;
    out[i] = v.a * v.b + vector_float4 + simd::uint2(1);
    """,
    header="""
    struct simd_float4 { float a, b; };
    namespace simd { inline float uint2(float x) { return x + 1; } }
    """,
    inputs=lambda rng: {"x": np.arange(16, dtype=np.float32)},
    outputs={"out": ((16,), "float32")},
    grid=(16, 1, 1),
    threadgroup=(16, 1, 1),
    constructs="structure.struct",
)
def simd_names_that_are_the_programs_own(x):
    return x * np.float32(2) + np.float32(5)
