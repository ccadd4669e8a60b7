"""The checks of `memory_shapes.py`, on each engine and instruction set. A check is one process's, since settings are read
when a process starts."""

import pytest
from configurations import available, evaluate
from memory_shapes import CHECKS

KINDS = sorted({name.split("-")[0] for name in CHECKS})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("engine,isa", available())
def test_values_are_those_of_numpy(engine, isa, kind):
    names = [name for name in CHECKS if name.split("-")[0] == kind]
    ran = evaluate(
        "memory_shapes",
        f"[m.CHECKS[name]() or name for name in {names!r}]",
        timeout=300,
        KILN_CPU_ENGINE="simd-always" if engine == "simd" else engine,
        KILN_CPU_ISA=isa,
    )
    assert ran == names
