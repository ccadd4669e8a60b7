"""Rows that are read in memory's order, whichever simdgroup each belongs to (docs/design/simd-engine.md)."""

import re

import pytest
from bodies.memory_order import NEED_AVX512, ROWS_IN_ORDER
from kiln import _core
from launch_bodies import optimized_function

pytestmark = pytest.mark.skipif(_core.cpu_architecture() < "x86-64-v3", reason="the SIMD engine needs AVX2")


def _rows(name):
    """Where each row is, in bytes behind its array's first one, in the order of the code; by array."""
    function = optimized_function(name, "__kiln_threadgroup")
    places = re.findall(r"(\S+) = getelementptr i8, ptr (\S+), i64 (\d+)\n", function)
    behind = {place: (base, int(bytes)) for place, base, bytes in places}
    arrays: dict[str, list[int]] = {}
    for place in re.findall(r"= load <32 x \w+>, ptr (\S+), [^\n]*!kiln.address_order", function):
        base, bytes = behind[place]
        arrays.setdefault(base, []).append(bytes)
    return arrays


@pytest.mark.parametrize("name", ROWS_IN_ORDER)
def test_rows_with_jumps_are_read_in_the_order_of_memory(name):
    arrays = _rows(name)
    fits = name not in NEED_AVX512 or _core.cpu_architecture() >= "x86-64-v4"
    assert sum(map(len, arrays.values())) == (ROWS_IN_ORDER[name] if fits else 0)
    row = 64 if "halves" in name else 128
    assert all(rows == list(range(0, row * len(rows), row)) for rows in arrays.values())


def test_what_reads_in_order_is_not_asked_for():
    assert "@llvm.prefetch" not in optimized_function("reads_in_order", "__kiln_threadgroup")


@pytest.mark.parametrize("name", ["reads_in_order", "reads_in_order_four_simdgroups"])
def test_each_row_goes_into_its_sum_at_once(name):
    function = optimized_function(name, "__kiln_threadgroup")
    loaded = re.findall(r"(\S+) = load <32 x float>, [^\n]*!kiln.address_order[^\n]*\n  (\S+ = fadd [^\n]*)", function)
    assert len(loaded) == ROWS_IN_ORDER[name]
    assert all(row in sum for row, sum in loaded)
