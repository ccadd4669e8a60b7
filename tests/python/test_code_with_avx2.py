"""What the tests say of code for AVX-512 they say of code for AVX2, too, where the machine has both."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from kiln import _core

# Those that look at code. The last one's bodies take three quarters of the time.
TESTS = [
    ("atomic_lanes", "lane_sums", "prefetches", "reuse_barriers", "row_updates", "runs"),
    pytest.param(("tile_batches",), marks=pytest.mark.long),
]


@pytest.mark.skipif(_core.cpu_architecture() < "x86-64-v4", reason="without AVX-512 the tests themselves are of AVX2")
@pytest.mark.parametrize("names", TESTS, ids=lambda names: names[0])
def test_code_for_avx2_is_what_the_tests_say(names):
    files = [str(Path(__file__).parent / f"test_{name}.py") for name in names]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files],
        env={**os.environ, "TESTS_CPU_ISA": "avx2"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-4000:]
