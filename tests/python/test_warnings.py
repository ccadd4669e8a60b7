"""The compiler's warnings about body and header, in `CompiledKernel.diagnostics` and in `python -m kiln show`."""

import os
import subprocess
import sys

import kiln
import numpy as np
import pytest


def warnings_of(source, header="", interface=kiln.metal_kernel):
    kernel = interface(name="warned", input_names=["x"], output_names=["y"], source=source, header=header)
    compiled = kernel.compile(
        inputs=[np.zeros((4, 4), np.float32)], output_shapes=[(4,)], output_dtypes=["float32"],
        grid=(4, 1, 1), threadgroup=(4, 1, 1),
    )  # fmt: skip
    assert all(d.severity in ("warning", "note") for d in compiled.diagnostics)
    return [(d.text, d.line, d.column, d.message) for d in compiled.diagnostics if d.severity == "warning"]


WARNED = {
    "comma in a subscript": ("int i = 1;\ny[0] = x[i, 0];", "source", 2, 10, "left operand of comma operator has no effect"),
    "assignment as condition": (
        "int i = 1;\nif (i = 3) y[0] = 1;", "source", 2, 7, "using the result of an assignment as a condition without parentheses"
    ),
    "unused comparison": ("float a = x[0];\na == 2;\ny[0] = a;", "source", 2, 3, "equality comparison result unused"),
    "unused value": ("y[0] = 1;\nx[0] + 1;", "source", 2, 6, "expression result unused"),
    "precedence": (
        "int a = int(x[0]);\nif (a & 1 == 0) y[0] = 1;", "source", 2, 7, "& has lower precedence than ==; == will be evaluated first"
    ),
    "number that does not fit": (
        "uchar b = 300;\ny[0] = b;", "source", 1, 11, "implicit conversion from 'int' to 'uchar' changes value from 300 to 44"
    ),
    "missing return": (
        "y[0] = f(1);", "header", 3, 1, "non-void function does not return a value in all control paths", "float f(int a) {\n  if (a) return 1;\n}"
    ),
    "template with two instances": (
        "y[0] = f<int>(1) + f<float>(2);", "header", 2, 14, "using the result of an assignment as a condition without parentheses",
        "template <class T> T f(T a) {\n  T b; if (b = a) return b;\n  return 0;\n}",
    ),
    "macro": (
        "int k = 0;\nSET(k);", "source", 2, 1, "using the result of an assignment as a condition without parentheses", "#define SET(a) if (a = 1) y[0] = a"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WARNED)
def test_warning(name):
    source, text, line, column, message, *header = WARNED[name]
    ((found_text, found_line, found_column, found_message),) = warnings_of(source, *header)
    assert (found_text, found_line, found_message) == (text, line, message)
    # Inside of a macro the column is that of its use or of its argument.
    assert found_column == column or name == "macro"


def test_warnings_of_cuda():
    source = "int i = 1;\nif (i = 3) y[0] = x[1, 0];"
    assert warnings_of(source, interface=kiln.cuda_kernel) == [
        ("source", 2, 7, "using the result of an assignment as a condition without parentheses"),
        ("source", 2, 21, "left operand of comma operator has no effect"),
    ]


QUIET = {
    "two counters": "for (int i = 0, j = 4; i < j; i++, j--) y[i] = j;",
    "address spaces": "threadgroup float t[4], *p = t; *p = 1; threadgroup float& r = t[0]; y[0] = *p + r; constant const float* c = nullptr; y[1] = c == nullptr;",
    "attributes of Metal": "struct S { float a [[user(a)]]; }; S s; s.a = 1; [[maybe_unused]] int k = 2; y[0] = s.a;",
    "infinities": "y[0] = INFINITY; y[1] = NAN; y[2] = isnan(y[1]);",
    "library": "half h = half(x[0]); y[0] = simd_sum(float(h)) + clamp(x[0], 0.0f, 1.0f) + float4(1).x + pow(x[1], 2.0f);",
}  # fmt: skip


@pytest.mark.parametrize("name", QUIET)
def test_no_warning(name):
    assert warnings_of(QUIET[name]) == []


def test_errors_come_without_warnings():
    kernel = kiln.metal_kernel(name="wrong", input_names=[], output_names=["y"], source="int i;\nif (i = 3) y[0] = z;")
    with pytest.raises(kiln.CompileError) as raised:
        kernel.compile(
            inputs=[], output_shapes=[(4,)], output_dtypes=["float32"], grid=(4, 1, 1), threadgroup=(4, 1, 1)
        )
    assert [(d.severity, d.line) for d in raised.value.diagnostics] == [("error", 2)]


def test_warnings_of_cached_code(tmp_path):
    """Of code from memory and from disk, with the file of the kernel that was compiled now."""
    program = (
        "import kiln, sys, pathlib\n"
        "for name in ('a.metal', 'b.metal'):\n"
        "    path = pathlib.Path(sys.argv[1]) / name\n"
        "    path.write_text('int i = 0;\\nif (i = 3) y[0] = 1;')\n"
        "    kernel = kiln.metal_kernel('k', [], ['y'], path)\n"
        "    call = dict(inputs=[], output_shapes=[(1,)], output_dtypes=['float32'], grid=(1, 1, 1), threadgroup=(1, 1, 1))\n"
        "    for found in (kernel.compile(**call), kernel.compile(**call)):\n"
        "        d, *notes = found.diagnostics\n"
        "        print(d.severity, pathlib.Path(d.file).name, d.line, d.source_line, len(notes))\n"
    )
    line = "warning {} 2 if (i = 3) y[0] = 1; 2\n"
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path)],
            env={**os.environ, "KILN_CACHE": "on", "KILN_CACHE_DIR": str(tmp_path / "cache")},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stdout == 2 * line.format("a.metal") + 2 * line.format("b.metal")


def test_show_prints_their_number(tmp_path):
    (tmp_path / "k.metal").write_text("int i = 0;\nif (i = 3) y[0] = 1;\ni == 2;\n")
    done = subprocess.run(
        [sys.executable, "-m", "kiln", "show", "k.metal", "--output", "y:float32:4"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.endswith("  warnings                          2\n")
    assert done.stderr == (
        "k.metal:2:7: warning: using the result of an assignment as a condition without parentheses\n"
        "k.metal:3:3: warning: equality comparison result unused\n"
    )
