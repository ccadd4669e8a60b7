"""Metal's mathematical functions, against float64, exact rounding and Python's integers.

The references and the bounds are in `math_reference.py`. Functions of half and bfloat go through float and are rounded
once, so that they are off by hardly more than half a unit.
"""

from __future__ import annotations

import itertools
import random
import zlib
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import kiln
import ml_dtypes
import mpmath
import numpy as np
import pytest
from math_reference import (
    BFLOAT,
    BINARY,
    FLOAT,
    FORMATS,
    HALF,
    UNARY,
    Format,
    Function,
    around,
    errors,
    fract,
    pairs,
    rounded,
    widened,
)

RNG = np.random.default_rng(20240607)


@pytest.fixture(autouse=True)
def numbers_of_this_test(request):
    """A test draws the same numbers, whichever others ran before it in its process."""
    seed = zlib.crc32(request.node.name.encode())
    RNG.bit_generator.state = np.random.default_rng(seed).bit_generator.state


def check(got: np.ndarray, exact: np.ndarray, kind: Format, bound: float, arguments: tuple, what: str) -> None:
    error = errors(got, exact, kind)
    worst = int(np.argmax(error))
    assert error[worst] <= bound, (
        f"{what}({', '.join(str(a[worst]) for a in arguments)}) is {got[worst]} and should be {exact[worst]}: "
        f"{error[worst]} ULP, allowed {bound}"
    )


def run(source: str, inputs: dict, outputs: dict, count: int, mode: str = "safe", header: str = "", template=()):
    """Results of a kernel of `count` threads; outputs are given as (shape, dtype)."""
    kernel = kiln.metal_kernel(
        name="math",
        input_names=list(inputs),
        output_names=list(outputs),
        source=f"uint i = thread_position_in_grid.x;\n{source}",
        header=header,
        compile_options={"math_mode": mode},
    )
    return kernel(
        inputs=list(inputs.values()),
        output_shapes=[shape for shape, _ in outputs.values()],
        output_dtypes=[dtype for _, dtype in outputs.values()],
        grid=(count, 1, 1),
        threadgroup=(256, 1, 1),
        template=list(template),
    )


# ---- Arguments


def float_arguments() -> np.ndarray:
    special = np.array([0.0, 2.0**-149, 3 * 2.0**-149, 2.0**-126, 3.4028235e38, np.inf, np.nan], np.float32)
    every_exponent = np.ldexp(RNG.uniform(1, 2, (40, 277)), np.arange(-149, 128)).ravel()
    return np.concatenate(
        [
            special,
            -special,
            RNG.integers(0, 2**32, 100_000, dtype=np.uint32).view(np.float32),
            np.float32(every_exponent) * RNG.choice(np.array([-1, 1], np.float32), every_exponent.size),
            *(np.float32(RNG.uniform(-r, r, 10_000)) for r in (1, 2, 20, 110, 1e5)),
            # Near integers, half integers and multiples of pi/2; where results overflow or vanish.
            around(np.arange(0.5, 400, 0.5)),
            around(2.0 ** np.arange(9, 100)),
            around(np.pi / 2 * np.arange(1, 2000)),
            around(np.pi / 2 * np.floor(2.0 ** RNG.uniform(10, 120, 2000))),
            around([88.72284, 103.97208, 87.33654, 89.4159, 128.0, 149.0, 150.0, 38.53184, 44.8534, 17.32868, 9.01091]),
        ]
    ).astype(np.float32)


ARGUMENTS = {
    FLOAT: float_arguments(),
    HALF: np.arange(2**16, dtype=np.uint16).view(np.float16),
    BFLOAT: np.arange(2**16, dtype=np.uint16).view(ml_dtypes.bfloat16),
}


# ---- Functions of one argument


def bound_for(function: Function, kind: Format) -> float:
    """One rounding more than float has, in the smaller type's larger units."""
    if kind is FLOAT or function.bound == 0:
        return function.bound
    return 0.5 + function.bound * 2.0 ** (kind.precision - 24)


def in_turn(functions: list[Function]) -> list[Any]:
    """Each function with each type. `make test` has one type for each function, the next type for the next one: a function's
    forms are calls of one function for each type, which `test_one_argument` and `test_two_arguments` have."""
    return [
        pytest.param(function, kind, marks=[pytest.mark.long] if (n + m) % len(FORMATS) else [])
        for n, function in enumerate(functions)
        for m, kind in enumerate(FORMATS)
    ]


def name_of(parameter: Function | Format) -> str:
    return parameter.metal if isinstance(parameter, Format) else parameter.name


@pytest.mark.parametrize("kind", FORMATS, ids=lambda k: k.metal)
@pytest.mark.parametrize("function", UNARY, ids=lambda f: f.name)
def test_one_argument(function, kind):
    """Every half and bfloat; floats of every size."""
    assert function.bound <= function.metal
    x = ARGUMENTS[kind]
    with np.errstate(all="ignore"):
        exact = function.reference(widened(x))
    if function.metal == 0.5:
        exact = rounded(exact, kind)
    bound = 0 if function.metal == 0.5 else bound_for(function, kind)
    got = run(f"o[i] = {function.name}(x[i]);", {"x": x}, {"o": (x.shape, kind.dtype)}, x.size)[0]
    check(got, exact, kind, bound, (x,), function.name)


