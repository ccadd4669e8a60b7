"""Writes through swizzles of swizzles, and to a swizzle's elements: they change the vector itself."""

import numpy as np

from bodies import DTYPES, body
from bodies.types import SCALARS, values

# ---- Every type, vectors and packed vectors

_WRITES = """
    uint i = thread_position_in_grid.x;
    TYPE v = TYPE(x[4 * i], x[4 * i + 1], x[4 * i + 2], x[4 * i + 3]);
    T a = y[2 * i], b = y[2 * i + 1];
    device T* to = out + 4 * 7 * i;
    for (int r = 0; r < 7; ++r) {
      TYPE w = v;
      if (r == 0) w.wzyx.xy = T2(a, b);
      if (r == 1) w.zyx.y = a;
      if (r == 2) w.wzy[i % 3] = a;
      if (r == 3) w.wzyx.xyz.zy.x = b;
      if (r == 4) (w.zw).yx = w.xyz.xy;
      if (r == 5) w.bgr.rb = T2(b, a);
      if (r == 6) w.wzyx.zyx[1] = w.zyx[0] = b;
      for (int c = 0; c < 4; ++c) to[4 * r + c] = w[c];
    }
"""


def _writes(x, y):
    rows = np.repeat(x[:, None], 7, axis=1)
    lanes = np.arange(len(x))
    a, b = y.T
    rows[:, 0, 3], rows[:, 0, 2] = a, b
    rows[:, 1, 1] = a
    rows[lanes, 2, 3 - lanes % 3] = a
    rows[:, 3, 1] = b
    rows[:, 4, 3], rows[:, 4, 2] = x[:, 0], x[:, 1]
    rows[:, 5, 2], rows[:, 5, 0] = b, a
    rows[:, 6, 2] = b
    return rows


for _name, _dtype in SCALARS.items():
    for _type in (f"{_name}4", f"packed_{_name}4"):
        body(
            _WRITES.replace("TYPE", _type)
            .replace("T2", f"{_name}2")
            .replace("T ", f"{_name} ")
            .replace("T*", f"{_name}*"),
            name=f"nested_swizzles_of_{_type}",
            inputs=lambda rng, dtype=_dtype: {"x": values(rng, dtype, (20, 4)), "y": values(rng, dtype, (20, 2))},
            outputs={"out": ((20, 7, 4), _dtype)},
            grid=(20, 1, 1),
            threadgroup=(20, 1, 1),
            constructs="types.nested_swizzles types.swizzle_read types.rgba"
            + (" types.packed_vectors types.packed_components" if _type.startswith("packed") else f" types.{_name}4"),
        )(_writes)


# ---- Operators


@body(
    """
    uint i = thread_position_in_grid.x;
    int4 v(x[i], i, 7, -3);
    device int4* to = (device int4*)out + 4 * i;
    v.xyz.y += 5;
    v.zw.yx -= int2(1, 2);
    v.wzyx.xyz *= 3;
    to[0] = v;
    int before = v.xyz.x++;
    int2 pair = --v.zw.yx;
    v.wz[1] <<= 2;
    v.zyx[i & 1] ^= before + pair.x * pair.y;
    to[1] = v;
    int k = 0;
    v.wzyx[k++] += 6;                // evaluates k++ once
    v.wzyx[k++] %= 5;
    v.xyzw.xyz.x = v.yzw.z = k;
    to[2] = v;
    uchar4 c(250, 251, 252, uchar(i));
    c.xyz.z += 10;                   // stays a uchar
    c.wzyx.yz++;
    to[3] = int4(c);
    """,
    inputs=lambda rng: {"x": rng.integers(-1000, 1000, 40, np.int32)},
    outputs={"out": ((40, 4, 4), "int32")},
    grid=(40, 1, 1),
    threadgroup=(40, 1, 1),
    constructs="types.nested_swizzles types.swizzle_write types.int4 types.uchar4",
)
def operators_of_nested_swizzles(x):
    rows = []
    for i, value in enumerate(x.tolist()):
        first = [value, (i + 5) * 3, (7 - 2) * 3, (-3 - 1) * 3]
        before, z, w = first[0], first[2] - 1, first[3] - 1
        second = [first[0] + 1, first[1], z << 2, w]
        second[2 - (i & 1)] ^= before + w * z
        third = [2, second[1], int(np.fmod(second[2], 5)), 2]
        rows.append([first, second, third, [250, 252, (252 + 10) % 256 + 1, i]])
    return np.array(rows, np.int32)


# ---- Wherever a vector can be


