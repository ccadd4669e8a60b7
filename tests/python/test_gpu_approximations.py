"""Math modes other than safe on a GPU: `rsqrt` as test_approximations.py has it on the CPU, and the functions of
device/math/approximate.h within the bounds of the Metal specification's table for fast math, against float64."""

from collections.abc import Callable
from typing import NamedTuple

import kiln
import numpy as np
import pytest
from approximate_roots import MODES, arguments, check, kernel_of
from gpu import needs_gpu

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

pytestmark = needs_gpu

FAST = ("relaxed", "fast")
RNG = np.random.default_rng(5)


def ulp(exact: np.ndarray) -> np.ndarray:
    """A unit in the last place of the floats around `exact`, normal numbers alone."""
    _, e = np.frexp(exact)
    return np.ldexp(1.0, np.maximum(e - 1, -126) - 23)


class Function(NamedTuple):
    text: str
    reference: Callable[[np.ndarray], np.ndarray]
    x: np.ndarray
    bound: Callable[[np.ndarray, np.ndarray], np.ndarray]
    """The largest error that is allowed, by argument and exact result."""


def spread(low: float, high: float) -> np.ndarray:
    return RNG.uniform(low, high, 200_000).astype(np.float32)


def of_every_size(low: int = -120, high: int = 120) -> np.ndarray:
    return np.ldexp(RNG.uniform(1, 2, 200_000), RNG.integers(low, high, 200_000)).astype(np.float32)


def by_power(scale: float):
    return lambda x, exact: (3 + np.floor(2 * np.abs(x) * scale)) * ulp(exact)


def of_logarithm(units: float):
    return lambda x, exact: np.where((x >= 0.5) & (x <= 2), 2.0**-21, units * ulp(exact))


def relative(bits: float):
    return lambda x, exact: 2.0**-bits * np.abs(exact)


def absolute(bits: float):
    return lambda x, exact: np.full(x.shape, 2.0**-bits)


LOGARITHMS = np.concatenate([of_every_size(), spread(0.25, 4)])
FUNCTIONS = {
    "exp": Function("exp(v)", np.exp, spread(-86, 88), by_power(1)),
    "exp2": Function("exp2(v)", np.exp2, spread(-125, 127), by_power(1)),
    "exp10": Function("exp10(v)", lambda x: 10.0**x, spread(-37, 38), by_power(np.log2(10))),
    "log": Function("log(v)", np.log, LOGARITHMS, of_logarithm(3)),
    "log2": Function("log2(v)", np.log2, LOGARITHMS, of_logarithm(3)),
    "log10": Function("log10(v)", np.log10, LOGARITHMS, of_logarithm(4)),
    # The specification asks for 2^-13 between -pi and pi; multiples of 2 pi are taken off.
    "sin": Function("sin(v)", np.sin, np.concatenate([spread(-np.pi, np.pi), spread(-1e5, 1e5)]), absolute(19)),
    "cos": Function("cos(v)", np.cos, np.concatenate([spread(-np.pi, np.pi), spread(-1e5, 1e5)]), absolute(19)),
    "tan": Function("tan(v)", np.tan, spread(-1.5, 1.5), lambda x, exact: 2.0**-18 * (1 + exact * exact)),
    "sincos": Function("[&] { float c; float s = sincos(v, c); return s + c; }()", lambda x: np.sin(x) + np.cos(x),
                       spread(-1000, 1000), absolute(18)),
    "tanh": Function("tanh(v)", np.tanh, np.concatenate([spread(-12, 12), of_every_size(-100, 3)]), relative(19)),
    "pow": Function("pow(v, 1.5f)", lambda x: x**1.5, of_every_size(-60, 60),
                    lambda x, exact: (6 + np.floor(3 * np.abs(np.log2(x)))) * ulp(exact)),
    "odd power": Function("pow(-v, 3.0f)", lambda x: -(x**3), spread(0.1, 9),
                          lambda x, exact: (12 + np.floor(6 * np.abs(np.log2(x)))) * ulp(exact)),
    "powr": Function("powr(v, -0.75f)", lambda x: x**-0.75, of_every_size(-60, 60),
                     lambda x, exact: (6 + np.floor(2 * np.abs(np.log2(x)))) * ulp(exact)),
    "sqrt": Function("sqrt(v)", np.sqrt, of_every_size(), relative(22)),
    "reciprocal": Function("1.0f / v", lambda x: 1 / x, of_every_size(), lambda x, exact: ulp(exact)),
    "division": Function("3.0f / v", lambda x: 3 / x, of_every_size(), lambda x, exact: 2.5 * ulp(exact)),
    "length": Function("length(float3(v, 2, 3))", lambda x: np.sqrt(x * x + 13), spread(-9, 9), relative(21)),
    "normalize": Function("normalize(float3(v, 2, 3)).x", lambda x: x / np.sqrt(x * x + 13), spread(-9, 9), relative(20)),
    # Half has the precise functions where the approximation's error is absolute.
    "sin of half": Function("float(sin(half(v)))", lambda x: np.sin(x.astype(np.float16).astype(np.float64)),
                            spread(-0.1, 0.1), lambda x, exact: 2.0**-11 * np.abs(exact) + 2.0**-25),
    "tanh of half": Function("float(tanh(half(v)))", lambda x: np.tanh(x.astype(np.float16).astype(np.float64)),
                             spread(-4, 4), lambda x, exact: 2.0**-10 * np.abs(exact) + 2.0**-25),
}  # fmt: skip


