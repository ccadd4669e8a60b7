"""What cannot be in threadgroup memory: refused by name, at its line, in the words of the language.

What can be is in tests/bodies/threadgroup_declarations.py and cuda_declarations.py.
"""

from typing import Any

import kiln
import numpy as np
import pytest

CALL: dict[str, Any] = {
    "inputs": [],
    "output_shapes": [(8,)],
    "output_dtypes": ["float32"],
    "grid": (1, 1, 1),
    "threadgroup": (1, 1, 1),
}


def refused(interface, error, what, source, header=""):
    kernel = interface(name="refused", input_names=[], output_names=["y"], source=source, header=header)
    with pytest.raises(error) as raised:
        kernel(**CALL)
    assert "__kiln" not in str(raised.value)
    assert "noderef" not in str(raised.value)
    first, problem, *_ = str(raised.value).splitlines()
    assert first == f"[{interface.__name__}] `refused` {what}."
    return problem


CONSTRUCTORS = {
    "initializer": ("struct Q { float v; Q() : v(1) {} };", "Q", "that of 'Q' initializes 'v'"),
    "initializer of zero": ("struct Q { float v; Q() : v(0) {} };", "Q", "that of 'Q' initializes 'v'"),
    "constexpr": ("struct Q { float v; constexpr Q() : v(2) {} };", "Q", "that of 'Q' initializes 'v'"),
    "default member initializer": ("struct Q { uint k; float v = 3; };", "Q", "that of 'Q' initializes 'v'"),
    "value initialization": ("struct Q { float v; Q() : v() {} };", "Q", "that of 'Q' initializes 'v'"),
    "statement": ("struct Q { float v; Q() { v = 1; } };", "Q", "that of 'Q' has statements"),
    "parameter": ("struct Q { float v; Q(float a = 1) {} };", "Q", "that of 'Q' has parameters"),
    "member": ("struct Q { float v; Q() : v(1) {} }; struct R { uint k; Q q; };", "R", "that of 'Q' initializes 'v'"),
    "array member": ("struct Q { float v = 1; }; struct R { Q q[2]; R() {} };", "R", "that of 'Q' initializes 'v'"),
    "base": ("struct Q { float v; Q() { v = 1; } }; struct R : Q { uint k; };", "R", "that of 'Q' has statements"),
    "union": ("union Q { float v; uint k; Q() : k(7) {} };", "Q", "that of 'Q' initializes 'k'"),
    "template": ("template <class T> struct Q { T v; Q() { v = T(1); } };", "Q<float>", "that of 'Q' has statements"),
    "for threadgroup memory": (
        "struct Q { float v; Q() thread {} Q() threadgroup { v = 1; } };",
        "Q",
        "that of 'Q' has statements",
    ),
    "for threadgroup memory, of a member": (
        "struct Q { float v; Q() {} Q() threadgroup : v(1) {} }; struct R { Q q; };",
        "R",
        "that of 'Q' initializes 'v'",
    ),
    "for threadgroup memory, deleted": (
        "struct Q { float v; Q() {} Q() threadgroup = delete; };",
        "Q",
        "that of 'Q' is deleted",
    ),
    "delegation": ("struct Q { float v; Q(int) {} Q() : Q(1) {} };", "Q", "that of 'Q' passes arguments to another"),
}


@pytest.mark.parametrize("name", CONSTRUCTORS)
def test_constructor_that_does_something(name):
    header, of, why = CONSTRUCTORS[name]
    column = len(f"threadgroup {of} ") + 1
    problem = refused(
        kiln.metal_kernel,
        kiln.UnsupportedError,
        "uses what is not supported",
        f"y[0] = 1;\nthreadgroup {of} t[4];\ny[1] = 1;",
        header,
    )
    assert (
        problem
        == f"source:2:{column}: error: 't': a variable in threadgroup memory cannot have a constructor that does something: {why}"
    )


@pytest.mark.parametrize("name", [name for name in CONSTRUCTORS if "threadgroup" not in name])
def test_constructor_of_cuda_that_does_something(name):
    header, of, why = CONSTRUCTORS[name]
    header = header.replace("uint", "unsigned").replace("Q(", "__device__ Q(").replace("R(", "__device__ R(")
    header = header.replace(": __device__ Q(", ": Q(").replace("constexpr __device__", "__device__ constexpr")
    problem = refused(
        kiln.cuda_kernel,
        kiln.UnsupportedError,
        "uses what is not supported",
        f"__shared__ {of} t[4];\ny[1] = 1;",
        header,
    )
    column = len(f"__shared__ {of} ") + 1
    assert (
        problem
        == f"source:1:{column}: error: 't': a __shared__ variable cannot have a constructor that does something: {why}"
    )


