"""What math modes other than safe take from the processor: at present `rsqrt`, within two units in the last place."""

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from approximate_roots import MODES, arguments, check, kernel_of


def roots() -> np.ndarray:
    """By mode."""
    x = arguments()
    call: dict[str, Any] = {"output_shapes": [(5, x.size)], "output_dtypes": ["float32"]}
    call |= {"grid": (x.size, 1, 1), "threadgroup": (256, 1, 1)}
    return np.stack([kernel_of(mode)(inputs=[x], **call)[0] for mode in MODES])


@pytest.fixture(scope="module", params=[("scalar", "avx512"), ("simd", "avx2"), ("simd", "avx512")], ids=" with ".join)
def roots_on_an_engine(request) -> np.ndarray:
    """With the instruction set, or the best that there is below it."""
    engine, isa = request.param
    program = (
        "import pickle, sys; sys.path.insert(0, sys.argv[1]);"
        "import test_approximations as t; sys.stdout.buffer.write(pickle.dumps(t.roots()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(Path(__file__).parent)],
        env={**os.environ, "KILN_CPU_ENGINE": engine, "KILN_CPU_ISA": isa},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    result: np.ndarray = pickle.loads(done.stdout)
    return result


@pytest.mark.parametrize("mode", MODES)
def test_rsqrt_is_within_two_units(mode, roots_on_an_engine):
    check(mode, roots_on_an_engine[MODES.index(mode)])
