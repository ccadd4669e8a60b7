"""Where threads of a simdgroup store to one element, the last in the order of lanes decides (docs/design/meaning.md)."""

import numpy as np
import pytest
from configurations import available, call_on
from store_order_bodies import BODIES, expected


@pytest.mark.parametrize("name", BODIES)
def test_the_order_of_lanes_decides(name):
    for (engine, isa), (outputs, ran_on) in call_on(available(), "store_order_bodies", "result", name).items():
        assert ran_on == engine
        for got, wanted in zip(outputs, expected(name), strict=True):
            np.testing.assert_array_equal(got, wanted, err_msg=f"{engine} {isa}")
