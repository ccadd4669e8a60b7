"""Random bodies that index memory with arbitrary numbers: what Python says that they give, on both engines."""

import pytest
from random_memory_check import compare

SEEDS = 2000
CHUNK = 50


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_random_bodies(first):
    # Every fourth chunk with AVX2.
    isa = "avx2" if first // CHUNK % 4 == 3 else ""
    problems = [f"seed {seed} {engine}: {wrong}" for seed, engine, wrong in compare(first, first + CHUNK, isa) if wrong]
    assert not problems, "\n".join(problems)
