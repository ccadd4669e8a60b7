"""Switches that lanes take differently, loops whose bounds a uniform condition chooses, and the first thread of a group."""

import numpy as np

from bodies import body

# ---- Switches

_BASES = """
inline {type} code_of({index} base) {{
  switch (base) {{
    case 'C': return 1;
    case 'G': return 2;
    case 'T': case 'U': return 3;
    case 'N': return {none};
    default: return 0;
  }}
}}
"""

for _name, _type, _dtype, _index, _none in (
    ("bytes", "uint", "uint32", "uchar", 9),
    ("signed_bytes", "int", "int32", "char", -1),
    ("long", "ulong", "uint64", "uint", 0),
    ("half", "half", "float16", "int", 0.5),
):

    def _codes(x, none=_none, dtype=_dtype):
        table = np.zeros(256)
        for key, value in {"C": 1, "G": 2, "T": 3, "U": 3, "N": none}.items():
            table[ord(key)] = value
        codes = table[x]
        sums = codes.copy()
        for k in range(1, 5):
            sums = sums * 2 + table[np.roll(x, -k)]
        return sums.astype(dtype)

    body(
        f"""
        uint i = thread_position_in_grid.x, n = x_shape[0];
        {_type} sum = 0;
        for (uint k = 0; k < 5; ++k) sum = sum * {_type}(2) + code_of(x[(i + k) % n]);
        out[i] = sum;
        """,
        name=f"codes_of_bases_{_name}",
        header=_BASES.format(type=_type, index=_index, none=_none),
        inputs=lambda rng: {"x": rng.choice(np.frombuffer(b"ACGTUNacgt-\0\xff", np.uint8), 500)},
        outputs={"out": ((500,), _dtype)},
        grid=(500, 1, 1),
        threadgroup=(96, 1, 1),
        constructs="structure.switch",
    )(_codes)


@body(
    """
    uint i = thread_position_in_grid.x;
    int a = x[i], b = y[i], r = -5, s = 100;
    switch (op[i]) {
      case 0: r = a + b; break;
      case 1: r = a - b; s = b; break;
      case 2: r = a & b; break;
      case -3: r = a ^ b; s = a;  // falls through
      case 4: s += r * 2; break;
      case 5: r = max(a, b); break;
      case 6: break;
      default: s = ~a;
    }
    out[2 * i] = r;
    out[2 * i + 1] = s;
    """,
    inputs=lambda rng: {
        "op": rng.integers(-4, 9, 700, np.int32),
        "x": rng.integers(-1000, 1000, 700, np.int32),
        "y": rng.integers(-1000, 1000, 700, np.int32),
    },
    outputs={"out": ((1400,), "int32")},
    grid=(700, 1, 1),
    threadgroup=(128, 1, 1),
    constructs="structure.switch",
)
def an_operation_for_each_case(op, x, y):
    r, s = np.full(700, -5), np.full(700, 100)
    for k, value in ((0, x + y), (1, x - y), (2, x & y), (-3, x ^ y), (5, np.maximum(x, y))):
        r = np.where(op == k, value, r)
    s = np.where(op == 1, y, s)
    s = np.where(op == -3, x, s)
    s = np.where((op == -3) | (op == 4), s + 2 * r, s)
    s = np.where(~np.isin(op, [0, 1, 2, -3, 4, 5, 6]), ~x, s)
    return np.stack([r, s], 1).astype(np.int32).ravel()


# ---- Bounds that a uniform condition chooses

