"""Random bodies that index memory with arbitrary numbers: what Python says that they give, on both engines."""

import pytest
from random_memory_check import compare
from sampling import sampled

SEEDS = 2000
CHUNK = 50


def isa_of(first):
    """AVX2 for every fourth chunk."""
    return "avx2" if first // CHUNK % 4 == 3 else ""


@pytest.mark.parametrize("first", sampled(range(0, SEEDS, CHUNK), every=10, group=isa_of))
def test_random_bodies(first):
    isa = isa_of(first)
    problems = [f"seed {seed} {engine}: {wrong}" for seed, engine, wrong in compare(first, first + CHUNK, isa) if wrong]
    assert not problems, "\n".join(problems)
