"""Matrices of a thread: `float4x4` and its like. In the references a matrix is an array of columns."""

import numpy as np

from bodies import DTYPES, Dtype, body

ELEMENTS = {"half": "float16", "float": "float32"}


def times_vector(m, v):
    """The sum of the columns, each times a component, from the first to the last."""
    total = m[..., 0, :] * v[..., 0, None]
    for c in range(1, m.shape[-2]):
        total = total + m[..., c, :] * v[..., c, None]
    return total


def vector_times(v, m):
    """A dot product for each column: of floats, rounded once."""
    products = v[..., None, :].astype(np.float32) * m.astype(np.float32)
    total = products[..., 0]
    for r in range(1, products.shape[-1]):
        total = total + products[..., r]
    return total.astype(m.dtype)


def times(a, b):
    return np.stack([times_vector(a, b[..., c, :]) for c in range(b.shape[-2])], axis=-2)


def _matrix_body(element, columns, rows, products):
    """Of matrices and of products of them; the outputs are as many as the reference has."""
    name = f"{element}{columns}x{rows}"
    count = columns * rows
    lines = [
        "uint i = thread_position_in_grid.x;",
        f"device const {element}* in = x + i;",
        f"device {element}* to = out + i;",
        f"{element} s = y[i];",
        f"{name} a({', '.join(f'in[16 * {k}]' for k in range(count))}), b, c;",
        f"for (int c = 0; c < {columns}; ++c)",
        f"  for (int r = 0; r < {rows}; ++r) b[c][r] = in[16 * ({count} + c * {rows} + r)];",
        f"{element}{columns} row({', '.join(f'in[16 * {2 * count + k}]' for k in range(columns))});",
        f"{element}{rows} column({', '.join(f'in[16 * {2 * count + columns + k}]' for k in range(rows))});",
        f"{element}{rows}x{columns} turned = transpose(b);",
    ]
    at = 0

    def emit(expression, m, n):
        nonlocal at
        lines.append(f"{{ {element}{m}x{n} m = {expression};")
        lines.extend(f"to[{16 * (at + c * n + r)}] = m[{c}][{r}];" for c in range(m) for r in range(n))
        lines.append("}")
        at += m * n

    if products:
        emit("turned", rows, columns)
        emit("turned * a", columns, columns)
        emit("a * turned", rows, rows)
        if columns == rows:
            lines.append("c = a; c *= b;")
            emit("c", columns, rows)
        lines += [
            f"{element}{rows} product = a * row;",
            f"for (int r = 0; r < {rows}; ++r) to[16 * ({at} + r)] = product[r];",
            f"{element}{columns} other = column * a;",
            f"for (int c = 0; c < {columns}; ++c) to[16 * ({at + rows} + c)] = other[c];",
        ]
        return "\n".join(lines)
    another = f"{'float' if element == 'half' else 'half'}{columns}x{rows}"
    emit(f"{name}(s)", columns, rows)
    emit("a + b", columns, rows)
    emit("a * s", columns, rows)
    emit("s * -a", columns, rows)
    emit(f"{name}({', '.join(f'b[{c}]' for c in range(columns))})", columns, rows)
    emit(f"matrix<{element}, {columns}, {rows}>({another}(a))", columns, rows)
    lines.append("c = a; c += b; c *= s; c -= a; c /= s; c[1] = column; c[0].x = s;")
    emit("c", columns, rows)
    lines += [
        f"to[{16 * at}] = (a == a) + 2 * (a != b) + 4 * (a == b);",
        f"to[{16 * (at + 1)}] = sizeof({name}) + alignof({name}) * {element}(0.25);",
    ]
    return "\n".join(lines)


def _matrix_reference(x, y, columns, rows, products):
    dtype, count, x = x.dtype, columns * rows, x.T
    a, b = x[:, :count].reshape(-1, columns, rows), x[:, count : 2 * count].reshape(-1, columns, rows)
    row, column = x[:, 2 * count : 2 * count + columns], x[:, 2 * count + columns :]
    s = y[:, None, None]
    if products:
        turned = b.swapaxes(1, 2)
        results = [turned, times(turned, a), times(a, turned)] + ([times(a, b)] if columns == rows else [])
        results += [times_vector(a, row), vector_times(column, a)]
    else:
        diagonal = np.where(np.arange(columns)[:, None] == np.arange(rows), s, dtype.type(0))
        c = ((a + b) * s - a) / s
        c[:, 1] = column
        c[:, 0, 0] = y
        other = np.float32 if dtype == np.float16 else np.float16
        size = dtype.itemsize * (4 if rows == 3 else rows)
        results = [diagonal, a + b, a * s, s * -a, b, a.astype(other), c]
        results += [np.full((16, 1), 3), np.full((16, 1), size * columns + size / 4)]
    return np.concatenate([result.astype(dtype).reshape(16, -1).T for result in results])


