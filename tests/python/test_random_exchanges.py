"""What threads exchange in threadgroup memory at distances that a loop changes is what NumPy says, on both engines."""

import pytest
import random_exchange_bodies
from configurations import available, call_on
from sampling import sampled

SEEDS = 30
CHUNK = 10


def problems(first: int, engine: str) -> list[str]:
    """What is wrong with a chunk's bodies."""
    found = [random_exchange_bodies.problem(seed, engine) for seed in range(first, first + CHUNK)]
    return [problem for problem in found if problem]


@pytest.mark.parametrize("first", sampled(range(0, SEEDS, CHUNK), every=3))
def test_exchanges_at_distances_that_a_loop_changes(first):
    """On the SIMD engine long ones, too, which it would leave to the other. The latter once: it has no code for them."""
    for engine, isa in available():
        if (engine, isa) == ("scalar", "sse2"):
            continue
        setting = "simd-always" if engine == "simd" else engine
        found = call_on([(setting, isa)], "test_random_exchanges", "problems", first, engine)
        assert found == {(setting, isa): []}, "\n".join(found[setting, isa])
