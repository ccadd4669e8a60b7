"""Halves are compared, and the smaller and larger of them chosen, as NumPy does: all of them against one of each kind
(`half_comparisons.py`), on each engine and instruction set."""

import pytest
from configurations import available, call_on
from half_comparisons import COMPARISONS, MIN_MAX

CONFIGURATIONS = [("simd-always" if engine == "simd" else engine, isa) for engine, isa in available()]


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_the_smaller_and_larger_have_the_bits_of_numpy(configuration):
    assert call_on([configuration], "half_comparisons", "check_min_max", list(MIN_MAX)) == {
        configuration: list(MIN_MAX)
    }


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons_are_those_of_numpy(configuration, name):
    assert call_on([configuration], "half_comparisons", "check_comparisons", [name]) == {configuration: [name]}
