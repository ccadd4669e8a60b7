"""What users get wrong, and the first line that they read: in their words and at their line, whatever Kiln writes around
them. tests/python/test_errors.py has more kinds of errors, with the lines and carets."""

import kiln
import numpy as np
import pytest

# A body, a header, and the first error.
WRONG = [
    (
        "uint i = thread_position_in_grid.x;\ny[i] = simd_sum(x[i], 1);",
        "",
        "source:2:8: error: no matching function for call to 'simd_sum'",
    ),
    (
        "uint i = thread_position_in_grid.x;\ny[i] = simd_sum();",
        "",
        "source:2:8: error: no matching function for call to 'simd_sum'; it takes 1 argument",
    ),
    (
        "uint i = thread_position_in_grid.x;\ny[i] = simd_sum(x);",
        "",
        "source:2:8: error: no matching function for call to 'simd_sum'",
    ),
    (
        "uint i = thread_position_in_grid.x;\ny[i] = select(x[i], 1.0f);",
        "",
        "source:2:8: error: no matching function for call to 'select'; it takes 3 arguments",
    ),
    ("y[0] = float4(1, 2, 3).x;", "", "source:1:8: error: the arguments do not make up the vector's components"),
    ("float2 v = float2(1, 2, 3);\ny[0] = v.x;", "", "source:1:12: error: excess elements in vector initializer"),
    ("float3 v(1);\ny[0] = v.w;", "", "source:2:10: error: the vector has no such component"),
    ("y[0] = __builtin_ia32_rdtsc();", "", "source:1:8: error: use of undeclared identifier '__builtin_ia32_rdtsc'"),
    ("float3 v(1);\ny[0] = v.foo;", "", "source:2:10: error: no member named 'foo' in 'float3'"),
    (
        "float3 v(1);\nfloat4 w = v;\ny[0] = w.x;",
        "",
        "source:2:8: error: no viable conversion from 'float3' to 'float4'",
    ),
    (
        "float3 v(1); half3 h(1);\ny[0] = (v + h).x;",
        "",
        "source:2:11: error: invalid operands to binary expression ('float3' and 'half3')",
    ),
    ("float3 v(1);\ny[0] = v;", "", "source:2:8: error: assigning to 'float' from incompatible type 'float3'"),
    (
        "float3 v(1);\nif (v > 0) y[0] = 1;",
        "",
        "source:2:5: error: value of type 'bool3' is not contextually convertible to 'bool'",
    ),
    (
        "uint i = thread_position_in_grid;\ny[i] = 1;",
        "",
        "source:1:6: error: no viable conversion from 'uint3' to 'uint'; it has three coordinates: write "
        "thread_position_in_grid.x",
    ),
    (
        "y[thread_position_in_threadgroup] = 1;",
        "",
        "source:1:2: error: no viable overloaded operator[] for type 'float *'; it has three coordinates: write "
        "thread_position_in_threadgroup.x",
    ),
    (
        "uint3 i = thread_position_in_grid;\nuint k = i;\ny[k] = 1;",
        "",
        "source:2:6: error: no viable conversion from 'uint3' to 'uint'",
    ),
    (
        "atomic_fetch_add_explicit(&y[0], 1.0f, memory_order_relaxed);",
        "",
        "source:1:1: error: no matching function for call to 'atomic_fetch_add_explicit'; it takes the address of an "
        "atomic, and outputs are atomics with `atomic_outputs=True`",
    ),
    (
        "uint i = thread_position_in_gird.x;\ny[i] = 1;",
        "",
        "source:1:10: error: use of undeclared identifier 'thread_position_in_gird'; did you mean 'thread_position_in_grid'?",
    ),
    (
        "y[0] = smid_sum(x[0]);",
        "",
        "source:1:8: error: use of undeclared identifier 'smid_sum'; did you mean 'simd_sum'?",
    ),
    (
        "y[0] = metal::smid_sum(x[0]);",
        "",
        "source:1:15: error: no member named 'smid_sum' in namespace 'metal'; did you mean 'simd_sum'?",
    ),
    (
        "y[0] = 1;",
        "thread_position_in_gridreturn;",
        "header:1:1: error: no template named 'thread_position_in_gridreturn'",
    ),
    ("y[0] = rsqurt(x[0]);", "", "source:1:8: error: use of undeclared identifier 'rsqurt'; did you mean 'rsqrt'?"),
    (
        "y[0] = metal::rsqurt(x[0]);",
        "",
        "source:1:15: error: no member named 'rsqurt' in namespace 'metal'; did you mean 'rsqrt'?",
    ),
    (
        "y[0] = fast::exq(x[0]);",
        "",
        "source:1:14: error: no member named 'exq' in namespace 'metal::fast'; did you mean 'exp'?",
    ),
    ("y[0] = clamp(x[0], 1);", "", "source:1:8: error: no matching function for call to 'clamp'; it takes 3 arguments"),
    ("y[0] = sin(float3(1));", "", "source:1:8: error: assigning to 'float' from incompatible type 'float3'"),
    (
        "y[0] = x_shape[0] + x_shaep[1];",
        "",
        "source:1:21: error: use of undeclared identifier 'x_shaep'; did you mean 'x_shape'?",
    ),
    (
        "x[0] = 1;",
        "",
        "source:1:6: error: read-only variable is not assignable; inputs and constants cannot be written",
    ),
    ("x[0]++;", "", "source:1:5: error: read-only variable is not assignable; inputs and constants cannot be written"),
    (
        "((const device float4*)x)[0].x = 1;",
        "",
        "source:1:32: error: read-only variable is not assignable; inputs and constants cannot be written",
    ),
    (
        "device float* p = x;\np[0] = 1;",
        "",
        "source:1:15: error: cannot initialize a variable of type 'float *' with an lvalue of type 'const float *'",
    ),
    ("s = 1;", "", "source:1:3: error: cannot assign to variable 's' with const-qualified type 'const float &'"),
    ("y[0] = x[0]\ny[1] = 2;", "", "source:1:12: error: expected ';' after expression"),
    ("if x[0] > 1 { y[0] = 1; }", "", "source:1:4: error: expected '(' after 'if'"),
    ("let a = 1;\ny[0] = a;", "", "source:1:1: error: unknown type name 'let'"),
    ("string s;\ny[0] = 1;", "", "source:1:1: error: unknown type name 'string'"),
    ("y[0] = nonexistent(x[0]);", "", "source:1:8: error: use of undeclared identifier 'nonexistent'"),
    (
        "threadgroup float t[4] = {1,2,3,4};\ny[0] = t[0];",
        "",
        "source:1:24: error: a variable in threadgroup memory cannot have an initial value",
    ),
    (
        "threadgroup_barrier();\ny[0] = 1;",
        "",
        "source:1:1: error: no matching function for call to 'threadgroup_barrier'; it takes 1 argument",
    ),
    ("y[0] = as_type<half>(x[0]);", "", "source:1:8: error: as_type needs types of the same size"),
    (
        "y[0] = f(x[0]);",
        "float f(float a, float b) { return a + b; }",
        "source:1:8: error: no matching function for call to 'f'",
    ),
    (
        "y[0] = f(x[0]);",
        "template <typename T> T f(T a) { return a.foo(); }",
        "header:1:42: error: member reference base type 'float' is not a structure or union",
    ),
    (
        "y[0] = f(x[0], 1);",
        "template <typename T> T f(T a, T b) { return a; }",
        "source:1:8: error: no matching function for call to 'f'",
    ),
    (
        "y[0] = S<float>().v;",
        "template <typename T> struct S { typename T::type v; };",
        "header:1:43: error: type 'float' cannot be used prior to '::' because it has no members",
    ),
    (
        "auto f = [&](float a) { return a + nothing; };\ny[0] = f(x[0]);",
        "",
        "source:1:36: error: use of undeclared identifier 'nothing'",
    ),
    (
        "auto f = [&](float a) { return a; };\ny[0] = f(1, 2);",
        "",
        "source:2:8: error: no matching function for call to object of type 'lambda'",
    ),
    (
        "y[0] = LONG(1);",
        "#define LONG(a, b) (a + b)",
        "source:1:14: error: too few arguments provided to function-like macro invocation",
    ),
    (
        "y[0] = ADD(x[0], 2);",
        "#define ADD(a, b) (a + b.x)",
        "source:1:8: error: member reference base type 'int' is not a structure or union",
    ),
    ("return 1;", "", "source:1:1: error: the kernel should not return a value"),
    (
        "float f(float a) { return a; }\ny[0] = f(1);",
        "",
        "source:1:18: error: function definition is not allowed here; the body is inside of the kernel's function: write this into `header`",
    ),
    (
        "template <typename T> T f(T a) { return a; }\ny[0] = f(1);",
        "",
        "source:1:1: error: a template is not allowed here; the body is inside of the kernel's function: write this into `header`",
    ),
    (
        "float x = 1;\ny[0] = x;",
        "",
        "source:1:7: error: redefinition of 'x' with a different type: 'float' vs 'const float *'",
    ),
    ("y[0] = max(1, 2.0f);", "", "source:1:8: error: call to 'max' is ambiguous; convert the arguments to one type"),
    ("half3 v = bfloat3(1); y[0] = v.x;", "", "source:1:7: error: no viable conversion from 'bfloat3' to 'half3'"),
    ("y[0] = std::sqrt(x[0]);", "", "source:1:8: error: use of undeclared identifier 'std'; in Metal it is 'metal'"),
    ("y[0] = sqrtf(x[0]);", "", "source:1:8: error: use of undeclared identifier 'sqrtf'; did you mean 'sqrt'?"),
    (
        "y[0] = threadIdx.x;",
        "",
        "source:1:8: error: use of undeclared identifier 'threadIdx'; in Metal it is 'thread_position_in_threadgroup'",
    ),
    (
        "__syncthreads();",
        "",
        "source:1:1: error: use of undeclared identifier '__syncthreads'; in Metal it is 'threadgroup_barrier(mem_flags::mem_threadgroup)'",
    ),
    ("__shared__ float t[3];", "", "source:1:1: error: unknown type name '__shared__'; in Metal it is 'threadgroup'"),
    (
        "y[0] = elem_to_loc(1);",
        "",
        "source:1:8: error: no matching function for call to 'elem_to_loc'; it takes 4 arguments",
    ),
    (
        "y[0] = thread_index_in_simdgroup.x;",
        "",
        "source:1:33: error: member reference base type 'uint' is not a structure or union",
    ),
    ("y[0] = 1; // größer\ny[0] = größe;", "", "source:2:8: error: use of undeclared identifier 'größe'"),
    ("complex64_t c; y[0] = c.foo;", "", "source:1:25: error: no member named 'foo' in 'complex64_t'"),
    (
        "ulong3 a(1); y[0] = (a << float3(1)).x;",
        "",
        "source:1:24: error: invalid operands to binary expression ('ulong3' and 'float3')",
    ),
    ("y[0] = 1;\r\n\ty[1] = größe;\r\n", "", "source:2:9: error: use of undeclared identifier 'größe'"),
    ("y[0] = f(x[0]);", "float f(float a) {\n\treturn b;\n}\n", "header:2:9: error: use of undeclared identifier 'b'"),
    (
        "y[0] = 1;\nuint3 p = thread_position_in_gird",
        "",
        "source:2:11: error: use of undeclared identifier 'thread_position_in_gird'; did you mean 'thread_position_in_grid'?",
    ),
    (
        "float3 v = float3(thread_position_in_grid) + half3(1);\ny[0] = v.x;",
        "",
        "source:1:44: error: invalid operands to binary expression ('float3' and 'half3')",
    ),
    (
        "y[0] = g();",
        "float g() { return thread_position_in_grid.x; }",
        "header:1:20: error: use of undeclared identifier 'thread_position_in_grid'; only the body has it, where the body itself names it",
    ),
]


