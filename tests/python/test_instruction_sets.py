"""Every body gives the same bits with every instruction set (docs/language.md 4.2)."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from launch_bodies import BODIES, launch_numpy

TESTS = Path(__file__).parent.parent


def results() -> dict[str, list[np.ndarray]]:
    """The outputs of every body."""
    return {body.name: launch_numpy(body, list(body.inputs().values())) for body in BODIES.values()}


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """The same bits; a NaN counts as any other."""
    if a.dtype.kind == "c":
        return same(a.real, b.real) and same(a.imag, b.imag)
    bits = f"u{a.dtype.itemsize}"
    equal = np.ascontiguousarray(a).view(bits) == np.ascontiguousarray(b).view(bits)
    return bool(np.all(equal | ((a != a) & (b != b))))


# sse2 has no instructions for rounding, fused multiplication and conversion of halves; avx2 no masks.
@pytest.mark.parametrize("isa", ["sse2", "avx2"])
def test_an_instruction_set_gives_the_same_bits(isa, own_results):
    program = (
        "import pickle, sys; sys.path[:0] = sys.argv[1:]; import test_instruction_sets as t;"
        "sys.stdout.buffer.write(pickle.dumps(t.results()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(TESTS), str(TESTS / "python")],
        env={**os.environ, "KILN_CPU_ISA": isa},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    theirs = pickle.loads(done.stdout)
    assert theirs.keys() == own_results.keys()
    different = [
        name
        for name, outputs in own_results.items()
        if not all(same(a, b) for a, b in zip(outputs, theirs[name], strict=True))
    ]
    assert different == []


@pytest.fixture(scope="module")
def own_results():
    return results()
