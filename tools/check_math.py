#!/usr/bin/env python3
"""Measures how far Kiln's mathematical functions are off: `check_math.py [NAME…]`; without names, all of them.

Functions of one argument are run over all 2^32 floats, or every k-th with --stride, functions of two over all pairs of
special numbers and --pairs random ones. The results are compared with float64 (tests/math_reference.py); where that
finds the largest error, and wherever a correctly rounded function seems not to be, sixty digits decide. Of odd and even
functions the negative half is compared with the positive one, bit by bit.

For rsqrt, what corrects a processor's estimate (lowering/approximations.h) is run from all estimates within six units, too.

Prints a table of largest errors in units in the last place (ULP), next to what Kiln promises, which its tests assert,
and what the Metal specification allows for safe math. Exits with 1 where an error is above either.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import kiln
from math_reference import BINARY, FLOAT, MPMATH, UNARY, Function, exact_error, fract, pairs

CHUNK = 2**18
ODD = {
    *("sin", "tan", "sinpi", "tanpi", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "erf", "erfinv"),
    *("trunc", "rint", "round", "sign"),
}
EVEN = {"cos", "cospi", "cosh", "fabs", "abs"}
SIGN = np.uint32(0x80000000)
EDGE = 2.0**128
"""Where floats would go on; infinity counts as this number."""


class Worst(NamedTuple):
    error: float
    arguments: tuple[float, ...]
    got: float


def kernel_of(function: Function, count: int) -> kiln.Kernel:
    names = ["x", "y"][:count]
    arguments = ", ".join(f"{name}[i]" for name in names)
    return kiln.metal_kernel(
        name=f"check_{function.name}",
        input_names=names,
        output_names=["o"],
        source=f"uint i = thread_position_in_grid.x; o[i] = {function.name}({arguments});",
    )


def call(kernel: kiln.Kernel, *arguments: np.ndarray) -> np.ndarray:
    shape = arguments[0].shape
    (result,) = kernel(
        inputs=list(arguments),
        output_shapes=[shape],
        output_dtypes=[np.float32],
        grid=(*shape, 1, 1),
        threadgroup=(256, 1, 1),
    )
    return result


def quick_errors(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """What math_reference.errors gives for floats, in a tenth of its time."""
    got = got.astype(np.float64)
    wrong_sign = (got.view(np.int64) ^ exact.view(np.int64)) < 0
    wrong = wrong_sign | np.isnan(got) | np.isnan(exact) | (np.isinf(exact) & np.isfinite(got))
    # The reciprocal of a unit at this exponent, made from its bits.
    exponent = np.clip((exact.view(np.int64) >> 52) & 0x7FF, 1023 - 126, 1023 + 127)
    inverse = ((2 * 1023 + 23 - exponent) << 52).view(np.float64)
    error = np.abs(np.clip(got, -EDGE, EDGE) - np.clip(exact, -EDGE, EDGE)) * inverse
    error[wrong] = np.inf
    return error


def worst_of(function: Function, got: np.ndarray, arguments: tuple[np.ndarray, ...]) -> Worst:
    with np.errstate(all="ignore"):
        exact = np.asarray(function.reference(*(a.astype(np.float64) for a in arguments)))
        nearest = exact.astype(np.float32)
        # Most results are the float next to the exact one: those are off by half a unit at most.
        others = np.flatnonzero((got.view(np.uint32) != nearest.view(np.uint32)) & ~(np.isnan(got) & np.isnan(nearest)))
        if not others.size:
            return Worst(0.5 if function.bound else 0.0, (), 0.0)
        got, exact, arguments = got[others], exact[others], tuple(a[others] for a in arguments)
        error = quick_errors(got, exact)
        if function.metal == 0.5 and function.name in MPMATH:
            # Wrong, or nearer to a tie than float64 can tell.
            for i in np.flatnonzero(error <= 0.5 + 2.0**-20):
                error[i] = exact_error(function.name, got[i], *(a[i] for a in arguments))
    at = int(np.argmax(error))
    return Worst(float(error[at]), tuple(float(a[at]) for a in arguments), float(got[at]))


def check_floats(function: Function, stride: int, jobs: int) -> tuple[Worst, int]:
    kernel = kernel_of(function, 1)
    mirrored = function.name in ODD or function.name in EVEN
    count = (2**31 if mirrored else 2**32) // stride

    def check_chunk(first: int) -> Worst:
        places = np.arange(first, min(first + CHUNK, count), dtype=np.uint64) * np.uint64(stride)
        bits = places.astype(np.uint32)
        x = bits.view(np.float32)
        got = call(kernel, x)
        if mirrored:
            other = call(kernel, (bits | SIGN).view(np.float32)).view(np.uint32)
            expected = got.view(np.uint32) ^ (SIGN if function.name in ODD else np.uint32(0))
            # sign(NaN) is +0 for both NaNs.
            differs = np.flatnonzero((other != expected) & ~np.isnan(got) & ~np.isnan(x))
            if differs.size:
                return Worst(np.inf, (-float(x[differs[0]]),), float(other.view(np.float32)[differs[0]]))
        return worst_of(function, got, (x,))

    with ThreadPoolExecutor(jobs) as pool:
        worst = max(pool.map(check_chunk, range(0, count, CHUNK)), key=lambda w: w.error)
    return worst, count * (2 if mirrored else 1)


def check_pairs(function: Function, count: int, jobs: int) -> tuple[Worst, int]:
    kernel = kernel_of(function, 2)
    per_chunk = CHUNK // 4

    def check_chunk(seed: int) -> tuple[Worst, int]:
        x, y = pairs(FLOAT, np.random.default_rng(seed), per_chunk)
        return worst_of(function, call(kernel, x, y), (x, y)), x.size

    with ThreadPoolExecutor(jobs) as pool:
        results = list(pool.map(check_chunk, range(max(1, count // (3 * per_chunk)))))
    return max((w for w, _ in results), key=lambda w: w.error), sum(n for _, n in results)


def with_more_digits(function: Function, worst: Worst) -> Worst:
    finite = np.isfinite([worst.error, worst.got, *worst.arguments]).all()
    if not finite or not worst.arguments or function.name not in MPMATH:
        return worst
    return worst._replace(error=exact_error(function.name, worst.got, *worst.arguments))


ESTIMATE = """
    uint i = thread_position_in_grid.x;
    float y = as_type<float>(as_type<uint>(rounded[i]) + offset);
    float residual = min(fma(-(x[i] * y), y, 1.0f), 0x1p-11f);
    y = fma(0.5f * y, residual, y);
    float high = x[i] * y, low = fma(x[i], y, -high);
    residual = min(fma(-low, y, fma(-high, y, 1.0f)), 0x1p-20f);
    o[i] = fma(y * residual, fma(residual, 0.375f, 0.5f), y);
