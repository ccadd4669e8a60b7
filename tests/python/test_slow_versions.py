"""Simdgroups with accesses out of bounds or fewer than 32 threads, in long bodies: the same bits on every engine."""

import numpy as np
import pytest
from configurations import available, call_on
from slow_version_bodies import BODIES, LAUNCHES

# With registers of all instruction sets. The others' stores cannot be masked, or the loads are in a loop over lanes.
FIRES = ["one_row", "every_second", "before_the_first", "rows", "two_outputs", "positions"]


# `make test` has each body at one end of its pages, the next body at the other one.
@pytest.mark.parametrize(
    ("name", "at_end"),
    [
        pytest.param(
            name,
            at_end,
            id=f"{name}-{'ends' if at_end else 'begins'}_at_a_page",
            marks=[pytest.mark.long] if at_end != bool(n % 2) else [],
        )
        for n, name in enumerate(BODIES)
        for at_end in (False, True)
    ],
)
def test_simdgroups_out_of_bounds_and_partial_ones_give_the_same_bits(name, at_end):
    for launch in LAUNCHES:
        results = call_on(available(), "slow_version_bodies", "result", name, launch, at_end)
        expected, _, _ = (
            results["scalar", "avx512"] if ("scalar", "avx512") in results else next(iter(results.values()))
        )
        for (engine, isa), (outputs, ran_on, fired) in results.items():
            where = f"{launch} {engine} {isa}"
            assert ran_on == engine, where
            if engine == "scalar":
                assert not fired, where
            elif name in FIRES:
                assert fired, where
            for got, wanted in zip(outputs, expected, strict=True):
                np.testing.assert_array_equal(got.view(np.uint8), wanted.view(np.uint8), err_msg=where)
