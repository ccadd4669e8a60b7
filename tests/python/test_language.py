"""What is not Metal, or not supported: refused by name, at its line, in the words of the language."""

import re

import kiln
import pytest


def first_problem(error, what, source, header=""):
    """Where and what it is; behind it come that line and a caret (test_errors.py)."""
    kernel = kiln.metal_kernel(name="refused", input_names=[], output_names=["out"], source=source, header=header)
    with pytest.raises(error) as raised:
        kernel(inputs=[], output_shapes=[(8,)], output_dtypes=["float32"], grid=(1, 1, 1), threadgroup=(1, 1, 1))
    assert "__kiln" not in str(raised.value)
    first, problem, *_ = str(raised.value).splitlines()
    assert first == f"[metal_kernel] `refused` {what}."
    return problem


UNSUPPORTED = {
    "texture": ("texture2d<float> t;", "", "source:1:1: error: 'texture2d': textures are not supported"),
    "sampler": ("constexpr sampler s;", "", "source:1:11: error: 'sampler': samplers are not supported"),
    "function constant": (
        "out[0] = K;", "constant int K [[function_constant(0)]];", "header:1:18: error: 'function_constant': function constants are not supported"
    ),
    "destructor beside a barrier": (
        "Guard g;\nthreadgroup_barrier(mem_flags::mem_none);",
        "struct Guard {\n  ~Guard() thread { }\n};",
        "header:2:3: error: '~Guard': destructors are not supported where threads wait for one another",
    ),
    "MLX's steel headers": (
        "", '#include "mlx/backend/metal/kernels/steel/gemm/gemm.h"', "header:1:1: error: '#include <mlx/backend/metal/kernels/steel/gemm/gemm.h>': this header is not supported"
    ),
    "static variable that a thread would initialise": (
        "",
        "float f(float x) {\n  static const float k = x;\n  return k;\n}\nfloat g() { return f(1); }",
        "header:2:22: error: 'k': a static variable of a function must have a value that is known while compiling",
    ),
    "more private memory than there is": (
        "float a[70000];\nfor (int i = 0; i < 70000; ++i) a[i] = i;\nout[0] = a[int(out[1])];",
        "",
        "error: a thread's private variables take 280000 bytes; the CPU has 262144 for each",
    ),
    "overloads that differ in the address space and in more": (
        "",
        "int f(device int* p) { return 1; }\nint f(threadgroup int* p) { return 2; }",
        "header:2:1: error: overloads of 'f' that differ in the address space and in what they do are not supported",
    ),
    "specializations that differ in the address space and in more": (
        "",
        "template <typename P> struct S { static int f() { return 0; } };\n"
        "template <> struct S<device int*> { static int f() { return 1; } };\n"
        "template <> struct S<threadgroup int*> { static int f() { return 2; } };",
        "header:3:1: error: specializations of 'S' that differ in the address space and in what they do are not supported",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_unsupported(name):
    source, header, expected = UNSUPPORTED[name]
    assert first_problem(kiln.UnsupportedError, "uses what is not supported", source, header) == expected


def test_destructor_where_nobody_waits():
    kernel = kiln.metal_kernel(
        name="guard", input_names=[], output_names=["out"],
        header="struct Guard {\n  device float* to;\n  ~Guard() { *to += 1; }\n};",
        source="for (int i = 0; i < 5; ++i) { Guard g{out}; if (i == 3) continue; out[0] += 10; }",
    )  # fmt: skip
    out = kernel(
        inputs=[], output_shapes=[(1,)], output_dtypes=["float32"], grid=(1, 1, 1), threadgroup=(1, 1, 1), init_value=0
    )
    assert out[0][0] == 45


def test_more_private_memory_than_there_is_where_threads_wait():
    source = (
        "float a[70000];\nfor (int i = 0; i < 70000; ++i) a[i] = i;\nthreadgroup_barrier(mem_flags::mem_none);\n"
        "out[0] = a[int(out[1])];"
    )
    message = first_problem(kiln.UnsupportedError, "uses what is not supported", source)
    found = re.search(r"error: a thread's private variables take (\d+) bytes; the CPU has 262144 for each", message)
    # What else a waiting thread keeps depends on the instruction set.
    assert found and 280000 <= int(found[1]) < 281000


INVALID = {
    "initial value in threadgroup memory": (
        "threadgroup float a[2] = {1, 2};",
        "source:1:24: error: a variable in threadgroup memory cannot have an initial value",
    ),
    "initial value in braces": (
        "threadgroup int b[2], a{1};",
        "source:1:24: error: a variable in threadgroup memory cannot have an initial value",
    ),
    "vectors of different sizes": (
        "float2 a(1); float3 b(2);\nfloat3 c = a + b;",
        "source:2:14: error: invalid operands to binary expression ('float2' and 'float3')",
    ),
    "vectors of different types": (
        "float4 a(1); half4 b(2);\na += b;", "source:2:3: error: no viable overloaded '+='"
    ),
    "vector for number": ("out[0] = float2(1);", "source:1:10: error: assigning to 'float' from incompatible type 'float2'"),
    "shorter vector": ("float4 a(1);\nfloat2 b = a;", "source:2:8: error: no viable conversion from 'float4' to 'float2'"),
    "implicit conversion of a vector": ("float4 a(1);\nint4 b = a;", "source:2:6: error: no viable conversion from 'float4' to 'int4'"),
    "component that is not there": ("float2 a(1);\nout[0] = a.z;", "source:2:12: error: the vector has no such component"),
    "component that is not there by its second name": (
        "float2 a(1);\nout[0] = a.b;", "source:2:12: error: the vector has no such component"
    ),
    "swizzle that is not there": ("float2 a(1);\nout[0] = a.zx.x;", "source:2:12: error: the vector has no such component"),
    "no component": ("float4 a(1);\nout[0] = a.q;", "source:2:12: error: no member named 'q' in 'float4'"),
    "mixed names of components": ("float4 a(1);\nout[0] = a.xg.x;", "source:2:12: error: no member named 'xg' in 'float4'"),
    "component written twice": ("float4 a(1);\na.xx = float2(1);", "source:2:6: error: vector is not assignable (contains duplicate components)"),
    "too few components": ("float4 a(1, 2, 3);", "source:1:8: error: the arguments do not make up the vector's components"),
    "remainder of floats": ("float4 a(1);\na = a % 2;", "source:2:7: error: invalid operands to binary expression ('float4' and 'int')"),
    "bits of floats": ("float2 a(1);\na = ~a;", "source:2:5: error: invalid argument type 'float2' to unary expression"),
    "vector as condition": ("float4 a(1);\nif (a == a) out[0] = 1;", "source:2:5: error: value of type 'bool4' is not contextually convertible to 'bool'"),
    "as_type of another size": ("out[0] = as_type<float>(half(1));", "source:1:10: error: as_type needs types of the same size"),
    "atomic of half": ("threadgroup atomic<half> a;", "source:1:26: error: Metal has atomic<T> for int, uint, bool, float and ulong"),
    "function that is not defined": ("int f(int);\nout[0] = f(2);", "source:1:5: error: 'f' is used but not defined"),
    "array of variable length": (
        "int n = int(out[0]);\nfloat a[n];\nout[n] = a[0];", "source:2:7: error: 'a': an array's length must be constant"
    ),
    "array of variable length in a lambda": (
        "auto f = [&](int n) { float a[n + 1]; return a[n]; };\nout[0] = f(3);",
        "source:1:29: error: 'a': an array's length must be constant",
    ),
    "memory from a function": (
        "int n = int(out[0]);\nif (n > 3) out[1] = *(thread float*)__builtin_alloca(16);",
        "source:2:37: error: private memory must be variables of constant size",
    ),
    "second argument of a sum": ("out[0] = simd_sum(out[0], 5);", "source:1:10: error: no matching function for call to 'simd_sum'"),
    "third argument of a shuffle": (
        "out[0] = simd_shuffle(out[0], 1, 2);", "source:1:10: error: no matching function for call to 'simd_shuffle'"
    ),
    "second argument of a barrier": (
        "threadgroup_barrier(mem_flags::mem_none, 0);",
        "source:1:1: error: no matching function for call to 'threadgroup_barrier'",
    ),
}  # fmt: skip


_TEMPORARY = "error: expression is not assignable"
_REPEATED = "error: vector is not assignable (contains duplicate components)"
_ADDRESS = "error: address of vector element requested"
_REFERENCE = "error: non-const reference cannot bind to vector element"
_READ_ONLY = "error: read-only variable is not assignable; inputs and constants cannot be written"
_PASS_VARIABLE = "; a component of a vector cannot be an argument that a function writes to: pass a variable"

# Statements with a `float4 v`, and the column of what is wrong.
INVALID_WRITES = {
    # Temporaries: what is written to them would be lost.
    "(v + 1).x = 3;": (11, _TEMPORARY),
    "(v + 1).xyz.y = 3;": (15, _TEMPORARY),
    "fabs(v).x += 3;": (11, _TEMPORARY),
    "fabs(v).wz++;": (11, _TEMPORARY),
    "--fabs(v).x;": (1, _TEMPORARY),
    "fabs(v)[1] = 3;": (12, _TEMPORARY),
    "fabs(v).xyz[1] = 3;": (16, _TEMPORARY),
    "fabs(v) = 3;": (9, _TEMPORARY),
    "fabs(v) += 3;": (9, _TEMPORARY),
    "packed_float3(v.xyz).y = 2;": (24, _TEMPORARY),
    "packed_float3(v.xyz)[1] = 2;": (25, _TEMPORARY),
    "(float2x2(1) * 2)[0].x = 3;": (24, _TEMPORARY),
    "(float2x2(1) * 2).columns[0].y = 3;": (32, _TEMPORARY),
    "move(v).x = 1;": (11, _TEMPORARY),
    "v.xxy[1] = 2;": (10, _TEMPORARY),
    "auto&& r = v.xy; r = 5;": (12, _REFERENCE),
    "auto&& r = v.wzyx.x; r = 5;": (12, _REFERENCE),
    "auto&& r = v.zyx[1]; r = 5;": (12, _REFERENCE),
    "float&& r = v.y; r = 5;": (13, _REFERENCE),
    "thread float& r = v.x;": (15, _REFERENCE),
    "thread float2& r = v.xy;": (16, _REFERENCE),
    # Components that are named twice, or are not there.
    "v.xx += 1;": (6, _REPEATED),
    "v.xx++;": (5, _REPEATED),
    "v.xyz.yy = 1;": (10, _REPEATED),
    "v.xxy.z = 2;": (9, _REPEATED),
    "v.xxyy.xy.y = 2;": (13, _REPEATED),
    "packed_float3 p = v.xyz; p.zz = 1;": (31, _REPEATED),
    "v.xy.z = 1;": (6, "error: the vector has no such component"),
    "v.xyz.xy.z += 1;": (10, "error: the vector has no such component"),
    "float2 u; u.xyz.x = 1;": (13, "error: the vector has no such component"),
    "v.wzyx.x = half4(1);": (12, "error: no viable conversion from 'half4' to 'float'"),
    "v.wzyx.xy = half2(1);": (13, "error: no viable conversion from 'half2' to 'float2'"),
    # Constants.
    "const float4 c = 1; c.x = 2;": (25, "error: cannot assign to variable 'c' with const-qualified type 'const float4'"),
    "const float4 c = 1; c.xyz.x++;": (28, "error: cannot assign to variable 'c' with const-qualified type 'const float4'"),
    "const packed_half2 c = packed_half2(v.xy); c.yx *= 2;": (
        49, "error: cannot assign to variable 'c' with const-qualified type 'const packed_half2'"
    ),
    "auto f = [=]() { v.x = 1; }; f();": (22, _READ_ONLY),
    "((const device float4*)out)[0].x = 2;": (34, _READ_ONLY),
    "((const device float4*)out)->xyz[1] = 2;": (37, _READ_ONLY),
    "constant float4* c = (constant float4*)out; c->x -= 1;": (50, _READ_ONLY),
    # What needs a variable.
    "thread float* p = &v.x;": (19, _ADDRESS),
    "auto p = &v.xy;": (10, _ADDRESS),
    "auto p = &v.xyz.x;": (10, _ADDRESS),
    "auto p = &v.xyz[1];": (10, _ADDRESS),
    "packed_float3 p = v.xyz; auto q = &p.z;": (35, _ADDRESS),
    "float q = sincos(v.y, v.x);": (11, "error: no matching function for call to 'sincos'" + _PASS_VARIABLE),
    "float q = modf(2.5f, v.x);": (11, "error: no matching function for call to 'modf'" + _PASS_VARIABLE),
    "swap(v.x, v.y);": (1, "error: no matching function for call to 'swap'" + _PASS_VARIABLE),
    "swap(v.xy, v.zw);": (1, "error: no matching function for call to 'swap'" + _PASS_VARIABLE),
    "int4 e; frexp(1.0f, e.b);": (9, "error: no matching function for call to 'frexp'" + _PASS_VARIABLE),
    "auto f = [](thread float& a) { a = 1; }; f(v.zyx[2]);": (
        42, "error: no matching function for call to object of type 'lambda'" + _PASS_VARIABLE
    ),
    "float q = modf(v.x, 2.5f);": (11, "error: no matching function for call to 'modf'"),
}  # fmt: skip


@pytest.mark.parametrize("statement", INVALID_WRITES)
def test_invalid_writes(statement):
    column, expected = INVALID_WRITES[statement]
    assert (
        first_problem(kiln.CompileError, "does not compile", f"float4 v(1);\n{statement}\nout[0] = v.x;")
        == f"source:2:{column}: {expected}"
    )


@pytest.mark.parametrize("name", INVALID)
def test_invalid(name):
    source, expected = INVALID[name]
    assert first_problem(kiln.CompileError, "does not compile", source) == expected
