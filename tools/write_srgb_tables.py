#!/usr/bin/env python3
"""Writes src/device/math/srgb_tables.h: the two tables by which pack_… and unpack_… convert sRGB.

The transfer function is that of the Metal specification, 8.7.7, evaluated to 200 bits. With ``--check`` nothing is
written; the exit status says whether the file is what would be written.
"""

import sys
from pathlib import Path

import numpy as np
from mpmath import mp, mpf

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "src" / "device" / "math" / "srgb_tables.h"

HEAD = """\
// Written by tools/write_srgb_tables.py.
//
// sRGB as tables, so that results are exact and the same everywhere: powers would be near enough for the specification,
// but not correctly rounded.
namespace __kiln {

"""
LINEAR = """\
// The linear value of each 8-bit sRGB value, correctly rounded. Rounded once more to half, each is still the nearest.
"""
THRESHOLDS = """\
// The smallest float whose sRGB value rounds to at least the index: how many thresholds a number reaches is its 8-bit
// value. The first is no threshold.
"""

mp.prec = 200


def linear(srgb: mpf) -> mpf:
    if srgb <= mpf("0.04045"):
        return srgb / mpf("12.92")
    return ((srgb + mpf("0.055")) / mpf("1.055")) ** mpf("2.4")


def srgb(value: mpf) -> mpf:
    if value < mpf("0.0031308"):
        return mpf("12.92") * value
    return mpf("1.055") * value ** (1 / mpf("2.4")) - mpf("0.055")


def nearest(value: mpf) -> np.float32:
    guess = np.float32(float(value))
    candidates = [np.nextafter(guess, np.float32(-1)), guess, np.nextafter(guess, np.float32(2))]
    return min(candidates, key=lambda candidate: abs(mpf(float(candidate)) - value))


def threshold(index: int) -> np.float32:
    """The smallest float that becomes at least `index`, by the rule c * 255 + 0.5 without its fraction."""

    def reaches(value: np.float32) -> bool:
        return bool(srgb(mpf(float(value))) * 255 + mpf("0.5") >= index)

    value = nearest(linear((index - mpf("0.5")) / 255))
    while reaches(value):
        value = np.nextafter(value, np.float32(-1))
    while not reaches(value):
        value = np.nextafter(value, np.float32(2))
    return value


def spell(value: np.float32) -> str:
    mantissa, exponent = float(value).hex().split("p")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    return f"{mantissa}p{exponent}f"


def table(name: str, values: list[np.float32]) -> str:
    lines = [f"constexpr float {name}[256] = {{"]
    line = "   "
    for value in values:
        text = f" {spell(value)},"
        if len(line + text) > 120:
            lines.append(line)
            line = "   "
        line += text
    return "\n".join([*lines, line, "};\n"])


def text() -> str:
    of_srgb = [nearest(linear(mpf(byte) / 255)) for byte in range(256)]
    thresholds = [np.float32(0), *(threshold(index) for index in range(1, 256))]
    return (
        HEAD
        + LINEAR
        + table("linear_of_srgb", of_srgb)
        + "\n"
        + THRESHOLDS
        + table("srgb_thresholds", thresholds)
        + "\n}  // namespace __kiln\n"
    )


def main() -> int:
    made = text()
    if "--check" not in sys.argv[1:]:
        FILE.write_text(made)
    elif not FILE.exists() or FILE.read_text() != made:
        print(f"{FILE.relative_to(ROOT)} is not what tools/write_srgb_tables.py writes", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
