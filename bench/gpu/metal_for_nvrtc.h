// Lets NVRTC compile the text of a Metal body as it stands: the types, functions and attributes of Metal that the
// bodies of the benchmark use, written as a CUDA programmer would write them. bench/gpu/peers.py puts a kernel around a
// body, inside namespace metal, where these names hide CUDA's.
//
// Every collective names all 32 lanes, so only bodies whose threads converge there may be compiled with it. Results may
// differ from Kiln's in the order of a sum and within the bounds of CUDA's functions.
// Tables of functions in macros, which clang-format breaks at other places each time.
// clang-format off
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define __D __device__ __forceinline__
#define METAL_FUNC __device__ __forceinline__
#define MLX_MTL_PRAGMA_UNROLL _Pragma("unroll")
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define INT_MAX 2147483647
#define INT_MIN (-2147483647 - 1)
#define UINT_MAX 4294967295u
#define M_PI_F 3.14159265358979323846f
#define M_PI_2_F 1.57079632679489661923f
#define M_LOG2E_F 1.44269504088896340736f
#define M_LN2_F 0.69314718055994530942f
#define M_SQRT1_2_F 0.70710678118654752440f
#define M_SQRT2_F 1.41421356237309504880f

namespace metal {

using uchar = unsigned char;
using ushort = unsigned short;
using uint = unsigned int;
using ulong = unsigned long long;
using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned int;
using int64_t = long long;
using uint64_t = unsigned long long;
using size_t = unsigned long long;

template <bool C, class T = void> struct enable_if {};
template <class T> struct enable_if<true, T> { using type = T; };
template <class A, class B> struct is_same { static constexpr bool value = false; };
template <class A> struct is_same<A, A> { static constexpr bool value = true; };
template <class A, class B> constexpr bool is_same_v = is_same<A, B>::value;
template <bool C, class A, class B> struct conditional { using type = A; };
template <class A, class B> struct conditional<false, A, B> { using type = B; };
template <bool C, class A, class B> using conditional_t = typename conditional<C, A, B>::type;
template <class T> struct is_float { static constexpr bool value = is_same_v<T, float>; };
template <class T> struct is_number {
  static constexpr bool value = is_same_v<T, float> || is_same_v<T, bool> || is_same_v<T, char> ||
      is_same_v<T, signed char> || is_same_v<T, unsigned char> || is_same_v<T, short> || is_same_v<T, unsigned short> ||
      is_same_v<T, int> || is_same_v<T, unsigned> || is_same_v<T, long> || is_same_v<T, unsigned long> ||
      is_same_v<T, long long> || is_same_v<T, unsigned long long> || is_same_v<T, double>;
};

// ---- Small floats: arithmetic of two is rounded to the type, with a float it is float's

#define __KM_SMALL(NAME, CUDA, TO, FROM, ADD, SUB, MUL, DIV)                                                 \
  struct NAME {                                                                                              \
    CUDA v;                                                                                                  \
    NAME() = default;                                                                                        \
    __D NAME(CUDA x) : v(x) {}                                                                               \
    template <class A, class = typename enable_if<is_number<A>::value>::type> __D NAME(A x) : v(FROM(float(x))) {} \
    __D operator float() const { return TO(v); }                                                             \
    __D NAME& operator+=(NAME o) { return *this = ADD(v, o.v); }                                             \
    __D NAME& operator-=(NAME o) { return *this = SUB(v, o.v); }                                             \
    __D NAME& operator*=(NAME o) { return *this = MUL(v, o.v); }                                             \
    __D NAME& operator/=(NAME o) { return *this = DIV(v, o.v); }                                             \
  };                                                                                                         \
  __D NAME operator+(NAME a, NAME b) { return ADD(a.v, b.v); }                                               \
  __D NAME operator-(NAME a, NAME b) { return SUB(a.v, b.v); }                                               \
  __D NAME operator*(NAME a, NAME b) { return MUL(a.v, b.v); }                                               \
  __D NAME operator/(NAME a, NAME b) { return DIV(a.v, b.v); }                                               \
  __D NAME operator-(NAME a) { return -a.v; }                                                                \
  __D bool operator<(NAME a, NAME b) { return float(a) < float(b); }                                         \
  __D bool operator>(NAME a, NAME b) { return float(a) > float(b); }                                         \
  __D bool operator<=(NAME a, NAME b) { return float(a) <= float(b); }                                       \
  __D bool operator>=(NAME a, NAME b) { return float(a) >= float(b); }                                       \
  __D bool operator==(NAME a, NAME b) { return float(a) == float(b); }                                       \
  __D bool operator!=(NAME a, NAME b) { return float(a) != float(b); }                                       \
  __KM_MIXED(NAME, +) __KM_MIXED(NAME, -) __KM_MIXED(NAME, *) __KM_MIXED(NAME, /)                            \
  __KM_MIXED_BOOL(NAME, <) __KM_MIXED_BOOL(NAME, >) __KM_MIXED_BOOL(NAME, <=) __KM_MIXED_BOOL(NAME, >=)      \
  __KM_MIXED_BOOL(NAME, ==) __KM_MIXED_BOOL(NAME, !=)
#define __KM_MIXED(NAME, OP)                                                                                 \
  template <class A> __D typename enable_if<is_number<A>::value, conditional_t<is_same_v<A, float>, float, NAME>>::type \
  operator OP(NAME a, A b) { return conditional_t<is_same_v<A, float>, float, NAME>(a) OP conditional_t<is_same_v<A, float>, float, NAME>(b); } \
  template <class A> __D typename enable_if<is_number<A>::value, conditional_t<is_same_v<A, float>, float, NAME>>::type \
  operator OP(A a, NAME b) { return conditional_t<is_same_v<A, float>, float, NAME>(a) OP conditional_t<is_same_v<A, float>, float, NAME>(b); }
#define __KM_MIXED_BOOL(NAME, OP)                                                                            \
  template <class A> __D typename enable_if<is_number<A>::value, bool>::type operator OP(NAME a, A b) { return float(a) OP float(b); } \
  template <class A> __D typename enable_if<is_number<A>::value, bool>::type operator OP(A a, NAME b) { return float(a) OP float(b); }
__KM_SMALL(half, __half, __half2float, __float2half_rn, __hadd, __hsub, __hmul, __hdiv)
__KM_SMALL(bfloat, __nv_bfloat16, __bfloat162float, __float2bfloat16_rn, __hadd, __hsub, __hmul, __hdiv)
using float16_t = half;
using bfloat16_t = bfloat;
template <> struct is_float<half> { static constexpr bool value = true; };
template <> struct is_float<bfloat> { static constexpr bool value = true; };

// ---- Vectors, with swizzles as members of a union

template <class T, int N> struct vec;
template <class T, int N, int A, int B, int C = -1, int D = -1> struct swizzle {
  static constexpr int M = C < 0 ? 2 : D < 0 ? 3 : 4;
  T d[N];
  __D vec<T, M> get() const;
  __D operator vec<T, M>() const { return get(); }
  __D void operator=(vec<T, M> v);
  __D void operator=(const swizzle& o) { *this = o.get(); }
};
#define __KM_S2(N, a, b, A, B) swizzle<T, N, A, B> a##b;
#define __KM_S3(N, a, b, c, A, B, C) swizzle<T, N, A, B, C> a##b##c;
#define __KM_S4(a, b, c, d, A, B, C, D) swizzle<T, 4, A, B, C, D> a##b##c##d;
#define __KM_S2_OF_2(N) __KM_S2(N, x, x, 0, 0) __KM_S2(N, x, y, 0, 1) __KM_S2(N, y, x, 1, 0) __KM_S2(N, y, y, 1, 1)
#define __KM_S2_OF_3(N) __KM_S2_OF_2(N) __KM_S2(N, x, z, 0, 2) __KM_S2(N, z, x, 2, 0) __KM_S2(N, y, z, 1, 2) \
  __KM_S2(N, z, y, 2, 1) __KM_S2(N, z, z, 2, 2)
#define __KM_S2_OF_4 __KM_S2_OF_3(4) __KM_S2(4, x, w, 0, 3) __KM_S2(4, y, w, 1, 3) __KM_S2(4, z, w, 2, 3) \
  __KM_S2(4, w, x, 3, 0) __KM_S2(4, w, y, 3, 1) __KM_S2(4, w, z, 3, 2) __KM_S2(4, w, w, 3, 3)
#define __KM_S3_OF_3(N) __KM_S3(N, x, y, z, 0, 1, 2) __KM_S3(N, y, z, x, 1, 2, 0) __KM_S3(N, z, x, y, 2, 0, 1) \
  __KM_S3(N, x, x, x, 0, 0, 0) __KM_S3(N, z, y, x, 2, 1, 0) __KM_S3(N, x, z, y, 0, 2, 1) __KM_S3(N, y, x, z, 1, 0, 2)
#define __KM_S4_OF_4 __KM_S4(x, y, z, w, 0, 1, 2, 3) __KM_S4(w, z, y, x, 3, 2, 1, 0) __KM_S4(y, z, w, x, 1, 2, 3, 0) \
  __KM_S4(x, x, y, y, 0, 0, 1, 1) __KM_S4(z, w, x, y, 2, 3, 0, 1) __KM_S4(y, x, w, z, 1, 0, 3, 2) \
  __KM_S4(x, y, x, y, 0, 1, 0, 1) __KM_S4(x, x, x, x, 0, 0, 0, 0)

// Components one after the other, from scalars, vectors and swizzles.
template <class T> __D void fill(T*) {}
template <class T, class A, class... R> __D void fill(T* d, A a, R... rest);

#define __KM_COMMON(N)                                                        \
  vec() = default;                                                            \
  vec(const vec&) = default;                                                  \
  __D vec& operator=(const vec& o) {                                          \
    for (int i = 0; i < N; ++i) d[i] = o.d[i];                                \
    return *this;                                                             \
  }                                                                           \
  template <class A, class = typename enable_if<is_number<A>::value || is_float<A>::value>::type> __D vec(A s) {  \
    for (int i = 0; i < N; ++i) d[i] = T(s);                                  \
  }                                                                           \
  template <class U> __D explicit vec(vec<U, N> o) {                          \
    for (int i = 0; i < N; ++i) d[i] = T(o.d[i]);                             \
  }                                                                           \
  template <class U, int W, int A, int B, int C, int E> __D vec(swizzle<U, W, A, B, C, E> o) : vec(o.get()) {} \
  __D T& operator[](int i) { return d[i]; }                                   \
  __D const T& operator[](int i) const { return d[i]; }

template <class T> struct alignas(2 * sizeof(T)) vec<T, 2> {
  union { T d[2]; struct { T x, y; }; struct { T r, g; }; __KM_S2_OF_2(2) };
  __KM_COMMON(2)
  template <class A, class B> __D vec(A a, B b) : d{T(a), T(b)} {}
};
template <class T> struct alignas(4 * sizeof(T)) vec<T, 3> {
  union { T d[3]; struct { T x, y, z; }; struct { T r, g, b; }; __KM_S2_OF_3(3) __KM_S3_OF_3(3) };
  __KM_COMMON(3)
  template <class A, class B, class C> __D vec(A a, B b, C c) : d{T(a), T(b), T(c)} {}
  template <class A, class B> __D vec(A a, B b) { fill(d, a, b); }
};
template <class T> struct alignas(4 * sizeof(T)) vec<T, 4> {
  union { T d[4]; struct { T x, y, z, w; }; struct { T r, g, b, a; }; __KM_S2_OF_4 __KM_S3_OF_3(4) __KM_S4_OF_4 };
  __KM_COMMON(4)
  template <class A, class B, class C, class D> __D vec(A a, B b, C c, D e) : d{T(a), T(b), T(c), T(e)} {}
  template <class A, class B> __D vec(A a, B b) { fill(d, a, b); }
  template <class A, class B, class C> __D vec(A a, B b, C c) { fill(d, a, b, c); }
};
template <class T, int N, int A, int B, int C, int D> __D vec<T, swizzle<T, N, A, B, C, D>::M> swizzle<T, N, A, B, C, D>::get() const {
  if constexpr (M == 2) return vec<T, 2>(d[A], d[B]);
  else if constexpr (M == 3) return vec<T, 3>(d[A], d[B], d[C]);
  else return vec<T, 4>(d[A], d[B], d[C], d[D]);
}
template <class T, int N, int A, int B, int C, int D> __D void swizzle<T, N, A, B, C, D>::operator=(vec<T, M> v) {
  d[A] = v.d[0], d[B] = v.d[1];
  if constexpr (M > 2) d[C] = v.d[2];
  if constexpr (M > 3) d[D] = v.d[3];
}
// A swizzle as the vector that it stands for; anything else as it is.
template <class A> struct plain { static constexpr int n = 0; using type = A; using part = A; };
template <class T, int N> struct plain<vec<T, N>> { static constexpr int n = N; using type = vec<T, N>; using part = T; };
template <class T, int N, int A, int B, int C, int D> struct plain<swizzle<T, N, A, B, C, D>> {
  static constexpr int n = swizzle<T, N, A, B, C, D>::M;
  using type = vec<T, n>;
  using part = T;
};
template <class A> using plain_t = typename plain<A>::type;
template <class T, class A, class... R> __D void fill(T* d, A a, R... rest) {
  if constexpr (plain<A>::n > 0) {
    plain_t<A> x(a);
    for (int i = 0; i < plain<A>::n; ++i) d[i] = T(x.d[i]);
    fill(d + plain<A>::n, rest...);
  } else {
    *d = T(a);
    fill(d + 1, rest...);
  }
}
template <class A, class B> using either_t = conditional_t<(plain<A>::n > 0), plain_t<A>, plain_t<B>>;
template <class A, class B> constexpr bool has_vector = (plain<A>::n > 0 || plain<B>::n > 0);

#define __KM_BINARY(OP)                                                                                          \
  template <class A, class B> __D typename enable_if<has_vector<A, B>, either_t<A, B>>::type operator OP(A a, B b) { \
    using V = either_t<A, B>;                                                                                    \
    V x(a), y(b), r;                                                                                             \
    for (int i = 0; i < plain<V>::n; ++i) r.d[i] = typename plain<V>::part(x.d[i] OP y.d[i]);                    \
    return r;                                                                                                    \
  }
#define __KM_ASSIGN(OP)                                                                                          \
  __KM_BINARY(OP)                                                                                                \
  template <class T, int N, class B> __D vec<T, N>& operator OP##=(vec<T, N>& a, B b) { return a = a OP b; }     \
  template <class T, int N, int A, int B, int C, int D, class E>                                                 \
  __D void operator OP##=(swizzle<T, N, A, B, C, D>& a, E b) { a = a OP b; }
__KM_ASSIGN(+) __KM_ASSIGN(-) __KM_ASSIGN(*) __KM_ASSIGN(/) __KM_ASSIGN(%) __KM_ASSIGN(&) __KM_ASSIGN(|) __KM_ASSIGN(^)
__KM_ASSIGN(<<) __KM_ASSIGN(>>)
#define __KM_COMPARE(OP)                                                                                         \
  template <class A, class B>                                                                                    \
  __D typename enable_if<has_vector<A, B>, vec<bool, plain<either_t<A, B>>::n>>::type operator OP(A a, B b) {    \
    using V = either_t<A, B>;                                                                                    \
    V x(a), y(b);                                                                                                \
    vec<bool, plain<V>::n> r;                                                                                    \
    for (int i = 0; i < plain<V>::n; ++i) r.d[i] = x.d[i] OP y.d[i];                                             \
    return r;                                                                                                    \
  }
__KM_COMPARE(<) __KM_COMPARE(>) __KM_COMPARE(<=) __KM_COMPARE(>=) __KM_COMPARE(==) __KM_COMPARE(!=) __KM_COMPARE(&&) __KM_COMPARE(||)
#define __KM_UNARY(OP)                                                                                           \
  template <class A> __D typename enable_if<(plain<A>::n > 0), plain_t<A>>::type operator OP(A a) {              \
    plain_t<A> x(a), r;                                                                                          \
    for (int i = 0; i < plain<A>::n; ++i) r.d[i] = typename plain<A>::part(OP x.d[i]);                           \
    return r;                                                                                                    \
  }
__KM_UNARY(-) __KM_UNARY(~) __KM_UNARY(!)

#define __KM_NAMES(T, NAME) using NAME##2 = vec<T, 2>; using NAME##3 = vec<T, 3>; using NAME##4 = vec<T, 4>;
__KM_NAMES(float, float) __KM_NAMES(half, half) __KM_NAMES(bfloat, bfloat) __KM_NAMES(int, int) __KM_NAMES(uint, uint)
__KM_NAMES(short, short) __KM_NAMES(ushort, ushort) __KM_NAMES(signed char, char) __KM_NAMES(uchar, uchar)
__KM_NAMES(long long, long) __KM_NAMES(ulong, ulong) __KM_NAMES(bool, bool)
template <class T> struct packed3 {
  union { T d[3]; struct { T x, y, z; }; };
  packed3() = default;
  __D packed3(vec<T, 3> v) : x(v.x), y(v.y), z(v.z) {}
  __D packed3(T a, T b, T c) : x(a), y(b), z(c) {}
  __D operator vec<T, 3>() const { return vec<T, 3>(x, y, z); }
  __D T& operator[](int i) { return d[i]; }
  __D const T& operator[](int i) const { return d[i]; }
};
using packed_float3 = packed3<float>;
using packed_uchar3 = packed3<uchar>;
template <class T, int N> struct packed {
  T d[N];
  packed() = default;
  __D packed(vec<T, N> v) { for (int i = 0; i < N; ++i) d[i] = v.d[i]; }
  __D operator vec<T, N>() const { vec<T, N> v; for (int i = 0; i < N; ++i) v.d[i] = d[i]; return v; }
  __D T& operator[](int i) { return d[i]; }
};
using packed_float2 = packed<float, 2>;
using packed_float4 = packed<float, 4>;

template <class To, class From> __D To as_type(From x) {
  static_assert(sizeof(To) == sizeof(From), "");
  To result;
  memcpy(&result, &x, sizeof(To));
  return result;
}

// ---- Functions of components

template <class A, class F> __D auto each(A a, F f) {
  if constexpr (plain<A>::n > 0) {
    plain_t<A> x(a);
    vec<decltype(f(x.d[0])), plain<A>::n> r;
    for (int i = 0; i < plain<A>::n; ++i) r.d[i] = f(x.d[i]);
    return r;
  } else {
    return f(a);
  }
}
template <class A, class B, class F> __D auto each(A a, B b, F f) {
  if constexpr (has_vector<A, B>) {
    using V = either_t<A, B>;
    V x(a), y(b);
    vec<decltype(f(x.d[0], y.d[0])), plain<V>::n> r;
    for (int i = 0; i < plain<V>::n; ++i) r.d[i] = f(x.d[i], y.d[i]);
    return r;
  } else {
    return f(a, b);
  }
}
template <class A, class B, class C, class F> __D auto each(A a, B b, C c, F f) {
  if constexpr (has_vector<A, B> || has_vector<A, C>) {
    using V = either_t<A, either_t<B, C>>;
    V x(a), y(b), z(c);
    vec<decltype(f(x.d[0], y.d[0], z.d[0])), plain<V>::n> r;
    for (int i = 0; i < plain<V>::n; ++i) r.d[i] = f(x.d[i], y.d[i], z.d[i]);
    return r;
  } else {
    return f(a, b, c);
  }
}
// The type of a function of floats.
template <class T> using float_t = conditional_t<is_float<T>::value, T, float>;
#define __KM_F1(NAME, CUDA) \
  template <class A> __D auto NAME(A a) { return each(a, [](auto x) { return float_t<decltype(x)>(CUDA(float(x))); }); }
#define __KM_F2(NAME, CUDA)                                                                              \
  template <class A, class B> __D auto NAME(A a, B b) {                                                  \
    return each(a, b, [](auto x, auto y) { return float_t<decltype(x)>(CUDA(float(x), float(y))); });    \
  }
__KM_F1(exp, expf) __KM_F1(exp2, exp2f) __KM_F1(exp10, exp10f) __KM_F1(log, logf) __KM_F1(log2, log2f) __KM_F1(log10, log10f)
__KM_F1(sin, sinf) __KM_F1(cos, cosf) __KM_F1(tan, tanf) __KM_F1(asin, asinf) __KM_F1(acos, acosf) __KM_F1(atan, atanf)
__KM_F1(sinh, sinhf) __KM_F1(cosh, coshf) __KM_F1(tanh, tanhf) __KM_F1(sinpi, sinpif) __KM_F1(cospi, cospif)
__KM_F1(sqrt, sqrtf) __KM_F1(rsqrt, rsqrtf) __KM_F1(floor, floorf) __KM_F1(ceil, ceilf) __KM_F1(trunc, truncf)
__KM_F1(rint, rintf) __KM_F1(round, roundf) __KM_F1(fabs, fabsf) __KM_F1(erf, erff) __KM_F1(expm1, expm1f) __KM_F1(log1p, log1pf)
__KM_F1(asinh, asinhf) __KM_F1(acosh, acoshf) __KM_F1(atanh, atanhf) __KM_F1(saturate, __saturatef)
__KM_F1(fract, [](float x) { return x - floorf(x); }) __KM_F1(sign, [](float x) { return x > 0 ? 1.0f : x < 0 ? -1.0f : 0.0f; })
__KM_F2(pow, powf) __KM_F2(powr, powf) __KM_F2(atan2, atan2f) __KM_F2(fmod, fmodf) __KM_F2(copysign, copysignf)
__KM_F2(fmin, fminf) __KM_F2(fmax, fmaxf) __KM_F2(step, [](float e, float x) { return x < e ? 0.0f : 1.0f; })
__D float ldexp(float x, int n) { return ldexpf(x, n); }
__D int ilogb(float x) { return ilogbf(x); }
__D float sincos(float x, float& c) { float s; sincosf(x, &s, &c); return s; }
template <class A> __D auto isnan(A a) { return each(a, [](auto x) { return float(x) != float(x); }); }
template <class A> __D auto isinf(A a) { return each(a, [](auto x) { return fabsf(float(x)) == INFINITY; }); }
template <class A> __D auto isfinite(A a) { return each(a, [](auto x) { return fabsf(float(x)) < INFINITY; }); }

template <class A, class B> struct wider { using type = decltype(A() + B()); };
template <class A> struct wider<A, A> { using type = A; };
template <class A, class B> using wider_t = typename wider<A, B>::type;
template <class X, class Y> __D auto min_of(X x, Y y) {
  using R = wider_t<X, Y>;
  if constexpr (is_same_v<R, float>) return fminf(x, y);
  else return R(y) < R(x) ? R(y) : R(x);
}
template <class X, class Y> __D auto max_of(X x, Y y) {
  using R = wider_t<X, Y>;
  if constexpr (is_same_v<R, float>) return fmaxf(x, y);
  else return R(x) < R(y) ? R(y) : R(x);
}
template <class A, class B> __D auto min(A a, B b) { return each(a, b, [](auto x, auto y) { return min_of(x, y); }); }
template <class A, class B> __D auto max(A a, B b) { return each(a, b, [](auto x, auto y) { return max_of(x, y); }); }
template <class A, class B, class C> __D auto clamp(A a, B b, C c) { return min(max(a, b), c); }
template <class A> __D auto min3(A a, A b, A c) { return min(min(a, b), c); }
template <class A> __D auto max3(A a, A b, A c) { return max(max(a, b), c); }
template <class A> __D auto abs(A a) { return each(a, [](auto x) { return decltype(x)(x < 0 ? -x : x); }); }
__D float abs(float a) { return fabsf(a); }
template <class A> __D A absdiff(A a, A b) { return a > b ? a - b : b - a; }
__D float fma(float a, float b, float c) { return fmaf(a, b, c); }
__D half fma(half a, half b, half c) { return __hfma(a.v, b.v, c.v); }
template <class T, int N> __D vec<T, N> fma(vec<T, N> a, vec<T, N> b, vec<T, N> c) {
  for (int i = 0; i < N; ++i) a.d[i] = fma(a.d[i], b.d[i], c.d[i]);
  return a;
}
template <class A, class B, class C> __D auto mix(A a, B b, C t) { return a + (b - a) * t; }
template <class A, class B, class C> __D auto smoothstep(A lo, B hi, C x) {
  auto t = saturate((x - lo) / (hi - lo));
  return t * t * (3 - 2 * t);
}
template <class T> __D T select(T a, T b, bool c) { return c ? b : a; }
template <class T, int N> __D vec<T, N> select(vec<T, N> a, vec<T, N> b, vec<bool, N> c) {
  for (int i = 0; i < N; ++i) a.d[i] = c.d[i] ? b.d[i] : a.d[i];
  return a;
}
template <class A, class B> __D auto dot(A a, B b) {
  using V = either_t<A, B>;
  V x(a), y(b);
  auto r = x.d[0] * y.d[0];
  for (int i = 1; i < plain<V>::n; ++i) r += x.d[i] * y.d[i];
  return r;
}
template <class A> __D auto length_squared(A a) { return dot(a, a); }
template <class A> __D auto length(A a) { return sqrt(dot(a, a)); }
template <class A, class B> __D auto distance(A a, B b) { return length(a - b); }
template <class A> __D auto normalize(A a) { return a * rsqrt(dot(a, a)); }
__D float3 cross(float3 a, float3 b) {
  return float3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}
template <class A> __D bool any(A a) {
  bool r = false;
  for (int i = 0; i < plain<A>::n; ++i) r = r || a.d[i];
  return r;
}
template <class A> __D bool all(A a) {
  bool r = true;
  for (int i = 0; i < plain<A>::n; ++i) r = r && a.d[i];
  return r;
}
__D uint popcount(uint x) { return __popc(x); }
__D uint popcount(int x) { return __popc(x); }
__D ulong popcount(ulong x) { return __popcll(x); }
__D uint clz(uint x) { return __clz(x); }
__D int clz(int x) { return __clz(x); }
__D ulong clz(ulong x) { return __clzll(x); }
__D uint ctz(uint x) { return x ? __ffs(x) - 1 : 32; }
__D int ctz(int x) { return x ? __ffs(x) - 1 : 32; }
__D ulong ctz(ulong x) { return x ? __ffsll(x) - 1 : 64; }
__D uint reverse_bits(uint x) { return __brev(x); }
__D uint mulhi(uint a, uint b) { return __umulhi(a, b); }
__D int mulhi(int a, int b) { return __mulhi(a, b); }
__D ulong mulhi(ulong a, ulong b) { return __umul64hi(a, b); }
template <class A, class B> __D auto rotate(A a, B n) {
  return each(a, n, [](auto x, auto k) { return decltype(x)(__funnelshift_l(x, x, k)); });
}
template <class T> __D T extract_bits(T x, uint o, uint n) {
  return n == 0 ? T(0) : T(T(x << (8 * sizeof(T) - n - o)) >> (8 * sizeof(T) - n));
}
template <class T> __D T insert_bits(T x, T y, uint o, uint n) {
  T m = T((n >= 8 * sizeof(T) ? T(~T(0)) : T((T(1) << n) - 1)) << o);
  return (x & ~m) | ((y << o) & m);
}
namespace precise { using namespace metal; }
namespace fast { using namespace metal; }

// ---- Threads together

enum class mem_flags { mem_none = 0, mem_device = 1, mem_threadgroup = 2 };
__D mem_flags operator|(mem_flags a, mem_flags b) { return mem_flags(int(a) | int(b)); }
__D void threadgroup_barrier(mem_flags) { __syncthreads(); }
__D void simdgroup_barrier(mem_flags) { __syncwarp(); }
constexpr uint __all = 0xffffffffu;
template <class T, class F> __D T moved(T v, F f) {
  if constexpr (plain<T>::n > 0) {
    T r;
    for (int i = 0; i < plain<T>::n; ++i) r.d[i] = moved(v.d[i], f);
    return r;
  } else if constexpr (is_same_v<T, half>) return half(f(v.v));
  else if constexpr (is_same_v<T, bfloat>) return bfloat(f(v.v));
  else if constexpr (sizeof(T) < 4) return T(f(int(v)));
  else return T(f(v));
}
template <class T> __D T simd_shuffle(T v, ushort lane) { return moved(v, [=](auto x) { return __shfl_sync(__all, x, lane); }); }
template <class T> __D T simd_shuffle_xor(T v, ushort n) { return moved(v, [=](auto x) { return __shfl_xor_sync(__all, x, n); }); }
template <class T> __D T simd_shuffle_up(T v, ushort n) { return moved(v, [=](auto x) { return __shfl_up_sync(__all, x, n); }); }
template <class T> __D T simd_shuffle_down(T v, ushort n) { return moved(v, [=](auto x) { return __shfl_down_sync(__all, x, n); }); }
template <class T> __D T simd_broadcast(T v, ushort lane) { return simd_shuffle(v, lane); }
template <class T> __D T simd_broadcast_first(T v) { return simd_shuffle(v, 0); }
template <class T> __D T quad_shuffle_xor(T v, ushort n) { return simd_shuffle_xor(v, n); }
template <class T, class F> __D T reduced(T v, F f, int width = 32) {
  for (int n = 1; n < width; n *= 2) v = f(v, simd_shuffle_xor(v, n));
  return v;
}
template <class T> constexpr bool is_word = is_same_v<T, int> || is_same_v<T, uint>;
template <class T> __D T simd_sum(T v) {
  if constexpr (is_word<T>) return __reduce_add_sync(__all, v);
  else return reduced(v, [](T a, T b) { return T(a + b); });
}
template <class T> __D T simd_product(T v) { return reduced(v, [](T a, T b) { return T(a * b); }); }
template <class T> __D T simd_min(T v) {
  if constexpr (is_word<T>) return __reduce_min_sync(__all, v);
  else return reduced(v, [](T a, T b) { return T(min(a, b)); });
}
template <class T> __D T simd_max(T v) {
  if constexpr (is_word<T>) return __reduce_max_sync(__all, v);
  else return reduced(v, [](T a, T b) { return T(max(a, b)); });
}
template <class T> __D T simd_or(T v) { return __reduce_or_sync(__all, uint(v)); }
template <class T> __D T simd_and(T v) { return __reduce_and_sync(__all, uint(v)); }
template <class T> __D T simd_xor(T v) { return __reduce_xor_sync(__all, uint(v)); }
template <class T> __D T quad_sum(T v) { return reduced(v, [](T a, T b) { return T(a + b); }, 4); }
template <class T> __D T quad_max(T v) { return reduced(v, [](T a, T b) { return T(max(a, b)); }, 4); }
__D uint lane_of_thread() { uint l; asm("mov.u32 %0, %%laneid;" : "=r"(l)); return l; }
template <class T> __D T simd_prefix_inclusive_sum(T v) {
  for (int n = 1; n < 32; n *= 2) {
    T o = simd_shuffle_up(v, n);
    if (lane_of_thread() >= n) v = o + v;
  }
  return v;
}
template <class T> __D T simd_prefix_exclusive_sum(T v) {
  T o = simd_shuffle_up(simd_prefix_inclusive_sum(v), 1);
  return lane_of_thread() ? o : T(0);
}
__D bool simd_any(bool c) { return __any_sync(__all, c); }
__D bool simd_all(bool c) { return __all_sync(__all, c); }
struct simd_vote {
  using vote_t = ulong;
  ulong v;
  __D explicit operator ulong() const { return v; }
};
__D simd_vote simd_ballot(bool c) { return {__ballot_sync(__all, c)}; }
__D bool simd_is_first() { return lane_of_thread() == 0; }

// ---- Atomics: relaxed, as the bodies' are

enum memory_order { memory_order_relaxed, memory_order_seq_cst };
enum thread_scope { thread_scope_device };
__D void atomic_thread_fence(mem_flags, memory_order, thread_scope) { __threadfence(); }
template <class T> struct atomic { T v; };
using atomic_int = atomic<int>;
using atomic_uint = atomic<uint>;
using atomic_float = atomic<float>;
using atomic_ulong = atomic<ulong>;
#define __KM_ATOMIC(NAME, CUDA) \
  template <class T, class U> __D T NAME(atomic<T>* a, U v, memory_order) { return CUDA(&a->v, T(v)); }  \
  template <class T, class U> __D T NAME(volatile atomic<T>* a, U v, memory_order) { return CUDA((T*)&a->v, T(v)); }
__KM_ATOMIC(atomic_fetch_add_explicit, atomicAdd) __KM_ATOMIC(atomic_fetch_min_explicit, atomicMin)
__KM_ATOMIC(atomic_fetch_max_explicit, atomicMax) __KM_ATOMIC(atomic_fetch_or_explicit, atomicOr)
__KM_ATOMIC(atomic_fetch_and_explicit, atomicAnd) __KM_ATOMIC(atomic_fetch_xor_explicit, atomicXor)
__KM_ATOMIC(atomic_fetch_sub_explicit, [](auto* p, auto v) { return atomicAdd(p, -v); })
__KM_ATOMIC(atomic_exchange_explicit, atomicExch)
template <class T> __D T atomic_load_explicit(const atomic<T>* a, memory_order) { return *(const volatile T*)&a->v; }
template <class T, class U> __D void atomic_store_explicit(atomic<T>* a, U v, memory_order) { *(volatile T*)&a->v = T(v); }

}  // namespace metal
