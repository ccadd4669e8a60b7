"""Hadamard transforms of activations, which spread outliers before few bits are left of them."""

import numpy as np

from bodies import Dtype, body


def _squares(q):
    """1 where a number is a square modulo q, -1 where it is none, 0 for zero."""
    squares = {i * i % q for i in range(1, q)}
    return np.array([0, *(1 if i in squares else -1 for i in range(1, q))])


def _matrix(order):
    """Paley's: of order q + 1 for q = 11 and 19, of order 2 (q + 1) for q = 13."""
    q = 13 if order == 28 else order - 1
    differences = _squares(q)[(np.arange(q)[:, None] - np.arange(q)) % q]
    if order != 28:
        skew = np.block([[np.zeros((1, 1)), np.ones((1, q))], [-np.ones((q, 1)), differences]])
        return (skew + np.eye(order)).astype(int)
    symmetric = np.block([[np.zeros((1, 1)), np.ones((1, q))], [np.ones((q, 1)), differences]])
    one, two = np.array([[1, 1], [1, -1]]), np.array([[1, -1], [-1, -1]])
    return (np.kron(symmetric, one) + np.kron(np.eye(q + 1), two)).astype(int)


def _written_out(order):
    """The product with the matrix, a line for each row, as a script prints it into a header."""
    lines = []
    for row, signs in enumerate(_matrix(order)):
        terms = " ".join(f"{'+' if sign > 0 else '-'} v[{place}]" for place, sign in enumerate(signs))
        lines.append(f"    out[{row}] = {terms.removeprefix('+ ')};")
    return "\n".join(lines)


def _class(order):
    return f"""
template <>
struct Odd<{order}> {{
  static METAL_FUNC void transform(const thread float* v, thread float* out) {{
{_written_out(order)}
  }}
}};
"""


_HEADER = (
    """
// Hadamard matrices of orders that are no powers of two, written out: all entries are 1 or -1, so there is no product.

template <int ORDER>
struct Odd;

template <>
struct Odd<1> {
  static METAL_FUNC void transform(const thread float* v, thread float* out) { out[0] = v[0]; }
};
"""
    + "".join(map(_class, (12, 20, 28)))
    + """
// The two of a pair, for all lanes: who has the bit gets the difference.
METAL_FUNC float butterfly(float own, float other, bool upper) { return upper ? other - own : own + other; }
"""
)

_BODY = """
    // A row of M x P numbers by P threads: thread p has the M that are P apart. So the transform of order M happens in
    // registers, and that of order P between threads: within a simdgroup by exchange, beyond by threadgroup memory.
    constexpr int IN_SIMD = P < 32 ? P : 32;
    threadgroup float across[P > 32 ? P : 1];
    const uint p = thread_position_in_threadgroup.x;
    const uint row = threadgroup_position_in_grid.y;
    const device T* from = x + row * (M * P);
    device T* to = y + row * (M * P);

    float v[M], turned[M];
    #pragma unroll
    for (int m = 0; m < M; ++m) v[m] = static_cast<float>(from[m * P + p]);
    Odd<M>::transform(v, turned);

    #pragma unroll
    for (ushort distance = 1; distance < IN_SIMD; distance *= 2) {
      const bool upper = p & distance;
      #pragma unroll
      for (int m = 0; m < M; ++m) turned[m] = butterfly(turned[m], simd_shuffle_xor(turned[m], distance), upper);
    }
    for (uint distance = 32; distance < P; distance *= 2) {
      for (int m = 0; m < M; ++m) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        across[p] = turned[m];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        turned[m] = butterfly(turned[m], across[p ^ distance], (p & distance) != 0);
      }
    }
    #pragma unroll
    for (int m = 0; m < M; ++m) to[m * P + p] = static_cast<T>(turned[m] * scale);
    """

for _order, _power, _dtype in ((12, 64, "float32"), (20, 32, "float16"), (28, 32, "float32")):

    def _transformed(x, scale, order=_order, power=_power):
        two = np.ones((1, 1))
        while len(two) < power:
            two = np.block([[two, two], [two, -two]])
        # Sums of small whole numbers: exact.
        rows = x.astype(np.float64).reshape(3, order, power)
        return ((_matrix(order) @ rows @ two) * scale).reshape(x.shape).astype(x.dtype)

    body(
        _BODY,
        name=f"hadamard_transform_{_order}_times_{_power}",
        header=_HEADER,
        template=[("T", Dtype(_dtype)), ("M", _order), ("P", _power)],
        inputs=lambda rng, size=_order * _power, dtype=_dtype: {
            "x": rng.integers(-3, 4, (3, size)).astype(dtype),
            "scale": 0.0625,
        },
        outputs={"y": ((3, _order * _power), _dtype)},
        grid=(_power, 3, 1),
        threadgroup=(_power, 1, 1),
        constructs="structure.template structure.struct mlx.METAL_FUNC address_spaces.thread structure.pragma_unroll "
        "simdgroup.shuffle_xor barriers.nested_loop structure.static_cast",
    )(_transformed)
