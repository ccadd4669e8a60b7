"""The checks of `memory_shapes.py`, on each engine and instruction set. A check is one process's, since settings are read
when a process starts."""

import pytest
from configurations import available, call_on
from memory_shapes import CHECKS

KINDS = sorted({name.split("-")[0] for name in CHECKS})
# A kind's checks are two halves: `make test` runs one of them with the first of an engine's two instruction sets and the
# other one with the second, or both where the processor has one only.
PARTS = []
for engine in ("scalar", "simd"):
    of_engine = [configuration for configuration in available() if configuration[0] == engine]
    PARTS += [
        pytest.param(*configuration, half, marks=[pytest.mark.long] if len(of_engine) == 2 and half != n else [])
        for n, configuration in enumerate(of_engine)
        for half in (0, 1)
    ]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("engine", "isa", "half"), PARTS)
def test_values_are_those_of_numpy(engine, isa, half, kind):
    names = [name for name in CHECKS if name.split("-")[0] == kind]
    if len(names) > 1:
        # So that each half has something of each dtype.
        names = [name for n, name in enumerate(names) if (n + n // 4) % 2 == half]
    configuration = ("simd-always" if engine == "simd" else engine, isa)
    assert call_on([configuration], "memory_shapes", "run_checks", names) == {configuration: names}
