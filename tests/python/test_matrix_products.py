"""Products of matrices on an NVIDIA GPU: which instructions make them, and that each lane gives these what their tables
say. No GPU is needed: `warp_of_ptx` computes what the PTX says."""

import kiln
import numpy as np
import pytest
from gpu_code import assemble, ptx_of
from matrix_bodies import BODIES, DTYPES, SEEN, elements_of
from warp_of_ptx import Warp


def compiled(name, element, total, mode, seen, architecture="sm_90"):
    source = (
        f"simdgroup_matrix<{element}, 8, 8> a, b; simdgroup_matrix<{total}, 8, 8> c, d, e;"
        "simdgroup_load(a, x); simdgroup_load(b, y); simdgroup_load(c, z);" + BODIES[name][0]
    )
    if seen:
        source = "uint lane = thread_index_in_simdgroup;" + source + SEEN
    kernel = kiln.metal_kernel(
        name="k",
        input_names=["x", "y", "z"],
        output_names=["out", "places"],
        source=source,
        compile_options={"math_mode": mode, "bounds": "off"},
    )
    rng = np.random.default_rng(1)
    x, y = (rng.integers(-8, 9, (8, 8)).astype(DTYPES[element]) for _ in range(2))
    z = rng.integers(-8, 9, (8, 8)).astype(DTYPES[total])
    outputs = [(DTYPES[total].name, (2, 8, 8)), ("float32", (64,))]
    return ptx_of(kernel, [x, y, z], outputs, architecture=architecture), [x, y, z]


@pytest.mark.parametrize("seen", [False, True], ids=["tensor", "apple"])
@pytest.mark.parametrize(("element", "total"), [("half", "float"), ("bfloat", "float"), ("half", "half")])
@pytest.mark.parametrize("name", BODIES)
def test_lanes_have_what_the_instructions_want(name, element, total, seen):
    """Whole numbers, so that no sum is rounded."""
    ptx, (x, y, z) = compiled(name, element, total, "relaxed", seen)
    assert "mma.sync" in ptx and ("shfl" in ptx) == seen
    out, places = np.zeros((2, 8, 8), z.dtype), np.zeros(64, np.float32)
    Warp(ptx, [x, y, z, out, places])
    exact = BODIES[name][1](*(array.astype(np.float64) for array in (x, y, z)))
    for result, expected in zip(out, exact, strict=False):
        np.testing.assert_array_equal(result.astype(np.float64), expected)
    if seen:
        np.testing.assert_array_equal(places, elements_of(x).astype(np.float32))


def test_products_of_one_right_matrix_are_one_instruction():
    ptx, _ = compiled("two", "half", "float", "relaxed", False)
    assert ptx.count("mma.sync") == ptx.count("movmatrix") == 1


@pytest.mark.parametrize(("element", "mode"), [("half", "safe"), ("bfloat", "safe"), ("float", "fast")])
def test_products_by_exchanges(element, mode):
    """In safe mode the bits are the CPU's; floats have no instructions that keep their bits."""
    ptx, _ = compiled("two", element, "float", mode, False)
    assert "mma" not in ptx and "movmatrix" not in ptx
    # Of two left matrices and a right one, for each k one element and two.
    assert ptx.count("shfl.sync.idx") == 8 * (2 + 2)


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_90a"])
def test_ptxas_takes_the_instructions(architecture, tmp_path):
    for element in ("half", "bfloat"):
        for seen in (False, True):
            ptx, _ = compiled("chain", element, "float", "fast", seen, architecture)
            assert assemble(ptx, architecture, tmp_path) == ""
