"""Which loops over tiles are loops over batches of them (docs/design/simd-engine.md)."""

import kiln
import pytest
from bodies import DTYPES
from bodies.tiles import BATCHED
from kiln import _core
from launch_bodies import BODIES, kernel_of


@pytest.mark.skipif(_core.cpu_architecture() < "x86-64-v3", reason="the SIMD engine needs AVX2")
@pytest.mark.parametrize("name", BATCHED)
def test_tiles_are_in_batches_where_nobody_can_tell(name):
    body = BODIES[name]
    compiled = kernel_of(name, kiln.metal_kernel).compile(
        inputs=list(body.inputs().values()),
        grid=body.grid,
        threadgroup=body.threadgroup,
        output_shapes=[shape for shape, _ in body.outputs.values()],
        output_dtypes=[DTYPES[dtype] for _, dtype in body.outputs.values()],
    )
    assert ("!kiln.tiles" in compiled.stages()["optimized"]) == BATCHED[name]
