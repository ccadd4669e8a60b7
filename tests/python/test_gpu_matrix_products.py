"""Products of matrices on a GPU, in every math mode and for every type, against sums in float64."""

import kiln
import numpy as np
import pytest
from gpu import needs_gpu
from matrix_bodies import BODIES, DTYPES, SEEN, elements_of

from bench import kernels

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch_arrays import to_numpy, to_torch, torch_dtype  # noqa: E402

pytestmark = needs_gpu

MODES = pytest.mark.parametrize("mode", ["safe", "relaxed", "fast"])
# Of one sum, relative to the sum of its terms' sizes: instructions for matrices cut off bits where they add.
FLOAT = 2.0**-20
ROUNDED = {"float": 0.0, "half": 2.0**-11, "bfloat": 2.0**-8}


@pytest.mark.parametrize("seen", [False, True], ids=["tensor", "apple"])
@pytest.mark.parametrize("total", DTYPES)
@pytest.mark.parametrize("element", DTYPES)
@pytest.mark.parametrize("name", BODIES)
@MODES
def test_products(name, element, total, seen, mode):
    source = (
        f"simdgroup_matrix<{element}, 8, 8> a, b; simdgroup_matrix<{total}, 8, 8> c, d, e;"
        "uint place = 64 * simdgroup_index_in_threadgroup; x += place; y += place; z += place; out += 2 * place;"
        "uint lane = thread_index_in_simdgroup; places += place;"
        "simdgroup_load(a, x); simdgroup_load(b, y); simdgroup_load(c, z);" + BODIES[name][0]
    )
    kernel = kiln.metal_kernel(
        "products",
        ["x", "y", "z"],
        ["out", "places"],
        source + (SEEN if seen else ""),
        compile_options={"math_mode": mode},
    )
    rng = np.random.default_rng(1)
    x, y = (rng.normal(size=(4, 8, 8)).astype(np.float32).astype(DTYPES[element]) for _ in range(2))
    z = rng.normal(size=(4, 8, 8)).astype(np.float32).astype(DTYPES[total])
    outputs = kernel(
        inputs=[to_torch(array, "cuda") for array in (x, y, z)],
        grid=(128, 1, 1),
        threadgroup=(128, 1, 1),
        output_shapes=[(4, 2, 8, 8), (4, 64)],
        output_dtypes=[torch_dtype(DTYPES[total].name), torch.float32],
    )
    out, places = map(to_numpy, outputs)
    exact = [array.astype(np.float64) for array in (x, y, z)]
    for i, (expected, sizes) in enumerate(
        zip(BODIES[name][1](*exact), BODIES[name][1](*map(np.abs, exact)), strict=True)
    ):
        # Each product of a chain is rounded.
        allowed = (3 * ROUNDED[total] + FLOAT) * sizes
        assert (np.abs(out[:, i].astype(np.float64) - expected) <= allowed).all()
    if seen:
        np.testing.assert_array_equal(places, elements_of(x).astype(np.float32))


@MODES
def test_a_tiled_product(mode):
    kernel = kiln.metal_kernel(
        "tiled", ["a", "b"], ["out"], kernels.SIMDGROUP_PRODUCT, compile_options={"math_mode": mode}
    )
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(192, 160)).astype(np.float16), rng.normal(size=(160, 128)).astype(np.float16)
    call = kernels.simdgroup_product_call(*(to_torch(array, "cuda") for array in (a, b)))
    out = to_numpy(kernel(**call | {"output_dtypes": [torch.float32]})[0])
    a, b = a.astype(np.float64), b.astype(np.float64)
    assert (np.abs(out - a @ b) <= 8 * FLOAT * (np.abs(a) @ np.abs(b))).all()
