"""What Metal's mathematical functions should give, computed outside Kiln, and how far they may be off.

An error is counted in units in the last place (ULP) as the Metal specification defines it: the distance between the two
neighbours in the function's type that enclose the exact result. The bounds in the two tables below are what
`tools/check_math.py` measures, rounded up a little, and never above the specification's table for safe math.

References are in float64, whose own error is some 2^-28 of a float's unit. MPMATH has the same functions to any number
of digits, where that is not enough.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes
import mpmath
import numpy as np


class Format(NamedTuple):
    """A binary floating-point type."""

    dtype: type[Any]
    metal: str
    precision: int
    """Bits of the significand, the hidden one counted."""
    smallest_exponent: int
    """Of the smallest normal number."""
    largest_exponent: int

    @property
    def bits(self) -> type[Any]:
        return np.uint32 if np.dtype(self.dtype).itemsize == 4 else np.uint16


FLOAT = Format(np.float32, "float", 24, -126, 127)
HALF = Format(np.float16, "half", 11, -14, 15)
BFLOAT = Format(ml_dtypes.bfloat16, "bfloat", 8, -126, 127)
FORMATS = (FLOAT, HALF, BFLOAT)


def exponents(x: np.ndarray, kind: Format) -> np.ndarray:
    """Of the last bit of numbers of this size."""
    _, e = np.frexp(np.where(np.isfinite(x), x, 1.0))
    return np.maximum(e - 1, kind.smallest_exponent) - (kind.precision - 1)


def rounded(x: np.ndarray, kind: Format) -> np.ndarray:
    """float64 to the nearest number of the type, halves to even; as float64."""
    last = exponents(x, kind)
    with np.errstate(all="ignore"):
        result = np.ldexp(np.rint(np.ldexp(x, -last)), last)
        return np.where(np.abs(result) >= 2.0 ** (kind.largest_exponent + 1), np.copysign(np.inf, x), result)


def errors(got: np.ndarray, exact: np.ndarray, kind: Format) -> np.ndarray:
    """In ULP; infinite where one is a NaN and the other is not, or where a zero or an infinity has the wrong sign."""
    end = 2.0 ** (kind.largest_exponent + 1)
    with np.errstate(all="ignore"):
        got = got.astype(np.float64)
        error = np.abs(np.clip(got, -end, end) - np.clip(exact, -end, end)) * np.ldexp(1.0, -exponents(exact, kind))
    either, both = np.isnan(got) | np.isnan(exact), np.isnan(got) & np.isnan(exact)
    wrong_sign = ~either & (np.signbit(got) != np.signbit(exact))
    wrong_infinity = ~either & np.isinf(exact) & ~np.isinf(got)
    return np.where(both, 0, np.where(either | wrong_sign | wrong_infinity, np.inf, error))


# ---- Arguments


def around(values, steps: int = 2) -> np.ndarray:
    """The floats next to these numbers, both signs."""
    bits = np.array(values, np.float32).view(np.int32)[:, None] + np.arange(-steps, steps + 1, dtype=np.int32)
    near = bits.ravel().view(np.float32)
    return np.concatenate([near, -near])


def pairs(kind: Format, rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of special numbers, and `count` each of any bits, near 1, of powers that are in range."""
    small = [2.0**-149, 2.0**-133, 2.0**-126, 2.0**-24, 2.0**-14]
    near_1 = [1 - 2.0**-7, 1 - 2.0**-24, 1, 1 + 2.0**-7]
    large = [31, 33, 128, 65504, 8388607.5, 8388609, 16777215, 16777216, 3.4e38, np.inf, np.nan]
    special = np.array([0, *small, 0.5, *near_1, 1.5, 2, 3, 4, 7, *large])
    with np.errstate(over="ignore"):
        special = np.concatenate([special, -special]).astype(kind.dtype)
    signalling_nan = special[np.isinf(special)][:1].view(kind.bits) + kind.bits(1)
    special = np.concatenate([special.view(kind.bits), signalling_nan])
    grid = np.array(list(itertools.product(special, special)), dtype=kind.bits).T.view(kind.dtype)
    largest = 2 ** (8 * np.dtype(kind.dtype).itemsize)
    patterns = rng.integers(0, largest, (2, count), dtype=kind.bits).view(kind.dtype)
    near = rng.uniform(-4, 4, (2, count)).astype(kind.dtype)
    base = rng.uniform(0.1, 10, count).astype(kind.dtype)
    base[base == 1] = 2
    power = (rng.uniform(-30, 20, count) / np.log2(base.astype(np.float64))).astype(kind.dtype)
    x, y = np.concatenate([grid, patterns, near, [base, power]], axis=1)
    return np.ascontiguousarray(x), np.ascontiguousarray(y)


