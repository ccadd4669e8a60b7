// What halves and bfloats are made of on the CPU: the instructions that nvrtc/half.cuh and its siblings ask for.
//
// Each is computed in the compiler's own types or in float, and rounded once, as a GPU does.
namespace __kiln {
typedef _Float16 native_half;
typedef __bf16 native_bfloat16;

// What an instruction's name says: "add.sat".
enum : unsigned { add = 1, sub, mul, fma_, max_, min_, abs_, neg, sat = 16, relu = 32, keeps_nan = 64 };
constexpr bool says(const char* name, const char* word) {
  for (; *name; ++name) {
    const char *a = name, *b = word;
    while (*b && *a == *b) ++a, ++b;
    if (!*b) return true;
  }
  return false;
}
constexpr unsigned instruction(const char* name) {
  unsigned which = says(name, "add")   ? add
                   : says(name, "sub") ? sub
                   : says(name, "mul") ? mul
                   : says(name, "fma") ? fma_
                   : says(name, "max") ? max_
                   : says(name, "min") ? min_
                   : says(name, "abs") ? abs_
                                       : neg;
  return which | (says(name, ".sat") ? sat : 0) | (says(name, ".relu") ? relu : 0) | (says(name, ".NaN") ? keeps_nan : 0);
}
// Choices are made among bits: of halves LLVM would make calls of fminf() and fmaxf().
template <class T>
constexpr unsigned infinite_bits = __builtin_bit_cast(unsigned short, T(__builtin_inff()));
template <class T>
__KILN_DEVICE bool is_nan(unsigned bits) {
  return (bits & 0x7fff) > infinite_bits<T>;
}
template <unsigned Instruction, class T>
__KILN_DEVICE T finished(T x) {
  unsigned bits = __builtin_bit_cast(unsigned short, x);
  if constexpr ((Instruction & sat) != 0) {
    constexpr unsigned one = __builtin_bit_cast(unsigned short, T(1.0f));
    unsigned r = (bits & 0x8000) != 0 || is_nan<T>(bits) ? 0 : bits > one ? one : bits;
    return __builtin_bit_cast(T, static_cast<unsigned short>(r));
  }
  if constexpr ((Instruction & relu) != 0) {
    unsigned r = (bits & 0x8000) != 0 && !is_nan<T>(bits) ? 0 : bits;
    return __builtin_bit_cast(T, static_cast<unsigned short>(r));
  }
  return x;
}
template <unsigned Instruction, class T>
__KILN_DEVICE T calculate(T a, T b) {
  constexpr unsigned which = Instruction & 15;
  if constexpr (which == add) return finished<Instruction>(T(a + b));
  if constexpr (which == sub) return finished<Instruction>(T(a - b));
  if constexpr (which == mul) return finished<Instruction>(T(a * b));
  if constexpr (which == max_ || which == min_) {
    unsigned x = __builtin_bit_cast(unsigned short, a), y = __builtin_bit_cast(unsigned short, b);
    // In the order of the numbers; of two zeros the positive one is larger.
    int place = x & 0x8000 ? -int(x & 0x7fff) - 1 : int(x), other = y & 0x8000 ? -int(y & 0x7fff) - 1 : int(y);
    bool takes_b = (which == max_) == (place < other);
    if (is_nan<T>(x)) takes_b = (Instruction & keeps_nan) == 0;
    else if (is_nan<T>(y)) takes_b = (Instruction & keeps_nan) != 0;
    return __builtin_bit_cast(T, static_cast<unsigned short>(takes_b ? y : x));
  }
}
template <unsigned Instruction, class T>
__KILN_DEVICE T calculate(T a, T b, T c) {
  return finished<Instruction>(__kiln_metal::fma(a, b, c));
}
template <unsigned Instruction, class T>
__KILN_DEVICE T calculate(T a) {
  unsigned short bits = __builtin_bit_cast(unsigned short, a);
  return __builtin_bit_cast(T, static_cast<unsigned short>((Instruction & 15) == abs_ ? bits & 0x7fff : bits ^ 0x8000));
}

__KILN_DEVICE unsigned short half_bits(float x) { return __builtin_bit_cast(unsigned short, native_half(x)); }
__KILN_DEVICE float half_value(unsigned short x) { return float(__builtin_bit_cast(native_half, x)); }
// A double as a float that rounds further as the double itself would.
__KILN_DEVICE float odd_float(double x) {
  float f = narrowed<'z'>(x);
  return x != double(f) && x == x ? float_of(bits_of(f) | 1) : f;
}
__KILN_DEVICE unsigned short half_bits(double x) { return half_bits(odd_float(x)); }
// The half next to x in the direction.
template <char Rounding>
__KILN_DEVICE unsigned short half_bits_toward(float x) {
  unsigned short bits = half_bits(x);
  float back = half_value(bits);
  bool is_up = Rounding == 'p' || (Rounding == 'z' && x < 0), is_down = Rounding == 'm' || (Rounding == 'z' && x > 0);
  if (is_up && back < x) return bits == 0x8000 ? 1 : bits & 0x8000 ? bits - 1 : bits + 1;
  if (is_down && back > x) return bits == 0 ? 0x8001 : bits & 0x8000 ? bits + 1 : bits - 1;
  return bits;
}
template <char Rounding, class I>
__KILN_DEVICE unsigned short half_of(I x) {
  float near = from_integer<'z', float>(x);
  float odd = side_of(x, near) != 0 ? float_of(bits_of(near) | 1) : near;
  return half_bits_toward<Rounding>(odd);
}
template <char Rounding, class I>
__KILN_DEVICE I integer_of_half(unsigned short x) {
  return static_cast<I>(whole<Rounding>(half_value(x)));
}
}  // namespace __kiln

