"""Checks that a process of test_half_comparisons.py makes: halves compared, and the smaller or larger of them, for all
halves against one of each kind. What is expected is NumPy's, and by Metal's rule a NaN loses to a number."""

from collections.abc import Callable

import kiln
import numpy as np

ALL = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
# Zeros, subnormal numbers, numbers around 1, the largest, infinities, and NaNs of both signs, quiet and signalling.
KINDS = [0x0000, 0x0001, 0x03FF, 0x0400, 0x3800, 0x3C00, 0x7BFF, 0x7C00, 0x7C01, 0x7DFF, 0x7E00, 0x7FFF]
ONES = np.array([kind | sign for kind in KINDS for sign in (0, 0x8000)], np.uint16).view(np.float16)


def larger(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.where((a < b) | np.isnan(a), b, a)


def smaller(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.where((a > b) | np.isnan(a), b, a)


def limited(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return smaller(larger(a, np.full_like(a, -1)), b)


def largest(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    best = np.full_like(a, -np.inf)
    for k in range(3):
        for value in (a, b):
            best = np.where(np.roll(a, -k) == 0, best, larger(best, np.roll(value, -k)))
    return best


MIN_MAX: dict[str, tuple[str, Callable[[np.ndarray, np.ndarray], np.ndarray]]] = {
    "larger": ("out[i] = max(a[i], b[i]);", larger),
    "smaller": ("out[i] = min(a[i], b[i]);", smaller),
    "limited": ("out[i] = min(max(a[i], half(-1)), b[i]);", limited),
    "largest": (
        """
    half best = -HUGE_VALH;
    for (uint k = 0; k < 3; ++k) {
        uint at = (i + k) % n;
        if (a[at] == half(0)) continue;
        best = max(best, a[at]);
        best = max(best, b[at]);
    }
    out[i] = best;
    """,
        largest,
    ),
}
COMPARISONS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "a < b": np.less,
    "a <= b": np.less_equal,
    "a > b": np.greater,
    "a >= b": np.greater_equal,
    "a == b": np.equal,
    "a != b": np.not_equal,
    "!(a < b)": lambda a, b: ~np.less(a, b),
    "!(a >= b)": lambda a, b: ~np.greater_equal(a, b),
}


def run(name: str, body: str, inputs: dict[str, np.ndarray], dtype: str) -> np.ndarray:
    kernel = kiln.metal_kernel(name=name, input_names=list(inputs), output_names=["out"], source=body)
    (out,) = kernel(
        inputs=list(inputs.values()),
        output_shapes=[ALL.shape],
        output_dtypes=[dtype],
        grid=(ALL.size, 1, 1),
        threadgroup=(256, 1, 1),
    )
    return np.array(out)


def check_min_max(names: list[str]) -> list[str]:
    """Bits are compared, so that zeros have their sign; one NaN is any other."""
    for name in names:
        body, reference = MIN_MAX[name]
        for one in ONES:
            for a, b in ((ALL, np.full_like(ALL, one)), (np.full_like(ALL, one), ALL)):
                head = f"uint i = thread_position_in_grid.x; const uint n = {ALL.size};"
                out = run(name, head + body, {"a": a, "b": b}, "float16")
                expected = reference(a, b)
                same = (out.view(np.uint16) == expected.view(np.uint16)) | (np.isnan(out) & np.isnan(expected))
                assert same.all(), (name, one, ALL[~same][:4], out[~same][:4], expected[~same][:4])
    return names


def check_comparisons(names: list[str]) -> list[str]:
    """Of two halves, and with a number as a constant on either side: every other kind of number for each comparison."""
    for name in names:
        reference = COMPARISONS[name]
        first = list(COMPARISONS).index(name) // 2 % 2
        head = "uint i = thread_position_in_grid.x; half x = p[i], y = q[i];"
        for one in ONES[first::2]:
            others = np.full_like(ALL, one)
            constant = f"as_type<half>(ushort({int(one.view(np.uint16))}))"
            text = name.replace("a", "A").replace("b", "B")
            body = f"""{head}
                out[i] = ({text.replace("A", "x").replace("B", "y")} ? 1 : 0)
                    | ({text.replace("A", "x").replace("B", constant)} ? 2 : 0)
                    | ({text.replace("A", constant).replace("B", "x")} ? 4 : 0);"""
            out = run("comparison", body, {"p": ALL, "q": others}, "uint8")
            expected = reference(ALL, others) * 3 + reference(others, ALL) * 4
            np.testing.assert_array_equal(out, expected, err_msg=f"{name} {one}")
    return names
