"""docs/language.md 1.4: a header's own definition of a name that Kiln offers wins, without a clash, wherever it stands:
at global scope or in namespace metal, in the header or in what it includes."""

import kiln
import numpy as np
import pytest

X = np.arange(8, dtype=np.float32)


def run(header, expression, **options):
    source = f"uint i = thread_position_in_grid.x;\ny[i] = {expression};"
    kernel = kiln.metal_kernel("own", ["x"], ["y"], source, header=header, compile_options=options)
    (y,) = kernel(inputs=[X], output_shapes=[X.shape], output_dtypes=[X.dtype], grid=(8, 1, 1), threadgroup=(8, 1, 1))
    return y


# The header, an expression that uses it, and its value.
OWN = {
    "void_t_in_metal": (
        "namespace metal {\ntemplate <typename... Ts>\nstruct make_void { typedef void type; };\n"
        "template <typename... Ts>\nusing void_t = typename make_void<Ts...>::type;\n}\n",
        "is_same_v<metal::void_t<int, float>, void>",
        1,
    ),
    "void_t_global": (
        "template <class...>\nusing void_t = void;\ntemplate <class T, class = void>\nstruct has_x : false_type {};\n"
        "template <class T>\nstruct has_x<T, void_t<decltype(declval<T>().x)>> : true_type {};\nstruct A { int x; };\n",
        "has_x<A>::value + 2 * has_x<int>::value",
        1,
    ),
    "conjunction_in_metal": (
        "namespace metal {\ntemplate <class... B>\nstruct conjunction : bool_constant<(B::value && ...)> {\n"
        "  static constexpr int own = 5;\n};\n}\n",
        "metal::conjunction<true_type>::own + conjunction<true_type, false_type>::value",
        5,
    ),
    "conjunction_global": (
        "template <class... B>\nstruct conjunction { static constexpr int value = sizeof...(B); };\n",
        "conjunction<int, int, int>::value + negation<false_type>::value",
        4,
    ),
    "negation_of_a_number": ("float negation(float a) { return -a; }\n", "negation(x[i])", -X),
    "integer_sequence_global": (
        "template <int... I>\nstruct integer_sequence {};\n"
        "template <int... I>\nconstexpr int sum(integer_sequence<I...>) { return (0 + ... + I); }\n",
        "sum(integer_sequence<3, 4>())",
        7,
    ),
    "remove_addrspace_t_in_metal": (
        "namespace metal {\ntemplate <class T>\nusing remove_addrspace_t = const T;\n}\n",
        "is_same_v<metal::remove_addrspace_t<int>, const int>",
        1,
    ),
    "is_trivially_copyable_global": (
        "template <class T>\nstruct is_trivially_copyable { enum { value = 9 }; };\n",
        "is_trivially_copyable<int>::value",
        9,
    ),
    "swap_global": (
        "template <typename T>\nvoid swap(thread T& a, thread T& b) { T t = a; a = b + 1; b = t; }\n"
        "float swapped(float a) { float b = 10; swap(a, b); return a; }\n",
        "swapped(x[i])",
        11,
    ),
    "swap_in_metal": (
        "namespace metal {\ninline void swap(thread float& a, thread float& b) { a = 2; b = 3; }\n}\n"
        "float swapped(float a) { float b = 10; metal::swap(a, b); return a + b; }\n",
        "swapped(x[i])",
        5,
    ),
    "move_of_a_point": ("float move(float p, float d) { return p + d; }\n", "move(x[i], 2)", X + 2),
    "move_in_a_template": ("template <class T>\nT move(T p) { return p * T(2); }\n", "move(x[i])", 2 * X),
    "move_is_a_constant": ("constant float move = 4;\n", "move * x[i]", 4 * X),
    "uniform_is_a_generator": (
        "inline float uniform(uint seed) { return float(seed * 3u % 5u); }\n",
        "uniform(i)",
        np.arange(8) * 3 % 5,
    ),
    "uniform_is_a_class": ("struct uniform { float low, high; };\n", "uniform{1, x[i]}.high", X),
    "uniform_is_a_macro": ("#define uniform(a) (a + 1)\n", "uniform(x[i])", X + 1),
    "pack_of_metal_4": (
        "uint pack_float_to_snorm10a2(float4 v) { return uint(v.x) + 7; }\n",
        "pack_float_to_snorm10a2(float4(x[i]))",
        X + 7,
    ),
    "pixel": ("struct rgb9e5 { uint bits; };\n", "rgb9e5{i}.bits", X),
    "erf_in_metal": ("namespace metal { inline float erf(float a) { return 3 * a; } }\n", "erf(x[i])", 3 * X),
    "hypot_is_a_macro": ("#define hypot(a, b) (a + 2 * b)\n", "hypot(x[i], x[i])", 3 * X),
}


@pytest.mark.parametrize("name", OWN)
def test_own_definition_wins(name, tmp_path):
    header, expression, value = OWN[name]
    np.testing.assert_array_equal(run(header, expression), np.broadcast_to(np.asarray(value, np.float32), X.shape))
    # The same in a file that is included.
    (tmp_path / "own.h").write_text(f"#pragma once\n{header}")
    included = run('#include "own.h"\n', expression, include_dirs=[str(tmp_path)])
    np.testing.assert_array_equal(included, np.broadcast_to(np.asarray(value, np.float32), X.shape))


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("metal::uniform<float>(x[i]) * make_uniform(2.0f)", 2 * X),
        ("is_same_v<metal::remove_addrspace_t<int>, int>", 1),
        ("erf(0 * x[i])", 0),
        ("metal::move(x[i] + 1)", X + 1),
    ],
)
def test_another_scope_declares_nothing(expression, value):
    header = """
    namespace mine {
      template <class T> using void_t = T;
      inline float uniform(uint) { return 1; }
      template <class T> using remove_addrspace_t = void;
      struct move {};
      struct erf {};
    }
    struct Holder { float swap, move, uniform; float erf(float a) { return a; } };
    """
    np.testing.assert_array_equal(run(header, expression), np.broadcast_to(np.asarray(value, np.float32), X.shape))


def test_void_t_is_not_metals():
    with pytest.raises(kiln.CompileError, match=r"no member named 'void_t' in namespace 'metal'"):
        run("", "is_same_v<metal::void_t<int>, void>")
