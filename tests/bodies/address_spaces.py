"""Where values live, and pointers and references to them."""

import zlib

import numpy as np

from bodies import DTYPES, Dtype, body

# ---- device and thread


@body(
    """
    uint row = thread_position_in_grid.x;
    device const float* in = x + row * 12;
    device float* out = y + row * 12;
    thread float total = 0;
    thread float* running = &total;
    for (device const float* end = in + 12; in < end; in += 3) {
      *running += in[0] + in[1];
      *out++ = *running;
      *out = in[2];
      out += 1;
      out[0] = float(end - in);
      ++out;
    }
    """,
    inputs=lambda rng: {"x": rng.normal(size=(20, 12)).astype(np.float32)},
    outputs={"y": ((20, 12), "float32")},
    grid=(20, 1, 1),
    threadgroup=(8, 1, 1),
    constructs="address_spaces.device address_spaces.thread address_spaces.device_pointer_arithmetic",
)
def walk_by_pointers(x):
    groups = x.reshape(20, 4, 3)
    total, y = np.zeros(20, np.float32), np.empty_like(groups)
    for j in range(4):
        total = total + (groups[:, j, 0] + groups[:, j, 1])
        y[:, j] = np.stack([total, groups[:, j, 2], np.full(20, 12 - 3 * j, np.float32)], axis=1)
    return y.reshape(20, 12)


@body(
    """
    uint i = thread_position_in_grid.x;
    float4 v = ((device const float4*)x)[i];
    v += *(const device float4*)(bias);
    *(device float4*)(y + 4 * i) = v;
    // The last vector in halves, and integers out of the same bytes.
    device const half2* pairs = (device const half2*)(x + 4 * i);
    halves[i] = pairs[3];
    const device uint2& words = *reinterpret_cast<const device uint2*>(&x[4 * i + 2]);
    bits[2 * i] = words.x;
    bits[2 * i + 1] = words.y;
    """.replace("halves[i] = pairs[3];", "((device half2*)halves)[i] = pairs[3];"),
    inputs=lambda rng: {
        "x": rng.normal(size=(16, 4)).astype(np.float32),
        "bias": rng.normal(size=4).astype(np.float32),
    },
    outputs={"y": ((16, 4), "float32"), "halves": ((16, 2), "float16"), "bits": ((16, 2), "uint32")},
    grid=(16, 1, 1),
    threadgroup=(16, 1, 1),
    constructs="address_spaces.cast_to_vector address_spaces.device address_spaces.constant types.float4 types.half2 "
    "types.uint2 structure.c_cast structure.reinterpret_cast",
)
def buffers_as_vectors(x, bias):
    return x + bias, x.view(np.float16)[:, 6:8], x.view(np.uint32)[:, 2:4]


# ---- threadgroup


@body(
    """
    threadgroup float tile[8][9];
    threadgroup int arrived;
    uint2 t = thread_position_in_threadgroup.xy;
    uint2 corner = threadgroup_position_in_grid.xy * 8;
    if (t.x == 0 && t.y == 0) arrived = 100;
    tile[t.y][t.x] = x[(corner.y + t.y) * 24 + corner.x + t.x];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    y[(corner.x + t.y) * 16 + corner.y + t.x] = tile[t.x][t.y] + float(arrived);
    """,
    inputs=lambda rng: {"x": rng.normal(size=(16, 24)).astype(np.float32)},
    outputs={"y": ((24, 16), "float32")},
    grid=(24, 16, 1),
    threadgroup=(8, 8, 1),
    constructs="address_spaces.threadgroup_2d_array address_spaces.threadgroup_scalar barriers.transposition",
)
def transpose_tiles(x):
    return x.T + np.float32(100)


