#!/usr/bin/env python3
"""Fits the polynomials of src/device/math: `fit_polynomial.py NAME…`, `--all`, or nothing for the list of names.

`--check` says of each fit whether its coefficients are those that the device library has, which they all are, and exits
with 1 otherwise.

A row of FITS says which function of u is approximated on which interval, by how many coefficients, and what one unit
of absolute error costs in the function that the polynomial serves (`weight`). The tool prints the coefficients as
hexadecimal floats, lowest first, and the largest weighted error in bits: 2^-24 would be half a unit in the last place
of a result in [1, 2).

The fit is least squares on Chebyshev nodes, repeated with more importance where the error was large (Lawson's
iteration): unlike Remez's exchange it does not mind weights that vanish inside the interval. Coefficients must be
floats; rounding them all at once would lose bits, so that the lowest is rounded first and the others are fitted again
around it, and so on. Leading coefficients that the device library keeps to more than a float's precision are part of a
row's function: it is what is left without them.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import mpmath
import numpy as np
from mpmath import mp, mpf

mp.dps = 50
GRID = 500
ITERATIONS = 150


class Fit(NamedTuple):
    function: Callable[[mpf], mpf]
    low: float
    high: float
    coefficients: int
    weight: Callable[[mpf], mpf]
    note: str


def _root(u: mpf, function: Callable[[mpf], mpf], third: mpf) -> mpf:
    """(function(x) - x) / x^3 with u = x^2, for an odd function whose series begins with x + third * x^3."""
    if u < mpf(10) ** -30:
        return third
    x = mpmath.sqrt(u)
    return (function(x) - x) / x**3


def _log_tail(f: mpf) -> mpf:
    """(log(1 + f) - f) / f^2."""
    return -mpf(1) / 2 + f / 3 if abs(f) < mpf(10) ** -20 else (mpmath.log1p(f) - f) / f**2


def _atanh_tail(z: mpf) -> mpf:
    """(atanh(s) / s - 1 - z / 3) / z^2 with z = s^2."""
    s = mpmath.sqrt(z)
    return (mpmath.atanh(s) / s - 1 - z / 3) / z**2


def _erfinv_ratio(w: mpf) -> mpf:
    """erfinv(x) / x for x > 0 with w = -log(1 - x^2)."""
    if w < mpf(10) ** -15:
        return mpmath.sqrt(mp.pi) / 2
    x = mpmath.sqrt(-mpmath.expm1(-w))
    return mpmath.erfinv(x) / x


def _erf_ratio(z: mpf) -> mpf:
    """erf(x) / x with z = x^2."""
    x = mpmath.sqrt(z)
    return 2 / mpmath.sqrt(mp.pi) * (1 - z / 3) if z < mpf(10) ** -20 else mpmath.erf(x) / x


LN2 = mpmath.log(2)
LN10 = mpmath.log(10)
ONE = mpf(1)

# What follows is the source of every polynomial in src/device/math; the comments there give the forms.
FITS = {
    "exp": Fit(
        lambda r: ONE / 2 + r / 6 if abs(r) < mpf(10) ** -20 else (mpmath.expm1(r) - r) / r**2,
        -0.3468,
        0.3468,
        5,
        lambda r: r**2 / mpmath.exp(r),
        "(e^r - 1 - r) / r^2",
    ),
    "exp2": Fit(
        lambda f: (LN2 if f == 0 else mpmath.expm1(f * LN2) / f) - split(LN2, 24)[0],
        -0.501,
        0.501,
        6,
        lambda f: abs(f) / mpf(2) ** f,
        "(2^f - 1) / f - float(ln 2)",
    ),
    "exp10": Fit(
        lambda f: (LN10 if f == 0 else mpmath.expm1(f * LN10) / f) - split(LN10, 24)[0],
        -0.1508,
        0.1508,
        6,
        lambda f: abs(f) / mpf(10) ** f,
        "(10^f - 1) / f - float(ln 10)",
    ),
    "log": Fit(_log_tail, -0.33334, 0.33334, 9, lambda f: abs(f), "(log(1 + f) - f) / f^2"),
    "log2": Fit(lambda f: _log_tail(f) / LN2, -0.33334, 0.33334, 9, lambda f: abs(f) * LN2, "log's, over ln 2"),
    "log10": Fit(lambda f: _log_tail(f) / LN10, -0.33334, 0.33334, 9, lambda f: abs(f) * LN10, "log's, over ln 10"),
    "pow": Fit(
        lambda z: 2 / LN2 * (ONE / 5 + z / 7 if z < mpf(10) ** -8 else _atanh_tail(z)),
        0,
        0.0296,
        3,
        lambda z: z**2 * LN2 / 2,
        "(2 atanh(s) / s - 2 - 2 z / 3) / (z^2 ln 2), z = s^2",
    ),
    "sin": Fit(lambda z: _root(z, mpmath.sin, -ONE / 6), 0, 0.635, 3, lambda z: z, "(sin x - x) / x^3, z = x^2"),
    "cos": Fit(
        lambda z: ONE / 24 - z / 720 if z < mpf(10) ** -8 else (mpmath.cos(mpmath.sqrt(z)) - 1 + z / 2) / z**2,
        0,
        0.635,
        3,
        lambda z: z**2 / mpmath.cos(mpmath.sqrt(z)),
        "(cos x - 1 + z / 2) / z^2, z = x^2",
    ),
    "tan": Fit(lambda z: _root(z, mpmath.tan, ONE / 3), 0, 0.635, 7, lambda z: z, "(tan x - x) / x^3, z = x^2"),
    "atan": Fit(lambda z: _root(z, mpmath.atan, -ONE / 3), 0, 1, 9, lambda z: z, "(atan x - x) / x^3, z = x^2"),
    "asin": Fit(lambda z: _root(z, mpmath.asin, ONE / 6), 0, 0.25, 5, lambda z: z, "(asin x - x) / x^3, z = x^2"),
    "sinh": Fit(lambda z: _root(z, mpmath.sinh, ONE / 6), 0, 0.1203, 3, lambda z: z, "(sinh x - x) / x^3, z = x^2"),
    "cosh": Fit(
        lambda z: ONE / 2 + z / 24 if z < mpf(10) ** -15 else (mpmath.cosh(mpmath.sqrt(z)) - 1) / z,
        0,
        0.1203,
        3,
        lambda z: z,
        "(cosh x - 1) / z, z = x^2",
    ),
    "erf": Fit(
        lambda z: _erf_ratio(z) - split(_erf_ratio(mpf(0)), 24)[0],
        0,
        1,
        7,
        lambda z: 1 / _erf_ratio(z),
        "erf(x) / x - float(2 / sqrt(pi)), z = x^2",
    ),
    "erfc": Fit(
        lambda a: mpmath.log(mpmath.erfc(a)),
        1,
        3.95,
        7,
        lambda a: mpmath.erfc(a) / mpmath.erf(a),
        "log(1 - erf(a))",
    ),
    "erfinv": Fit(
        lambda u: _erfinv_ratio(u + 1) - split(_erfinv_ratio(ONE), 24)[0],
        -1,
        4,
        10,
        lambda u: 1 / _erfinv_ratio(u + 1),
        "erfinv(x) / x - its float at u = 0; u = -log(1 - x^2) - 1",
    ),
    "erfinv_near_1": Fit(
        lambda u: _erfinv_ratio((u + 3) ** 2) - split(_erfinv_ratio(mpf(9)), 24)[0],
        5**0.5 - 3,
        1,
        10,
        lambda u: 1 / _erfinv_ratio((u + 3) ** 2),
        "erfinv(x) / x - its float at u = 0; u = sqrt(-log(1 - x^2)) - 3",
    ),
}


def _compute(fit: Fit) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes, values and weights on the grid."""
    angles = np.pi * (np.arange(GRID) + 0.5) / GRID
    nodes = (fit.low + fit.high) / 2 - (fit.high - fit.low) / 2 * np.cos(angles)
    values = np.array([float(fit.function(mpf(float(u)))) for u in nodes])
    weights = np.array([float(fit.weight(mpf(float(u)))) for u in nodes])
    return nodes, values, weights


