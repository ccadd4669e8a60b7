"""What the SIMD engine makes together: stores to members of structures, arithmetic on them in the order of memory, and
what simdgroups hand one another through threadgroup memory, from places that no lane's own store covers."""

import numpy as np

from bodies import DTYPES, body

_TYPES = (("float", "float32"), ("half", "float16"), ("long", "int64"), ("uint", "uint32"))
_MEMBERS = ((2, (0, 1)), (3, (0, 1, 2)), (4, (0, 1, 2, 3)), (4, (2, 0)), (4, (3, 1, 2)), (8, range(8)))

for _type, _dtype in _TYPES:
    # The grid goes over the arrays' end; in the second part some threads take no part, and the index wraps.
    for _each, _members in _MEMBERS:

        def _stored(x, each=_each, members=_members):
            i = np.arange(150)
            out = np.zeros((2, 131 * each - 1), x.dtype)
            for n, member in enumerate(members):
                value = x[i] * (n + 1) + member
                place = each * i + member
                inside = place < out.shape[1]
                out[0, place[inside]] = value[inside]
                place = (each * i + member + 2**32 - 2 * each) % 2**32
                inside = (place < out.shape[1]) & (i % 5 < 3)
                out[1, place[inside]] = value[inside] + 1
            return out[0], out[1]

        body(
            f"""
            uint i = thread_position_in_grid.x;
            device {_type}* to = out + {_each} * i;
            {" ".join(f"to[{m}] = x[i] * {n + 1} + {m};" for n, m in enumerate(_members))}
            if (i % 5 < 3) {{
              {" ".join(f"some[{_each} * (i - 2) + {m}] = x[i] * {n + 1} + {m + 1};" for n, m in enumerate(_members))}
            }}
            """,
            name=f"members_are_stored_{_type}_{_each}_{''.join(map(str, _members))}",
            inputs=lambda rng, dtype=_dtype: {"x": rng.integers(1, 20, 150).astype(DTYPES[dtype])},
            outputs={"out": ((131 * _each - 1,), _dtype), "some": ((131 * _each - 1,), _dtype)},
            init_value=0,
            grid=(150, 1, 1),
            threadgroup=(96, 1, 1),
            constructs="memory.load_outside",
        )(_stored)


