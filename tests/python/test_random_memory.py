"""Random bodies that index memory: what Python says that they give, on both engines."""

import pytest
from random_memory_check import compare
from sampling import sampled

SEEDS = 2000
CHUNK = 25


def isa_of(first):
    """AVX2 for every fourth chunk."""
    return "avx2" if first // CHUNK % 4 == 3 else ""


def problems_of(first, kind):
    results = compare(first, first + CHUNK, isa_of(first), kind)
    return [f"seed {seed} {engine}: {wrong}" for seed, engine, wrong in results if wrong]


@pytest.mark.parametrize("first", sampled(range(0, SEEDS, CHUNK), every=20, group=isa_of))
def test_random_bodies(first):
    """Arbitrary numbers as indices."""
    problems = problems_of(first, "memory")
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("first", sampled(range(0, SEEDS, CHUNK), every=20, group=isa_of))
def test_random_bodies_of_pictures(first):
    """Neighbours of pixels, and threads that leave early."""
    problems = problems_of(first, "pictures")
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("first", sampled(range(0, SEEDS, CHUNK), every=20, group=isa_of))
def test_random_bodies_of_rows(first):
    """Loops in which each thread walks a row of its own."""
    problems = problems_of(first, "rows")
    assert not problems, "\n".join(problems)