for _type, _dtype in (("half", "float16"), ("T", "bfloat16"), ("T", "int16"), ("uchar", "uint8")):
    body(
        f"""
    uint i = thread_position_in_grid.x, t = thread_index_in_threadgroup;
    if (i >= uint(count)) return;
    // Declared after some threads have left.
    threadgroup {_type} staged[40];
    staged[t] = x[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint members = min(40u, uint(count) - threadgroup_position_in_grid.x * 40);
    y[i] = staged[members - 1 - t];
    """,
        name=f"reverse_blocks_{_type}_{_dtype}",
        inputs=lambda rng, dtype=_dtype: {
            "x": rng.integers(0, 99, 100).astype("float32" if dtype == "bfloat16" else dtype).astype(DTYPES[dtype]),
            "count": 100,
        },
        template=[("T", Dtype(_dtype))],
        outputs={"y": ((100,), _dtype)},
        grid=(120, 1, 1),
        threadgroup=(40, 1, 1),
        constructs="address_spaces.threadgroup_array address_spaces.threadgroup_after_return "
        + ("address_spaces.threadgroup_array_of_T" if _type == "T" else "address_spaces.threadgroup_small_array"),
    )(lambda x, count: np.concatenate([x[:40][::-1], x[40:80][::-1], x[80:][::-1]]))


