"""Code for runs of 64 threads (docs/design/simd-engine.md)."""

import re

import pytest
from bodies.runs import RUNS
from kiln import _core
from launch_bodies import optimized_function

pytestmark = pytest.mark.skipif(_core.cpu_architecture() < "x86-64-v3", reason="the SIMD engine needs AVX2")


def _row_function(name):
    return optimized_function(name, "__kiln_simd_row")


@pytest.mark.parametrize("name", RUNS)
def test_a_run_asks_once_whether_its_rows_are_within_their_arrays(name):
    function = _row_function(name)
    # Once, and for the rows of which it is not known before: one that is read, and the one that is written.
    assert function.count("!prof") == (3 if name.endswith("_by_uint") else 1)
    # Else each of its simdgroups asks for itself; so does what is left behind the last run.
    assert function.count("call void @__kiln_simdgroup(") == 3


def _asked(function, cache):
    """Where lines are asked for: the address of the first one, and bytes behind it."""
    asked = re.findall(rf"@llvm.prefetch.p0\(ptr (\S+), i32 0, i32 {cache}, i32 1\)", function)
    places = dict(re.findall(r"(\S+) = getelementptr i8, ptr \S+, i64 (-?\d+)\n", function))
    return asked[0], [int(places.get(place, 0)) for place in asked]


# As LLVM counts them: those of the second cache, and of the first. The launch says which one is to have them.
@pytest.mark.parametrize("cache", [2, 3])
def test_neighbouring_rows_of_a_run_are_asked_for_once(cache):
    # Three rows, one behind the other, and where the last one ends; and the row that is written.
    read, written = [*range(0, 768, 64), 767], [0, 64, 128, 192, 255]
    assert _asked(_row_function("runs_sample_float_by_int"), cache)[1] == read + written


@pytest.mark.parametrize("cache", [2, 3])
def test_rows_that_are_read_are_asked_for_whatever_their_neighbours_are(cache):
    function = _row_function("runs_with_a_row_now_and_then")
    first, places = _asked(function, cache)
    assert places == [*range(0, 512, 64), 511, 0, 64, 128, 192, 255]
    assert f"  {first} = getelementptr " in function


def test_rows_in_loops_inside_are_asked_for_without_a_branch():
    function = _row_function("runs_with_loops_over_rows")
    # The row that is always read and the one that is written; and, of what a condition guards, each simdgroup's part.
    always = [*range(0, 256, 64), 255] * 2
    assert _asked(function, 2)[1] == always
    assert sorted(_asked(function, 3)[1]) == sorted([*always, 0, 64])
