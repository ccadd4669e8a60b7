"""MLX's own headers in Metal, as a program has them that includes them by `include_dirs`: its GEMM, tile by tile."""

from pathlib import Path

import kiln
import mlx
import numpy as np
import pytest

INCLUDE = next(Path(folder) / "include" for folder in mlx.__path__ if (Path(folder) / "include").is_dir())
TILE = 32

HEADER = """
#include "mlx/backend/metal/kernels/steel/gemm/gemm.h"
using namespace mlx::steel;
"""
SOURCE = """
using gemm = GEMMKernel<T, T, BM, BN, BK, WM, WN, TA, TB, MN_ALIGNED, K_ALIGNED>;
threadgroup T as[gemm::tgp_mem_size_a];
threadgroup T bs[gemm::tgp_mem_size_b];
gemm::run(a, b, d, (const constant GEMMParams*)params, as, bs, thread_index_in_simdgroup,
          simdgroup_index_in_threadgroup, threadgroup_position_in_grid, thread_position_in_threadgroup);
"""


def product(a, b, m, n, k, transpose_a=False, transpose_b=False, bk=16, wn=2):
    """`a b` by MLX's kernel; `a` and `b` lie transposed in memory where that is said."""
    tiles_m, tiles_n = -(-m // TILE), -(-n // TILE)
    params = np.zeros(18, np.int32)  # GEMMParams
    params[:8] = m, n, k, a.shape[1], b.shape[1], n, tiles_n, tiles_m
    params[14:17] = 0, k // bk, 1
    kernel = kiln.metal_kernel(
        "steel_gemm",
        ["a", "b", "params"],
        ["d"],
        SOURCE,
        header=HEADER,
        compile_options={"include_dirs": [str(INCLUDE)]},
    )
    template = {"BM": TILE, "BN": TILE, "BK": bk, "WM": 2, "WN": wn, "TA": transpose_a, "TB": transpose_b}
    template |= {"MN_ALIGNED": m % TILE == 0 and n % TILE == 0, "K_ALIGNED": k % bk == 0}
    (d,) = kernel(
        inputs=[a, b, params],
        template=[("T", a.dtype), *template.items()],
        output_shapes=[(m, n)],
        output_dtypes=[a.dtype],
        grid=(tiles_n * 32, tiles_m * wn, 2),
        threadgroup=(32, wn, 2),
    )
    return d


PRODUCTS = [
    (64, 96, 48, False, False, 16, 2),
    (64, 32, 40, False, True, 16, 2),
    (33, 70, 64, True, False, 16, 2),
    (50, 31, 17, False, False, 16, 1),
    (40, 64, 33, True, True, 32, 2),
]
# Each with one of the dtypes in `make test`.
GEMMS = [
    pytest.param(dtype, *numbers, marks=[pytest.mark.long] if (n + k) % 2 else [])
    for n, numbers in enumerate(PRODUCTS)
    for k, dtype in enumerate([np.float32, np.float16])
]


@pytest.mark.parametrize(("dtype", "m", "n", "k", "transpose_a", "transpose_b", "bk", "wn"), GEMMS)
def test_mlx_gemm(dtype, m, n, k, transpose_a, transpose_b, bk, wn):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(m, k)).astype(dtype), rng.normal(size=(k, n)).astype(dtype)
    left, right = (np.ascontiguousarray(x.T if turned else x) for x, turned in ((a, transpose_a), (b, transpose_b)))
    d = product(left, right, m, n, k, transpose_a, transpose_b, bk, wn)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(d, exact, rtol=2e-3 if dtype == np.float16 else 1e-5, atol=2e-2 if dtype == np.float16 else 1e-5)  # fmt: skip


def test_traits_of_mlx():
    header = '#include "mlx/backend/metal/kernels/steel/utils/integral_constant.h"\nusing namespace mlx::steel;\n'
    source = """
    auto sum = Int<3>{} + Int<4>{};
    y[0] = sum.value + 10 * mlx::steel::is_integral_v<Int<3>> + 100 * metal::is_empty<decltype(sum)>::value;
    y[1] = metal::is_same_v<metal::pointer_element_t<const device float*>, float>;
    y[2] = metal::is_same_v<metal::void_t<int, float>, void>;
    dispatch_bool(y_true, [&](auto flag) { y[3] = decltype(flag)::value; });
    int total = 0;
    const_for_loop<0, 8, 2>([&](auto i) { total += i.value * Int<10>{}; });
    y[4] = total;
    """
    kernel = kiln.metal_kernel(
        "traits", ["y_true"], ["y"], source, header=header, compile_options={"include_dirs": [str(INCLUDE)]}
    )
    (y,) = kernel(inputs=[True], output_shapes=[(5,)], output_dtypes=[np.int32], grid=(1, 1, 1), threadgroup=(1, 1, 1))
    np.testing.assert_array_equal(y, [117, 1, 1, 1, 120])