@body(
    """
    threadgroup uint buckets[16];
    uint t = thread_index_in_threadgroup;
    clear(buckets, t);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    count(buckets, x[thread_position_in_grid.x] >> 4, t);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    threadgroup uint* mine = buckets + (t & 15);
    threadgroup uint& next = buckets[(t + 1) & 15];
    if (t < 16) {
      uint sum = *mine + next;
      out[threadgroup_position_in_grid.x * 16 + t] = sum;
    }
    """,
    header="""
void clear(threadgroup uint* buckets, uint t) {
  if (t < 16) buckets[t] = 0;
}

// Thread t owns bucket t and counts what all threads have announced.
void count(threadgroup uint (&buckets)[16], uint value, uint t) {
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint turn = 0; turn < 32; ++turn) {
    if (turn == t) ++buckets[value];
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
}
""",
    inputs=lambda rng: {"x": rng.integers(0, 256, 64, np.uint8)},
    outputs={"out": ((2, 16), "uint32")},
    grid=(64, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="address_spaces.threadgroup_pointer_to_helper address_spaces.threadgroup_reference_to_helper "
    "address_spaces.threadgroup_array barriers.in_loop",
)
def histogram_by_turns(x):
    counts = np.stack([np.bincount(block >> 4, minlength=16) for block in x.reshape(2, 32)])
    return (counts + np.roll(counts, -1, axis=1)).astype(np.uint32)


@body(
    """
    threadgroup atomic_int largest;
    threadgroup atomic<uint> counts[4];
    uint t = thread_index_in_threadgroup;
    if (t == 0) atomic_store_explicit(&largest, -1000, memory_order_relaxed);
    if (t < 4) atomic_store_explicit(&counts[t], 0, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    int value = x[thread_position_in_grid.x];
    atomic_fetch_max_explicit(&largest, value, memory_order_relaxed);
    atomic_fetch_add_explicit(&counts[uint(value) & 3], 1, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (t == 0) {
      device int* row = out + threadgroup_position_in_grid.x * 5;
      row[0] = atomic_load_explicit(&largest, memory_order_relaxed);
      for (int j = 0; j < 4; ++j) row[1 + j] = int(atomic_load_explicit(&counts[j], memory_order_relaxed));
    }
    """,
    inputs=lambda rng: {"x": rng.integers(-500, 500, 192, np.int32)},
    outputs={"out": ((3, 5), "int32")},
    grid=(192, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="address_spaces.threadgroup_atomic synchronisation.fetch_max synchronisation.fetch_add "
    "synchronisation.load synchronisation.store types.atomic_int types.atomic_T",
)
def largest_and_counts(x):
    blocks = x.reshape(3, 64)
    counts = [np.bincount(block & 3, minlength=4) for block in blocks]
    return np.concatenate([blocks.max(axis=1)[:, None], counts], axis=1).astype(np.int32)


@body(
    """
    threadgroup Pair pairs[32];
    uint t = thread_index_in_threadgroup;
    pairs[t] = {float(x[t]), t};
    for (uint stride = 16; stride > 0; stride /= 2) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (t < stride) pairs[t] = larger(pairs[t], pairs[t + stride]);
    }
    if (t == 0) {
      value[0] = pairs[0].value;
      place[0] = pairs[0].index;
    }
    """,
    header="""
struct Pair {
  float value;
  uint index;
};
Pair larger(threadgroup const Pair& a, threadgroup const Pair& b) {
  if (a.value != b.value) return a.value > b.value ? a : b;
  return a.index < b.index ? a : b;
}
""",
    inputs=lambda rng: {"x": rng.integers(0, 20, 32).astype(np.float16)},
    outputs={"value": ((1,), "float32"), "place": ((1,), "uint32")},
    grid=(32, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="address_spaces.threadgroup_struct address_spaces.threadgroup_reference_to_helper barriers.tree_reduction",
)
def argmax_of_structs(x):
    return np.array([x.max()], np.float32), np.array([x.argmax()], np.uint32)


# ---- constant


@body(
    """
    constant float* weights = kernel_weights;
    uint i = thread_position_in_grid.x;
    float total = 0;
    for (int j = 0; j < kTaps; ++j) total += weights[j] * x[i + j];
    total += gains[1] - offset;
    y[i] = total * kScale + kPrimes[i % 4] + kCorners[i & 1].y;
    """,
    header="""
constant int kTaps = 3;
constant float kScale = 0.25;
constant constexpr int kPrimes[] = {2, 3, 5, 7};
constant float2 kCorners[2] = {float2(1, 10), float2(2, 20)};
""",
    inputs=lambda rng: {
        "x": rng.normal(size=66).astype(np.float32),
        "kernel_weights": np.array([0.5, 1, 0.5], np.float32),
        "gains": np.array([3, 4], np.float32),
        "offset": 1.5,
    },
    outputs={"y": ((64,), "float32")},
    grid=(64, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="address_spaces.constant address_spaces.constant_scalar address_spaces.constant_array types.float2",
)
def filter_with_constants(x, kernel_weights, gains, offset):
    f = np.float32
    total = np.zeros(64, f)
    for j in range(3):
        total = total + kernel_weights[j] * x[j : j + 64]
    total = total + (gains[1] - f(offset))
    primes = np.tile(np.array([2, 3, 5, 7], f), 16)
    return total * f(0.25) + primes + np.tile(np.array([10, 20], f), 32)


@body(
    """
    uint i = thread_position_in_grid.x;
    float2 value = kUnit * x[i] + kShift.xy;
    y[2 * i] = value.x + kAll.w;
    y[2 * i + 1] = value.y * kNested[1].weights[2];
    """,
    header="""
struct Filter {
  float weights[3];
  int taps;
};
constant float2 kUnit = float2(0.6, 0.8);
constant float3 kShift = float3(float2(1, 2), 3) * 2.0f;
constant float4 kAll = float4(kUnit, kUnit.yx);
constant Filter kNested[2] = {{{1, 2, 3}, 3}, {{4, 5, 6}, 3}};
""",
    inputs=lambda rng: {"x": rng.normal(size=32).astype(np.float32)},
    outputs={"y": ((32, 2), "float32")},
    grid=(32, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="address_spaces.constant_vector address_spaces.constant_array types.float3",
)
def computed_constant_vectors(x):
    f = np.float32
    return np.stack([f(0.6) * x + f(2) + f(0.6), (f(0.8) * x + f(4)) * f(6)], axis=1)


@body(
    """
    uint i = thread_position_in_grid.x;
    Mixed m = kMixed[i % 2];
    float sum = 100 * m.at.z + 10 * float(m.weight) + float(m.code) + (m.flags.y ? 0.5f : 0.25f);
    y[2 * i] = sum + float(kPlaces[i % 3].z) + float(kHalves[i % 2].y);
    y[2 * i + 1] = kMixed[1 - i % 2].values[i % 4] + m.at.x;
    """,
    header="""
constant float kFirst[4] = {1, 2, 3, 4};
constant float kSecond[4] = {-1, -2, -3, -4};
struct Mixed {
  float3 at;
  bfloat weight;
  uchar code;
  bool3 flags;
  constant float* values;
};
constant Mixed kMixed[2] = {
  {float3(1, 2, 3), bfloat(3), 7, bool3(true, false, true), kFirst},
  {float3(4, 5, 6), bfloat(-7.5), 200, bool3(false, true, false), kSecond + 0},
};
constant bfloat3 kPlaces[3] = {bfloat3(1, 2, 3), bfloat3(0, 0, -0.0), bfloat3(0.5, 1.5, 2.5)};
constant half3 kHalves[2] = {half3(1, 2, 3), half3(4, 5, 6)};
""",
    outputs={"y": ((32, 2), "float32")},
    grid=(32, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="address_spaces.constant_vector address_spaces.constant_array types.float3",
)
def tables_of_mixed_structures():
    i = np.arange(32)
    sums = np.where(i % 2 == 0, 300 + 30 + 7 + 0.25, 600 - 75 + 200 + 0.5)
    sums += np.array([3, 0, 2.5])[i % 3] + np.array([2, 5])[i % 2]
    values = np.array([[1, 2, 3, 4], [-1, -2, -3, -4]])[1 - i % 2, i % 4] + np.where(i % 2 == 0, 1, 4)
    return np.stack([sums, values], axis=1).astype(np.float32)


def _crc_table():
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (0xEDB88320 if value & 1 else 0)
        table.append(value)
    rows = [table]
    for _ in range(15):
        rows.append([table[value & 0xFF] ^ value >> 8 for value in rows[-1]])
    return rows


@body(
    """
    uint i = thread_position_in_grid.x;
    device const uchar* text = texts + i * 64;
    uint crc = 0xffffffff;
    for (int at = 0; at < 64; at += 16) {
      uint next = 0;
      for (int j = 0; j < 16; ++j) {
        uchar byte = text[at + j];
        if (j < 4) byte ^= uchar(crc >> (8 * j));
        next ^= kTable[15 - j][byte];
      }
      crc = next;
    }
    checksums[i] = ~crc;
    """,
    header="constant uint kTable[16][256] = {\n"
    + ",\n".join("{" + ", ".join(f"{value:#010x}" for value in row) + "}" for row in _crc_table())
    + "};\n",
    inputs=lambda rng: {"texts": rng.integers(0, 256, (30, 64), np.uint8)},
    outputs={"checksums": ((30,), "uint32")},
    grid=(30, 1, 1),
    threadgroup=(30, 1, 1),
    constructs="address_spaces.large_constant_table address_spaces.constant_array types.uchar",
)
def crc_by_table(texts):
    return np.array([zlib.crc32(text.tobytes()) for text in texts], np.uint32)


# ---- Overloads and templates


@body(
    """
    threadgroup int staged[16];
    uint t = thread_index_in_threadgroup;
    staged[t] = x[t];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    thread int own[2] = {x[t], 1};
    out[t] = total(x, 16) + total(few, 2) + total(staged, 16) + total(own, 2) + kept<threadgroup int*>(staged)[t] +
             Reader<device const int*>{x}.at(t) + Reader<threadgroup int*>{staged}.at(t);
    """,
    header="""
int total(device const int* values, int count) {
  int result = 0;
  for (int j = 0; j < count; ++j) result += values[j];
  return result;
}
int total(constant int* values, int count) {
  int result = 0;
  for (int j = 0; j < count; ++j) result += values[j];
  return result;
}
int total(threadgroup const int* values, int count) {
  int result = 0;
  for (int j = 0; j < count; ++j) result += values[j];
  return result;
}
int total(thread const int* values, int count) {
  int result = 0;
  for (int j = 0; j < count; ++j) result += values[j];
  return result;
}
template <typename Pointer>
Pointer kept(Pointer p) {
  return p;
}
template <typename Pointer>
struct Reader {
  Pointer values;
  int at(uint i) const { return values[i]; }
};
""",
    inputs=lambda rng: {"x": rng.integers(-9, 9, 16, np.int32), "few": np.array([100, 200], np.int32)},
    outputs={"out": ((16,), "int32")},
    grid=(16, 1, 1),
    threadgroup=(16, 1, 1),
    constructs="address_spaces.overloads address_spaces.template_parameter address_spaces.thread "
    "address_spaces.constant structure.explicit_template_arguments",
)
def sums_in_every_space(x, few):
    return (2 * x.sum() + few.sum() + (x + 1) + 3 * x).astype(np.int32)


@body(
    """
    // Members of classes, of the header and of the body, and a specialisation.
    struct Local {
        int twice(const device int* p) const { return 2 * *p; }
        int twice(const threadgroup int* p) const { return 2 * *p; }
    };
    threadgroup int there[16];
    uint i = thread_position_in_threadgroup.x;
    there[i] = x[i] + 1;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    Local local;
    Reader reader{100};
    out[i] = local.twice(x + i) + local.twice(there + i) + reader.read(x + i) + reader.read(there + i);
    out[i] += Weight<const device int*>::value + Weight<const threadgroup int*>::value;
    """,
    header="""
    struct Reader {
        int offset;
        int read(const device int* p) const { return offset + *p; }
        int read(const threadgroup int* p) const { return offset + *p; }
    };
    template <typename P> struct Weight { static constexpr constant int value = 0; };
    template <> struct Weight<const device int*> { static constexpr constant int value = 7; };
    template <> struct Weight<const threadgroup int*> { static constexpr constant int value = 7; };
    """,
    inputs=lambda rng: {"x": rng.integers(-99, 99, 16, np.int32)},
    outputs={"out": ((16,), "int32")},
    grid=(16, 1, 1),
    threadgroup=(16, 1, 1),
    constructs="address_spaces.overloads structure.struct",
)
def members_in_every_space(x):
    return (3 * x + 3 * (x + 1) + 200 + 14).astype(np.int32)


@body(
    """
    threadgroup Triangle triangles[4];
    uint i = thread_position_in_grid.x;
    triangles[i] = Triangle(float3(i), i);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    Triangle mine = triangles[3 - i];
    threadgroup Triangle* next = triangles + (i + 1) % 4;
    out[i] = mine.a.x + 10 * (*next)(2) + 100 * int(mine == *next) + 1000 * next->index();
    """,
    header="""
    struct Triangle {
      float3 a;
      int number;
      Triangle() thread = default;
      Triangle() threadgroup = default;
      Triangle(float3 x, int n) thread : a(x), number(n) {}
      Triangle(float3 x, int n) threadgroup : a(x), number(n) {}
      Triangle(const thread Triangle&) thread = default;
      Triangle(const threadgroup Triangle&) thread = default;
      Triangle(int) threadgroup = delete;
      threadgroup Triangle& operator=(const thread Triangle&) threadgroup = default;
      threadgroup Triangle& operator=(const threadgroup Triangle&) threadgroup = default;
      thread Triangle& operator=(const thread Triangle&) thread = default;
      bool operator==(const threadgroup Triangle& other) const thread { return number == other.number; }
      int operator()(int by) const threadgroup { return by * number; }
      int index() const threadgroup;
      int index() const thread;
    };
    int Triangle::index() const threadgroup { return number; }
    int Triangle::index() const thread { return number; }
    """,
    outputs={"out": ((4,), "float32")},
    grid=(4, 1, 1),
    threadgroup=(4, 1, 1),
    constructs="address_spaces.qualified_members address_spaces.threadgroup_struct structure.operator",
)
def members_that_say_where_they_lie():
    i = np.arange(4)
    following = (i + 1) % 4
    return (3 - i + 20 * following + 100 * (3 - i == following) + 1000 * following).astype(np.float32)


@body(
    """
    threadgroup Sum sums[4];
    uint i = thread_position_in_grid.x;
    sums[i] = x[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    Sum mine;
    mine = x[3 - i];
    out[i] = mine.value + 10 * sums[(i + 1) % 4].value;
    """,
    header="""
    struct Sum {
      float value;
      threadgroup Sum& operator=(float x) threadgroup { value = x; return *this; }
      thread Sum& operator=(float x) thread { value = x; return *this; }
    };
    """,
    inputs=lambda rng: {"x": np.arange(4, dtype=np.float32)},
    outputs={"out": ((4,), "float32")},
    grid=(4, 1, 1),
    threadgroup=(4, 1, 1),
    constructs="address_spaces.qualified_members structure.operator",
)
def assignment_in_every_space(x):
    return x[::-1] + 10 * np.roll(x, -1)
