"""Traits, uniform values, constants of bfloat, and what else Metal's library has beside functions of numbers."""

import math

import ml_dtypes
import numpy as np

from bodies import DTYPES, body


def _of_traits(names: str) -> str:
    return " ".join(f"traits.{name}" for name in names.split())


# What is true of types.
_FACTS = [
    "is_same_v<integral_constant<int, 3>::value_type, int>",
    "integral_constant<int, 3>::value == 3 && int(integral_constant<short, 4>()) == 4",
    "bool_constant<true>::value && true_type::value && !false_type::value",
    "is_same<enable_if<true, half>::type, half>::value && is_same_v<enable_if_t<true>, void>",
    "is_same_v<conditional<true, int, float>::type, int> && is_same_v<conditional_t<false, int, float>, float>",
    "conjunction<is_integral<int>, is_signed<int>>::value && !conjunction_v<is_integral<int>, is_signed<uint>>",
    "conjunction<>::value && !disjunction<>::value && is_same_v<conjunction<true_type>::value_type, bool>",
    "disjunction<is_integral<float>, is_signed<float>>::value && !disjunction_v<is_enum<int>, is_class<int>>",
    "negation<is_pointer<int>>::value && !negation_v<true_type>",
    "metal::conjunction_v<metal::negation<false_type>, metal::disjunction<false_type, true_type>>",
    "is_same_v<remove_const<const int>::type, int> && is_same_v<remove_const_t<int>, int>",
    "is_same_v<remove_volatile<volatile int>::type, int> && is_same_v<remove_cv<const volatile int>::type, int>",
    "is_same_v<remove_reference<thread float4&>::type, float4> && is_same_v<decay<const int>::type, int>",
    "is_same_v<metal::remove_addrspace_t<const int>, const int> && is_same_v<remove_addrspace<half>::type, half>",
    "is_same_v<add_const<int>::type, const int> && is_same_v<add_const_t<const int>, const int>",
    "is_same_v<add_volatile<int>::type, volatile int> && is_same_v<add_cv<int>::type, const volatile int>",
    "is_same_v<make_signed<ushort>::type, short> && is_same_v<make_unsigned<long>::type, ulong>",
    "is_integral<bool>::value && is_integral_v<ulong> && !is_integral_v<half>",
    "is_floating_point<bfloat>::value && is_floating_point_v<half> && !is_floating_point_v<int>",
    "is_arithmetic<char>::value && is_arithmetic_v<float> && !is_arithmetic_v<float2>",
    "is_scalar<int>::value && is_scalar_v<device float*> && !is_scalar_v<int2>",
    "is_signed<int>::value && is_signed_v<float> && !is_signed_v<uint>",
    "is_unsigned<uint>::value && is_unsigned_v<bool> && !is_unsigned_v<int>",
    "is_pointer<device float*>::value && is_pointer_v<thread Pair*> && !is_pointer_v<Pair>",
    "is_enum<Colour>::value && is_enum_v<Colour> && !is_enum_v<int>",
    "is_class<Pair>::value && is_class_v<Pair> && !is_class_v<Colour>",
    "is_const<const int>::value && !is_const_v<int>",
    "is_reference<thread int&>::value && !is_reference_v<int>",
    "is_vector<float3>::value && is_vector_v<uchar2> && !is_vector_v<float>",
    "is_same<uint, unsigned int>::value && !is_same_v<int, uint>",
    "is_convertible<int, float>::value && is_convertible_v<float, half> && !is_convertible_v<Pair, int>",
    "is_constructible<Pair, int, int>::value && is_constructible_v<float2, float> && !is_constructible_v<Pair, Pair*>",
    "is_trivially_copyable<Pair>::value && is_trivially_copyable_v<int>",
    "is_same_v<decltype(declval<Pair>().a), int> && is_same_v<decltype(declval<float>() * 1), float>",
    "is_same_v<make_integer_sequence<int, 3>, integer_sequence<int, 0, 1, 2>>",
    "integer_sequence<int, 7, 8>::size() == 2 && sum_of(make_integer_sequence<int, 5>()) == 10",
]


@body(
    "\n".join(f"out[{i}] = {fact};" for i, fact in enumerate(_FACTS)),
    header="""
    struct Pair {
      int a, b;
      Pair(int x, int y) : a(x), b(y) {}
    };
    enum Colour { red, green };
    template <int... I>
    constexpr int sum_of(integer_sequence<int, I...>) { return (0 + ... + I); }
    """,
    outputs={"out": ((len(_FACTS),), "int32")},
    grid=(1, 1, 1),
    threadgroup=(1, 1, 1),
    constructs=_of_traits(
        "integral_constant bool_constant true_type false_type enable_if enable_if_t conditional conditional_t "
        "conjunction disjunction negation integer_sequence make_integer_sequence remove_const remove_volatile "
        "remove_cv remove_reference remove_addrspace add_const add_volatile add_cv decay make_signed make_unsigned "
        "is_integral is_floating_point is_arithmetic is_scalar is_signed is_unsigned is_pointer is_enum is_class "
        "is_const is_reference is_vector is_same is_convertible is_constructible is_trivially_copyable declval"
    ),
)
def traits():
    return np.ones(len(_FACTS), np.int32)