def _minimax(nodes: np.ndarray, values: np.ndarray, weights: np.ndarray, powers: list[int]) -> np.ndarray:
    """Coefficients of the given powers with nearly the least largest weighted error, by Lawson's iteration."""
    basis = np.stack([nodes**p for p in powers], axis=1)
    scale = np.abs(basis * weights[:, None]).max(axis=0)
    matrix, right = basis * weights[:, None] / scale, values * weights
    importance = np.full(len(nodes), 1 / len(nodes))
    best, best_error = np.zeros(len(powers)), np.inf
    for _ in range(ITERATIONS):
        root = np.sqrt(importance)
        solution = np.linalg.lstsq(matrix * root[:, None], right * root, rcond=None)[0]
        error = np.abs(matrix @ solution - right)
        if error.max() < best_error:
            best, best_error = solution / scale, error.max()
        importance *= error / error.max() + 1e-9
        importance /= importance.sum()
    return best


def fit(row: Fit) -> tuple[list[np.float32], float]:
    nodes, values, weights = _compute(row)
    fixed: list[np.float32] = []
    for power in range(row.coefficients):
        rest = values - sum((float(c) * nodes**i for i, c in enumerate(fixed)), np.zeros_like(nodes))
        best = _minimax(nodes, rest, weights, list(range(power, row.coefficients)))
        fixed.append(np.float32(best[0]))
    error = sum(float(c) * nodes**i for i, c in enumerate(fixed)) - values
    return fixed, float(np.abs(error * weights).max())