@body(
    """
    uint i = thread_position_in_grid.x;
    device float4* to = (device float4*)out;
    float4 value = ((const device float4*)x)[i], other = ((const device float4*)y)[i];
    to[3 * i] = fma(value, other, value) * x[5];
    to[3 * i + 1] = value.wzyx - other;
    to[3 * i + 2] = float4(-value.x, abs(value.y), value.z + other.w, value.w);
    """,
    inputs=lambda rng: {
        "x": rng.integers(-9, 9, (70, 4)).astype(np.float32),
        "y": rng.integers(-9, 9, (66, 4)).astype(np.float32),
    },
    outputs={"out": ((70, 3, 4), "float32")},
    grid=(70, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="memory.load_outside",
)
def members_keep_their_order(x, y):
    y = np.concatenate([y, np.zeros((4, 4), np.float32)])
    last = np.stack([-x[:, 0], abs(x[:, 1]), x[:, 2] + y[:, 3], x[:, 3]], axis=1)
    return np.stack([(x * y + x) * x.flat[5], x[:, ::-1] - y, last], axis=1)


# Stores that are near one another and overlap keep their order; so do loads between them of what they may change.
@body(
    """
    uint i = thread_position_in_grid.x;
    threadgroup float shared[64];
    device float* to = out + 4 * i;
    to[0] = x[i];
    to[1] = 2;
    to[0] = to[1] + 1;
    to[3] = to[0] * 2;
    shared[thread_position_in_threadgroup.x] = to[3];
    to[2] = shared[thread_position_in_threadgroup.x];
    shared[thread_position_in_threadgroup.x] = x[i];
    to[1] = shared[thread_position_in_threadgroup.x] + to[2];
    """,
    inputs=lambda rng: {"x": rng.integers(-9, 9, 70).astype(np.float32)},
    outputs={"out": ((70, 4), "float32")},
    grid=(70, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="memory.load_outside",
)
def stores_keep_their_order(x):
    return np.stack([np.full(70, 3), x + 6, np.full(70, 6), np.full(70, 6)], axis=1).astype(np.float32)


# ---- Across barriers

for _threads in (32, 96, 128, 256):
    # The last threadgroup is smaller.
    _length = 3 * _threads + 24

    def _normalized(x, threads=_threads):
        values = np.concatenate([x, np.zeros(-len(x) % 4, np.float32)]).reshape(-1, 4)
        out = np.empty_like(values)
        for first in range(0, len(values), threads):
            some = values[first : first + threads]
            out[first : first + threads] = some * 2 + some.sum()
        return out.reshape(-1)[: len(x)]

    body(
        """
        uint i = thread_position_in_grid.x, own = thread_position_in_threadgroup.x;
        threadgroup float sums[32];
        float sum = 0;
        for (uint k = 0; k < 4; ++k) sum += x[4 * i + k];
        sum = simd_sum(sum);
        if (own < 32) sums[own] = 0;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (own % 32 == 0) sums[own / 32] = sum;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        float total = 0;
        for (uint k = 0; k < 8; ++k) total += sums[k];
        for (uint k = 0; k < 4; ++k) out[4 * i + k] = fma(x[4 * i + k], 2.0f, total);
        """,
        name=f"rows_of_four_around_barriers_{_threads}",
        inputs=lambda rng, length=_length: {"x": rng.integers(-9, 9, 4 * length - 3).astype(np.float32)},
        outputs={"out": ((4 * _length - 3,), "float32")},
        grid=(_length, 1, 1),
        threadgroup=(_threads, 1, 1),
        constructs="barriers.in_loop",
    )(_normalized)

    for _type, _dtype in _TYPES:
        # Before, behind and around: what a thread reads was stored by several simdgroups, or lies outside its reach.
        def _handed_on(x, threads=_threads):
            out = []
            for first in range(0, len(x), threads):
                shared = x[first : first + threads].copy()
                count = len(shared)
                own = np.arange(count)
                for step in (1, 2, 4, 8, 16, 32):
                    before = np.where(own >= step, shared[np.maximum(own - step, 0)], 0).astype(x.dtype)
                    after = np.where(own + 2 * step < count, shared[np.minimum(own + 2 * step, count - 1)], 1)
                    shared = ((shared + before).astype(x.dtype) - after.astype(x.dtype)).astype(x.dtype)
                    shared[own < step] = (shared[own < step] + shared[own[own < step] ^ 1]).astype(x.dtype)
                out.append(shared)
            return np.concatenate(out)

        body(
            f"""
            threadgroup {_type} shared[{_threads}];
            uint i = thread_position_in_grid.x, own = thread_position_in_threadgroup.x;
            uint count = threads_per_threadgroup.x;
            if (threadgroup_position_in_grid.x == 3) count = {_length % _threads};
            shared[own] = x[i];
            threadgroup_barrier(mem_flags::mem_threadgroup);
            for (uint step = 1; step < 64; step *= 2) {{
              {_type} before = own >= step ? shared[own - step] : {_type}(0);
              {_type} after = own + 2 * step < count ? shared[own + 2 * step] : {_type}(1);
              threadgroup_barrier(mem_flags::mem_threadgroup);
              shared[own] += before;
              shared[own] -= after;
              threadgroup_barrier(mem_flags::mem_threadgroup);
              {_type} other = shared[own ^ 1];
              threadgroup_barrier(mem_flags::mem_threadgroup);
              if (own < step) shared[own] += other;
              threadgroup_barrier(mem_flags::mem_threadgroup);
            }}
            out[i] = shared[own];
            """,
            name=f"handed_on_{_type}_{_threads}",
            inputs=lambda rng, dtype=_dtype, length=_length: {"x": rng.integers(0, 4, length).astype(DTYPES[dtype])},
            outputs={"out": ((_length,), _dtype)},
            grid=(_length, 1, 1),
            threadgroup=(_threads, 1, 1),
            constructs="barriers.in_loop",
        )(_handed_on)