def results(text: str, mode: str, x: np.ndarray) -> np.ndarray:
    source = f"float v = x[thread_position_in_grid.x]; y[thread_position_in_grid.x] = {text};"
    kernel = kiln.metal_kernel("approximated", ["x"], ["y"], source, compile_options={"math_mode": mode})
    (result,) = kernel(
        inputs=[torch.from_numpy(x).cuda()],
        output_shapes=[x.shape],
        output_dtypes=[torch.float32],
        grid=(x.size, 1, 1),
        threadgroup=(256, 1, 1),
    )
    return result.cpu().numpy()


@pytest.mark.parametrize("mode", MODES)
def test_rsqrt_is_within_two_units(mode):
    x = torch.from_numpy(arguments()).cuda()
    (result,) = kernel_of(mode)(
        inputs=[x],
        output_shapes=[(5, x.numel())],
        output_dtypes=[torch.float32],
        grid=(x.numel(), 1, 1),
        threadgroup=(256, 1, 1),
    )
    check(mode, result.cpu().numpy())


@pytest.mark.parametrize("mode", FAST)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_within_the_bounds_of_fast_math(name, mode):
    function = FUNCTIONS[name]
    got = results(function.text, mode, function.x).astype(np.float64)
    exact = function.reference(function.x.astype(np.float64))
    error = np.abs(got - exact) / function.bound(function.x.astype(np.float64), exact)
    worst = int(error.argmax())
    assert error[worst] <= 1, f"{function.x[worst]!r}: {got[worst]!r}, not {exact[worst]!r}"


@pytest.mark.parametrize("name", ["exp", "log", "sin", "tanh", "sqrt"])
def test_precise_functions_do_not_depend_on_the_mode(name):
    function = FUNCTIONS[name]
    safe, fast = (results(f"precise::{function.text}", mode, function.x) for mode in ("safe", "fast"))
    np.testing.assert_array_equal(safe.view(np.uint32), fast.view(np.uint32))


@pytest.mark.parametrize(
    ("text", "x", "exact"),
    [
        ("exp(v)", [-np.inf, np.inf, 0, -200, 200], [0, np.inf, 1, 0, np.inf]),
        ("log(v)", [0, np.inf, 1], [-np.inf, np.inf, 0]),
        ("tanh(v)", [-np.inf, np.inf, 0], [-1, 1, 0]),
        ("sqrt(v)", [0, np.inf], [0, np.inf]),
        ("pow(v, 0.0f)", [0, 5, np.inf], [1, 1, 1]),
    ],
)
def test_limits_in_relaxed_mode(text, x, exact):
    np.testing.assert_array_equal(results(text, "relaxed", np.array(x, np.float32)), np.array(exact, np.float32))