@pytest.mark.parametrize(("function", "kind"), in_turn(UNARY), ids=name_of)
def test_forms_of_one_argument(function, kind):
    """Vectors, and the functions of both namespaces."""
    x = ARGUMENTS[kind]
    x = np.concatenate([x[:14], x[RNG.choice(x.size, 3000 if kind is FLOAT else 1000)]])
    with np.errstate(all="ignore"):
        exact = function.reference(widened(x))
    if function.metal == 0.5:
        exact = rounded(exact, kind)
    bound = 0 if function.metal == 0.5 else bound_for(function, kind)
    n, f = x.size, function.name
    body = f"""
      auto at = [&](uint k) {{ return x[(i + k) % {n}]; }};
      auto put = [&](device T* to, uint k, T value) {{ to[k * {n} + (i + k) % {n}] = value; }};
      vec<T, 2> a = {f}(vec<T, 2>(at(0), at(1)));
      vec<T, 3> b = {f}(vec<T, 3>(at(0), at(1), at(2)));
      vec<T, 4> c = {f}(vec<T, 4>(at(0), at(1), at(2), at(3)));
      put(v2, 0, a.x), put(v2, 1, a.y);
      put(v3, 0, b.x), put(v3, 1, b.y), put(v3, 2, b.z);
      put(v4, 0, c.x), put(v4, 1, c.y), put(v4, 2, c.z), put(v4, 3, c.w);"""
    outputs = {f"v{k}": ((k, n), kind.dtype) for k in (2, 3, 4)}
    if function.spaces:
        body += f"p[i] = metal::precise::{f}(x[i]); q[i] = fast::{f}(x[i]);"
        outputs |= {"p": ((1, n), kind.dtype), "q": ((1, n), kind.dtype)}
    for rows in run(body, {"x": x}, outputs, n, template=[("T", np.dtype(kind.dtype))]):
        for row in rows:
            check(row, exact, kind, bound, (x,), function.name)


@pytest.mark.parametrize("mode", ["relaxed", "fast"])
@pytest.mark.parametrize("function", UNARY[:23], ids=lambda f: f.name)
def test_other_modes_keep_the_bounds(function, mode):
    """Of finite arguments; the functions' own arithmetic stays as written. For rsqrt test_approximations.py has more."""
    x = ARGUMENTS[FLOAT]
    allowed = max(function.bound, 0.501)
    if function.name == "rsqrt":
        x, allowed = x[np.abs(x) >= np.float32(2.0**-126)], 2
    x = x[np.isfinite(x)]
    with np.errstate(all="ignore"):
        exact = function.reference(widened(x))
    x, exact = x[np.isfinite(exact)], np.abs(exact[np.isfinite(exact)])
    got = run(f"o[i] = {function.name}(x[i]);", {"x": x}, {"o": (x.shape, np.float32)}, x.size, mode=mode)[0]
    check(np.abs(got), exact, FLOAT, allowed, (x,), function.name)


@pytest.mark.parametrize("kind", FORMATS, ids=lambda k: k.metal)
def test_fract(kind):
    x = ARGUMENTS[kind]
    with np.errstate(all="ignore"):
        exact = fract(kind)(x.astype(np.float64))
    got = run("o[i] = fract(x[i]);", {"x": x}, {"o": (x.shape, kind.dtype)}, x.size)[0]
    check(got, exact, kind, 0, (x,), "fract")


# ---- Functions of two and three arguments


@pytest.mark.parametrize("kind", FORMATS, ids=lambda k: k.metal)
@pytest.mark.parametrize("function", BINARY, ids=lambda f: f.name)
def test_two_arguments(function, kind):
    assert function.bound <= function.metal
    x, y = pairs(kind, RNG, 50_000)
    with np.errstate(all="ignore"):
        exact = function.reference(widened(x), widened(y))
    if function.metal == 0.5:
        exact = rounded(exact, kind)
    bound = 0 if function.metal == 0.5 else bound_for(function, kind)
    shape, n, f = (x.shape, kind.dtype), x.size, function.name
    got = run(f"o[i] = {f}(x[i], y[i]);", {"x": x, "y": y}, {"o": shape}, n)[0]
    check(got, exact, kind, bound, (x, y), f)


@pytest.mark.parametrize(("function", "kind"), in_turn(BINARY), ids=name_of)
def test_forms_of_two_arguments(function, kind):
    x, y = pairs(kind, RNG, 50_000)
    few = RNG.choice(x.size, 1000)
    x, y = x[few], y[few]
    with np.errstate(all="ignore"):
        exact = function.reference(widened(x), widened(y))
    if function.metal == 0.5:
        exact = rounded(exact, kind)
    bound, f = 0 if function.metal == 0.5 else bound_for(function, kind), function.name
    body = f"""
      vec<T, 2> a = {f}(vec<T, 2>(x[i]), vec<T, 2>(y[i]));
      vec<T, 3> b = {f}(vec<T, 3>(x[i]), y[i]);
      vec<T, 4> c = {f}(x[i], vec<T, 4>(y[i]));
      o[i] = a.x, o[i + 1000] = a.y, o[i + 2000] = b.x, o[i + 3000] = b.z, o[i + 4000] = c.x, o[i + 5000] = c.w;"""
    count = 6
    if function.spaces:
        body += f"o[i + 6000] = precise::{f}(x[i], y[i]); o[i + 7000] = fast::{f}(x[i], y[i]);"
        count = 8
    template = [("T", np.dtype(kind.dtype))]
    got = run(body, {"x": x, "y": y}, {"o": ((count, 1000), kind.dtype)}, 1000, template=template)[0]
    for row in got:
        check(row, exact, kind, bound, (x, y), f)


@pytest.mark.parametrize("kind", FORMATS, ids=lambda k: k.metal)
def test_nextafter(kind):
    x, y = pairs(kind, RNG, 50_000)
    # By steps of the bits, taken as signed magnitudes.
    width = 8 * np.dtype(kind.dtype).itemsize

    def ordered(v: np.ndarray) -> np.ndarray:
        bits = v.view(kind.bits).astype(np.int64)
        return np.where(bits >> (width - 1), -(bits & (2 ** (width - 1) - 1)), bits)

    with np.errstate(invalid="ignore"):
        moved = ordered(x) + np.where(ordered(y) > ordered(x), 1, -1)
        bits = np.where((moved < 0) | ((moved == 0) & np.signbit(x)), 2 ** (width - 1) | -moved, moved)
        value = bits.astype(kind.bits).view(kind.dtype)
        exact = np.where(x == y, y, value).astype(np.float64)
        exact[np.isnan(x) | np.isnan(y)] = np.nan
    got = run("o[i] = nextafter(x[i], y[i]);", {"x": x, "y": y}, {"o": (x.shape, kind.dtype)}, x.size)[0]
    check(got, exact, kind, 0, (x, y), "nextafter")


