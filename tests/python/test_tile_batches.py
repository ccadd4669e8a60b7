"""Which loops over tiles are loops over batches of them (docs/design/simd-engine.md)."""

import pytest
from bodies.tiles import BATCHED
from kiln import _core
from launch_bodies import compiled


@pytest.mark.skipif(_core.cpu_architecture() < "x86-64-v3", reason="the SIMD engine needs AVX2")
@pytest.mark.parametrize("name", BATCHED)
def test_tiles_are_in_batches_where_nobody_can_tell(name):
    assert ("!kiln.tiles" in compiled(name).stages()["optimized"]) == BATCHED[name]