def test_constructor_in_a_function_of_the_header():
    header = "struct Q { float v; Q() : v(1) {} };\ninline float f() {\n  threadgroup Q t;\n  return t.v;\n}"
    problem = refused(kiln.metal_kernel, kiln.UnsupportedError, "uses what is not supported", "y[0] = f();", header)
    assert problem == (
        "header:3:17: error: 't': a variable in threadgroup memory cannot have a constructor that does something: "
        "that of 'Q' initializes 'v'"
    )


DESTRUCTORS = {
    "own": ("struct Q { float v; ~Q() { v = 1; } };", "Q", "Q"),
    "of a member": ("struct Q { float v; ~Q() { v = 1; } }; struct R { Q q; };", "R", "R"),
    "of a base": ("struct Q { float v; ~Q() { v = 1; } }; struct R : Q { ~R() {} };", "R", "R"),
}


@pytest.mark.parametrize("name", DESTRUCTORS)
def test_destructor_that_does_something(name):
    header, of, named = DESTRUCTORS[name]
    problem = refused(
        kiln.metal_kernel,
        kiln.UnsupportedError,
        "uses what is not supported",
        f"threadgroup {of} t;\nt.~{of}();",
        header,
    )
    assert problem == (
        f"source:1:15: error: 't': a variable in threadgroup memory cannot have a destructor that does something, as '{named}' has"
    )


def test_empty_destructor():
    kernel = kiln.metal_kernel(
        name="empty", input_names=[], output_names=["y"], header="struct Q { float v; ~Q() {} };",
        source="threadgroup Q t;\nt.v = 3;\ny[0] = t.v;",
    )  # fmt: skip
    assert kernel(**CALL)[0][0] == 3


INVALID = {
    "initial value of a list": ("threadgroup float t[2] = {1, 2};", "source:1:24: error: a variable in threadgroup memory cannot have an initial value"),
    "initial value in braces": ("threadgroup float t{1};", "source:1:20: error: a variable in threadgroup memory cannot have an initial value"),
    "initial value in parentheses": ("threadgroup float t(1);", "source:1:20: error: a variable in threadgroup memory cannot have an initial value"),
    "initial value of the second": ("threadgroup float *p = nullptr, t = 1;", "source:1:35: error: a variable in threadgroup memory cannot have an initial value"),
    "initial value by an alias": ("typedef threadgroup float tgf;\ntgf t = 1;", "source:2:7: error: a variable in threadgroup memory cannot have an initial value"),
    "initial value of a struct that is defined there": (
        "threadgroup struct { float v; } t = {1};", "source:1:35: error: a variable in threadgroup memory cannot have an initial value"
    ),
    "initial value of a pointer in threadgroup memory": (
        "threadgroup float t[4];\nthreadgroup float* threadgroup p = t;", "source:2:34: error: a variable in threadgroup memory cannot have an initial value"
    ),
    "member": ("struct S { threadgroup float v[4]; };\nS s;", "source:1:30: error: 'v': a member cannot be in threadgroup memory of its own"),
    "static member": ("y[0] = S::v[0];", "header:1:37: error: 'v': a member cannot be in threadgroup memory of its own", "struct S { static threadgroup float v[4]; };"),
    "parameter": ("y[0] = f(1);", "header:1:27: error: 'a': a parameter cannot be in threadgroup memory", "float f(threadgroup float a) { return a; }"),
    "result": ("y[0] = f();", "header:1:19: error: 'f': a function's result cannot be in threadgroup memory", "threadgroup float f() { return 1; }"),
    "array of variable length": ("int n = int(y[0]);\nthreadgroup float a[n];", "source:2:19: error: variable length array declaration cannot have 'static' storage duration"),
}  # fmt: skip


@pytest.mark.parametrize("name", INVALID)
def test_invalid(name):
    source, expected, *header = INVALID[name]
    assert refused(kiln.metal_kernel, kiln.CompileError, "does not compile", source, *header) == expected


INVALID_CUDA = {
    "initial value of a list": ("__shared__ float t[2] = {1, 2};", "source:1:23: error: a __shared__ variable cannot have an initial value"),
    "initial value in braces": ("__shared__ float t{1};", "source:1:19: error: a __shared__ variable cannot have an initial value"),
    "initial value of the second": ("__shared__ float t[4], *p = t;", "source:1:27: error: a __shared__ variable cannot have an initial value"),
    "parameter": ("y[0] = f(1);", "header:1:20: error: '__shared__' is for variables of functions", "__device__ float f(__shared__ float a) { return a; }"),
    "member": ("struct S { __shared__ float v[4]; };\nS s;", "source:1:12: error: '__shared__' is for variables of functions"),
    "function": ("y[0] = f();", "header:1:1: error: '__shared__' is for variables of functions", "__shared__ float f() { return 1; }"),
}  # fmt: skip


