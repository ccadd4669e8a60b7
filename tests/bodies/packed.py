"""Packed vectors: what takes the room of its components and no more."""

import numpy as np

from bodies import body
from bodies.types import SCALARS, values


def _packed_body(element):
    """Reads vectors of every length from a buffer of elements, in the manner of MSL: through a cast of the pointer."""
    lines = ["uint i = thread_position_in_grid.x;"]
    for n, first in ((2, 0), (3, 2), (4, 5)):
        name, last = f"packed_{element}{n}", "xyzw"[n - 1]
        order = "xyzw"[:n][::-1]
        lines += [
            "{",
            f"device const {name}* in = (device const {name}*)(x + 9 * i + {first});",
            f"device {name}* to = (device {name}*)(out + 36 * i + {4 * first});",
            f"{name} a = in[0];",
            f"{element}{n} v = a;",
            "to[0] = v;",
            f"to[1] = a.{order};",
            f"a.{last} = v.x;",
            "a[0] = v[1];",
            "a.y = a.g;",
            "to[2] = a;",
            f"to[3] = {name}(y[i], {'a.y' if n == 2 else 'a.yx' if n == 3 else 'a.yx, y[i]'});",
            "to[3].xy = to[3].yx;",
            f"sizes[{n - 2}] = sizeof({name});",
            f"sizes[{n + 1}] = alignof({name});",
            "}",
        ]
    return "\n".join(lines)


def _packed_reference(x, y):
    out = []
    for first, n in ((0, 2), (2, 3), (5, 4)):
        v = x[:, first : first + n]
        a = v.copy()
        a[:, n - 1] = v[:, 0]
        a[:, 0] = v[:, 1]
        swapped = [a[:, 1], y] if n == 2 else [a[:, 1], y, a[:, 0]] if n == 3 else [a[:, 1], y, a[:, 0], y]
        out += [v, v[:, ::-1], a, np.stack(swapped, axis=1)]
    size = x.dtype.itemsize
    return np.concatenate(out, axis=1), np.array([2 * size, 3 * size, 4 * size, size, size, size])


for _name, _dtype in SCALARS.items():
    body(
        _packed_body(_name),
        name=f"packed_{_name}",
        inputs=lambda rng, dtype=_dtype: {"x": values(rng, dtype, (20, 9)), "y": values(rng, dtype, 20)},
        outputs={"out": ((20, 36), _dtype), "sizes": ((6,), "int64")},
        grid=(20, 1, 1),
        threadgroup=(20, 1, 1),
        constructs="types.packed_vectors types.packed_components types.size_and_alignment "
        "address_spaces.cast_to_vector",
    )(_packed_reference)


@body(
    """
    uint i = thread_position_in_grid.x;
    device const packed_float3* points = (device const packed_float3*)x;
    device const packed_int3* numbers = (device const packed_int3*)n;
    device packed_float3* to = (device packed_float3*)out + 12 * i;
    packed_float3 p = points[i];
    float3 v = points[(i + 1) % 24];
    packed_float3 q = packed_float3(numbers[i]);
    float f = 0.3;
    to[0] = p + v;
    to[1] = v - p * 2;
    to[2] = 1 / p + f * q;
    to[3] = -p;
    q += p;
    q *= 2;
    q -= v;
    to[4] = q++;
    to[5] = q;
    v += p;
    v /= q;
    to[6] = v;
    to[7] = p;
    to[7] += 1;
    to[8] = float3(p < v) + float3(p == points[i]) * 2 + float3(1 >= p || p != p) * 4;
    packed_int3 m = numbers[i];
    m <<= 2;
    m %= 7;
    to[9] = packed_float3(m & ~numbers[i] | 1);
    packed_half3 h = packed_half3(p);
    to[10] = float3(h * 0.1h) + float3(packed_uchar3(numbers[i]));
    packed_float4 four(p, f);
    packed_float2 two = four.wx;
    to[11] = packed_float3(two, four[1]) + packed_float3{1, f, 2};
    """,
    inputs=lambda rng: {
        "x": rng.normal(size=(24, 3)).astype(np.float32),
        "n": rng.integers(-100, 100, (24, 3), np.int32),
    },
    outputs={"out": ((24, 12, 3), "float32")},
    grid=(24, 1, 1),
    threadgroup=(24, 1, 1),
    constructs="types.packed_arithmetic types.packed_vectors types.packed_components",
)
def packed_arithmetic(x, n):
    f = np.float32
    p, v, q = x, np.roll(x, -1, axis=0), n.astype(f)
    rows = [p + v, v - p * f(2), f(1) / p + f(0.3) * q, -p]
    q = (q + p) * f(2) - v
    rows += [q, q + f(1)]
    w = (v + p) / (q + f(1))
    rows += [w, p + f(1)]
    rows.append((p < w) + f(2) + (p <= 1) * f(4))
    m = np.fmod(n << 2, 7)
    rows.append((m & ~n) | 1)
    halves = p.astype(np.float16) * np.float16(0.1)
    rows.append(halves.astype(f) + n.astype(np.uint8).astype(f))
    rows.append(np.stack([np.full(24, f(0.3)), p[:, 0], p[:, 1]], axis=1) + np.array([1, 0.3, 2], f))
    return np.stack([row.astype(f) for row in rows], axis=1)


