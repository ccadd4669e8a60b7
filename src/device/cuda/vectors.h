// Vectors, dim3, and where a thread is.
#define __KILN_CUDA_VECTOR(NAME, T, ALIGN2, ALIGN4)                                                       \
  struct NAME##1 {                                                                                        \
    T x;                                                                                                  \
  };                                                                                                      \
  struct __align__(ALIGN2) NAME##2 {                                                                      \
    T x, y;                                                                                               \
  };                                                                                                      \
  struct NAME##3 {                                                                                        \
    T x, y, z;                                                                                            \
  };                                                                                                      \
  struct __align__(ALIGN4) NAME##4 {                                                                      \
    T x, y, z, w;                                                                                         \
  };                                                                                                      \
  __KILN_DEVICE constexpr NAME##1 make_##NAME##1(T x) { return {x}; }                                     \
  __KILN_DEVICE constexpr NAME##2 make_##NAME##2(T x, T y) { return {x, y}; }                             \
  __KILN_DEVICE constexpr NAME##3 make_##NAME##3(T x, T y, T z) { return {x, y, z}; }                     \
  __KILN_DEVICE constexpr NAME##4 make_##NAME##4(T x, T y, T z, T w) { return {x, y, z, w}; }
__KILN_CUDA_VECTOR(char, signed char, 2, 4)
__KILN_CUDA_VECTOR(uchar, unsigned char, 2, 4)
__KILN_CUDA_VECTOR(short, short, 4, 8)
__KILN_CUDA_VECTOR(ushort, unsigned short, 4, 8)
__KILN_CUDA_VECTOR(int, int, 8, 16)
__KILN_CUDA_VECTOR(uint, unsigned int, 8, 16)
__KILN_CUDA_VECTOR(long, long, 16, 16)
__KILN_CUDA_VECTOR(ulong, unsigned long, 16, 16)
__KILN_CUDA_VECTOR(longlong, long long, 16, 16)
__KILN_CUDA_VECTOR(ulonglong, unsigned long long, 16, 16)
__KILN_CUDA_VECTOR(float, float, 8, 16)
__KILN_CUDA_VECTOR(double, double, 16, 16)

namespace __kiln {
// Three of the values that an engine gives to a thread, from `First` on. Errors that name the two types say `uint3` and
// `dim3` in their place (compiler/clang/dialects/cuda_tokens.cpp).
template <unsigned First>
struct uint3_of {
  __KILN_DEVICE static unsigned __get_x() { return __kiln_value(First); }
  __KILN_DEVICE static unsigned __get_y() { return __kiln_value(First + 1); }
  __KILN_DEVICE static unsigned __get_z() { return __kiln_value(First + 2); }
  __declspec(property(get = __get_x)) unsigned x;
  __declspec(property(get = __get_y)) unsigned y;
  __declspec(property(get = __get_z)) unsigned z;
  __KILN_DEVICE operator uint3() const { return {__get_x(), __get_y(), __get_z()}; }
};
template <unsigned First>
struct dim3_of : uint3_of<First> {};
}  // namespace __kiln

struct dim3 {
  unsigned int x, y, z;
  __KILN_DEVICE constexpr dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1) : x(x), y(y), z(z) {}
  __KILN_DEVICE constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  template <unsigned First>
  __KILN_DEVICE dim3(__kiln::uint3_of<First> p) : dim3(uint3(p)) {}
  __KILN_DEVICE constexpr operator uint3() const { return {x, y, z}; }
};

inline constexpr __kiln::uint3_of<__kiln::ThreadValue::position_in_threadgroup> threadIdx{};
inline constexpr __kiln::uint3_of<__kiln::ThreadValue::threadgroup_position> blockIdx{};
inline constexpr __kiln::dim3_of<__kiln::ThreadValue::full_threads_per_threadgroup> blockDim{};
inline constexpr __kiln::dim3_of<__kiln::ThreadValue::threadgroups_per_grid> gridDim{};
inline constexpr int warpSize = 32;