def widened(x: np.ndarray) -> np.ndarray:
    """The same numbers in float64. A signalling NaN becomes a quiet one: NumPy's functions take them differently."""
    with np.errstate(invalid="ignore"):
        return x.astype(np.float64) * 1.0


# ---- Functions of one argument


def half_turns(function: str) -> Callable[[np.ndarray], np.ndarray]:
    """sin, cos or tan of pi x, with zeros and infinities as IEEE 754 has them."""

    def reference(x: np.ndarray) -> np.ndarray:
        a = np.where(np.isfinite(x), np.abs(x), np.nan)
        quarter = np.rint(2 * a)
        rest = np.pi * (a - quarter / 2)
        n = np.where(np.isnan(quarter), 0, np.fmod(quarter, 4)).astype(int)
        sine, cosine = np.sin(rest), np.cos(rest)
        if function == "tan":
            result = np.where(n % 2 == 1, -cosine / sine, sine / cosine)
            exact = np.array([0.0, np.inf, -0.0, -np.inf])[n]
            return np.copysign(1, x) * np.where(rest == 0, exact, result)
        turned = n + (function == "cos")
        result = np.where(turned % 2 == 1, cosine, sine) * np.where(turned % 4 >= 2, -1, 1) + 0.0
        return result if function == "cos" else np.copysign(1, x) * result

    return reference


def erf(x: np.ndarray) -> np.ndarray:
    a = np.abs(x)
    result = np.where(a < 1, x * (1 - x * x / 3) * (2 / math.sqrt(math.pi)), np.copysign(1, x))
    some = (a >= 2.0**-20) & (a < 6)
    result[some] = np.fromiter(map(math.erf, x[some].tolist()), float)
    result[np.isnan(x)] = np.nan
    return result


def erfinv(x: np.ndarray) -> np.ndarray:
    """By a series near 0, otherwise by Halley's method from an estimate good to 2^-8."""
    a = np.abs(x)
    square = math.pi / 4 * x * x
    series = 1 + square * (1 / 3 + square * (7 / 30 + square * (127 / 630)))
    result = np.where(a == 1, np.copysign(np.inf, x), np.where(a < 1, x * math.sqrt(math.pi) / 2 * series, np.nan))
    some = (a >= 2.0**-10) & (a < 1)
    b = a[some]
    if b.size:
        log = np.log1p(-b * b)
        t = 2 / (math.pi * 0.147) + log / 2
        y = np.sqrt(np.sqrt(t * t - log / 0.147) - t)
        for _ in range(2):
            # On the side where no digits cancel.
            below = np.fromiter(map(math.erf, y.tolist()), float) - b
            above = (1 - b) - np.fromiter(map(math.erfc, y.tolist()), float)
            step = np.where(b < 0.5, below, above) * math.sqrt(math.pi) / 2 * np.exp(y * y)
            y -= step / (1 + y * step)
        result[some] = np.copysign(y, x[some])
    return result


class Function(NamedTuple):
    name: str
    reference: Callable
    metal: float
    """The specification's bound in ULP for float; 0.5 means correctly rounded, 0 exact."""
    bound: float
    """What is asserted for float."""
    spaces: bool = True
    """Whether it is in metal::precise and metal::fast too."""


def sign(x: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(x), 0.0, np.where(x == 0, x, np.sign(x)))


def fract(kind: Format) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: np.minimum(rounded(x - np.floor(x), kind), 1 - 2.0**-kind.precision)


def round_away(x: np.ndarray) -> np.ndarray:
    return np.where(np.abs(x) < 2.0**30, np.copysign(np.floor(np.abs(x) + 0.5), x), x)


