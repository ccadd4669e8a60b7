// The names of <simd/simd.h>, which stand for Metal's own types. Programs that do not include it have these names for
// themselves.
#define __KILN_SIMD_NAMES(T)                                \
  namespace simd {                                          \
  using metal::T##2;                                        \
  using metal::T##3;                                        \
  using metal::T##4;                                        \
  using metal::packed_##T##2;                               \
  using metal::packed_##T##3;                               \
  using metal::packed_##T##4;                               \
  }                                                         \
  typedef metal::T##2 simd_##T##2, vector_##T##2;           \
  typedef metal::T##3 simd_##T##3, vector_##T##3;           \
  typedef metal::T##4 simd_##T##4, vector_##T##4;           \
  typedef metal::packed_##T##2 simd_packed_##T##2;          \
  typedef metal::packed_##T##3 simd_packed_##T##3;          \
  typedef metal::packed_##T##4 simd_packed_##T##4;
__KILN_SIMD_NAMES(bool)
__KILN_SIMD_NAMES(char)
__KILN_SIMD_NAMES(uchar)
__KILN_SIMD_NAMES(short)
__KILN_SIMD_NAMES(ushort)
__KILN_SIMD_NAMES(int)
__KILN_SIMD_NAMES(uint)
__KILN_SIMD_NAMES(long)
__KILN_SIMD_NAMES(ulong)
__KILN_SIMD_NAMES(half)
__KILN_SIMD_NAMES(bfloat)
__KILN_SIMD_NAMES(float)

#define __KILN_SIMD_MATRIX_NAMES(T, SIZE)                   \
  namespace simd {                                          \
  using metal::T##SIZE;                                     \
  }                                                         \
  typedef metal::T##SIZE simd_##T##SIZE, matrix_##T##SIZE;
#define __KILN_SIMD_MATRICES(T)                             \
  __KILN_SIMD_MATRIX_NAMES(T, 2x2)                          \
  __KILN_SIMD_MATRIX_NAMES(T, 2x3)                          \
  __KILN_SIMD_MATRIX_NAMES(T, 2x4)                          \
  __KILN_SIMD_MATRIX_NAMES(T, 3x2)                          \
  __KILN_SIMD_MATRIX_NAMES(T, 3x3)                          \
  __KILN_SIMD_MATRIX_NAMES(T, 3x4)                          \
  __KILN_SIMD_MATRIX_NAMES(T, 4x2)                          \
  __KILN_SIMD_MATRIX_NAMES(T, 4x3)                          \
  __KILN_SIMD_MATRIX_NAMES(T, 4x4)
__KILN_SIMD_MATRICES(half)
__KILN_SIMD_MATRICES(float)
