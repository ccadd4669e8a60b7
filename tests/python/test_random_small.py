"""Arithmetic of bytes and shorts gives what C++'s 32 bits give, on both engines."""

import numpy as np
import pytest
import random_small_bodies
from sampling import sampled


@pytest.mark.parametrize("seed", sampled(range(48), every=4))
def test_arithmetic_of_bytes_and_shorts(seed):
    body = random_small_bodies.Body(seed)
    outputs, _ = random_small_bodies.results(seed)
    for output, expected in zip(outputs, body.expected, strict=True):
        np.testing.assert_array_equal(output, expected, err_msg=body.text)