@pytest.mark.parametrize("name", INVALID_CUDA)
def test_invalid_cuda(name):
    source, expected, *header = INVALID_CUDA[name]
    assert refused(kiln.cuda_kernel, kiln.CompileError, "does not compile", source, *header) == expected


# Where Clang would drop the word.
LOST = {
    "cast of a value": (
        "y[0] = (float)y[1] + sizeof(int threadgroup (*)[2]) * 0; struct S {} threadgroup;",
        "source:1:70: error: 'threadgroup' is not supported here",
    ),
    "statement": ("threadgroup;", "source:1:1: error: 'threadgroup' is not supported here"),
    "label": ("threadgroup y[0] = 1;", None),
}


@pytest.mark.parametrize("name", LOST)
def test_address_space_that_is_not_understood(name):
    source, expected = LOST[name]
    kernel = kiln.metal_kernel(name="refused", input_names=[], output_names=["y"], source=source)
    with pytest.raises((kiln.UnsupportedError, kiln.CompileError)) as raised:
        kernel(**CALL)
    assert "noderef" not in str(raised.value)
    if expected:
        assert str(raised.value).splitlines()[1] == expected


# ---- Printing


def swap(source, header="#include <metal_logging>\n", n=64, **keywords):
    kernel = kiln.metal_kernel(
        name="log", input_names=["x"], output_names=["y"], source="uint i = thread_position_in_grid.x;\n" + source,
        header=header,
    )  # fmt: skip
    x = np.arange(n, dtype=np.float32)
    return kernel(
        inputs=[x], output_shapes=[(n,)], output_dtypes=["float32"], grid=(n, 1, 1), threadgroup=(32, 1, 1), **keywords
    )[0]


NOT_REACHED = {
    "condition": 'if (i == 70) os_log_default.log("i %d", int(i)); y[i] = x[i];',
    "barrier": 'if (i == 70) os_log_default.log("i %u", i); threadgroup_barrier(mem_flags::mem_none); y[i] = x[i];',
    "loop": 'for (uint k = 0; k < i % 8; ++k) if (x[i] < 0) os_log_default.log_error("%f %s", x[i], "s"); y[i] = x[i];',
    "object": 'os_log mine("com.example", "test"); if (x[i] < 0) mine.log_debug("none"); y[i] = x[i];',
    "vectors": 'float4 v = x[i]; if (v.x < 0) os_log_default.log_info("%f", v.x); y[i] = v.y;',
    "type": 'if (x[i] < 0) os_log_default.log_with_type(os_log_type_fault, "none"); y[i] = x[i];',
}


@pytest.mark.parametrize("name", NOT_REACHED)
def test_log_that_no_thread_comes_to(name):
    np.testing.assert_array_equal(swap(NOT_REACHED[name]), np.arange(64, dtype=np.float32))


REACHED = {
    "each thread": ('os_log_default.log("hi");\ny[i] = x[i];', "source:2:20"),
    "one thread": ('y[i] = x[i];\nif (i == 63) os_log_default.log("i %d", int(i));', "source:3:33"),
    "beside a barrier": (
        'threadgroup_barrier(mem_flags::mem_none);\ny[i] = x[i];\nif (i == 3) os_log_default.log_fault("%f", x[i]);',
        "source:4:38",
    ),
    "own object": ('y[i] = x[i];\nmine.log_info("one %u", i);', "source:3:15"),
    "type": ('y[i] = x[i];\nos_log_default.log_with_type(os_log_type_error, "hi");', "source:3:49"),
}


@pytest.mark.parametrize("name", REACHED)
def test_log_that_a_thread_comes_to(name):
    source, where = REACHED[name]
    header = '#include <metal_logging>\nconstant os_log mine("com.example", "test");\n'
    with pytest.raises(kiln.UnsupportedError) as raised:
        swap(source, header=header)
    first, problem, *_ = str(raised.value).splitlines()
    assert first == "[metal_kernel] `log` uses what is not supported."
    assert problem == f"{where}: error: 'os_log': printing is not supported"


def test_log_in_a_function_of_the_header():
    header = '#include <metal_logging>\nvoid check(float v) {\n  if (v > 5) os_log_default.log("%f", v);\n}\n'
    assert swap("check(x[i]); y[i] = x[i];", header=header, n=6)[5] == 5
    with pytest.raises(kiln.UnsupportedError, match=r"header:3:\d+: error: 'os_log': printing is not supported"):
        swap("check(x[i]); y[i] = x[i];", header=header)


