"""Kernels of `rsqrt` in every math mode, and what they must give: within two units in the last place."""

import kiln
import numpy as np

MODES = ("safe", "relaxed", "fast")
SPECIAL = np.array([0.0, -0.0, np.inf, -1.0, -np.inf, np.nan, 2.0**-126, 3.4028235e38], np.float32)
EXACT = np.array([np.inf, np.inf, 0, np.nan, np.nan, np.nan, 2.0**63, 2.0**-64], np.float32)


def arguments() -> np.ndarray:
    rng = np.random.default_rng(3)
    of_every_size = np.ldexp(rng.uniform(1, 2, (253, 400)), np.arange(-126, 127)[:, None]).ravel()
    return np.concatenate([SPECIAL, of_every_size.astype(np.float32), rng.uniform(1, 4, 100_000).astype(np.float32)])


SOURCE = """
    uint i = thread_position_in_grid.x, n = threads_per_grid.x;
    y[i] = rsqrt(x[i]);
    y[i + n] = precise::rsqrt(x[i]);
    y[i + 2 * n] = fast::rsqrt(x[i]);
    y[i + 3 * n] = rsqrt(float3(1, 2, x[i])).z;
    y[i + 4 * n] = rsqrt(x[3000]);
"""


def kernel_of(mode: str) -> kiln.Kernel:
    """rsqrt, precise::rsqrt, fast::rsqrt, of a vector's component, and of a number that all threads share."""
    return kiln.metal_kernel("roots", ["x"], ["y"], SOURCE, compile_options={"math_mode": mode})


def check(mode: str, result: np.ndarray) -> None:
    with np.errstate(all="ignore"):
        exact = 1 / np.sqrt(arguments().astype(np.float64))
    plain, precise, fast, vector, shared = result
    rounded = exact.astype(np.float32)
    few = len(SPECIAL)
    np.testing.assert_array_equal(precise[few:], rounded[few:])
    for values in (plain, fast, vector):
        np.testing.assert_array_equal(np.abs(values[: few - 2]), EXACT[:-2])
        # The smallest and the largest number: exact in safe mode alone.
        np.testing.assert_array_max_ulp(values[few - 2 : few], EXACT[-2:], 0 if mode == "safe" else 2)
        error = np.abs(values[few:].astype(np.float64) - exact[few:]) / np.spacing(rounded[few:])
        assert error.max() <= (0.5 if mode == "safe" else 2)
    assert np.abs(shared.astype(np.float64) - exact[3000]).max() <= 2 * np.spacing(rounded[3000])