def exact_fma(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """x y + z in float64, rounded to odd, so that it may be rounded again; products of two float32 are exact."""
    product = x * y
    total = product + z
    part = total - product
    error = (product - (total - part)) + (z - part)
    bits = total.view(np.int64)
    odd = bits + np.where((error > 0) == (total > 0), 1, -1)
    use = np.isfinite(total) & (error != 0) & ~np.isnan(error) & (bits & 1 == 0)
    return np.where(use, odd, bits).view(np.float64)


@pytest.mark.parametrize("kind", FORMATS, ids=lambda k: k.metal)
def test_fma_is_rounded_once(kind):
    x, y = pairs(kind, RNG, 50_000)
    n = x.size
    z = RNG.permutation(y)
    # Sums that nearly cancel, sums whose small part decides a tie, results at the bottom of the range.
    with np.errstate(all="ignore"):
        z[::3] = (-(x * y * kind.dtype(1 + 2.0**-6)))[::3]
    scale = np.ldexp(1.0, kind.smallest_exponent - kind.precision + 1)
    bottom = RNG.integers(-300, 300, n // 4) * scale
    x[: bottom.size] = RNG.uniform(0.25, 2, bottom.size).astype(kind.dtype)
    y[: bottom.size] = (bottom / 8).astype(kind.dtype)
    z[: bottom.size] = (RNG.permutation(bottom)).astype(kind.dtype)
    with np.errstate(all="ignore"):
        exact = rounded(exact_fma(x.astype(np.float64), y.astype(np.float64), z.astype(np.float64)), kind)
    outputs = {"o": (x.shape, kind.dtype)}
    got = run("o[i] = fma(x[i], y[i], z[i]);", {"x": x, "y": y, "z": z}, outputs, n)[0]
    got64 = got.astype(np.float64)
    # The sign of an exact zero depends on the terms' signs, which float64 has right too.
    assert np.array_equal(np.isnan(got64), np.isnan(exact))
    check(got, exact, kind, 0, (x, y, z), "fma")


@pytest.mark.parametrize("kind", FORMATS, ids=lambda k: k.metal)
def test_mix_smoothstep_clamp_and_medians(kind):
    n = 20_000
    x, y, a = (RNG.uniform(-3, 3, n).astype(kind.dtype) for _ in range(3))
    low, high = np.minimum(x, y), np.maximum(x, y)
    wide = [v.astype(np.float64) for v in (x, y, a, low, high)]
    body = f"""
      o[i] = mix(x[i], y[i], a[i]);
      o[i + {n}] = smoothstep(low[i], high[i], a[i]);
      o[i + {2 * n}] = clamp(a[i], low[i], high[i]);
      o[i + {3 * n}] = median3(x[i], y[i], a[i]);
      o[i + {4 * n}] = min3(x[i], y[i], a[i]);
      o[i + {5 * n}] = fmax3(x[i], y[i], a[i]);
      o[i + {8 * n}] = fmedian3(x[i], y[i], a[i]);
      o[i + {9 * n}] = fmin3(x[i], y[i], a[i]);
      o[i + {10 * n}] = max3(x[i], y[i], a[i]);
      vec<T, 3> m = mix(vec<T, 3>(x[i]), vec<T, 3>(y[i]), a[i]);
      o[i + {6 * n}] = m.z;
      vec<T, 2> s = smoothstep(low[i], high[i], vec<T, 2>(a[i]));
      o[i + {7 * n}] = s.y;"""
    inputs = {"x": x, "y": y, "a": a, "low": low, "high": high}
    got = run(body, inputs, {"o": ((11, n), kind.dtype)}, n, template=[("T", np.dtype(kind.dtype))])[0]
    got = got.astype(np.float64)
    x, y, a, low, high = wide
    unit = 2.0**-kind.precision
    # Three roundings, each of a number that is no larger than this.
    assert np.all(np.abs(got[0] - (x + (y - x) * a)) <= 3.01 * unit * (np.abs(x) + np.abs((y - x) * a)))
    t = np.clip((a - low) / (high - low), 0, 1)
    assert np.all(np.abs(got[1] - t * t * (3 - 2 * t)) <= 2 * unit + 2.0**-21)
    assert np.array_equal(got[2], np.clip(a, low, high))
    assert np.array_equal(got[3], np.median([x, y, a], axis=0))
    for row in (4, 9):
        assert np.array_equal(got[row], np.minimum(np.minimum(x, y), a))
    for row in (5, 10):
        assert np.array_equal(got[row], np.maximum(np.maximum(x, y), a))
    assert np.array_equal(got[8], got[3])
    assert np.array_equal(got[6], got[0]) and np.array_equal(got[7], got[1])


def test_clamp_and_saturate_of_nan():
    x = np.array([np.nan, np.nan, 5, -5], np.float32)
    got = run("o[i] = clamp(x[i], 1.0f, 2.0f); o[i + 4] = saturate(x[i]);", {"x": x}, {"o": ((2, 4), np.float32)}, 4)[0]
    assert got.tolist() == [[1, 1, 2, 1], [0, 0, 1, 0]]


# ---- Functions with two results, and of exponents


@pytest.mark.parametrize("kind", FORMATS, ids=lambda k: k.metal)
def test_sincos_modf_frexp_ilogb(kind):
    x = ARGUMENTS[kind]
    n = x.size
    body = f"""
      T c, whole;
      o[i] = sincos(x[i], c);
      o[i + {n}] = c;
      o[i + {2 * n}] = modf(x[i], whole);
      o[i + {3 * n}] = whole;
      int e;
      o[i + {4 * n}] = frexp(x[i], e);
      k[i] = e;
      k[i + {n}] = ilogb(x[i]);
      vec<T, 3> c3, s3 = sincos(vec<T, 3>(x[i]), c3), w3, f3 = modf(vec<T, 3>(x[i]), w3);
      int2 e2;
      vec<T, 2> m2 = frexp(vec<T, 2>(x[i]), e2);
      auto bits = [](T v) {{ return isnan(v) ? 0u : as_type<uint>(float(v)); }};
      same[i] = bits(s3.z) == bits(o[i]) && bits(c3.y) == bits(c) && bits(f3.x) == bits(o[i + {2 * n}]) &&
                bits(w3.z) == bits(whole) && bits(m2.y) == bits(o[i + {4 * n}]) && e2.x == e && e2.y == e;"""
    outputs = {"o": ((5, n), kind.dtype), "k": ((2, n), np.int32), "same": ((n,), np.bool_)}
    got, k, same = run(body, {"x": x}, outputs, n, template=[("T", np.dtype(kind.dtype))])
    assert same.all()
    x64 = x.astype(np.float64)
    with np.errstate(all="ignore"):
        sine, cosine = np.sin(x64), np.cos(x64)
        fraction, whole = np.modf(x64)
        mantissa, exponent = np.frexp(x64)
    sin_function = next(f for f in UNARY if f.name == "sin")
    check(got[0], sine, kind, bound_for(sin_function, kind), (x,), "sincos")
    check(got[1], cosine, kind, bound_for(sin_function, kind), (x,), "sincos, cosine")
    check(got[2], fraction, kind, 0, (x,), "modf")
    check(got[3], whole, kind, 0, (x,), "modf, whole part")
    check(got[4], mantissa, kind, 0, (x,), "frexp")
    regular = np.isfinite(x64) & (x64 != 0)
    assert np.array_equal(k[0], np.where(regular, exponent, 0))
    smallest = -(2**31)
    expected = np.where(regular, exponent - 1, np.where(np.isinf(x64), 2**31 - 1, smallest))
    assert np.array_equal(k[1], expected)


@pytest.mark.parametrize("kind", FORMATS, ids=lambda k: k.metal)
def test_ldexp_is_rounded_once(kind):
    x = RNG.choice(ARGUMENTS[kind], 60_000)
    k = np.concatenate([RNG.integers(-320, 320, 30_000), RNG.integers(-160, -100, 29_998), [2**31 - 1, -(2**31)]])
    k = k.astype(np.int32)
    with np.errstate(all="ignore"):
        exact = rounded(np.ldexp(x.astype(np.float64), np.clip(k, -600, 600)), kind)
    body = "o[i] = ldexp(x[i], k[i]); v[i] = ldexp(vec<T, 3>(x[i]), k[i]).y;"
    outputs = {"o": (x.shape, kind.dtype), "v": (x.shape, kind.dtype)}
    for got in run(body, {"x": x, "k": k}, outputs, x.size, template=[("T", np.dtype(kind.dtype))]):
        check(got, exact, kind, 0, (x, k), "ldexp")


# ---- Relational functions


@pytest.mark.parametrize("mode", ["safe", "fast"])
@pytest.mark.parametrize("kind", FORMATS, ids=lambda k: k.metal)
def test_kinds_of_numbers(kind, mode):
    x, y = pairs(kind, RNG, 50_000)
    n = x.size
    names = ["isnan", "isinf", "isfinite", "isnormal", "signbit"]
    body = "".join(f"o[i + {j * n}] = {f}(x[i]);" for j, f in enumerate(names))
    body += f"o[i + {5 * n}] = isordered(x[i], y[i]); o[i + {6 * n}] = isunordered(x[i], y[i]);"
    body += f"bool3 v = isnan(vec<T, 3>(x[i], y[i], x[i])); o[i + {7 * n}] = v.y;"
    body += f"bool2 w = isordered(vec<T, 2>(x[i]), vec<T, 2>(y[i])); o[i + {8 * n}] = w.x;"
    template = [("T", np.dtype(kind.dtype))]
    got = run(body, {"x": x, "y": y}, {"o": ((9, n), np.bool_)}, n, mode=mode, template=template)[0]
    with np.errstate(invalid="ignore"):  # of signalling NaNs
        x, y = x.astype(np.float64), y.astype(np.float64)
    nan = np.isnan(x) | np.isnan(y)
    normal = np.isfinite(x) & (np.abs(x) >= 2.0**kind.smallest_exponent)
    expected = [np.isnan(x), np.isinf(x), np.isfinite(x), normal, np.signbit(x), ~nan, nan, np.isnan(y), ~nan]
    assert np.array_equal(got, expected)


def test_any_and_all():
    flags = np.array(list(itertools.product([False, True], repeat=4)))
    body = """
      bool2 b2(x[4 * i], x[4 * i + 1]);
      bool3 b3(b2, x[4 * i + 2]);
      bool4 b4(b3, x[4 * i + 3]);
      o[8 * i] = all(b2), o[8 * i + 1] = all(b3), o[8 * i + 2] = all(b4), o[8 * i + 3] = all(x[4 * i]);
      o[8 * i + 4] = any(b2), o[8 * i + 5] = any(b3), o[8 * i + 6] = any(b4), o[8 * i + 7] = any(x[4 * i]);"""
    got = run(body, {"x": flags}, {"o": ((16, 8), np.bool_)}, 16)[0]
    expected = [[f[:2].all(), f[:3].all(), f.all(), f[0], f[:2].any(), f[:3].any(), f.any(), f[0]] for f in flags]
    assert np.array_equal(got, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.int8, np.uint16, np.int64, np.bool_])
def test_select(dtype):
    a, b = np.array([0, 1] * 8).astype(dtype), np.array([1, 0] * 8).astype(dtype)
    c = RNG.integers(0, 2, 16).astype(np.bool_)
    body = """
      o[i] = select(a[i], b[i], c[i]);
      vec<T, 4> wide = select(vec<T, 4>(a[i]), vec<T, 4>(b[i]), bool4(false, c[i], true, !c[i]));
      o[i + 16] = wide.x, o[i + 32] = wide.y, o[i + 48] = wide.z, o[i + 64] = wide.w;
      vec<T, 2> whole = select(vec<T, 2>(a[i]), vec<T, 2>(b[i]), c[i]);
      o[i + 80] = whole.y;
      vec<T, 3> mixed = select(a[i], vec<T, 3>(b[i]), bool3(c[i]));
      o[i + 96] = mixed.z;
      mixed = select(vec<T, 3>(a[i]), b[i], bool3(c[i]));
      o[i + 112] = mixed.x;"""
    template = [("T", np.dtype(dtype))]
    got = run(body, {"a": a, "b": b, "c": c}, {"o": ((8, 16), dtype)}, 16, template=template)[0]
    chosen = np.where(c, b, a)
    expected = [chosen, a, chosen, b, np.where(c, a, b), chosen, chosen, chosen]
    assert np.array_equal(got, expected)


def test_select_takes_no_integer_masks():
    with pytest.raises(kiln.CompileError):
        run(
            "float2 v = select(float2(x[i]), float2(1), int2(-1)); o[i] = v.x;",
            {"x": np.zeros(8, np.float32)},
            {"o": ((8,), np.float32)},
            8,
        )


# ---- Integer functions


class Integer(NamedTuple):
    dtype: type
    bits: int
    signed: bool

    @property
    def low(self) -> int:
        return -(2 ** (self.bits - 1)) if self.signed else 0

    @property
    def high(self) -> int:
        return 2 ** (self.bits - self.signed) - 1

    def wrap(self, value: int) -> int:
        value &= 2**self.bits - 1
        return value - 2**self.bits if value > self.high else value

    def pattern(self, value: int) -> str:
        return f"{value & (2**self.bits - 1):0{self.bits}b}"

    def saturate(self, value: int) -> int:
        return min(max(value, self.low), self.high)


INTEGERS = [
    Integer(np.dtype(f"{'' if signed else 'u'}int{bits}").type, bits, signed)
    for bits in (8, 16, 32, 64)
    for signed in (True, False)
]


def rotate(t: Integer, x: int, y: int) -> int:
    p, n = t.pattern(x), y % t.bits
    return t.wrap(int(p[n:] + p[:n], 2))


def extract(t: Integer, x: int, offset: int, bits: int) -> int:
    if bits == 0:
        return 0
    value = (x >> offset) & (2**bits - 1)
    return value - 2**bits if t.signed and value >> (bits - 1) else value


def insert(t: Integer, base: int, value: int, offset: int, bits: int) -> int:
    mask = (2**bits - 1) << offset
    return t.wrap((base & ~mask) | ((value << offset) & mask))


# Name, arguments, what it gives.
INTEGER_FUNCTIONS: list[tuple[str, int, Callable[..., Any]]] = [
    ("popcount", 1, lambda t, x: t.pattern(x).count("1")),
    ("clz", 1, lambda t, x: len(t.pattern(x)) - len(t.pattern(x).lstrip("0"))),
    ("ctz", 1, lambda t, x: len(t.pattern(x)) - len(t.pattern(x).rstrip("0"))),
    ("reverse_bits", 1, lambda t, x: t.wrap(int(t.pattern(x)[::-1], 2))),
    ("abs", 1, lambda t, x: t.wrap(abs(x))),
    ("absdiff", 2, lambda t, x, y: t.wrap(abs(x - y))),
    ("addsat", 2, lambda t, x, y: t.saturate(x + y)),
    ("subsat", 2, lambda t, x, y: t.saturate(x - y)),
    ("hadd", 2, lambda t, x, y: (x + y) >> 1),
    ("rhadd", 2, lambda t, x, y: (x + y + 1) >> 1),
    ("mulhi", 2, lambda t, x, y: (x * y) >> t.bits),
    ("rotate", 2, rotate),
    ("min", 2, lambda t, x, y: min(x, y)),
    ("max", 2, lambda t, x, y: max(x, y)),
    ("clamp", 3, lambda t, x, y, z: min(max(x, y), z)),
    ("madhi", 3, lambda t, x, y, z: t.wrap(((x * y) >> t.bits) + z)),
    ("madsat", 3, lambda t, x, y, z: t.saturate(x * y + z)),
    ("min3", 3, lambda t, x, y, z: min(x, y, z)),
    ("max3", 3, lambda t, x, y, z: max(x, y, z)),
    ("median3", 3, lambda t, x, y, z: sorted((x, y, z))[1]),
]


@pytest.mark.parametrize("kind", INTEGERS, ids=lambda t: np.dtype(t.dtype).name)
def test_integers(kind):
    rng = random.Random(7)
    edges = [0, 1, 2, 3, kind.high, kind.high - 1, kind.low, kind.low + 1, kind.wrap(-1), kind.high // 3]
    triples = list(itertools.product(edges, repeat=3))
    for _ in range(1000):
        triples.append(tuple(kind.wrap(rng.getrandbits(kind.bits)) >> rng.randrange(kind.bits) for _ in range(3)))
    x, y, z = (np.array(column, dtype=kind.dtype) for column in zip(*triples, strict=True))
    n = x.size
    # Each function, for scalars and for vectors.
    body = "typedef vec<T, 3> V;\n"
    expected: list[list[Any]] = []
    for name, count, function in INTEGER_FUNCTIONS:
        scalars = ", ".join(f"{v}[i]" for v in "xyz"[:count])
        vectors = ", ".join(f"V({v}[i])" for v in "xyz"[:count])
        body += f"o[i + {len(expected) * n}] = T({name}({scalars}));\n"
        expected.append([function(kind, *t[:count]) for t in triples])
        body += f"o[i + {len(expected) * n}] = T({name}({vectors}).z);\n"
        expected.append(expected[-1])
    places = [(rng.randrange(kind.bits), rng.randrange(kind.bits + 1)) for _ in range(n)]
    places = [(offset, min(bits, kind.bits - offset)) for offset, bits in places]
    inputs = {
        "x": x, "y": y, "z": z,
        "offset": np.array([p[0] for p in places], np.uint32), "bits": np.array([p[1] for p in places], np.uint32),
    }  # fmt: skip
    body += f"""
      o[i + {len(expected) * n}] = extract_bits(x[i], offset[i], bits[i]);
      o[i + {(len(expected) + 1) * n}] = extract_bits(V(x[i]), offset[i], bits[i]).y;
      o[i + {(len(expected) + 2) * n}] = insert_bits(x[i], y[i], offset[i], bits[i]);
      o[i + {(len(expected) + 3) * n}] = insert_bits(V(x[i]), V(y[i]), offset[i], bits[i]).x;"""
    expected += [[extract(kind, t[0], *p) for t, p in zip(triples, places, strict=True)]] * 2
    expected += [[insert(kind, t[0], t[1], *p) for t, p in zip(triples, places, strict=True)]] * 2
    outputs = {"o": ((len(expected), n), kind.dtype)}
    got = run(body, inputs, outputs, n, template=[("T", np.dtype(kind.dtype))])[0]
    names = [name for name, _, _ in INTEGER_FUNCTIONS for _ in range(2)] + ["extract_bits"] * 2 + ["insert_bits"] * 2
    for name, row, right in zip(names, got, expected, strict=True):
        wrong = np.flatnonzero(row != np.array(right, dtype=kind.dtype))
        assert wrong.size == 0, f"{name}{triples[wrong[0]]}, {places[wrong[0]]}: {row[wrong[0]]}, not {right[wrong[0]]}"


@pytest.mark.parametrize("kind", INTEGERS[4:6], ids=lambda t: np.dtype(t.dtype).name)
def test_products_of_24_bits(kind):
    rng = random.Random(8)
    triples = [tuple(kind.wrap(rng.getrandbits(32)) for _ in range(3)) for _ in range(2000)]
    x, y, z = (np.array(column, dtype=kind.dtype) for column in zip(*triples, strict=True))
    n = x.size
    body = f"""
      o[i] = mul24(x[i], y[i]);
      o[i + {n}] = mad24(x[i], y[i], z[i]);
      o[i + {2 * n}] = mad24(vec<T, 4>(x[i]), vec<T, 4>(y[i]), vec<T, 4>(z[i])).w;"""
    template = [("T", np.dtype(kind.dtype))]
    got = run(body, {"x": x, "y": y, "z": z}, {"o": ((3, n), kind.dtype)}, n, template=template)[0]

    def low24(v: int) -> int:
        v &= 0xFFFFFF
        return v - (1 << 24) if kind.signed and v >> 23 else v

    products = [low24(a) * low24(b) for a, b, _ in triples]
    sums = [kind.wrap(p + t[2]) for p, t in zip(products, triples, strict=True)]
    assert got[0].tolist() == [kind.wrap(p) for p in products]
    assert got[1].tolist() == sums and got[2].tolist() == sums


# ---- Geometric functions


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("kind", FORMATS, ids=lambda k: k.metal)
def test_geometry(kind, size):
    n = 5000
    a, b, c = (RNG.normal(size=(n, size)).astype(kind.dtype) for _ in range(3))
    body = f"""
      typedef vec<T, {size}> V;
      V a, b, c;
      for (int j = 0; j < {size}; ++j) {{
        int k = i * {size} + j;
        a[j] = x[k], b[j] = y[k], c[j] = z[k];
      }}
      s[i] = dot(a, b), s[i + {n}] = length_squared(a), s[i + {2 * n}] = length(a);
      s[i + {3 * n}] = distance(a, b), s[i + {4 * n}] = distance_squared(a, b);
      V unit = normalize(b);
      V r[5] = {{normalize(a), faceforward(a, b, c), reflect(a, unit), refract(normalize(a), unit, T(0.75)), unit}};
      for (int k = 0; k < 5; ++k)
        for (int j = 0; j < {size}; ++j) v[(k * {n} + i) * {size} + j] = r[k][j];"""
    outputs = {"s": ((5, n), kind.dtype), "v": ((5, n, size), kind.dtype)}
    template = [("T", np.dtype(kind.dtype))]
    s, v = run(body, {"x": a, "y": b, "z": c}, outputs, n, template=template)
    s, v = s.astype(np.float64), v.astype(np.float64)
    a, b, c = a.astype(np.float64), b.astype(np.float64), c.astype(np.float64)
    unit = 2.0 ** -(kind.precision - 1)

    def dot(p: np.ndarray, q: np.ndarray) -> np.ndarray:
        return (p * q).sum(axis=-1)

    # Half a unit of the sum of the products' magnitudes for each of as many roundings as one product goes through.
    assert np.all(np.abs(s[0] - dot(a, b)) <= size * unit / 2 * dot(np.abs(a), np.abs(b)))
    norm = np.sqrt(dot(a, a))
    assert np.all(np.abs(s[1] / norm**2 - 1) <= 2 * unit) and np.all(np.abs(s[2] / norm - 1) <= 2 * unit)
    gap = np.sqrt(dot(a - b, a - b))
    assert np.all(np.abs(s[3] / gap - 1) <= 2 * unit) and np.all(np.abs(s[4] / gap**2 - 1) <= 3 * unit)
    assert np.all(np.abs(v[0] - a / norm[:, None]) <= 2 * unit)
    assert np.array_equal(v[1], np.where(dot(c, b)[:, None] < 0, a, -a))
    # With the unit vector that the kernel itself had, as exact as its type allows.
    normal, start = v[4], v[0]
    tolerance = 4 * unit * (1 + np.abs(a).max(axis=1, keepdims=True)) * size
    assert np.all(np.abs(v[2] - (a - 2 * dot(normal, a)[:, None] * normal)) <= tolerance)
    cosine = dot(normal, start)
    k = 1 - 0.75**2 * (1 - cosine**2)
    bent = 0.75 * start - (0.75 * cosine + np.sqrt(k))[:, None] * normal
    assert np.all(np.abs(v[3] - bent) <= 8 * unit * size)


def test_lengths_do_not_overflow_or_vanish():
    x = np.array([[3e38, 1e38, 2], [3e-45, 4e-45, 0], [1e-30, 2e-30, 3e-30], [np.inf, 1, 2], [0, 0, 0]], np.float32)
    body = """
      float3 v(x[3 * i], x[3 * i + 1], x[3 * i + 2]), u = normalize(v);
      o[5 * i] = length(v), o[5 * i + 1] = distance(v, float3(0)), o[5 * i + 2] = u.x, o[5 * i + 3] = u.y,
      o[5 * i + 4] = u.z;"""
    got = run(body, {"x": x}, {"o": ((5, 5), np.float32)}, 5)[0].astype(np.float64)
    norm = np.sqrt((x.astype(np.float64) ** 2).sum(axis=1))
    check(got[:, 0].astype(np.float32), norm, FLOAT, 2, (x,), "length")
    check(got[:, 1].astype(np.float32), norm, FLOAT, 2, (x,), "distance")
    assert np.allclose(got[:3, 2:], x[:3].astype(np.float64) / norm[:3, None], rtol=1e-6, atol=0)
    assert np.isnan(got[4, 2:]).all()


@pytest.mark.parametrize("kind", FORMATS, ids=lambda k: k.metal)
def test_cross(kind):
    n = 5000
    a, b = (RNG.normal(size=(n, 3)).astype(kind.dtype) for _ in range(2))
    body = """
      vec<T, 3> c = cross(vec<T, 3>(x[3 * i], x[3 * i + 1], x[3 * i + 2]),
                          vec<T, 3>(y[3 * i], y[3 * i + 1], y[3 * i + 2]));
      o[3 * i] = c.x, o[3 * i + 1] = c.y, o[3 * i + 2] = c.z;"""
    template = [("T", np.dtype(kind.dtype))]
    got = run(body, {"x": a, "y": b}, {"o": ((n, 3), kind.dtype)}, n, template=template)[0].astype(np.float64)
    a, b = a.astype(np.float64), b.astype(np.float64)
    # However much the two products cancel.
    check(got.ravel(), np.cross(a, b).ravel(), kind, 1.5, (np.arange(3 * n),), "cross")


# ---- Every form of every function


class Form(NamedTuple):
    """Functions of which vectors and the other names give what the scalar function of the plain name gives."""

    names: str
    arguments: str
    """One letter an argument: x, y, z of the type, k an int."""
    spaces: bool = False


FLOAT_FORMS = [
    Form("acos acosh asin asinh atan atanh ceil cos cosh cospi exp exp2 exp10 fabs abs floor fract log", "x", True),
    Form("log2 log10 rint round rsqrt sin sinh sinpi sqrt tan tanh tanpi trunc saturate ilogb", "x", True),
    Form("atan2 copysign divide fdim fmax fmin fmod max min nextafter pow powr", "xy", True),
    Form("ldexp", "xk", True),
    Form("clamp fma fmax3 fmedian3 fmin3 max3 median3 min3", "xyz", True),
    Form("sign isfinite isinf isnan isnormal signbit", "x"),
    Form("isordered isunordered step", "xy"),
    Form("mix smoothstep", "xyz"),
]
INTEGER_FORMS = [
    Form("abs clz ctz popcount reverse_bits", "x"),
    Form("absdiff addsat hadd max min mulhi rhadd rotate subsat", "xy"),
    Form("clamp madhi madsat max3 median3 min3", "xyz"),
    Form("extract_bits", "xoo"),
    Form("insert_bits", "xyoo"),
]
INTEGER_FORMS_32 = [*INTEGER_FORMS, Form("mul24", "xy"), Form("mad24", "xyz")]
DTYPES = [f.dtype for f in FORMATS] + [np.dtype(f"{u}int{n}").type for u in ("", "u") for n in (8, 16, 32, 64)]


def forms_of(dtype: type) -> list[Form]:
    if np.dtype(dtype).kind not in "iu":
        return FLOAT_FORMS
    return INTEGER_FORMS_32 if np.dtype(dtype).itemsize == 4 else INTEGER_FORMS


def form_text(form: Form, name: str, row: int) -> str:
    """Sets o[row of this thread] to whether all forms agree. Few calls: each is inlined."""

    def call(function: str, lanes: range | int) -> str:
        texts = []
        for a in form.arguments:
            if a == "o":  # the same for all components
                texts.append("3u")
            elif isinstance(lanes, int):
                texts.append(f"{a}[i + {lanes}]")
            else:
                element = "int" if a == "k" else "T"
                parts = ", ".join(f"{a}[i + {lane}]" for lane in lanes)
                texts.append(f"vec<{element}, {len(lanes)}>({parts})")
        return f"{function}({', '.join(texts)})"

    text = "{ bool right = true;\n"
    text += "".join(f"auto r{lane} = {call(name, lane)};\n" for lane in range(4))
    for number, (space, size) in enumerate(
        [("", 3), ("metal::", 4), *([("precise::", 2), ("metal::fast::", 2)] * form.spaces)]
    ):
        text += f"auto v{number} = {call(space + name, range(size))};\n"
        text += "".join(f"right = right && same(v{number}[{lane}], r{lane});\n" for lane in range(size))
    return text + f"o[{row} * n[0] + i] = right; }}\n"


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
def test_every_form(dtype):
    """What the scalar function of the plain name gives is compared with references elsewhere in this file."""
    if np.dtype(dtype).kind in "iu":
        low, high = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max], dtype)
        x, y, z = RNG.integers(low, high, (3, 40), dtype)
    else:
        x, y, z = RNG.uniform(0.1, 3, (3, 40)).astype(dtype)
    inputs = {"x": x, "y": y, "z": z, "k": RNG.integers(-3, 4, 40, np.int32), "n": np.array([32], np.int32)}
    header = "template <class A> bool same(A a, A b) { return a == b || (a != a && b != b); }\n"
    for form in forms_of(dtype):
        names = form.names.split()
        # Compiling one kernel of them all would take longer than several.
        for some in (names[first : first + 6] for first in range(0, len(names), 6)):
            source = "".join(form_text(form, name, row) for row, name in enumerate(some))
            outputs = {"o": ((len(some), 32), np.bool_)}
            got = run(source, inputs, outputs, 32, header=header, template=[("T", np.dtype(dtype))])[0]
            assert [name for name, row in zip(some, got, strict=True) if not row.all()] == []