def first_error(source, header):
    kernel = kiln.metal_kernel("k", ["x", "s"], ["y"], source, header=header)
    with pytest.raises(kiln.CompileError) as raised:
        kernel.compile(
            inputs=[np.zeros(8, np.float32), 1.0],
            output_shapes=[(8,)],
            output_dtypes=["float32"],
            grid=(8, 1, 1),
            threadgroup=(8, 1, 1),
        )
    return str(raised.value).splitlines()[1], raised.value


@pytest.mark.parametrize(("source", "header", "message"), WRONG, ids=range(len(WRONG)))
def test_first_line(source, header, message):
    shown, error = first_error(source, header)
    assert shown == message
    # Notes that point into Kiln's own text are in the log only.
    for diagnostic in error.diagnostics:
        assert diagnostic.text in ("source", "header")
        for internal in ("__kiln", "_Float16", "vec<", "custom_kernel", "kernel.metal", "unsigned int"):
            assert internal not in diagnostic.message


# What would go on for ever, or leave the compiler's stack, is an error.
DEEP = "expressions or statements are nested too deep"
BRACKETS = "brackets are nested more than 256 deep"
OPERATORS = "an expression has more than 16384 operators"
TOKENS = "macros and included files make more than 1048576 tokens"


@pytest.mark.parametrize(
    ("source", "header", "message"),
    [
        ("y[0] = " + 20000 * "-" + " s;", "", DEEP),
        ("y[0] = " + 20000 * "!" + "s;", "", DEEP),
        ("y[0] = " + 20000 * "(float)" + "s;", "", DEEP),
        ("float a; " + 20000 * "a = " + "1;", "", DEEP),
        ("y[0] = " + 20000 * "s ? 1 : " + "2;", "", DEEP),
        (20000 * "if (s) " + "y[0] = 1;", "", DEEP),
        (20000 * "if (s) y[0] = 1; else " + ";", "", DEEP),
        (20000 * "for (;;) " + "y[0] = 1;", "", DEEP),
        (20000 * "do ", "", DEEP),
        (20000 * "a: " + ";", "", DEEP),
        (20000 * "vec<" + ";", "", DEEP),
        *(
            ("y[0] = " + 20000 * f"{word} " + "s;", "", DEEP)
            for word in ("sizeof", "__alignof", "alignof", "__real", "__extension__", "noexcept")
        ),
        *(
            (20000 * f"{word} " + "y;", "", DEEP)
            for word in ("__builtin_vectorelements", "const", "decltype", "template", "operator", "__attribute__")
        ),
        ("float a" + 20000 * "[1]" + ";", "", DEEP),
        (20000 * "{" + 20000 * "}", "", BRACKETS),
        ("y[0] = " + 300 * "(" + "s" + 300 * ")" + ";", "", BRACKETS),
        ("", 300 * "namespace a {" + 300 * "}", BRACKETS),
        ("y[0] = 1" + 20000 * " + 1" + ";", "", OPERATORS),
        ("y[0] = A30;", "#define A0 1 +\n" + "".join(f"#define A{n + 1} A{n} A{n}\n" for n in range(30)), TOKENS),
        ("y[0] = 1; A40", "#define A0\n" + "".join(f"#define A{n + 1} A{n} A{n}\n" for n in range(40)), TOKENS),
        (
            "y[0] = 1; A40(A0)",
            "#define A0(a) a\n" + "".join(f"#define A{n + 1}(a) A{n}(a) A{n}(a)\n" for n in range(40)),
            TOKENS,
        ),
    ],
    ids=range(31),
)
def test_text_without_end(source, header, message):
    shown, _ = first_error(source, header)
    assert shown.partition(": error: ")[2] == message