@body(
    """
    uint i = thread_position_in_grid.x;
    float a = x[i], b = x[15 - i];
    if (a > b) swap(a, b);
    float2 v(a, b), w = metal::move(v);
    metal::swap(v, w);
    thread float2 corners[2] = {v, -w};
    swap(corners[0], corners[1]);
    out[3 * i] = a;
    out[3 * i + 1] = b - corners[0].x;
    out[3 * i + 2] = move(corners[1]).y;
    """,
    inputs=lambda rng: {"x": rng.normal(size=16).astype(np.float32)},
    outputs={"out": ((16, 3), "float32")},
    grid=(16, 1, 1),
    threadgroup=(16, 1, 1),
    constructs="traits.swap traits.move",
)
def swapped_and_moved(x):
    low, high = np.minimum(x, x[::-1]), np.maximum(x, x[::-1])
    return np.stack([low, high + low, high], axis=1)


@body(
    """
    uint i = thread_position_in_grid.x;
    const uniform<int> width = make_uniform(x_shape[1]);
    constexpr const uniform<int> step = make_uniform(2);
    const metal::uniform<float> scale = make_uniform(factor) * make_uniform(0.5f);
    uniform<float2> offset = float2(factor, -1);
    float sum = 0;
    for (uniform<int> j = 0; j < width; j += step) sum += x[i * width + j] * scale;
    uniform<int> count = width / step;
    ++count;
    float2 both = float2(sum) + float2(offset);
    out[3 * i] = both.x;
    out[3 * i + 1] = max(both.y, float(scale));
    out[3 * i + 2] = count + (width > 3 ? 10 : 20);
    """,
    inputs=lambda rng: {"x": rng.integers(-9, 9, (32, 6)).astype(np.float32), "factor": np.float32(4)},
    outputs={"out": ((32, 3), "float32")},
    grid=(32, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="types.uniform",
)
def uniform_values(x, factor):
    total = 2 * x[:, ::2].sum(axis=1)
    return np.stack([total + 4, np.maximum(total - 1, 2), np.full(32, 14, np.float32)], axis=1)


_BFLOATS = {
    "MAXBFLOAT": float(ml_dtypes.finfo(ml_dtypes.bfloat16).max),
    "HUGE_VALBF": math.inf,
    "M_E_BF": math.e,
    "M_LOG2E_BF": 1 / math.log(2),
    "M_LOG10E_BF": 1 / math.log(10),
    "M_LN2_BF": math.log(2),
    "M_LN10_BF": math.log(10),
    "M_PI_BF": math.pi,
    "M_PI_2_BF": math.pi / 2,
    "M_PI_4_BF": math.pi / 4,
    "M_1_PI_BF": 1 / math.pi,
    "M_2_PI_BF": 2 / math.pi,
    "M_2_SQRTPI_BF": 2 / math.sqrt(math.pi),
    "M_SQRT2_BF": math.sqrt(2),
    "M_SQRT1_2_BF": math.sqrt(0.5),
}


@body(
    'static_assert(is_same_v<decltype(M_PI_BF), bfloat>, "");\nconstexpr bfloat pi = M_PI_BF;\n'
    + "\n".join(f"out[{i}] = {name};" for i, name in enumerate(_BFLOATS))
    + f"\nout[{len(_BFLOATS)}] = pi;",
    outputs={"out": ((len(_BFLOATS) + 1,), "bfloat16")},
    grid=(1, 1, 1),
    threadgroup=(1, 1, 1),
    constructs="types.BF_constants",
)
def constants_of_bfloat():
    return np.array([*_BFLOATS.values(), math.pi]).astype(DTYPES["bfloat16"])


@body(
    """
    uint i = thread_position_in_grid.x;
    bool3 b(x[i] > 0, x[i] > 2, not(x[i] > 4));
    bool3 n = not(b);
    out[i] = n.x + 2 * n.y + 4 * n.z + 8 * any(not(bool2(b.x, b.y))) + 16 * not all(b);
    """,
    inputs=lambda rng: {"x": rng.integers(-3, 8, 64, np.int32)},
    outputs={"out": ((64,), "int32")},
    grid=(64, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="functions.not",
)
def not_of_vectors(x):
    b = [x > 0, x > 2, ~(x > 4)]
    every = b[0] & b[1] & b[2]
    bits = [~b[0], ~b[1], ~b[2], ~(b[0] & b[1]), ~every]
    return sum(bit.astype(np.int32) << k for k, bit in enumerate(bits))
