"""The kernels that `make bench-engines` measures are right, on both engines and as C++ by hand; at small sizes, without a
clock."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench import engines, kernels


@pytest.mark.parametrize("name", kernels.PROBLEMS)
def test_a_kernel_gives_its_reference(name):
    engines.check_small(name, None)


def has_avx2() -> bool:
    return " avx2 " in Path("/proc/cpuinfo").read_text()


@pytest.mark.skipif(not has_avx2(), reason="the processor has no AVX2")
def test_the_simd_engine_takes_all_of_them():
    program = (
        "from bench import engines, kernels\nprint({engines.check_small(name, None) for name in kernels.PROBLEMS})"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "KILN_CPU_ENGINE": "simd"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("{'simd'}\n", "")


@pytest.mark.skipif(not has_avx2(), reason="the processor has no AVX2")
def test_cpp_by_hand_gives_the_references(tmp_path):
    if not engines.compilers():
        pytest.skip("there is no C++ compiler")
    library, _ = engines.compile_by_hand(tmp_path, "avx2")
    for name in kernels.PROBLEMS:
        engines.check_small(name, engines.ByHand(library))