for _name, _tile in (("device", False), ("threadgroup", True)):

    def _triangle(x):
        n, tile = len(x), 64
        out = np.zeros((n, -(-n // tile)), np.int64)
        for row in range(n):
            for column in range(row // tile, out.shape[1]):
                first = row + 1 if column == row // tile else column * tile
                block = x[first : min((column + 1) * tile, n)]
                out[row, column] = np.sum((block > x[row]) * (np.arange(first, first + len(block)) % tile + 1))
        return out.astype(np.uint32)

    body(
        f"""
        constexpr int TILE = 64;
        threadgroup int tile[TILE];
        int n = x_shape[0], row_block = threadgroup_position_in_grid.y, column_block = threadgroup_position_in_grid.x;
        int t = thread_position_in_threadgroup.x;
        if (row_block > column_block) return;
        int rows = min(n - row_block * TILE, TILE), columns = min(n - column_block * TILE, TILE);
        if (t < columns) tile[t] = x[column_block * TILE + t];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (t < rows) {{
          int own = x[row_block * TILE + t], start = row_block == column_block ? t + 1 : 0;
          uint found = 0;
          for (int i = start; i < columns; i++)
            if ({"tile[i]" if _tile else "x[column_block * TILE + i]"} > own) found += i + 1;
          out[(row_block * TILE + t) * threadgroups_per_grid.x + column_block] = found;
        }}
        """,
        name=f"pairs_of_a_triangle_{_name}",
        inputs=lambda rng: {"x": rng.integers(0, 50, 200, np.int32)},
        outputs={"out": ((200, 4), "uint32")},
        init_value=0,
        grid=(256, 4, 1),
        threadgroup=(64, 1, 1),
        constructs="structure.early_return",
    )(_triangle)


for _name, _causal in (("causal", 1), ("whole", 0)):

    def _limited(x, causal):
        n = len(x)
        sums = np.array([x[: (i + 1 if causal else n)].sum() for i in range(n)])
        counts = np.array([(x[(i if causal else 3) :: 2] < 0).sum() for i in range(n)])
        return np.stack([sums, counts], 1).astype(np.int32)

    body(
        """
        int i = thread_position_in_grid.x, n = x_shape[0];
        int end = causal ? i + 1 : n, begin = causal ? i : 3;
        int sum = 0, count = 0;
        for (int k = 0; k < end; ++k) sum += x[k];
        for (int k = begin; k < n; k += 2) {
          if (x[k] >= 0) continue;
          ++count;
        }
        out[2 * i] = sum;
        out[2 * i + 1] = count;
        """,
        name=f"sums_to_a_bound_{_name}",
        inputs=lambda rng, causal=_causal: {"x": rng.integers(-90, 100, 300, np.int32), "causal": np.int32(causal)},
        outputs={"out": ((300, 2), "int32")},
        grid=(300, 1, 1),
        threadgroup=(64, 1, 1),
        constructs="attributes.thread_position_in_grid",
    )(_limited)


# ---- The first thread of a group

for _name, _threads in (("rows_of_256", (256, 1, 1)), ("rows_of_16", (16, 16, 1)), ("rows_of_24", (24, 4, 1))):

    def _groups(x, threads=_threads):
        count = threads[0] * threads[1]
        t = np.arange(len(x)) % count
        first = np.arange(len(x)) - t
        out = np.zeros(len(x), np.int64)
        for size in (1, 2, 4, 8, 16, 32, 64):
            low = t & (size - 1)
            out += x[(first + (t - low)) % len(x)] * (size + 1) + x[(first + ((t - low) << 1) + low) % len(x)]
        return out.astype(np.int32)

    body(
        """
        uint t = thread_position_in_threadgroup.y * threads_per_threadgroup.x + thread_position_in_threadgroup.x;
        uint count = threads_per_threadgroup.x * threads_per_threadgroup.y, n = x_shape[0];
        uint first = threadgroup_position_in_grid.y * count;
        int sum = 0;
        for (uint size = 1; size <= 64; size <<= 1) {
          uint low = t & (size - 1);
          sum += x[(first + (t - low)) % n] * int(size + 1) + x[(first + ((t - low) << 1) + low) % n];
        }
        out[first + t] = sum;
        """,
        name=f"firsts_of_groups_{_name}",
        inputs=lambda rng, n=_threads[0] * _threads[1] * 3: {"x": rng.integers(-99, 99, n, np.int32)},
        outputs={"out": ((_threads[0] * _threads[1] * 3,), "int32")},
        grid=(_threads[0], _threads[1] * 3, 1),
        threadgroup=_threads,
        constructs="attributes.thread_position_in_threadgroup",
    )(_groups)


@body(
    """
    constexpr int N = 1024;
    threadgroup float s[N];
    int t = thread_position_in_threadgroup.x, row = threadgroup_position_in_grid.x;
    for (int k = t; k < N; k += 256) s[k] = x[row * N + k];
    for (int stride = N >> 2; stride > 0; stride >>= 2) {
      int low = t & (stride - 1), i0 = ((t - low) << 2) + low;
      int i1 = i0 + stride, i2 = i1 + stride, i3 = i2 + stride;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      float a = s[i0], b = s[i1], c = s[i2], d = s[i3];
      float ac = a + c, bd = b + d, a_c = a - c, b_d = b - d;
      s[i0] = ac + bd;
      s[i1] = ac - bd;
      s[i2] = a_c + b_d;
      s[i3] = a_c - b_d;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int k = t; k < N; k += 256) out[row * N + k] = s[k];
    """,
    inputs=lambda rng: {"x": rng.integers(-50, 50, (3, 1024)).astype(np.float32)},
    outputs={"out": ((3, 1024), "float32")},
    grid=(768, 1, 1),
    threadgroup=(256, 1, 1),
    constructs="structure.barrier_in_loop",
)
def walsh_transforms_of_radix_4(x):
    out = x.astype(np.int64)
    for half in (1 << k for k in range(10)):
        pairs = out.reshape(3, -1, 2, half)
        out = np.stack([pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]], 2).reshape(3, 1024)
    return out.astype(np.float32)
