"""Random bodies that index memory with arbitrary numbers, on a GPU and under compute-sanitizer."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from gpu import needs_gpu

pytest.importorskip("torch", reason="PyTorch is not installed")

pytestmark = needs_gpu

SEEDS = 300  # of which 240 are Metal


def sanitizer():
    places = [shutil.which("compute-sanitizer"), "/usr/local/cuda/bin/compute-sanitizer"]
    return next((place for place in places if place and os.access(place, os.X_OK)), None)


@pytest.mark.parametrize("first", range(0, SEEDS, 50))
def test_random_bodies(first):
    from random_memory_check import compare_on_gpu

    problems = [f"seed {seed}: {wrong}" for seed, _, wrong in compare_on_gpu(first, first + 50) if wrong]
    assert not problems, "\n".join(problems)


@pytest.mark.skipif(sanitizer() is None, reason="no compute-sanitizer")
def test_sanitizer_finds_nothing():
    tool = Path(__file__).with_name("random_memory_check.py")
    done = subprocess.run(
        [sanitizer(), "--tool", "memcheck", "--error-exitcode", "9", sys.executable, tool, "0", str(SEEDS), "--gpu"],
        capture_output=True,
        text=True,
        timeout=3000,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
