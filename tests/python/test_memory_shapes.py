"""The checks of `memory_shapes.py`, on each engine and instruction set. A check is one process's, since settings are read
when a process starts."""

from itertools import groupby

import pytest
from configurations import available, call_on
from memory_shapes import CHECKS

CONFIGURATIONS = available()
KINDS = {kind: list(names) for kind, names in groupby(sorted(CHECKS), key=lambda name: name.split("-")[0])}


def parts() -> dict[tuple[str, int], list[str]]:
    """The checks of each kind in as many parts as there are configurations, each with something of each dtype."""
    found: dict[tuple[str, int], list[str]] = {}
    for kind, names in KINDS.items():
        for n, name in enumerate(names):
            found.setdefault((kind, (n + n // 4) % len(CONFIGURATIONS)), []).append(name)
    return found


# `make test` runs each part with one configuration, the next one with another; kinds of fewer checks with all of them.
PARTS = [
    pytest.param(
        *configuration,
        names,
        id=f"{'-'.join(configuration)}-{kind}-{part}",
        marks=[pytest.mark.long] if (n - m) % len(CONFIGURATIONS) and len(KINDS[kind]) >= len(CONFIGURATIONS) else [],
    )
    for m, configuration in enumerate(CONFIGURATIONS)
    for n, ((kind, part), names) in enumerate(parts().items())
]


@pytest.mark.parametrize(("engine", "isa", "names"), PARTS)
def test_values_are_those_of_numpy(engine, isa, names):
    configuration = ("simd-always" if engine == "simd" else engine, isa)
    assert call_on([configuration], "memory_shapes", "run_checks", names) == {configuration: names}