@pytest.mark.parametrize("kind", FORMATS, ids=lambda k: k.metal)
def test_every_form_with_two_results(kind):
    x = RNG.uniform(-9, 9, 40).astype(kind.dtype)
    body = "bool right = true; uint j = i;\n"
    for name, second in (("frexp", "int"), ("modf", "T"), ("sincos", "T")):
        for space in ("", "metal::", "precise::", "fast::"):
            body += f"{{ {second} a, b; right = right && same({name}(x[i], a), {space}{name}(x[i], b)) && a == b; }}\n"
            for size in (2, 3, 4):
                lanes = ", ".join(f"x[i + {lane}]" for lane in range(size))
                body += f"{{ vec<{second}, {size}> b; vec<T, {size}> r = {space}{name}(vec<T, {size}>({lanes}), b);\n"
                for lane in (0, size - 1):
                    body += f"  {second} a{lane}; T r{lane} = {name}(x[i + {lane}], a{lane});\n"
                    body += f"  right = right && r[{lane}] == r{lane} && b[{lane}] == a{lane};\n"
                body += "}\n"
    body += "o[i] = right;"
    header = "template <class A> bool same(A a, A b) { return a == b; }\n"
    got = run(body, {"x": x}, {"o": ((32,), np.bool_)}, 32, header=header, template=[("T", np.dtype(kind.dtype))])[0]
    assert got.all()


