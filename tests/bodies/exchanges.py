"""Bodies that exchange values in threadgroup memory at distances that are not known before they run: butterflies,
sorting networks and transforms.

A distance comes from an array or follows from one, so that loops are not unrolled into known distances."""

import numpy as np

from bodies import body

_ROWS = 3
_BASE = "uint t = thread_position_in_threadgroup.x, row = threadgroup_position_in_grid.x;"


def _numbers(shape, dtype=np.int32):
    return lambda rng: {"x": rng.integers(-50, 50, (_ROWS, *shape)).astype(dtype)}


def _exchange(source, inputs, shape, threads, name, dtype="int32"):
    return body(
        _BASE + source,
        inputs=inputs,
        outputs={"out": ((_ROWS, *shape), dtype)},
        grid=(_ROWS * threads, 1, 1),
        threadgroup=(threads, 1, 1),
        constructs="synchronisation.threadgroup_barrier",
        name=name,
    )


# Of 0 inserted at the bit `j`, a power of two.
_INSERTED = {"quotient": "2 * j * (t / j) + t % j", "mask": "((t & ~(j - 1)) << 1) | (t & (j - 1))"}


def _steps(threads, step):
    """For j = 1, 2, ..., threads: the first numbers of all pairs, and the second ones."""
    t, j = np.arange(threads), 1
    while j <= threads:
        first = 2 * j * (t // j) + t % j
        step(first, first + j)
        j *= 2


def _hadamard(kind, type, dtype, threads):
    @_exchange(
        f"""
        threadgroup {type} s[{2 * threads}];
        s[t] = x[row * {2 * threads} + t];
        s[t + {threads}] = x[row * {2 * threads} + t + {threads}];
        for (uint j = 1; j < n[0]; j *= 2) {{
            threadgroup_barrier(mem_flags::mem_threadgroup);
            uint i = {_INSERTED[kind]};
            {type} a = s[i], b = s[i + j];
            s[i] = a + b;
            s[i + j] = a - b;
        }}
        threadgroup_barrier(mem_flags::mem_threadgroup);
        out[row * {2 * threads} + t] = s[t];
        out[row * {2 * threads} + t + {threads}] = s[t + {threads}];""",
        lambda rng: _numbers((2 * threads,), dtype)(rng) | {"n": np.array([2 * threads], np.uint32)},
        (2 * threads,),
        threads,
        f"hadamard_by_{kind}_of_{threads}_{type}",
        dtype,
    )
    def reference(x, n):
        s = x.copy()

        def step(first, second):
            s[:, first], s[:, second] = s[:, first] + s[:, second], s[:, first] - s[:, second]

        _steps(threads, step)
        return s


for _kind, _type, _dtype, _threads in (
    ("quotient", "int", "int32", 128),
    ("mask", "float", "float32", 64),
    ("quotient", "half", "float16", 32),
):
    _hadamard(_kind, _type, _dtype, _threads)


def _pairs(name, condition, is_on):
    """Structures of two numbers, of which some threads exchange theirs."""

    @_exchange(
        f"""
        threadgroup int2 s[256];
        s[t] = ((const device int2*)x)[row * 256 + t];
        s[t + 128] = ((const device int2*)x)[row * 256 + t + 128];
        for (uint j = 1; j < n[0]; j *= 2) {{
            threadgroup_barrier(mem_flags::mem_threadgroup);
            uint i = {_INSERTED["quotient"]};
            int2 a = s[i], b = s[i + j];
            {condition} {{
                s[i] = a + b.yx;
                s[i + j] = a - b;
            }}
        }}
        threadgroup_barrier(mem_flags::mem_threadgroup);
        ((device int2*)out)[row * 256 + t] = s[t];
        ((device int2*)out)[row * 256 + t + 128] = s[t + 128];""",
        lambda rng: _numbers((256, 2))(rng) | {"n": np.array([256], np.uint32)},
        (256, 2),
        128,
        name,
    )
    def reference(x, n):
        s = x.copy()
        on = is_on(np.arange(128))

        def step(first, second):
            a, b = s[:, first[on]], s[:, second[on]]
            s[:, first[on]], s[:, second[on]] = a + b[..., ::-1], a - b

        _steps(128, step)
        return s


_pairs("butterflies_of_pairs", "", lambda t: np.full(t.shape, True))
_pairs("butterflies_of_some_pairs", "if (t % 3 != 1)", lambda t: t % 3 != 1)


def _sorted(name, threads, source):
    @_exchange(
        source,
        lambda rng: _numbers((threads[1],))(rng) | {"n": np.array([threads[1]], np.uint32)},
        (threads[1],),
        threads[0],
        name,
    )
    def reference(x, n):
        return np.sort(x, axis=1)


_sorted(
    "bitonic_sort_by_partners",
    (256, 256),
    """
    threadgroup int s[256];
    s[t] = x[row * 256 + t];
    for (uint k = 2; k <= n[0]; k *= 2)
        for (uint j = k / 2; j > 0; j /= 2) {
            threadgroup_barrier(mem_flags::mem_threadgroup);
            uint p = t ^ j;
            if (p > t && p < 256) {
                int a = s[t], b = s[p];
                if ((a > b) == ((t & k) == 0)) {
                    s[t] = b;
                    s[p] = a;
                }
            }
        }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[row * 256 + t] = s[t];""",
)
_sorted(
    "bitonic_sort_of_pairs",
    (128, 256),
    """
    threadgroup int s[256];
    s[t] = x[row * 256 + t];
    s[t + 128] = x[row * 256 + t + 128];
    for (uint k = 2; k <= n[0]; k *= 2)
        for (uint j = k / 2; j > 0; j /= 2) {
            threadgroup_barrier(mem_flags::mem_threadgroup);
            uint i = 2 * j * (t / j) + t % j, p = i + j;
            bool up = (i & k) == 0;
            int low = s[i], high = s[p];
            if ((low > high) == up) {
                s[i] = high;
                s[p] = low;
            }
        }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[row * 256 + t] = s[t];
    out[row * 256 + t + 128] = s[t + 128];""",
)


def _moved(name, index, of_index, size=96):
    """What one thread stores for another one, and what it loads from one, at a distance that is no power of two, too.
    Some of it lies beyond the array, where there is nothing."""

    @_exchange(
        f"""
        threadgroup int a[{size}], b[{size}];
        uint all = 0;
        for (uint k = 0; k < 24; ++k) {{
            uint j = n[k], p = {index};
            if (t < {size}) a[t] = b[t] = -1;
            threadgroup_barrier(mem_flags::mem_threadgroup);
            a[p] = x[row * 96 + t];
            if (t & 1) b[p] = x[row * 96 + t];
            threadgroup_barrier(mem_flags::mem_threadgroup);
            all = 3 * all + a[p] + 5 * b[p] + (t < {size} ? 7 * a[t] + 11 * b[t] : 0);
            threadgroup_barrier(mem_flags::mem_threadgroup);
        }}
        out[row * 96 + t] = all;""",
        lambda rng: (
            _numbers((96,))(rng)
            | {"n": np.array([0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 21, 24, 31, *range(32, 64, 4)], np.uint32)}
        ),
        (96,),
        96,
        name,
    )
    def reference(x, n):
        t, total = np.arange(96), np.zeros_like(x)
        for j in n.astype(np.int64):
            p = of_index(t, j)
            inside = p < size
            a, b = np.full((_ROWS, size), -1, np.int32), np.full((_ROWS, size), -1, np.int32)
            a[:, p[inside]] = x[:, inside]
            odd = inside & (t % 2 == 1)
            b[:, p[odd]] = x[:, odd]

            def at(values, places):
                return np.where(places < size, values[:, np.minimum(places, size - 1)], 0)

            total = 3 * total + at(a, p) + 5 * at(b, p) + 7 * at(a, t) + 11 * at(b, t)
        return total.astype(np.int32)


_moved("moves_to_partners", "t ^ j", lambda t, j: t ^ j)
_moved("moves_to_partners_beyond", "t ^ j", lambda t, j: t ^ j, size=80)
_moved("moves_to_partners_further_on", "(t ^ j) + (j & 3)", lambda t, j: (t ^ j) + (j & 3))


@body(
    """
    threadgroup short2 s[128];
    uint l = thread_position_in_threadgroup.x;
    for (uint q = l; q < 128; q += 32) s[q] = ((const device short2*)x)[q];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    short2 b = s[(l * 4) ^ 64], a = s[(l * 16 + 4) & 127];
    ((device short2*)y)[l] = (l & 4) ? short2(0) : b;
    ((device short2*)y)[l + 32] = a;
    """,
    inputs=lambda rng: {"x": rng.integers(-(2**15), 2**15, (128, 2)).astype(np.int16)},
    outputs={"y": ((64, 2), "int16")},
    grid=(32, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="types.short address_spaces.threadgroup_vectors address_spaces.cast_to_vector",
)
def pairs_of_shorts_far_apart(x):
    t = np.arange(32)
    return np.concatenate([np.where((t & 4)[:, None], 0, x[t * 4 ^ 64]), x[(t * 16 + 4) & 127]]).astype(np.int16)