"""


def wrong_from_estimates(stride: int) -> int:
    """How often 1 / sqrt(x) is not rounded correctly from an estimate within six units, for x in [1, 4): results for
    other numbers are those times a power of two."""
    kernel = kiln.metal_kernel("estimate", ["x", "rounded", "offset"], ["o"], ESTIMATE)
    x = np.arange(0x3F800000, 0x40800000, stride, dtype=np.uint32).view(np.float32)
    right = (1 / np.sqrt(x.astype(np.longdouble))).astype(np.float32)
    wrong = 0
    for offset in range(-6, 7):
        (got,) = kernel(
            inputs=[x, right, np.int32(offset)],
            output_shapes=[x.shape],
            output_dtypes=[np.float32],
            grid=(x.size, 1, 1),
            threadgroup=(256, 1, 1),
        )
        wrong += int(np.count_nonzero(got != right))
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--stride", type=int, default=1, help="of the floats that are tried; made odd")
    parser.add_argument("--pairs", type=int, default=20_000_000, help="random pairs")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="threads")
    arguments = parser.parse_args()
    # An even stride would try only mantissas that end in zeros.
    stride = arguments.stride | 1
    functions = [(f, 1) for f in [*UNARY, Function("fract", fract(FLOAT), 0.5, 0)]] + [(f, 2) for f in BINARY]
    unknown = set(arguments.names) - {f.name for f, _ in functions}
    if unknown:
        parser.error(f"no such function: {', '.join(sorted(unknown))}")

    breaches = 0
    print(f"{'function':10} {'arguments':>13} {'error':>8} {'promised':>8} {'Metal':>6} {'seconds':>7}  worst at")
    for function, count in functions:
        if arguments.names and function.name not in arguments.names:
            continue
        start = time.perf_counter()
        if count == 1:
            worst, tried = check_floats(function, stride, arguments.jobs)
        else:
            worst, tried = check_pairs(function, arguments.pairs, arguments.jobs)
        worst = with_more_digits(function, worst)
        breach = worst.error > min(function.bound, function.metal)
        breaches += breach
        seconds = time.perf_counter() - start
        print(
            f"{function.name:10} {tried:13,} {worst.error:8.4f} {function.bound:8.4g} {function.metal:6.4g}"
            f" {seconds:7.0f}  {', '.join(float(a).hex() for a in worst.arguments)}{'  BREACH' if breach else ''}",
            flush=True,
        )
    if not arguments.names or "rsqrt" in arguments.names:
        wrong = wrong_from_estimates(stride)
        breaches += wrong > 0
        print(f"rsqrt from estimates: {wrong} wrong")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