def test_files_that_multiply(tmp_path):
    for n in range(30):
        (tmp_path / f"{n}.h").write_text(f'#include "{n + 1}.h"\n' * 2)
    (tmp_path / "30.h").write_text("")
    (tmp_path / "k.metal").write_text('#include "0.h"\ny[0] = 1;')
    shown, _ = first_error(tmp_path / "k.metal", "")
    assert shown.partition(": error: ")[2] == TOKENS


@pytest.mark.parametrize(
    "source",
    [
        "y[0] = 0" + "".join(f" + x[{n % 8}] * {n}.0f" for n in range(1500)) + ";",
        "if (s > 9) y[0] = 1;" + "".join(f" else if (s > {n}) y[0] = {n};" for n in range(500)),
        "const int table[] = {" + ", ".join(str(-n) for n in range(5000)) + "}; y[0] = table[int(s)];",
        "switch (int(s)) {" + "".join(f"case {n}: y[0] = {n}; break; " for n in range(500)) + "}",
        "y[0] += s;\n" * 200,
        "//< a comment that Clang takes for documentation\ny[0] = 1; /*< and another */ /**< one more */ //!< last",
        "// a comment that goes on \\\n in the next line\ny[0] = 1; // and \\ \n another\n",
    ],
    ids=range(7),
)
def test_odd_text_compiles(source):
    kernel = kiln.metal_kernel("k", ["x", "s"], ["y"], source)
    (y,) = kernel(
        inputs=[np.zeros(8, np.float32), 0.0],
        output_shapes=[(1,)],
        output_dtypes=["float32"],
        grid=(1, 1, 1),
        threadgroup=(1, 1, 1),
        init_value=0,
    )
    assert y.shape == (1,)
