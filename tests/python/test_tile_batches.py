"""Which loops over tiles are loops over batches of them (docs/design/simd-engine.md)."""

import pytest
from bodies.tiles import BATCHED
from kiln import _core
from launch_bodies import compiled, optimized_function

# Eleven sums that are made from one another fit into AVX-512's registers. AVX2 has room for two at a time, and there
# would be more groups of sums than a loop is made for.
NEEDS_AVX512 = "tiles_chained_sums_"

# Each body in two of its four shapes, and each shape with half of the bodies, are part of `make test`.
NAMES = [pytest.param(name, marks=[pytest.mark.long] if (n // 4 + n) % 2 else []) for n, name in enumerate(BATCHED)]


@pytest.mark.skipif(_core.cpu_architecture() < "x86-64-v3", reason="the SIMD engine needs AVX2")
@pytest.mark.parametrize("name", NAMES)
def test_tiles_are_in_batches_where_nobody_can_tell(name):
    is_batched = BATCHED[name] and (_core.cpu_architecture() >= "x86-64-v4" or not name.startswith(NEEDS_AVX512))
    assert ("!kiln.tiles" in compiled(name).stages()["optimized"]) == is_batched


@pytest.mark.skipif(_core.cpu_architecture() < "x86-64-v3", reason="the SIMD engine needs AVX2")
def test_a_loop_of_few_iterations_over_a_tile_is_unrolled():
    # Eight rows, eight times, in whatever groups.
    assert optimized_function("tiles_of_a_product", "__kiln_threadgroup").count("call <32 x float> @llvm.fma") == 64
