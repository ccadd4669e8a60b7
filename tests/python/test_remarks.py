"""Remarks: why the compiler's optional passes did not fire, as users see them.

Remarks by themselves are tested below tests/compiler.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import kiln
import numpy as np
import pytest
from kiln import __main__ as command_line
from test_passes import BODIES

has_avx2 = "avx2" in Path("/proc/cpuinfo").read_text()
has_avx512 = all(f"avx512{part}" in Path("/proc/cpuinfo").read_text() for part in ("f", "bw", "dq", "vl"))
needs_avx2 = pytest.mark.skipif(not has_avx2, reason="the processor has no AVX2")

# By thread's own index, and at one that was loaded.
SCATTER = """
uint i = thread_position_in_grid.x;
uint k = uint(x[i]);
y[k] = 1;
y[i] = x[k];
"""
WITH = "" if has_avx512 else " lane by lane"


def compiled(source, grid=(1024, 1, 1), threadgroup=(256, 1, 1), **options):
    kernel = kiln.metal_kernel("body", ["x"], ["y"], source, **options)
    return kernel.compile(
        inputs=[np.zeros(1024, np.float32)],
        output_shapes=[(1024,)],
        output_dtypes=["float32"],
        grid=grid,
        threadgroup=threadgroup,
    )


@needs_avx2
def test_remarks_have_the_line_of_a_scattered_access():
    remarks = compiled(SCATTER).remarks()
    (store, load) = (one for one in remarks if one.name == "widen")
    assert str(store) == f"source:4: widen: scatter{WITH}: the store's stride from thread to thread is not known"
    assert str(load) == f"source:5: widen: gather{WITH}: the load's stride from thread to thread is not known"
    assert (store.name, store.text, store.line, store.file) == ("widen", "source", 4, "")
    assert store.message == f"scatter{WITH}: the store's stride from thread to thread is not known"
    assert repr(load) == f"<kiln.CompileRemark {load}>"


@needs_avx2
def test_remarks_name_the_file_of_a_body(tmp_path):
    path = tmp_path / "body.metal"
    path.write_text(SCATTER)
    (store, _) = (one for one in compiled(path).remarks() if one.name == "widen")
    assert (store.file, store.line) == (str(path), 4)
    assert str(store).startswith(f"{path}:4: widen: scatter")


@needs_avx2
def test_remarks_say_which_launches_are_too_narrow():
    def of(threads):
        remarks = compiled(BODIES["map"], grid=(1024, 1, 1), threadgroup=(threads, 1, 1)).remarks()
        return [str(one) for one in remarks if one.name == "thread-coarsening"]

    assert of(100) == [
        "thread-coarsening: not for this launch: threadgroups, and the grid, are not multiples of 32 threads in x"
    ]
    assert of(32) == ["thread-coarsening: not for this launch: threadgroups are not multiples of 64 threads in x"]


@pytest.mark.parametrize("name", BODIES)
def test_remarks_are_of_passes_that_there_are(name):
    kernel = compiled(BODIES[name])
    passes = {one.name for one in kernel.passes()}
    remarks = kernel.remarks()
    assert {one.name for one in remarks} <= passes
    assert len({str(one) for one in remarks}) == len(remarks)
    lines = BODIES[name].count("\n") + 1
    assert all(0 <= one.line <= lines for one in remarks)


def test_remarks_are_shown(tmp_path, capsys, monkeypatch):
    path = tmp_path / "body.metal"
    path.write_text(SCATTER)
    arguments = ["show", str(path), "--input", "x:float32:1024", "--output", "y:float32:1024"]
    arguments += ["--grid", "1024,1,1", "--threadgroup", "256,1,1", "--parts", "remarks"]
    expected = [
        str(one)
        for one in kiln.metal_kernel("body", ["x"], ["y"], path)
        .compile(
            inputs=[np.zeros(1024, np.float32)],
            output_shapes=[(1024,)],
            output_dtypes=["float32"],
            grid=(1024, 1, 1),
            threadgroup=(256, 1, 1),
        )
        .remarks()
    ]
    monkeypatch.setattr(sys, "argv", ["kiln", *arguments])
    assert command_line.main() == 0
    assert capsys.readouterr().out.splitlines() == expected
    monkeypatch.setattr(sys, "argv", ["kiln", *arguments, "--json"])
    assert command_line.main() == 0
    shown = json.loads(capsys.readouterr().out)["remarks"]
    assert [one["message"] for one in shown] == [
        text.partition(f"{one['name']}: ")[2] for text, one in zip(expected, shown, strict=True)
    ]
    assert all(set(one) == {"name", "message", "text", "line", "file"} for one in shown)


# Every body of test_passes.py, in a process of its own: its machine code, and what it logs.
CODE = """
import hashlib
from test_passes import BODIES, call_of, kernel_of
for name in BODIES:
    print(name, hashlib.sha256(kernel_of(name).compile(**call_of()).machine_code).hexdigest())