@body(
    """
    uint i = thread_position_in_grid.x;
    threadgroup float4 shared_rows[32];
    device float4* to = (device float4*)out + 6 * i;
    shared_rows[i] = float4(x[i]);
    shared_rows[i].wzyx.xy = float2(1, 2);
    shared_rows[i].xyz[0] += 1;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    to[0] = shared_rows[31 - i];
    to[1] = 0;
    to[1].xyz.y = x[i];
    to[1].zw.yx += float2(3, 4);
    (to + 1)->wzyx.w = 5;
    Pair pair;
    pair.set(x[i]);
    pair.v[1].yzw.zx *= 2;
    to[2] = pair.v[1];
    float4x4 m(1);
    m[2].wzyx.x += x[i];
    m.columns[2].xyz[1] = 7;
    to[3] = m[2];
    thread float4& r = pair.v[0];
    thread float4* p = &r;
    p->xyz.z = 8;
    (i % 2 ? pair.v[0] : pair.v[1]).xyz.x = 9;
    to[4] = pair.v[0];
    auto change = [&](float4 v) { v.LOW(wzyx).x = 3; r.zyx.y = v.w; return v; };
    to[5] = change(r) + r;
    """,
    header="""
    struct Pair {
      float4 v[2];
      void set(float a) {
        v[0] = v[1] = a;
        v[1].xyz.z = 3;
        this->v[0].wzy[1] = 1;
      }
    };
    #define LOW(swizzle) swizzle.xy
    """,
    inputs=lambda rng: {"x": rng.integers(-100, 100, 32).astype(np.float32)},
    outputs={"out": ((32, 6, 4), "float32")},
    grid=(32, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="types.nested_swizzles types.float4 types.matrix_components",
)
def nested_swizzles_in_memory(x):
    rows = []
    for i, value in enumerate(x.tolist()):
        r = [value, value, 8, value]
        if i % 2:
            r[0] = 9
        changed = [r[0], r[1], r[2], 3]
        after = [r[0], 3, r[2], r[3]]
        rows.append(
            [
                [x[31 - i] + 1, x[31 - i], 2, 1],
                [5, value, 4, 3],
                [value, 2 * value, 3, 2 * value],
                [0, 7, 1, value],
                r,
                [a + b for a, b in zip(changed, after, strict=True)],
            ]
        )
    return np.array(rows, np.float32)


# ---- In templates, where Clang builds operators another time


_TEMPLATES = """
    template <int N, class V>
    V changed(V v, int i) {
      v.x += 1;
      v.xy -= v.zw;
      v.w++;
      --v.yz;
      v.zw = -v.xy * v.xy;
      v.xyz.z += 2;
      v.wz.xy *= v.xy;
      v.zyx[1]++;
      v.wzy[i % 3] = v.xyz[N];
      v.wzyx.yz[0] -= 3;
      return v;
    }
    template <class T, int N>
    vec<T, N> filled(vec<T, N> v) {
      vec<T, 4> w(3);
      w.xyz.yz = vec<T, 2>(1, 2);
      w.wzyx.x = v.x;
      v.zyx.x = w.y;
      return v + w;
    }
"""


def _in_templates(x):
    rows = []
    for i, row in enumerate(x):
        v = row.copy()
        v[0] += 1
        v[:2] -= v[2:]
        v[3] += 1
        v[1:3] -= 1
        v[2:] = -v[:2] * v[:2]
        v[2] += 2
        v[3], v[2] = v[3] * v[0], v[2] * v[1]
        v[1] += 1
        v[3 - i % 3] = v[1]
        v[2] -= 3
        w = np.array([3, 1, 2, v[0]], x.dtype)
        v[2] = 1
        rows.append(v + w)
    return np.array(rows)


for _name in ("float", "int", "short", "half", "ulong"):
    _dtype = SCALARS[_name]
    body(
        f"""
        uint i = thread_position_in_grid.x;
        ((device {_name}4*)out)[i] = filled(changed<1>(((const device {_name}4*)x)[i], int(i)));
        """,
        name=f"nested_swizzles_in_templates_{_name}",
        header=_TEMPLATES,
        inputs=lambda rng, dtype=_dtype: {"x": rng.integers(0, 6, (24, 4)).astype(DTYPES[dtype])},
        outputs={"out": ((24, 4), _dtype)},
        grid=(24, 1, 1),
        threadgroup=(24, 1, 1),
        constructs=f"types.nested_swizzles types.swizzle_write types.vec types.{_name}4",
    )(_in_templates)


# ---- Threads that write components of one vector


@body(
    """
    uint i = thread_position_in_grid.x;
    device float4* v = (device float4*)out + i / 4;
    threadgroup float4 shared_rows[16];
    switch (i % 4) {
      case 0: v->xyz.x = x[i]; shared_rows[i / 4].wzyx.w = x[i]; break;
      case 1: v->xyz[1] = x[i]; shared_rows[i / 4].zy.y = x[i]; break;
      case 2: v->wz.y = x[i]; shared_rows[i / 4].wzy[1] = x[i]; break;
      default: v->yzw.zx.x = x[i]; shared_rows[i / 4].wzyx.xyz.x = x[i];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    ((device float4*)other)[i] = shared_rows[i / 4];
    """,
    inputs=lambda rng: {"x": rng.normal(size=64).astype(np.float32)},
    outputs={"out": ((64,), "float32"), "other": ((64, 4), "float32")},
    grid=(64, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="types.nested_swizzles types.float4",
)
def components_of_one_vector_by_several_threads(x):
    return x, np.repeat(x.reshape(16, 4), 4, axis=0)