UNARY = [
    Function("exp", np.exp, 4, 1.02),
    Function("exp2", np.exp2, 4, 0.9),
    Function("exp10", lambda x: np.power(10.0, x), 4, 1.1),
    Function("log", np.log, 4, 0.9),
    Function("log2", np.log2, 4, 0.95),
    Function("log10", np.log10, 4, 1.2),
    Function("sin", np.sin, 4, 1.1),
    Function("cos", np.cos, 4, 1.1),
    Function("tan", np.tan, 6, 1.55),
    Function("sinpi", half_turns("sin"), 4, 1.1),
    Function("cospi", half_turns("cos"), 4, 1.1),
    Function("tanpi", half_turns("tan"), 6, 1.45),
    Function("asin", np.arcsin, 4, 1.3),
    Function("acos", np.arccos, 4, 1.25),
    Function("atan", np.arctan, 5, 1.35),
    Function("sinh", np.sinh, 4, 0.9),
    Function("cosh", np.cosh, 4, 0.9),
    Function("tanh", np.tanh, 5, 0.75),
    Function("asinh", np.arcsinh, 4, 1.35),
    Function("acosh", np.arccosh, 4, 1.1),
    Function("atanh", np.arctanh, 5, 1.1),
    Function("sqrt", np.sqrt, 0.5, 0.5),
    Function("rsqrt", lambda x: 1 / np.sqrt(x), 0.5, 0.5),
    Function("floor", np.floor, 0.5, 0),
    Function("ceil", np.ceil, 0.5, 0),
    Function("trunc", np.trunc, 0.5, 0),
    Function("rint", np.rint, 0.5, 0),
    Function("round", round_away, 0.5, 0),
    Function("fabs", np.abs, 0, 0),
    Function("abs", np.abs, 0, 0),
    Function("sign", sign, 0, 0, spaces=False),
    Function("saturate", lambda x: np.where(np.isnan(x), 0, np.clip(x, 0, 1)), 0, 0),
    # MLX's: the specification says nothing about them.
    Function("log1p", np.log1p, 4, 1.05, spaces=False),
    Function("expm1", np.expm1, 4, 1.2, spaces=False),
    Function("erf", erf, 4, 1.35, spaces=False),
    Function("erfinv", erfinv, 4, 1.7, spaces=False),
]


# ---- Functions of two arguments


def powr(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    result = np.power(np.abs(x), y)
    zero, infinite = x == 0, np.isinf(x)
    invalid = (x < 0) | np.isnan(x) | np.isnan(y) | ((zero | infinite) & (y == 0)) | ((x == 1) & np.isinf(y))
    return np.where(invalid, np.nan, result)


def fdim(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(x) | np.isnan(y), np.nan, np.where(x > y, x - y, 0.0))


def fmin(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """As the specification words it: y where it is less, otherwise x; of a number and a NaN the number."""
    return np.where(np.isnan(x) | (y < x), y, x)


def fmax(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(x) | (x < y), y, x)


BINARY = [
    Function("pow", np.power, 16, 1.0),
    Function("powr", powr, 16, 1.0),
    Function("atan2", np.arctan2, 6, 1.7),
    Function("fmod", np.fmod, 0, 0),
    Function("fdim", fdim, 0.5, 0.5),
    Function("divide", np.divide, 0.5, 0.5),
    Function("copysign", np.copysign, 0, 0),
    Function("fmin", fmin, 0, 0),
    Function("fmax", fmax, 0, 0),
    Function("min", fmin, 0, 0),
    Function("max", fmax, 0, 0),
    Function("step", lambda edge, x: np.where(x < edge, 0.0, 1.0), 0, 0, spaces=False),
    # MLX's.
    Function("hypot", np.hypot, 4, 1.1, spaces=False),
]


# ---- To any number of digits

MPMATH: dict[str, Callable] = {
    "exp": mpmath.exp,
    "exp2": lambda x: mpmath.power(2, x),
    "exp10": lambda x: mpmath.power(10, x),
    "log": mpmath.log,
    "log2": lambda x: mpmath.log(x) / mpmath.log(2),
    "log10": mpmath.log10,
    "sin": mpmath.sin,
    "cos": mpmath.cos,
    "tan": mpmath.tan,
    "sinpi": mpmath.sinpi,
    "cospi": mpmath.cospi,
    "tanpi": lambda x: mpmath.sinpi(x) / mpmath.cospi(x),
    "asin": mpmath.asin,
    "acos": mpmath.acos,
    "atan": mpmath.atan,
    "sinh": mpmath.sinh,
    "cosh": mpmath.cosh,
    "tanh": mpmath.tanh,
    "asinh": mpmath.asinh,
    "acosh": mpmath.acosh,
    "atanh": mpmath.atanh,
    "sqrt": mpmath.sqrt,
    "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    "log1p": mpmath.log1p,
    "expm1": mpmath.expm1,
    "erf": mpmath.erf,
    "erfinv": mpmath.erfinv,
    "pow": mpmath.power,
    "powr": mpmath.power,
    "atan2": mpmath.atan2,
    "hypot": mpmath.hypot,
    "divide": lambda x, y: x / y,
    "fdim": lambda x, y: x - y if x > y else mpmath.mpf(0),
}


def exact_error(name: str, got: float, *arguments: float) -> float:
    """As `errors` gives for floats, with sixty digits; for a finite result and arguments where the function is one."""
    with mpmath.workdps(60):
        exact = MPMATH[name](*(mpmath.mpf(float(v)) for v in arguments))
        exponent = max(int(mpmath.floor(mpmath.log(abs(exact), 2))), FLOAT.smallest_exponent) if exact else -126
        return float(abs(mpmath.mpf(float(got)) - exact) / mpmath.mpf(2) ** (exponent - FLOAT.precision + 1))