#define __KILN_HALF_FROM(NAME, TYPE, PTX, REGISTER, ROUNDING)                                          \
  namespace __kiln {                                                                                   \
  __KILN_DEVICE unsigned short NAME(TYPE x) { return half_of<ROUNDING[1]>(x); }                        \
  }
#define __KILN_HALF_TO(NAME, TYPE, PTX, REGISTER, ROUNDING)                                            \
  namespace __kiln {                                                                                   \
  __KILN_DEVICE TYPE NAME(unsigned short x) { return integer_of_half<ROUNDING[1], TYPE>(x); }          \
  }
#define __KILN_FLOAT_TO_HALF(NAME, ROUNDING) \
  __KILN_DEVICE __half NAME(float x) { return __kiln::to_half(__kiln::half_bits_toward<ROUNDING[1]>(x)); }

// Functions of one type's bits, by way of T.
#define __KILN_SMALL_UNARY(TYPE, T, MAKE, NAME, NAME2, PTX)                                            \
  __KILN_DEVICE TYPE NAME(TYPE a) {                                                                    \
    auto r = __kiln::calculate<__kiln::instruction(PTX)>(__builtin_bit_cast(T, a.bits));               \
    return MAKE(__builtin_bit_cast(unsigned short, r));                                                \
  }                                                                                                    \
  __KILN_DEVICE TYPE##2 NAME2(TYPE##2 a) { return {NAME(a.x), NAME(a.y)}; }
#define __KILN_SMALL_BINARY(TYPE, T, MAKE, NAME, PTX)                                                  \
  __KILN_DEVICE TYPE NAME(TYPE a, TYPE b) {                                                            \
    auto r = __kiln::calculate<__kiln::instruction(PTX)>(__builtin_bit_cast(T, a.bits),                \
                                                         __builtin_bit_cast(T, b.bits));               \
    return MAKE(__builtin_bit_cast(unsigned short, r));                                                \
  }
#define __KILN_SMALL_TERNARY(TYPE, T, MAKE, NAME, PTX)                                                 \
  __KILN_DEVICE TYPE NAME(TYPE a, TYPE b, TYPE c) {                                                    \
    auto r = __kiln::calculate<__kiln::instruction(PTX)>(                                              \
        __builtin_bit_cast(T, a.bits), __builtin_bit_cast(T, b.bits), __builtin_bit_cast(T, c.bits));  \
    return MAKE(__builtin_bit_cast(unsigned short, r));                                                \
  }

#define __KILN_HALF_ARITHMETIC(NAME, PTX) __KILN_SMALL_BINARY(__half, __kiln::native_half, __kiln::to_half, NAME, PTX)
#define __KILN_HALF_UNARY(NAME, NAME2, PTX) \
  __KILN_SMALL_UNARY(__half, __kiln::native_half, __kiln::to_half, NAME, NAME2, PTX)

#define __KILN_BFLOAT_INSTRUCTION(NAME, PTX) \
  __KILN_SMALL_BINARY(__nv_bfloat16, __kiln::native_bfloat16, __kiln::to_bfloat, NAME, PTX)

// Of nvrtc/small_float_pairs.cuh.
#define __KILN_PAIR(NAME2, NAME, PTX) __KILN_OF_BOTH(NAME2, NAME)
#define __KILN_TERNARY(NAME, NAME2, PTX)                                                               \
  __KILN_SMALL_TERNARY(__KILN_T, __kiln::__KILN_NAME(native_, ), __kiln::__KILN_TO, NAME, PTX)         \
  __KILN_DEVICE __KILN_T2 NAME2(__KILN_T2 a, __KILN_T2 b, __KILN_T2 c) {                               \
    return {NAME(a.x, b.x, c.x), NAME(a.y, b.y, c.y)};                                                 \
  }

// Adds to a small float by compare and exchange of its bits; a pair's halves are added one by one.
#define __KILN_SMALL_ATOMIC_ADD(TYPE, MAKE)                                                            \
  __KILN_DEVICE TYPE atomicAdd(TYPE* p, TYPE v) {                                                      \
    unsigned short* bits = reinterpret_cast<unsigned short*>(p);                                       \
    unsigned short before = __atomic_load_n(bits, __KILN_RELAXED);                                   \
    while (!__atomic_compare_exchange_n(bits, &before, __hadd(MAKE(before), v).bits, false,            \
                                        __KILN_RELAXED, __KILN_RELAXED)) {                         \
    }                                                                                                  \
    return MAKE(before);                                                                               \
  }                                                                                                    \
  __KILN_DEVICE TYPE##2 atomicAdd(TYPE##2* p, TYPE##2 v) {                                             \
    return {atomicAdd(&p->x, v.x), atomicAdd(&p->y, v.y)};                                             \
  }
