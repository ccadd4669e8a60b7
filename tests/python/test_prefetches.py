"""What is asked for before threadgroups access it (docs/design/simd-engine.md)."""

import re

import pytest
from bodies.prefetches import PREFETCHES
from kiln import _core
from launch_bodies import optimized_function

pytestmark = pytest.mark.skipif(_core.cpu_architecture() < "x86-64-v3", reason="the SIMD engine needs AVX2")


def _threadgroup_function(name):
    return optimized_function(name, "__kiln_threadgroup")


@pytest.mark.parametrize("name", PREFETCHES)
def test_lines_are_asked_for_where_a_processor_does_not_foresee_them(name):
    lines, times = PREFETCHES[name]
    expected = (lines, *(lines // n for n in times))
    # What is read in code that is unrolled, and what is written in a loop.
    if name == "reads_pages" and _core.cpu_architecture() >= "x86-64-v4":
        expected = (lines // 2 + lines // 8,)
    assert _threadgroup_function(name).count("call void @llvm.prefetch") in expected


def test_what_is_written_is_asked_for_before_anything_is_read():
    function = _threadgroup_function("asks_for_what_is_written_by_position")
    assert function.rindex("call void @llvm.prefetch") < function.index(" load <")


def test_rows_of_whole_lines_are_touched_before_they_are_loaded():
    touches = re.findall(r"load volatile i32, ptr (\S+), align 1\n", _threadgroup_function("sums_of_256_threads"))
    assert len(touches) == (16 if _core.cpu_architecture() >= "x86-64-v4" else 0)


@pytest.mark.skipif(_core.cpu_architecture() >= "x86-64-v4", reason="of smaller registers each line has two")
@pytest.mark.parametrize("name", PREFETCHES)
def test_rows_of_smaller_registers_are_not_touched(name):
    assert "load volatile" not in _threadgroup_function(name)


@pytest.mark.skipif(_core.cpu_architecture() >= "x86-64-v4", reason="AVX-512 has registers for all rows of a simdgroup")
def test_rows_that_a_loop_loads_and_stores_are_finished_eight_at_a_time():
    blocks = re.split(r"\n\S+:[^\n]*\n", _threadgroup_function("sums_of_256_threads"))
    (loop,) = (block for block in blocks if block.count("store <8 x float>") == 16)
    order = re.findall(r"= load <8 x float>|store <8 x float>", loop)
    assert [kind.split()[0] for kind in order] == 2 * (8 * ["="] + 8 * ["store"])


def test_lines_with_jumps_are_asked_for_in_the_order_of_memory():
    function = _threadgroup_function("reads_pages_with_jumps")
    asked = re.findall(r"@llvm.prefetch.p0\(ptr (\S+),", function)
    places = dict(re.findall(r"(\S+) = getelementptr i8, ptr \S+, i64 (\d+)\n", function))
    assert [int(places[place]) for place in asked] == [2048 * i + j for i in range(16) for j in range(0, 1024, 64)]