PRINTF = {
    "statement": ('printf("hi");', "", "source:2:1"),
    "arguments": ('y[i] = x[i];\nif (i == 3) printf("%d\\n", int(i));', "", "source:3:13"),
    "namespace": ('metal::printf("hi");', "", "source:2:8"),
    "macro": ('LOG("hi");', "#define LOG(x) printf(x)", "source:2:1"),
    "header": ("f();", 'void f() { printf("hi"); }', "header:1:12"),
}


@pytest.mark.parametrize("name", PRINTF)
def test_printf(name):
    source, header, where = PRINTF[name]
    with pytest.raises(kiln.UnsupportedError) as raised:
        swap(source, header=header)
    assert str(raised.value).splitlines()[1] == f"{where}: error: 'printf': printing is not supported"


def test_own_printf():
    header = "template <class... T> void printf(const constant char*, T...) {}\n"
    np.testing.assert_array_equal(
        swap('printf("hi %d", 3); y[i] = x[i];', header=header), np.arange(64, dtype=np.float32)
    )


# ---- A whole kernel as body

WHOLE = "the body is a whole kernel; give only what its braces hold: Kiln writes the signature from `input_names` and `output_names`"
KERNELS = {
    "kernel": ("kernel void f(device float* y [[buffer(0)]], uint i [[thread_position_in_grid]]) { y[i] = 1; }", "source:1:1"),
    "attribute": ("[[kernel]] void f(device float* y) { y[0] = 1; }", "source:1:3"),
    "includes": ("#include <metal_stdlib>\nusing namespace metal;\n\nkernel void f(device float* y) { y[0] = 1; }", "source:4:1"),
    "template": ("template <typename T>\n[[kernel]] void f(device T* y) { y[0] = 1; }", "source:2:3"),
    "function before": ("float g() { return 1; }\nkernel void f(device float* y) { y[0] = g(); }", "source:2:1"),
}  # fmt: skip
CUDA_KERNELS = {
    "kernel": ("__global__ void f(float* y) { y[0] = 1; }", "source:1:1"),
    "extern C": ('extern "C" __global__ void f(float* y) {\n  y[0] = 1;\n}', "source:1:12"),
    "includes": ("#include <cuda_fp16.h>\n\n__global__\nvoid f(float* y)\n{ y[0] = 1; }", "source:3:1"),
    "bounds": ("__global__ void __launch_bounds__(64) f(float* y) { y[0] = 1; }", "source:1:1"),
    "function before": (
        "__device__ float g() { return 1; }\n__global__ void f(float* y) { y[0] = g(); }",
        "source:2:1",
    ),
}


@pytest.mark.parametrize("name", KERNELS)
def test_whole_kernel_as_body(name):
    source, where = KERNELS[name]
    assert refused(kiln.metal_kernel, kiln.CompileError, "does not compile", source) == f"{where}: error: {WHOLE}"


@pytest.mark.parametrize("name", CUDA_KERNELS)
def test_whole_kernel_of_cuda_as_body(name):
    source, where = CUDA_KERNELS[name]
    assert refused(kiln.cuda_kernel, kiln.CompileError, "does not compile", source) == f"{where}: error: {WHOLE}"


def test_kernels_in_the_header():
    for interface, header in (
        (kiln.metal_kernel, "kernel void f(device float* y [[buffer(0)]]) { y[0] = 1; }"),
        (kiln.cuda_kernel, "__global__ void f(float* y) { y[0] = 1; }"),
    ):
        kernel = interface(name="k", input_names=[], output_names=["y"], source="y[0] = 2;", header=header)
        assert kernel(**CALL)[0][0] == 2


def test_a_variable_that_is_not_constant_has_its_name_in_the_message():
    header = "float sum(int n) { float s = 0; for (int i = 0; i < n; ++i) s += 1.0f / (i + 1); return s; }\n"
    kernel = kiln.metal_kernel(
        name="k",
        input_names=["x"],
        output_names=["y"],
        header=header + "constant float harmonic = sum(10);\n",
        source="y[0] = harmonic + x[0];",
    )
    with pytest.raises(kiln.UnsupportedError) as error:
        kernel(
            inputs=[np.ones(1, np.float32)],
            output_shapes=[(1,)],
            output_dtypes=["float32"],
            grid=(1, 1, 1),
            threadgroup=(1, 1, 1),
        )
    assert str(error.value) == (
        "[metal_kernel] `k` uses what is not supported.\n"
        "error: variable 'harmonic' is neither constant nor in threadgroup memory"
    )