for _element, _dtype in ELEMENTS.items():
    for _columns in (2, 3, 4):
        for _rows in (2, 3, 4):
            _count = _columns * _rows
            for _kind, _outputs, _constructs in (
                ("", 7 * _count + 2, "matrices matrix_constructors matrix_components matrix_arithmetic"),
                (
                    "_products",
                    (2 if _columns == _rows else 1) * _count + _columns**2 + _rows**2 + _columns + _rows,
                    "matrices matrix_arithmetic",
                ),
            ):
                body(
                    _matrix_body(_element, _columns, _rows, bool(_kind)),
                    name=f"matrix_{_element}{_columns}x{_rows}{_kind}",
                    inputs=lambda rng, dtype=_dtype, length=2 * _count + _columns + _rows: {
                        "x": rng.normal(size=(length, 16)).astype(dtype),
                        "y": rng.normal(size=16).astype(dtype),
                    },
                    outputs={"out": ((_outputs, 16), _dtype)},
                    grid=(16, 1, 1),
                    threadgroup=(16, 1, 1),
                    constructs=" ".join(f"types.{name}" for name in _constructs.split()) + " functions.transpose",
                )(
                    lambda x, y, columns=_columns, rows=_rows, products=bool(_kind): _matrix_reference(
                        x, y, columns, rows, products
                    )
                )


@body(
    """
    uint i = thread_position_in_grid.x;
    device const float* m = x + 16 * i;
    float2x2 two(m[0], m[1], m[4], m[5]);
    float3x3 three;
    for (int c = 0; c < 3; ++c) three[c] = float3(m[4 * c], m[4 * c + 1], m[4 * c + 2]);
    float4x4 four = ((device const float4x4*)x)[i];
    out[3 * i] = determinant(two);
    out[3 * i + 1] = metal::determinant(three);
    out[3 * i + 2] = determinant(four);
    halves[3 * i] = determinant(half2x2(two));
    halves[3 * i + 1] = determinant(half3x3(three));
    halves[3 * i + 2] = determinant(half4x4(four));
    """,
    # So few bits that nothing is rounded before the end.
    inputs=lambda rng: {"x": (4 * np.eye(4) + rng.integers(-8, 8, (32, 4, 4)) / 8).astype(np.float32)},
    outputs={"out": ((32, 3), "float32"), "halves": ((32, 3), "float16")},
    grid=(32, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="functions.determinant types.matrices address_spaces.cast_to_struct",
)
def determinants(x):
    near = np.stack([np.linalg.det(x[:, :n, :n].astype(np.float64)) for n in (2, 3, 4)], axis=1)
    exact = np.round(near * 8**4) / 8**4
    return exact.astype(np.float32), exact.astype(np.float16)


@body(
    """
    uint i = thread_position_in_grid.x;
    device const float4* points = (device const float4*)x;
    device float4* to = (device float4*)out;
    threadgroup float4x4 shared_turn;
    if (i == 0) shared_turn = turn<T>(0.5f) * scaling;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    constant float4x4& view = *(constant float4x4*)m;
    float4x4 all = view * shared_turn;
    all[3].xyz += offset;
    all[i % 3][3] = i;
    Pose pose{all, float3x3(all[0].xyz, all[1].xyz, all[2].xyz)};
    to[2 * i] = pose.all * points[i];
    to[2 * i + 1] = float4(pose.turn * points[i].xyz, pose.turn[1].y);
    """,
    header="""
constant float4x4 scaling = float4x4(2);
constant float3 offset = {1, 2, 3};
struct Pose {
  float4x4 all;
  float3x3 turn;
};
template <typename T>
matrix<T, 4, 4> turn(T s) {
  return {vec<T, 4>(s, 1, 0, 0), vec<T, 4>(-1, s, 0, 0), vec<T, 4>(0, 0, 1, 0), vec<T, 4>(0, 0, 0, 1)};
}
""",
    template=[("T", Dtype("float32"))],
    inputs=lambda rng: {
        "x": rng.normal(size=(32, 4)).astype(np.float32),
        "m": rng.normal(size=(4, 4)).astype(np.float32),
    },
    outputs={"out": ((32, 2, 4), "float32")},
    grid=(32, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="types.matrices types.matrix_constructors types.matrix_components types.matrix_arithmetic "
    "address_spaces.threadgroup_struct address_spaces.constant_vector",
)
def transformed_points(x, m):
    f = np.float32
    turn = np.array([[0.5, 1, 0, 0], [-1, 0.5, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], f)
    view = times(m, times(turn, np.diag(np.full(4, 2, f))))
    view[3, :3] += np.array([1, 2, 3], f)
    out = []
    for i, point in enumerate(x):
        mine = view.copy()
        mine[i % 3, 3] = i
        turned = times_vector(mine[:3, :3], point[:3])
        out.append([times_vector(mine, point), [*turned, mine[1, 1]]])
    return np.array(out, DTYPES["float32"])
