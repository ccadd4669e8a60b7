"""The checks of `memory_shapes.py`, on each engine and instruction set. A check is one process's, since settings are read
when a process starts."""

from collections import Counter

import pytest
from configurations import available, call_on
from memory_shapes import CHECKS

CONFIGURATIONS = available()
COUNTS = Counter(name.split("-")[0] for name in CHECKS)


def parts() -> dict[str, list[str]]:
    """The checks of each kind in as many parts as there are configurations, each with something of each dtype."""
    found: dict[str, list[str]] = {}
    seen: Counter[str] = Counter()
    for name in CHECKS:
        kind = name.split("-")[0]
        n = seen[kind]
        seen[kind] += 1
        found.setdefault(f"{kind}-{(n + n // 4) % len(CONFIGURATIONS)}", []).append(name)
    return found


# `make test` runs each part with one configuration, the next one with another; kinds of fewer checks with all of them.
PARTS = [
    pytest.param(
        *configuration,
        names,
        id=f"{'-'.join(configuration)}-{part}",
        marks=[pytest.mark.long]
        if (n - m) % len(CONFIGURATIONS) and COUNTS[part.split("-")[0]] >= len(CONFIGURATIONS)
        else [],
    )
    for m, configuration in enumerate(CONFIGURATIONS)
    for n, (part, names) in enumerate(parts().items())
]


@pytest.mark.parametrize(("engine", "isa", "names"), PARTS)
def test_values_are_those_of_numpy(engine, isa, names):
    configuration = ("simd-always" if engine == "simd" else engine, isa)
    assert call_on([configuration], "memory_shapes", "run_checks", names) == {configuration: names}
