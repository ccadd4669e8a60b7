// What MLX's device/utils.cuh gives a kernel: shapes and strides by value, indexing, limits, vector loads and stores.
namespace mlx::core::cu {

#ifdef __KILN_HAS_BIT_CAST
static constexpr float inf = INFINITY;
#else
#define inf INFINITY
#endif

namespace __kiln_detail {
// Places in several arrays at once, for structured bindings.
template <typename T, int N>
struct places;
template <typename T>
struct places<T, 2> {
  T a, b;
};
template <typename T>
struct places<T, 3> {
  T a, b, c;
};
template <typename T, int N>
struct values {
  T v_[N];
  __device__ constexpr T& operator[](int i) { return v_[i]; }
  __device__ constexpr const T& operator[](int i) const { return v_[i]; }
  __device__ constexpr T* data() { return v_; }
  __device__ constexpr const T* data() const { return v_; }
  __device__ static constexpr size_t size() { return N; }
  __device__ constexpr T* begin() { return v_; }
  __device__ constexpr const T* begin() const { return v_; }
  __device__ constexpr T* end() { return v_ + N; }
  __device__ constexpr const T* end() const { return v_ + N; }
};
}  // namespace __kiln_detail

// An array of a batch, `index` elements after a parameter of the kernel.
template <typename T>
__device__ T* __kiln_element(T* array, int64_t index) {
#ifdef __KILN_CPU_CUDA
  return __kiln::element(array, index);
#else
  return array + index;
#endif
}

using Shape = __kiln_detail::values<int32_t, MAX_NDIM>;
using Strides = __kiln_detail::values<int64_t, MAX_NDIM>;

template <typename T, int N>
struct alignas(sizeof(T) * N) AlignedVector {
  T val[N];
  __device__ T& operator[](int i) { return val[i]; }
  __device__ T operator[](int i) const { return val[i]; }
};

template <int N, typename T>
__device__ inline bool is_aligned(T* p) {
  return reinterpret_cast<uintptr_t>(p) % (N * sizeof(T)) == 0;
}

// The vector of N elements at N * offset; elements outside `size` are `fallback`.
template <int N, typename T>
__device__ inline AlignedVector<T, N> unsafe_load_vector(const T* p, uint32_t offset) {
  return reinterpret_cast<const AlignedVector<T, N>*>(p)[offset];
}
template <int N, typename T, typename Size>
__device__ inline AlignedVector<T, N> load_vector(const T* p, uint32_t offset, Size size, int64_t stride, T fallback) {
  if (stride == 1 && (offset + 1) * N <= size && is_aligned<N>(p)) return unsafe_load_vector<N>(p, offset);
  AlignedVector<T, N> v;
#pragma unroll
  for (int i = 0; i < N; ++i) v[i] = offset * N + i < size ? p[stride * (offset * N + i)] : fallback;
  return v;
}
template <int N, typename T, typename Size>
__device__ inline AlignedVector<T, N> load_vector(const T* p, uint32_t offset, Size size, T fallback) {
  return load_vector<N>(p, offset, size, int64_t(1), fallback);
}
template <int N, typename T>
__device__ inline AlignedVector<T, N> load_vector(const T* p, uint32_t offset) {
  if (is_aligned<N>(p)) return unsafe_load_vector<N>(p, offset);
  AlignedVector<T, N> v;
#pragma unroll
  for (int i = 0; i < N; ++i) v[i] = p[offset * N + i];
  return v;
}
template <int N, typename T>
__device__ inline void unsafe_store_vector(T* p, uint32_t offset, const AlignedVector<T, N>& v) {
  reinterpret_cast<AlignedVector<T, N>*>(p)[offset] = v;
}
template <int N, typename T, typename Size>
__device__ inline void store_vector(T* p, uint32_t offset, const AlignedVector<T, N>& v, Size size, int64_t stride) {
  if (stride == 1 && (offset + 1) * N <= size && is_aligned<N>(p)) return unsafe_store_vector<N>(p, offset, v);
  for (int i = 0; i < N && offset * N + i < size; ++i) p[stride * (offset * N + i)] = v[i];
}
template <int N, typename T, typename Size>
__device__ inline void store_vector(T* p, uint32_t offset, const AlignedVector<T, N>& v, Size size) {
  store_vector<N>(p, offset, v, size, int64_t(1));
}
template <int N, typename T>
__device__ inline void store_vector(T* p, uint32_t offset, const AlignedVector<T, N>& v) {
  if (is_aligned<N>(p)) return unsafe_store_vector<N>(p, offset, v);
#pragma unroll
  for (int i = 0; i < N; ++i) p[offset * N + i] = v[i];
}

// max, min: the ends of the type, infinite where it has infinities; finite_max, finite_min: the finite ones.
template <typename T>
struct Limits {
  static constexpr bool is_signed = T(-1) < T(0);
  static constexpr __device__ T finite_max() {
    return is_signed ? T((T(1) << (8 * sizeof(T) - 2)) - T(1) + (T(1) << (8 * sizeof(T) - 2))) : T(-1);
  }
  static constexpr __device__ T finite_min() { return is_signed ? T(-finite_max() - T(1)) : T(0); }
  static constexpr __device__ T max() { return finite_max(); }
  static constexpr __device__ T min() { return finite_min(); }
};
template <>
struct Limits<bool> {
  static constexpr __device__ bool max() { return true; }
  static constexpr __device__ bool min() { return false; }
  static constexpr __device__ bool finite_max() { return true; }
  static constexpr __device__ bool finite_min() { return false; }
};
template <>
struct Limits<float> {
  static __KILN_CONSTEXPR __device__ float max() { return INFINITY; }
  static __KILN_CONSTEXPR __device__ float min() { return -INFINITY; }
  static constexpr __device__ float finite_max() { return FLT_MAX; }
  static constexpr __device__ float finite_min() { return -FLT_MAX; }
};
template <>
struct Limits<double> {
  static __KILN_CONSTEXPR __device__ double max() { return __KILN_DOUBLE(0x7ff0000000000000ll); }
  static __KILN_CONSTEXPR __device__ double min() { return __KILN_DOUBLE(0xfff0000000000000ll); }
  static constexpr __device__ double finite_max() { return DBL_MAX; }
  static constexpr __device__ double finite_min() { return -DBL_MAX; }
};
#ifdef __KILN_HALF
template <>
struct Limits<__half> {
  static __device__ __half max() { return __half_raw{0x7c00}; }
  static __device__ __half min() { return __half_raw{0xfc00}; }
  static __device__ __half finite_max() { return __half_raw{0x7bff}; }
  static __device__ __half finite_min() { return __half_raw{0xfbff}; }
};
#endif
#ifdef __KILN_BFLOAT16
template <>
struct Limits<__nv_bfloat16> {
  static __device__ __nv_bfloat16 max() { return __nv_bfloat16_raw{0x7f80}; }
  static __device__ __nv_bfloat16 min() { return __nv_bfloat16_raw{0xff80}; }
  static __device__ __nv_bfloat16 finite_max() { return __nv_bfloat16_raw{0x7f7f}; }
  static __device__ __nv_bfloat16 finite_min() { return __nv_bfloat16_raw{0xff7f}; }
};
#endif

// Where an element of an array lies, from its number in row-contiguous order.
template <typename Index = int64_t>
__device__ inline Index elem_to_loc(Index elem, const int* shape, const int64_t* strides, int ndim) {
  Index place = 0;
  for (int d = ndim - 1; d >= 0 && elem > 0; --d) {
    place += (elem % shape[d]) * Index(strides[d]);
    elem /= shape[d];
  }
  return place;
}
template <typename Index = int64_t>
__device__ inline __kiln_detail::places<Index, 2> elem_to_loc(Index elem, const int* shape, const int64_t* a,
                                                             const int64_t* b, int ndim) {
  return {elem_to_loc<Index>(elem, shape, a, ndim), elem_to_loc<Index>(elem, shape, b, ndim)};
}
template <typename Index = int64_t>
__device__ inline __kiln_detail::places<Index, 3> elem_to_loc(Index elem, const int* shape, const int64_t* a,
                                                             const int64_t* b, const int64_t* c, int ndim) {
  return {elem_to_loc<Index>(elem, shape, a, ndim), elem_to_loc<Index>(elem, shape, b, ndim),
          elem_to_loc<Index>(elem, shape, c, ndim)};
}
// With the number of dimensions known.
template <int NDIM, typename Index = int64_t>
__device__ inline Index elem_to_loc_nd(Index elem, const int* shape, const int64_t* strides) {
  Index place = 0;
#pragma unroll
  for (int d = NDIM - 1; d >= 0; --d) {
    place += (elem % shape[d]) * Index(strides[d]);
    elem /= shape[d];
  }
  return place;
}
template <int NDIM, typename Index = int64_t>
__device__ inline __kiln_detail::places<Index, 2> elem_to_loc_nd(Index elem, const int* shape, const int64_t* a,
                                                                const int64_t* b) {
  return {elem_to_loc_nd<NDIM, Index>(elem, shape, a), elem_to_loc_nd<NDIM, Index>(elem, shape, b)};
}
template <int NDIM, typename Index = int64_t>
__device__ inline __kiln_detail::places<Index, 3> elem_to_loc_nd(Index elem, const int* shape, const int64_t* a,
                                                                const int64_t* b, const int64_t* c) {
  return {elem_to_loc_nd<NDIM, Index>(elem, shape, a), elem_to_loc_nd<NDIM, Index>(elem, shape, b),
          elem_to_loc_nd<NDIM, Index>(elem, shape, c)};
}

// The place of one element after the other, from element 0 on, of the `dim` outermost dimensions of an array. The DIM
// innermost of them are counted; those before are computed anew. Without General there are no others.
template <int DIM, bool General = true, typename Offset = size_t>
struct LoopedElemToLoc {
  int dim;
  LoopedElemToLoc<DIM - 1, General, Offset> inner_looper;
  Offset offset{0};
  int index{0};

