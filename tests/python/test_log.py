"""KILN_LOG: what Kiln writes of its work to standard error, word for word."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent

PROGRAM = """
import kiln, numpy as np
kernel = kiln.metal_kernel("scale", ["x"], ["y"], "uint i = thread_position_in_grid.x; y[i] = x[i] * 2;")
x = np.ones((32, 32), np.float32)
call = dict(output_shapes=[(1024,)], output_dtypes=["float32"], grid=(1024, 1, 1), threadgroup=(256, 1, 1))
kernel(inputs=[x], **call)
kernel(inputs=[x.T], init_value=0, **call)
"""
LAUNCH = "kiln[launch]: scale: cpu, simd engine, grid 1024x1x1, threadgroup 256x1x1, 1 output "
has_avx2 = "avx2" in Path("/proc/cpuinfo").read_text()


def lines(program: str = PROGRAM, **settings: str) -> list[str]:
    """What the program writes, with ID for the identities of machine code, LEVEL for the processor's and N for times."""
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, env={**os.environ, **settings}
    )
    assert done.stdout == ""
    text = re.sub(r"\b[0-9a-f]{64}\b", "ID", done.stderr)
    text = re.sub(r"\b\d+\.\d{3} ms", "N ms", text)
    return re.sub(r"x86-64-v\d", "LEVEL", text).splitlines()


def test_nothing_is_logged_by_default():
    assert lines() == []


@pytest.mark.skipif(not has_avx2, reason="the processor has no AVX2")
def test_launches_are_logged():
    assert lines(KILN_LOG="launch") == [
        LAUNCH + "not filled, 0 inputs copied, ran in N ms",
        LAUNCH + "filled with init_value, 1 input copied, ran in N ms",
    ]


@pytest.mark.skipif(not has_avx2, reason="the processor has no AVX2")
def test_cache_events_are_logged(tmp_path):
    settings = {"KILN_LOG": "cache", "KILN_CACHE": "on", "KILN_CACHE_DIR": str(tmp_path / "cache")}
    compiled = [
        "kiln[cache]: scale: compiling ID for LEVEL",
        "kiln[cache]: scale: compiled ID in N ms, simd engine: the default",
    ]
    hit = "kiln[cache]: scale: memory hit"
    miss = "kiln[cache]: scale: memory miss, any shapes"
    assert lines(**settings) == [
        miss,
        "kiln[cache]: scale: disk miss ID",
        *compiled,
        "kiln[cache]: scale: disk store ID",
        hit,
    ]
    assert lines(**settings) == [miss, "kiln[cache]: scale: disk hit ID", hit]
    (entry,) = (path for path in (tmp_path / "cache").rglob("*") if re.fullmatch("[0-9a-f]{64}", path.name))
    entry.write_bytes(entry.read_bytes()[:-1])
    assert lines(**settings) == [
        miss,
        f"kiln[cache]: scale: disk refusal ID: {entry.parent}/ID is damaged",
        *compiled,
        "kiln[cache]: scale: disk store ID",
        hit,
    ]
    off = "KILN_CACHE is off"
    assert lines(**settings | {"KILN_CACHE": "off"}) == [
        miss,
        f"kiln[cache]: scale: disk refusal ID: {off}",
        *compiled,
        f"kiln[cache]: scale: not stored on disk: {off}",
        hit,
    ]


def test_failed_compilations_and_shared_code_are_logged():
    program = """
import kiln, numpy as np
call = dict(inputs=[], output_shapes=[(1,)], output_dtypes=["float32"], grid=(1, 1, 1), threadgroup=(1, 1, 1))
try:
    kiln.metal_kernel("wrong", [], ["y"], "y[0] = z;")(**call)
except kiln.CompileError:
    pass
for _ in range(2):
    kiln.metal_kernel("one", [], ["y"], "y[0] = 1;")(**call)
"""
    found = lines(program, KILN_LOG="cache", KILN_CPU_ENGINE="scalar")
    off = "KILN_CACHE is off"
    assert found == [
        "kiln[cache]: wrong: memory miss, any shapes",
        f"kiln[cache]: wrong: disk refusal ID: {off}",
        "kiln[cache]: wrong: compiling ID for LEVEL",
        "kiln[cache]: wrong: not compiled, after N ms",
        "kiln[cache]: one: memory miss, any shapes",
        f"kiln[cache]: one: disk refusal ID: {off}",
        "kiln[cache]: one: compiling ID for LEVEL",
        "kiln[cache]: one: compiled ID in N ms, scalar engine: KILN_CPU_ENGINE asks for it",
        f"kiln[cache]: one: not stored on disk: {off}",
        "kiln[cache]: one: memory miss, any shapes",
        "kiln[cache]: one: memory hit, by another kernel with the same text",
    ]
