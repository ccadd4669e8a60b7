// Matrices of 8 by 8 elements that the 32 threads of a simdgroup hold together.
//
// Each thread has two elements, as Apple's GPUs give them out, which bodies rely on: lane l holds those of row
// (l >> 2 & 4) + (l >> 1 & 3) and of columns c and c + 1 with c = (l >> 1 & 4) + 2 (l & 1). Loads and stores are each
// thread's own. Products are engines' (`__kiln_matrix_product`): sums in float and of ascending k, with one fma each.
namespace metal {

template <class T, int Columns, int Rows = Columns>
struct simdgroup_matrix {
  static_assert(Columns == 8 && Rows == 8, "a simdgroup_matrix has 8 columns and 8 rows");
  static_assert(__is_floating_point(T), "a simdgroup_matrix is of float, half or bfloat");
  vec<T, 2> __elements;
  static constexpr uint __type = is_same<T, half>::value ? 1 : is_same<T, bfloat>::value ? 2 : 0;

  simdgroup_matrix() = default;
  // With `value` in the diagonal, zeros elsewhere.
  __KILN_INLINE explicit simdgroup_matrix(T value)
      : __elements(__row() == __column() ? value : T(0), __row() == __column() + 1 ? value : T(0)) {}

  __KILN_INLINE vec<T, 2>& thread_elements() { return __elements; }
  __KILN_INLINE const vec<T, 2>& thread_elements() const { return __elements; }

  static __KILN_INLINE uint __row() {
    return (__kiln::__kiln_matrix_lane() >> 2 & 4) | (__kiln::__kiln_matrix_lane() >> 1 & 3);
  }
  static __KILN_INLINE uint __column() {
    return (__kiln::__kiln_matrix_lane() >> 1 & 4) | (__kiln::__kiln_matrix_lane() & 1) << 1;
  }

  // Of the thread's first element, from `origin` on; the second one's is `step` behind it. `origin` is the place in
  // memory, column and row, whether the matrix is transposed or not.
  struct __place {
    ulong first, step;
  };
  template <class U>
  static __KILN_INLINE __place __place_in_memory(ulong elements_per_row, vec<U, 2> origin, bool transpose) {
    ulong row = transpose ? __column() : __row(), column = transpose ? __row() : __column();
    return {(origin.y + row) * elements_per_row + origin.x + column, transpose ? elements_per_row : 1};
  }

  template <class U>
  friend __KILN_INLINE simdgroup_matrix operator*(const simdgroup_matrix& a, const simdgroup_matrix<U, 8, 8>& b) {
    simdgroup_matrix result;
    simdgroup_multiply(result, a, b);
    return result;
  }
};

typedef simdgroup_matrix<float, 8, 8> simdgroup_float8x8;
typedef simdgroup_matrix<half, 8, 8> simdgroup_half8x8;
typedef simdgroup_matrix<bfloat, 8, 8> simdgroup_bfloat8x8;

template <class T, int Columns, int Rows, class U>
__KILN_INLINE simdgroup_matrix<T, Columns, Rows> make_filled_simdgroup_matrix(U value) {
  simdgroup_matrix<T, Columns, Rows> result;
  result.__elements = vec<T, 2>(T(value));
  return result;
}

// U is never another type; it keeps ulong2 from being defined here.
template <class T, class U = ulong>
__KILN_INLINE void simdgroup_load(simdgroup_matrix<T, 8, 8>& d, const T* source, ulong elements_per_row = 8,
                                  __kiln::converted<vec<U, 2>> matrix_origin = U(0), bool transpose_matrix = false) {
  auto place = d.__place_in_memory(elements_per_row, matrix_origin, transpose_matrix);
  d.__elements = vec<T, 2>(source[place.first], source[place.first + place.step]);
}
template <class T, class U = ulong>
__KILN_INLINE void simdgroup_store(const simdgroup_matrix<T, 8, 8>& a, T* destination, ulong elements_per_row = 8,
                                   __kiln::converted<vec<U, 2>> matrix_origin = U(0), bool transpose_matrix = false) {
  auto place = a.__place_in_memory(elements_per_row, matrix_origin, transpose_matrix);
  destination[place.first] = a.__elements.x;
  destination[place.first + place.step] = a.__elements.y;
}

}  // namespace metal

__KILN_EXACT_BEGIN
namespace metal {

// d = a b + c; every matrix may be of another type.
template <class R, class T, class U, class V>
__KILN_INLINE void simdgroup_multiply_accumulate(simdgroup_matrix<R, 8, 8>& d, const simdgroup_matrix<T, 8, 8>& a,
                                                 const simdgroup_matrix<U, 8, 8>& b,
                                                 const simdgroup_matrix<V, 8, 8>& c, __KILN_CALLERS_LINE) {
  ulong both = __kiln::__kiln_matrix_product(
      line, a.__type, b.__type, float(a.__elements.x), float(a.__elements.y), float(b.__elements.x),
      float(b.__elements.y), float(c.__elements.x), float(c.__elements.y));
  d.__elements = vec<R, 2>(R(__kiln::unpack<float>(both)), R(__kiln::unpack<float>(both >> 32)));
}

template <class R, class T, class U>
__KILN_INLINE void simdgroup_multiply(simdgroup_matrix<R, 8, 8>& d, const simdgroup_matrix<T, 8, 8>& a,
                                      const simdgroup_matrix<U, 8, 8>& b, __KILN_CALLERS_LINE) {
  simdgroup_multiply_accumulate(d, a, b, make_filled_simdgroup_matrix<R, 8, 8>(R(0)), line);
}

}  // namespace metal
__KILN_EXACT_END
