"""Atomic operations of lanes, one after the other (docs/design/simd-engine.md)."""

import re

import pytest
from bodies.counters import COMBINED
from kiln import _core
from launch_bodies import compiled


@pytest.mark.skipif(_core.cpu_architecture() < "x86-64-v3", reason="the SIMD engine needs AVX2")
@pytest.mark.parametrize("name", ["gather_and_scatter", "nearest_centres", "sums_by_key"])
def test_what_a_lane_needs_is_loaded_before_the_operation_of_the_lane_before(name):
    code = compiled(name).stages()["optimized"]
    changed = re.findall(r"atomicrmw volatile \w+ ptr (\S+), [^\n]* monotonic", code)
    loaded_before = re.findall(r"(\S+) = phi ptr \[ (\S+), %lane.first\S* \]", code)
    assert changed
    assert set(changed) <= {place for place, _ in loaded_before}


@pytest.mark.skipif(_core.cpu_architecture() < "x86-64-v3", reason="the SIMD engine needs AVX2")
@pytest.mark.parametrize("name", COMBINED)
def test_lanes_of_one_place_are_one_operation(name):
    code = compiled(name).stages()["optimized"]
    assert "atomicrmw" in code
    assert "lane.first" not in code
