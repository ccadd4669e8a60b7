"""Which sums of lanes are added up together (docs/design/simd-engine.md)."""

import re

import pytest
from bodies.lane_sums import SUMS_BEHIND_LONG_LOOPS, SUMS_BEHIND_LOOPS, SUMS_TOGETHER
from kiln import _core
from launch_bodies import optimized_function

pytestmark = pytest.mark.skipif(_core.cpu_architecture() < "x86-64-v3", reason="the SIMD engine needs AVX2")

HAS_AVX512 = _core.cpu_architecture() >= "x86-64-v4"
WIDTH = 16 if HAS_AVX512 else 8


def _function(name):
    function = "__kiln_threadgroup" if name.startswith("sums_") else "__kiln_simdgroup"
    return optimized_function(name, function)


def _together(code):
    """Of how many elements each vector is that several elements are taken from."""
    taken: dict[str, set[int]] = {}
    for vector, element in re.findall(r"extractelement <\d+ x \w+> (\S+), i64 (\d+)\n", code):
        taken.setdefault(vector, set()).add(int(element))
    return sorted((len(elements) for elements in taken.values() if len(elements) > 1), reverse=True)


@pytest.mark.parametrize("name", [*SUMS_BEHIND_LOOPS, *SUMS_BEHIND_LONG_LOOPS])
def test_a_loop_over_simdgroups_stores_a_register_of_each(name):
    sums = (SUMS_BEHIND_LOOPS | SUMS_BEHIND_LONG_LOOPS)[name]
    code = optimized_function(name, "__kiln_threadgroup")
    is_loop = name in SUMS_BEHIND_LOOPS or not HAS_AVX512
    if HAS_AVX512:
        # Three sums are too long to unroll; sums that others use are short enough, and are added up one by one then.
        is_loop = name == "sums_of_three" or (is_loop and name != "sums_that_others_want")
    stored = re.findall(r"alloca \[(\d+) x <(\d+) x \w+>\], align (\d+)\n", code)
    assert stored == ([(str(sums), str(WIDTH), str(4 * WIDTH))] if is_loop else [])
    are_together = is_loop or name != "sums_that_others_want"
    assert _together(code)[: sums // 8] == ([8] * (sums // 8) if are_together else [])


@pytest.mark.parametrize("name", SUMS_TOGETHER)
def test_sums_of_a_block_are_added_up_together(name):
    code = _function(name)
    assert _together(code)[: len(SUMS_TOGETHER[name])] == SUMS_TOGETHER[name]


def test_sums_that_are_made_of_sums_are_not():
    code = optimized_function("sums_of_sums", "__kiln_simdgroup")
    assert _together(code) == ([] if HAS_AVX512 else [2])


@pytest.mark.skipif(not HAS_AVX512, reason="AVX2 loads squares with their parts in another order")
@pytest.mark.parametrize("name", ["sums_of_256_threads", "sums_of_choices", "max_of_integers", "products_of_floats"])
def test_sums_of_squares_take_no_permutations_across_parts_of_registers(name):
    code = optimized_function(name, "__kiln_threadgroup")
    (loop,) = re.findall(r"^[^\n]*:[^\n]*\n((?:  [^\n]*\n)*?  store <16 x \w+> \S+, ptr \S+, align 64\n)", code, re.M)
    masks = re.findall(r"shufflevector <16 x \w+> \S+, <16 x \w+> \S+, <16 x i32> <([^>]*)>", loop)
    # Sixteen within parts, and the sum's two of whole parts.
    assert len(masks) == 18
    parts = [[int(element.split()[1]) % 16 // 4 for element in mask.split(", ")] for mask in masks]
    within = [part for part in parts if part == [i // 4 for i in range(16)]]
    assert len(within) == 16