@pytest.mark.parametrize("kind", FORMATS, ids=lambda k: k.metal)
def test_every_form_of_geometry(kind):
    a, b = RNG.uniform(-2, 2, (2, 4 * 8)).astype(kind.dtype)
    functions = [("length", "p"), ("normalize", "p"), ("distance", "pq")]
    plain = [("dot", "pq"), ("length_squared", "p"), ("distance_squared", "pq"), ("faceforward", "pqp")]
    plain += [("reflect", "pq"), ("refract", "pqe")]
    body = "bool right = true; T e = T(0.5f);\n"
    for size in (2, 3, 4):
        lanes = [", ".join(f"{v}[4 * i + {lane}]" for lane in range(size)) for v in "ab"]
        body += f"{{ vec<T, {size}> p({lanes[0]}), q({lanes[1]});\n"
        for name, arguments in functions + plain + ([("cross", "pq")] if size == 3 else []):
            call = f"{name}({', '.join(arguments)})"
            for space in ("metal::", *(("precise::", "metal::fast::") if (name, arguments) in functions else ())):
                body += f"right = right && all({call} == {space}{call});\n"
        body += "}\n"
    got = run(body + "o[i] = right;", {"a": a, "b": b}, {"o": ((8,), np.bool_)}, 8,
              template=[("T", np.dtype(kind.dtype))])[0]  # fmt: skip
    assert got.all()


