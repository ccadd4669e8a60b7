"""Matrices that a simdgroup holds together. The reference of a product is the sum of docs/language.md 2.4: in float, of
ascending k, with one fma each."""

import numpy as np

from bodies import DTYPES, body, model

ELEMENTS = {"float": "float32", "half": "float16", "bfloat": "bfloat16"}

LANE = np.arange(32)
QUAD = LANE // 4
ROW = (QUAD & 4) + (LANE // 2) % 4
COLUMN = (QUAD & 2) * 2 + (LANE % 2) * 2


def product(a, b, c=None, dtype=np.float32):
    """Of 8 by 8 matrices, or of larger ones that bodies put together of them."""
    total = np.zeros((a.shape[0], b.shape[1]), np.float32) if c is None else c.astype(np.float32)
    for k in range(a.shape[1]):
        total = model.fma(a[:, k, None].astype(np.float32), b[None, k].astype(np.float32), total)
    return total.astype(dtype)


def normal(rng, dtype, shape):
    return rng.normal(size=shape).astype(np.float32).astype(DTYPES[dtype])


for _element, _dtype in ELEMENTS.items():

    def _load_and_store(x, small):
        place = np.zeros((7, 16, 24), x.dtype)
        place[0, :8, :8] = x[:8, :8]
        place[1, :8, :8] = x[2:10, 3:11]
        place[2, :8, :8] = x[:8, :8].T
        # The origin is a place in memory, whether the matrix is transposed or not.
        place[3, :8, :8] = x[2:10, 3:11].T
        place[4, 5:13, 7:15] = x[2:10, 3:11]
        place[5, 5:13, 7:15] = x[2:10, 3:11].T
        place[6].reshape(-1)[:64] = x[4:12, 8:16].reshape(-1)
        place[6].reshape(-1)[64:128] = small.reshape(-1)
        return place

    body(
        f"""
    simdgroup_matrix<{_element}, 8, 8> a, b, c, d, e, f;
    simdgroup_load(a, x, 20);
    simdgroup_load(b, x, 20, ulong2(3, 2));
    metal::simdgroup_load(c, x, 20, 0, true);
    simdgroup_load(d, x, 20, ulong2(3, 2), true);
    simdgroup_store(a, out, 24);
    simdgroup_store(b, out + 384, 24);
    simdgroup_store(c, out + 2 * 384, 24);
    simdgroup_store(d, out + 3 * 384, 24);
    simdgroup_store(b, out + 4 * 384, 24, ulong2(7, 5));
    simdgroup_store(b, out + 5 * 384, 24, ulong2(7, 5), true);
    // By way of threadgroup memory, and from what is constant.
    threadgroup {_element} tile[8][12];
    simdgroup_load(e, x + 4 * 20 + 8, 20);
    simdgroup_store(e, &tile[0][0], 12, ulong2(2, 0));
    simdgroup_barrier(mem_flags::mem_threadgroup);
    simdgroup_load(f, &tile[0][2], 12);
    simdgroup_store(f, out + 6 * 384);
    simdgroup_load(f, (constant {_element}*)small);
    simdgroup_store(f, out + 6 * 384 + 64);
    """,
        name=f"simdgroup_matrix_memory_{_element}",
        inputs=lambda rng, dtype=_dtype: {"x": normal(rng, dtype, (16, 20)), "small": normal(rng, dtype, (8, 8))},
        outputs={"out": ((7, 16, 24), _dtype)},
        grid=(32, 1, 1),
        threadgroup=(32, 1, 1),
        init_value=0,
        constructs="simdgroup_matrix.load_and_store",
    )(_load_and_store)

    def _multiply(a, b, c):
        dtype = a.dtype
        return np.stack(
            [
                product(a, b, dtype=dtype),
                product(a, b, c, dtype),
                product(product(a, b, dtype=dtype), c, dtype=dtype),
                product(a, np.full((8, 8), 0.25, dtype), np.diag(np.full(8, 3, dtype)), dtype),
                np.diag(np.full(8, 3, dtype)),
            ]
        ), product(a, b, c.astype(np.float32))

    body(
        f"""
    typedef simdgroup_{_element}8x8 matrix_of_T;
    matrix_of_T A, B, C, D;
    simdgroup_load(A, a);
    simdgroup_load(B, b);
    simdgroup_load(C, c);
    simdgroup_multiply(D, A, B);
    simdgroup_store(D, out);
    simdgroup_multiply_accumulate(D, A, B, C);
    simdgroup_store(D, out + 64);
    D = A * B * C;
    simdgroup_store(D, out + 128);
    auto quarter = make_filled_simdgroup_matrix<{_element}, 8, 8>(0.25f);
    matrix_of_T diagonal({_element}(3));
    metal::simdgroup_multiply_accumulate(D, A, quarter, diagonal);
    simdgroup_store(D, out + 192);
    simdgroup_store(diagonal, out + 256);
    // The sum may be of another type.
    simdgroup_float8x8 sum = simdgroup_float8x8(0);
    simdgroup_multiply_accumulate(sum, A, B, C);
    simdgroup_store(sum, sums);
    """,
        name=f"simdgroup_matrix_product_{_element}",
        inputs=lambda rng, dtype=_dtype: {name: normal(rng, dtype, (8, 8)) for name in "abc"},
        outputs={"out": ((5, 8, 8), _dtype), "sums": ((8, 8), "float32")},
        grid=(32, 1, 1),
        threadgroup=(32, 1, 1),
        constructs="simdgroup_matrix.multiply_accumulate simdgroup_matrix.constructors simdgroup_matrix.product_operator "
        "simdgroup_matrix.mixed_types",
    )(_multiply)


@body(
    """
    uint lane = thread_index_in_simdgroup;
    simdgroup_half8x8 a;
    simdgroup_load(a, x);
    elements[2 * lane] = a.thread_elements()[0];
    elements[2 * lane + 1] = a.thread_elements().y;
    // A fragment that a thread fills itself, at the place that Apple's GPUs give it.
    ushort quad = lane / 4;
    ushort row = (quad & 4) + (lane / 2) % 4, column = (quad & 2) * 2 + (lane % 2) * 2;
    simdgroup_matrix<float, 8, 8> b;
    reinterpret_cast<thread float2&>(b.thread_elements()) = float2(row, column);
    b.thread_elements()[1] += 0.5f;
    simdgroup_store(b, out);
    simdgroup_float8x8 c = b;
    c.thread_elements() *= float(row == column);
    c.thread_elements()[0] -= 1;
    simdgroup_store(c, out + 64);
    simdgroup_multiply_accumulate(c, a, b, c);
    out[128 + 8 * row + column] = c.thread_elements()[0];
    out[128 + 8 * row + column + 1] = c.thread_elements()[1];
    """,
    inputs=lambda rng: {"x": normal(rng, "float16", (8, 8))},
    outputs={"elements": ((64,), "float16"), "out": ((3, 8, 8), "float32")},
    grid=(32, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="simdgroup_matrix.thread_elements simdgroup_matrix.mixed_types",
)
def simdgroup_matrix_thread_elements(x):
    elements = np.stack([x[ROW, COLUMN], x[ROW, COLUMN + 1]], axis=1).reshape(-1)
    b, c = np.zeros((8, 8), np.float32), np.zeros((8, 8), np.float32)
    b[ROW, COLUMN], b[ROW, COLUMN + 1] = ROW, COLUMN + np.float32(0.5)
    same = ROW == COLUMN
    c[ROW, COLUMN], c[ROW, COLUMN + 1] = b[ROW, COLUMN] * same - 1, b[ROW, COLUMN + 1] * same
    return elements, np.stack([b, c, product(x, b, c)])


@body(
    """
    // Four simdgroups, each of which makes 16 by 16 elements of a product of 32 by 40 and 40 by 32.
    constexpr int M = 32, N = 32, K = 40;
    threadgroup half left[32][8], right[8][32];
    uint lane = thread_index_in_threadgroup, group = simdgroup_index_in_threadgroup;
    uint top = group / 2 * 16, first = group % 2 * 16;
    simdgroup_matrix<float, 8, 8> sums[2][2];
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 2; ++j) sums[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    for (int k = 0; k < K; k += 8) {
      for (uint n = lane; n < 256; n += 128) {
        left[n / 8][n % 8] = a[n / 8 * K + k + n % 8];
        right[n / 32][n % 32] = b[(k + n / 32) * N + n % 32];
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      simdgroup_half8x8 rows[2], columns[2];
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        simdgroup_load(rows[i], &left[top + 8 * i][0], 8);
        simdgroup_load(columns[i], &right[0][first + 8 * i], 32);
      }
      #pragma unroll
      for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j) simdgroup_multiply_accumulate(sums[i][j], rows[i], columns[j], sums[i][j]);
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 2; ++j) simdgroup_store(sums[i][j], out, N, ulong2(first + 8 * j, top + 8 * i));
    """,
    inputs=lambda rng: {"a": normal(rng, "float16", (32, 40)), "b": normal(rng, "float16", (40, 32))},
    outputs={"out": ((32, 32), "float32")},
    grid=(128, 1, 1),
    threadgroup=(128, 1, 1),
    constructs="simdgroup_matrix.multiply_accumulate simdgroup_matrix.load_and_store simdgroup_matrix.mixed_types "
    "address_spaces.threadgroup_2d_array",
)
def simdgroup_matrix_tiles(a, b):
    return product(a, b)


@body(
    """
    // One simdgroup multiplies in a branch and in a helper; the others do not come there.
    uint group = simdgroup_index_in_threadgroup;
    simdgroup_float8x8 m(group + 1.0f);
    if (group == n) {
      for (int i = 0; i < 3; ++i) m = twice(m, x);
    }
    simdgroup_store(m, out + 64 * group);
    """,
    header="""
template <typename T>
simdgroup_matrix<T, 8, 8> twice(simdgroup_matrix<T, 8, 8> m, const device T* x) {
  simdgroup_matrix<T, 8, 8> factor;
  simdgroup_load(factor, x, 8);
  return factor * m;
}
""",
    inputs=lambda rng: {"x": normal(rng, "float32", (8, 8)), "n": 1},
    outputs={"out": ((3, 8, 8), "float32")},
    grid=(96, 1, 1),
    threadgroup=(96, 1, 1),
    constructs="simdgroup_matrix.product_operator simdgroup_matrix.constructors",
)
def simdgroup_matrix_in_a_branch(x, n):
    m = [np.diag(np.full(8, k + 1, np.float32)) for k in range(3)]
    for _ in range(3):
        m[1] = product(x, m[1])
    return np.stack(m)