@body(
    """
    uint i = thread_position_in_grid.x;
    device const packed_float3* a = (device const packed_float3*)x;
    packed_float3 p = a[2 * i], q = a[2 * i + 1];
    float3 v = q;
    device float* to = out + 24 * i;
    to[0] = dot(p, q);
    to[1] = metal::dot(v, p);
    to[2] = length_squared(p - q);
    to[3] = all(p == a[2 * i]) + 2 * any(p > q);
    *(device packed_float3*)(to + 4) = max(p, 0.0f);
    *(device packed_float3*)(to + 7) = metal::fma(p, q, v);
    *(device packed_float3*)(to + 10) = clamp(p, q, 1.0f);
    float3 whole;
    *(device packed_float3*)(to + 13) = fast::fmin(fabs(p), modf(q, whole));
    *(device packed_float3*)(to + 16) = whole;
    *(device packed_float3*)(to + 19) = select(p, q, p < q) + precise::floor(p);
    to[22] = sqrt(packed_float2(4, 9)).y;
    to[23] = float(popcount(packed_uint2(i, 7)).x);
    """,
    inputs=lambda rng: {"x": rng.normal(size=(16, 2, 3)).astype(np.float32)},
    outputs={"out": ((16, 24), "float32")},
    grid=(16, 1, 1),
    threadgroup=(16, 1, 1),
    constructs="types.packed_arguments",
)
def packed_arguments(x):
    f = np.float32
    p, q = x[:, 0], x[:, 1]

    def dot(a, b):
        products = a * b
        return products[:, 0] + products[:, 1] + products[:, 2]

    product = p.astype(np.float64) * q.astype(np.float64)  # exact
    fma = (product + q).astype(f)
    whole = np.trunc(q)
    columns = [
        dot(p, q),
        dot(p, q),
        dot(p - q, p - q),
        1 + 2 * (p > q).any(axis=1),
        np.maximum(p, f(0)),
        fma,
        np.minimum(np.maximum(p, q), f(1)),
        np.fmin(np.abs(p), q - whole),
        whole,
        np.where(p < q, q, p) + np.floor(p),
        np.full(16, 3),
        np.array([bin(i).count("1") for i in range(16)]),
    ]
    return np.column_stack([column.astype(f) for column in columns])


@body(
    """
    uint i = thread_position_in_grid.x;
    threadgroup packed_half3 shared_points[32];
    device Vertex* v = (device Vertex*)bytes + i;
    shared_points[31 - i] = packed_half3(half(i), offsets[i % 2].y, 0.5h);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    v->colour = packed_uchar4(uchar(i), 2, 3, 4).bgra;
    v->position = float3(shared_points[i]) + offsets[1];
    v->texture = as_type<packed_ushort2>(0x12345678 + i);
    sizes[0] = sizeof(Vertex);
    sizes[1] = alignof(Vertex);
    """,
    header="""
struct Vertex {
  packed_uchar4 colour;
  packed_float3 position;
  packed_ushort2 texture;
};
constant packed_float3 offsets[2] = {{1, 2, 3}, packed_float3(4, 5, 6)};
""",
    outputs={"bytes": ((32, 20), "uint8"), "sizes": ((2,), "int32")},
    grid=(32, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="types.packed_vectors types.packed_components types.as_type address_spaces.cast_to_struct "
    "address_spaces.constant_vector address_spaces.threadgroup_vectors",
)
def packed_members():
    i = np.arange(32)
    vertices = np.zeros(32, [("colour", np.uint8, 4), ("position", np.float32, 3), ("texture", np.uint32)])
    vertices["colour"] = np.stack([np.full(32, 3), np.full(32, 2), i, np.full(32, 4)], axis=1)
    other = 31 - i
    points = np.stack([other, np.where(other % 2 == 0, 2, 5), np.full(32, 0.5)], axis=1)
    vertices["position"] = points + np.array([4, 5, 6])
    vertices["texture"] = 0x12345678 + i
    return vertices.view(np.uint8).reshape(32, 20), np.array([20, 4], np.int32)