def _hex(value: np.float32) -> str:
    """The shortest form that C++ takes, as in 0x1.62e43p-1f."""
    mantissa, exponent = float(value).hex().split("p")
    return f"{mantissa.rstrip('0').rstrip('.')}p{exponent}f"


def split(value: mpf, bits: int) -> tuple[float, mpf]:
    """`value` rounded to so many bits, and what is left."""
    exponent = mpmath.floor(mpmath.log(abs(value), 2)) + 1 - bits
    high = mpmath.nint(value / mpf(2) ** exponent) * mpf(2) ** exponent
    return float(high), value - high


# What is printed with --constants: name, value, bits of each part but the last, which is a float.
CONSTANTS = {
    "ln 2, 15 bits first": (LN2, [15]),
    "ln 2": (LN2, [24]),
    "log2 e": (1 / LN2, [24]),
    "ln 10": (LN10, [24]),
    "log2 10": (LN10 / LN2, [24]),
    "log10 2, 15 bits first": (LN2 / LN10, [15]),
    "log10 e": (1 / LN10, [24]),
    "2 log2 e": (2 / LN2, [24]),
    "2/3 log2 e": (2 / LN2 / 3, [24]),
    "pi": (mp.pi, [24]),
    "pi / 2": (mp.pi / 2, [24, 24]),
    "2 / pi": (2 / mp.pi, []),
    "2 / sqrt(pi)": (2 / mpmath.sqrt(mp.pi), [24]),
    "erfinv(x) / x at -log(1 - x^2) = 1": (_erfinv_ratio(ONE), []),
    "erfinv(x) / x at -log(1 - x^2) = 9": (_erfinv_ratio(mpf(9)), []),
}


def print_constants() -> None:
    for name, (value, bits) in CONSTANTS.items():
        parts, rest = [], value
        for count in bits:
            high, rest = split(rest, count)
            parts.append(_hex(np.float32(high)))
        print(f"{name}: {' '.join(parts)} {_hex(np.float32(float(rest)))}")


def is_in_use(coefficients: list[np.float32]) -> bool:
    """Whether a polynomial of the device library has just these coefficients."""
    folder = Path(__file__).resolve().parent.parent / "src/device/math"
    number = r"-?0x[0-9a-f.]+p[+-]?\d+f"
    for file in folder.glob("*.h"):
        for call in re.findall(rf"__KILN_POLYNOMIAL_\d+\([\w.]+((?:,\s*{number})+)\)", file.read_text()):
            if [float.fromhex(c[:-1]) for c in re.findall(number, call)] == [float(c) for c in coefficients]:
                return True
    return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--all", action="store_true", help="every fit")
    parser.add_argument("--constants", action="store_true", help="the constants that are sums of floats")
    parser.add_argument("--check", action="store_true", help="compare every fit with the device library")
    arguments = parser.parse_args()
    if arguments.constants:
        print_constants()
    if arguments.check:
        unused = [name for name in FITS if not is_in_use(fit(FITS[name])[0])]
        for name in unused:
            print(f"{name}: the device library has other coefficients")
        return 1 if unused else 0
    names = list(FITS) if arguments.all else arguments.names
    if not names and not arguments.constants:
        print("\n".join(f"{name:16} {row.note}" for name, row in FITS.items()))
    for name in names:
        coefficients, error = fit(FITS[name])
        print(f"{name}: {FITS[name].note}; largest weighted error 2^{np.log2(error):.2f}")
        print(f"  {', '.join(map(_hex, coefficients))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
