"""Rows of floats that many simdgroups change (docs/design/simd-engine.md, Atomics)."""

import re

import numpy as np
import pytest
from bodies.row_updates import UPDATES
from kiln import _core
from launch_bodies import BODIES, compiled, launch_numpy


@pytest.mark.skipif(_core.cpu_architecture() < "x86-64-v3", reason="the SIMD engine needs AVX2")
@pytest.mark.parametrize("name", UPDATES)
def test_rows_have_locks_where_nobody_does_anything_else_with_the_array(name):
    is_own, rows = UPDATES[name]
    optimized = compiled(name).stages()["optimized"]
    calls = re.findall(r"call void @__kiln_(?:add_to|subtract_from)_row\(ptr (\S+), [^\n]*i32 (?!1,)", optimized)
    assert len(calls) >= rows
    assert {launch != "null" for launch in calls} <= {is_own}
    if is_own:
        assert not re.search(r"atomicrmw [^\n]*f(add|sub) ", optimized)


@pytest.mark.parametrize("name", UPDATES)
def test_nothing_is_lost(name):
    body = BODIES[name]
    inputs = body.inputs()
    for _ in range(5):
        (output,) = launch_numpy(body, list(inputs.values()))
        np.testing.assert_array_equal(output, body.reference(**inputs))
