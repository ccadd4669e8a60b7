"""Where threads of a simdgroup store to one element, the last in the order of lanes decides (docs/design/meaning.md)."""

import numpy as np
import pytest
from configurations import results_of_bodies
from store_order_bodies import BODIES, expected


@pytest.fixture(scope="module")
def all_results():
    return results_of_bodies("store_order_bodies")


@pytest.mark.parametrize("name", BODIES)
def test_the_order_of_lanes_decides(name, all_results):
    for (engine, isa), results in all_results.items():
        outputs, ran_on = results[name]
        assert ran_on == engine
        for got, wanted in zip(outputs, expected(name), strict=True):
            np.testing.assert_array_equal(got, wanted, err_msg=f"{engine} {isa}")
