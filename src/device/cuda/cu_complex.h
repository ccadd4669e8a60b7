// <cuComplex.h>: complex numbers as float2 and double2, and their functions. Results have the bits of NVIDIA's header
// where nothing is contracted: quotients and magnitudes are scaled as there.
typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
typedef cuFloatComplex cuComplex;

// F: the suffix of functions of floats. FABS and SQRT are those of T.
#define __KILN_CU_COMPLEX(T, NAME, F, FABS, SQRT, LARGEST)                                                  \
  __KILN_DEVICE NAME make_##NAME(T real, T imag) { return {real, imag}; }                                   \
  __KILN_DEVICE T cuCreal##F(NAME z) { return z.x; }                                                        \
  __KILN_DEVICE T cuCimag##F(NAME z) { return z.y; }                                                        \
  __KILN_DEVICE NAME cuConj##F(NAME z) { return {z.x, -z.y}; }                                              \
  __KILN_DEVICE NAME cuCadd##F(NAME a, NAME b) { return {a.x + b.x, a.y + b.y}; }                           \
  __KILN_DEVICE NAME cuCsub##F(NAME a, NAME b) { return {a.x - b.x, a.y - b.y}; }                           \
  __KILN_DEVICE NAME cuCmul##F(NAME a, NAME b) { return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x}; }   \
  __KILN_DEVICE NAME cuCfma##F(NAME a, NAME b, NAME c) {                                                    \
    return {a.x * b.x + c.x - a.y * b.y, a.y * b.x + (a.x * b.y + c.y)};                                    \
  }                                                                                                         \
  /* Both are divided by |real| + |imag| of the divisor, so that no square leaves the type. */              \
  __KILN_DEVICE NAME cuCdiv##F(NAME a, NAME b) {                                                            \
    T scale = 1 / (FABS(b.x) + FABS(b.y));                                                                  \
    T p = a.x * scale, q = a.y * scale, r = b.x * scale, s = b.y * scale;                                   \
    T inverse = 1 / (r * r + s * s);                                                                        \
    return {(p * r + q * s) * inverse, (q * r - p * s) * inverse};                                          \
  }                                                                                                         \
  __KILN_DEVICE T cuCabs##F(NAME z) {                                                                       \
    T a = FABS(z.x), b = FABS(z.y), high = a > b ? a : b, low = a > b ? b : a, ratio = low / high;          \
    return high == 0 || high > LARGEST || low > LARGEST ? high + low : high * SQRT(1 + ratio * ratio);      \
  }
__KILN_CU_COMPLEX(float, cuFloatComplex, f, fabsf, sqrtf, 3.402823466e38f)
__KILN_CU_COMPLEX(double, cuDoubleComplex, , fabs, sqrt, 1.79769313486231570e308)
#undef __KILN_CU_COMPLEX

__KILN_DEVICE cuComplex make_cuComplex(float real, float imag) { return {real, imag}; }
__KILN_DEVICE cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex z) { return {z.x, z.y}; }
__KILN_DEVICE cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex z) { return {float(z.x), float(z.y)}; }