  __device__ LoopedElemToLoc(int dim) : dim(dim), inner_looper(dim - 1) {}
  __device__ void next(const int* shape, const int64_t* strides) { next(1, shape, strides); }
  __device__ void next(int n, const int* shape, const int64_t* strides) {
    if (dim == 0) return;
    index += n;
    int size = shape[dim - 1];
    if (index >= size) {
      inner_looper.next(index / size, shape, strides);
      index %= size;
    }
    offset = inner_looper.offset + index * Offset(strides[dim - 1]);
  }
  __device__ Offset location() { return offset; }
};
template <typename Offset>
struct LoopedElemToLoc<1, true, Offset> {
  int dim;
  Offset offset{0};
  int index{0};

  __device__ LoopedElemToLoc(int dim) : dim(dim) {}
  __device__ void next(const int* shape, const int64_t* strides) { next(1, shape, strides); }
  __device__ void next(int n, const int* shape, const int64_t* strides) {
    index += n;
    offset = dim > 1 ? elem_to_loc<Offset>(index, shape, strides, dim) : index * Offset(strides[0]);
  }
  __device__ Offset location() { return offset; }
};
template <typename Offset>
struct LoopedElemToLoc<1, false, Offset> {
  Offset offset{0};

  __device__ LoopedElemToLoc(int) {}
  __device__ void next(const int*, const int64_t* strides) { offset += Offset(strides[0]); }
  __device__ void next(int n, const int*, const int64_t* strides) { offset += n * Offset(strides[0]); }
  __device__ Offset location() { return offset; }
};

}  // namespace mlx::core::cu
