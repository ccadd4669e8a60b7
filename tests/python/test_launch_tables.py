"""What simdgroups compute alike, once a launch (docs/design/simd-engine.md)."""

import re

import numpy as np
import pytest
from bodies.tables import TABLES
from kiln import _core
from launch_bodies import BODIES, compiled, launch_numpy, optimized_function

needs_simd = pytest.mark.skipif(_core.cpu_architecture() < "x86-64-v3", reason="the SIMD engine needs AVX2")


@needs_simd
@pytest.mark.parametrize("name", TABLES)
def test_there_is_a_table_where_it_is_worth_it(name):
    optimized = compiled(name).stages()["optimized"]
    assert ("!kiln.invariant_cache" in optimized) == TABLES[name]
    lanes = 16 if _core.cpu_architecture() >= "x86-64-v4" else 8
    rows = re.findall(r"load <(\d+) x float>, [^\n]*!kiln.invariant_cache", optimized)
    assert set(rows) == ({str(lanes)} if TABLES[name] else set())


@needs_simd
def test_an_iteration_reads_whole_lines():
    function = optimized_function("table_of_a_turned_vector", "__kiln_simdgroup")
    (loop,) = [block for block in re.split(r"\n(?=\S+:)", function) if "!kiln.invariant_cache" in block]
    lanes = 16 if _core.cpu_architecture() >= "x86-64-v4" else 8
    behind = dict(re.findall(r"(\S+) = getelementptr i8, ptr \S+, i64 (\d+)\n", loop))
    rows = re.findall(r"= load <(\d+) x i32>, ptr (\S+),", loop)
    places = [(behind[place], loaded) for loaded, place in rows]
    assert sorted((int(place), int(loaded)) for place, loaded in places) == sorted(
        (4 * first, lanes) for first in range(0, 32, lanes) for _ in range(4)
    )


def test_each_launch_has_tables_of_its_own():
    body = BODIES["table_for_many_simdgroups"]
    inputs = body.inputs()
    for _ in range(3):
        inputs["x"] = inputs["x"] + np.float32(1)
        (output,) = launch_numpy(body, list(inputs.values()))
        np.testing.assert_array_equal(output, body.reference(**inputs))