def test_calls_of_vectors_do_not_find_what_is_not_metals():
    """A body's own functions of vectors have no rivals in the library's inner namespace."""
    header = "".join(
        f"template <class T, int N> T {name}(vec<T, N> v) {{ return v.x + {number}; }}\n"
        for number, name in enumerate(["widen", "largest_component", "to_bool", "convert", "magnitude"])
    )
    body = "float2 v(x[i], 0); o[i] = widen(v) + largest_component(v) + to_bool(v) + convert(v) + magnitude(v);"
    x = np.arange(8, dtype=np.float32)
    assert np.array_equal(run(body, {"x": x}, {"o": ((8,), np.float32)}, 8, header=header)[0], 5 * x + 10)
    x = x.astype(np.float16)
    body = "half2 v(x[i], 1); static_assert(is_same_v<decltype(dot(v, v)), half>); o[i] = dot(v, v);"
    assert np.array_equal(run(body, {"x": x}, {"o": ((8,), np.float16)}, 8)[0], x * x + 1)


def test_not():
    """A function in Metal's table, an operator's other spelling in C++: the same either way."""
    x = np.array([True, False, True, True, False, False, True, False])
    body = "o[i] = not(x[i]); bool2 v = not(bool2(x[i], true)); o[i + 8] = v.x; o[i + 16] = v.y;"
    got = run(body, {"x": x}, {"o": ((3, 8), np.bool_)}, 8)[0]
    assert np.array_equal(got, [~x, ~x, np.zeros(8, np.bool_)])