"""


def in_another_process(program=CODE, *arguments, **settings):
    paths = [str(Path(__file__).parent.parent.parent), str(Path(__file__).parent.parent), str(Path(__file__).parent)]
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **settings},
    )


@pytest.mark.parametrize("engine", ["scalar", "simd"])
def test_a_log_of_passes_changes_no_machine_code(engine):
    logged = in_another_process(KILN_LOG="passes", KILN_CPU_ENGINE=engine)
    assert logged.stdout == in_another_process(KILN_CPU_ENGINE=engine).stdout
    lines = logged.stderr.splitlines()
    assert all(line.startswith("kiln[passes]: ") for line in lines)
    for name in BODIES:
        own = [
            line.removeprefix(f"kiln[passes]: {name}: ") for line in lines if line.startswith(f"kiln[passes]: {name}: ")
        ]
        assert any(line.startswith("bounds-guards of __kiln_body in ") for line in own)
        assert own[-1].partition(" of ")[2].split()[1:3] == ["passes", "fired,"]


@needs_avx2
def test_a_log_of_passes_has_remarks():
    lines = in_another_process(KILN_LOG="passes").stderr.splitlines()
    remarks = [line for line in lines if line.startswith("kiln[passes]: branch: remark: ")]
    kernel = compiled(BODIES["branch"])
    assert remarks == [f"kiln[passes]: branch: remark: {one}" for one in kernel.remarks()]


def test_remarks_say_why_the_simd_engine_does_not_take_a_kernel():
    lines = in_another_process(KILN_LOG="passes", KILN_CPU_ISA="sse4").stderr.splitlines()
    refusal = "remark: widen: the SIMD engine does not take the kernel: it needs AVX2"
    assert [line for line in lines if "does not take" in line] == [
        f"kiln[passes]: {name}: {refusal}" for name in BODIES
    ]


# Products of matrices of floats and of halves, for a GPU that need not be there.
PRODUCTS = """
import sys
import kiln
import numpy as np
from gpu_code import code_of

BODY = '''
simdgroup_matrix<ELEMENT, 8, 8> a, b;
simdgroup_matrix<float, 8, 8> c = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
simdgroup_load(a, x, 8);
simdgroup_load(b, x, 8);
simdgroup_multiply_accumulate(c, a, b, c);
simdgroup_store(c, y, 8);'''
for element in ("float", "half"):
    options = {"math_mode": sys.argv[1]}
    kernel = kiln.metal_kernel(element, ["x"], ["y"], BODY.replace("ELEMENT", element), compile_options=options)
    x = np.zeros(64, "float32" if element == "float" else "float16")
    code_of(kernel, [x], [("float32", (64,))], [], "sm_90")
"""


def test_remarks_say_why_products_use_no_tensor_cores():
    def of(math_mode):
        lines = in_another_process(PRODUCTS, math_mode, KILN_LOG="passes").stderr.splitlines()
        return [line.removeprefix("kiln[passes]: ") for line in lines if "tensor cores" in line]

    needs = "remark: tensor-products: no tensor cores: they need a math mode other than safe, and sm_80 or later"
    assert of("safe") == [f"float: {needs}", f"half: {needs}"]
    assert of("relaxed") == [
        "float: remark: source:6: tensor-products: no tensor cores: they have no products of matrices of floats"
    ]
