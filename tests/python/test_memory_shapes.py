"""The checks of `memory_shapes.py`, on each engine and instruction set. A check is one process's, since settings are read
when a process starts."""

import pytest
from configurations import available, call_on
from memory_shapes import CHECKS

KINDS = sorted({name.split("-")[0] for name in CHECKS})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("engine,isa", available())
def test_values_are_those_of_numpy(engine, isa, kind):
    names = [name for name in CHECKS if name.split("-")[0] == kind]
    configuration = ("simd-always" if engine == "simd" else engine, isa)
    assert call_on([configuration], "memory_shapes", "run_checks", names) == {configuration: names}