# ---- MLX's functions


def test_complex_log1p():
    size = 10.0 ** RNG.uniform(-12, 12, 400)
    z = (size * np.exp(1j * RNG.uniform(-np.pi, np.pi, 400))).astype(np.complex64)
    # |1 + z| near 1, z near -1, zeros.
    circle = (np.exp(1j * RNG.uniform(-np.pi, np.pi, 200)) - 1).astype(np.complex64)
    z = np.concatenate([z, circle, np.array([0, 1e-30, 1e-30j, -1 + 1e-6j, -1 - 1e-3, 3e38 + 3e38j], np.complex64)])
    got = run("o[i] = log1p(z[i]);", {"z": z}, {"o": (z.shape, np.complex64)}, z.size)[0]
    for argument, result in zip(z, got, strict=True):
        with mpmath.workdps(60):
            exact = mpmath.log(1 + mpmath.mpc(complex(argument)))
        for part, right in ((result.real, exact.real), (result.imag, exact.imag)):
            assert abs(part - float(right)) <= 4e-7 * abs(float(right)) + 2e-45, argument


def test_a_header_may_define_mlx_functions_itself():
    x = np.linspace(-1, 1, 8, dtype=np.float32)
    header = """
      float erf(float x) { return x + 1; }
      template <typename T> T expm1(T x) { return x + 2; }
      inline float erfinv(float x) { return x + 3; }
      METAL_FUNC float hypot(float x, float y) { return x - y; }
      float lerp(float a, float b, float t) { return a + t * (b - a); }
      float degrees(float x) { return x + 4; }
    """
    body = """
      o[6 * i] = erf(x[i]), o[6 * i + 1] = expm1(x[i]), o[6 * i + 2] = erfinv(x[i]), o[6 * i + 3] = hypot(x[i], 1.0f);
      o[6 * i + 4] = lerp(x[i], 1.0f, 0.5f), o[6 * i + 5] = degrees(x[i]);"""
    got = run(body, {"x": x}, {"o": ((8, 6), np.float32)}, 8, header=header)[0]
    expected = np.stack([x + 1, x + 2, x + 3, x - 1, x + (1 - x) / 2, x + 4], axis=1)
    assert np.allclose(got, expected, atol=1e-6)


def test_powers_that_are_exact():
    """Whole powers whose results are floats are those floats."""
    cases = [(x, y) for x in range(1, 40) for y in range(-6, 24) if (Fraction(x) ** y).limit_denominator(2**20) == x**y]
    cases = [(x, y) for x, y in cases if float(np.float32(float(x) ** y)) == float(x) ** y]
    exact = [(x, y) for x, y in cases if Fraction(float(np.float32(float(x) ** y))) == Fraction(x) ** y]
    assert len(exact) > 200
    x, y = (np.array(column, np.float32) for column in zip(*exact, strict=True))
    body = "o[i] = pow(x[i], y[i]); o[i + n[0]] = exp2(y[i]); o[i + 2 * n[0]] = log2(exp2(y[i]));"
    inputs = {"x": x, "y": y, "n": np.array([x.size], np.int32)}
    got = run(body, inputs, {"o": ((3, x.size), np.float32)}, x.size)[0]
    assert got[0].tolist() == [float(a) ** float(b) for a, b in exact]
    assert got[1].tolist() == [2.0**b for _, b in exact]
    assert got[2].tolist() == [float(b) for _, b in exact]
