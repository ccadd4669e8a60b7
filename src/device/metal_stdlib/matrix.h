// Matrices of 2 to 4 columns of 2 to 4 components each, column after column.
//
// Products are sums of columns, from the first to the last, as the specification writes them out; a vector times a
// matrix is a dot product for each column. Operators are friends: a body that multiplies vectors does not look at them.
// Loops over columns are written out, so that the optimiser sees components and not an array from the beginning.
namespace metal {

// The statement for each c below COUNT.
#define __KILN_EACH(COUNT, ...)                                  \
  { constexpr int c = 0; __VA_ARGS__; }                          \
  { constexpr int c = 1; __VA_ARGS__; }                          \
  if constexpr (COUNT > 2) { constexpr int c = 2; __VA_ARGS__; } \
  if constexpr (COUNT > 3) { constexpr int c = 3; __VA_ARGS__; }

#define __KILN_COLUMNS(COUNT, ...)                                                        \
  static_assert(Columns == COUNT, "the arguments do not make up the matrix's columns");   \
  __column all[] = {__VA_ARGS__};                                                         \
  __KILN_EACH(Columns, columns[c] = all[c])

template <class T, int Columns, int Rows = Columns>
struct matrix {
  static_assert(Columns >= 2 && Columns <= 4 && Rows >= 2 && Rows <= 4, "a matrix has 2 to 4 columns and rows");
  static_assert(__is_floating_point(T), "a matrix is of floats");
  typedef vec<T, Rows> __column;
  typedef vec<T, Columns> __row;
  __column columns[Columns];

  matrix() = default;
  // With `s` in the diagonal, zeros elsewhere.
  __KILN_INLINE explicit constexpr matrix(T s) : columns{} {
    __KILN_EACH(Columns, T all[] = {T(c == 0 ? s : T(0)), T(c == 1 ? s : T(0)), T(c == 2 ? s : T(0)),
                                    T(c == 3 ? s : T(0))};
                columns[c] = __make_column(all))
  }
  __KILN_INLINE constexpr matrix(__column a, __column b) : columns{} { __KILN_COLUMNS(2, a, b) }
  __KILN_INLINE constexpr matrix(__column a, __column b, __column c) : columns{} { __KILN_COLUMNS(3, a, b, c) }
  __KILN_INLINE constexpr matrix(__column a, __column b, __column c, __column d) : columns{} {
    __KILN_COLUMNS(4, a, b, c, d)
  }
  // All components, column after column.
  template <class... U, class = typename __kiln::enable_if<sizeof...(U) == Columns * Rows &&
                                                           (__is_arithmetic(U) && ...)>::type>
  __KILN_INLINE constexpr matrix(U... components) : columns{} {
    T all[] = {static_cast<T>(components)...};
    __KILN_EACH(Columns, columns[c] = __make_column(all + c * Rows))
  }
  template <class U>
  __KILN_INLINE explicit matrix(const matrix<U, Columns, Rows>& other) {
    __KILN_EACH(Columns, columns[c] = __column(other.columns[c]))
  }

  // A temporary's columns cannot be written: that would be lost.
  __KILN_INLINE constexpr __column& operator[](size_t c) & { return columns[c]; }
  __KILN_INLINE constexpr const __column& operator[](size_t c) const& { return columns[c]; }
  __KILN_INLINE constexpr __column operator[](size_t c) && { return columns[c]; }

  static __KILN_INLINE constexpr __column __make_column(const T* components) {
    if constexpr (Rows == 2) return {components[0], components[1]};
    else if constexpr (Rows == 3) return {components[0], components[1], components[2]};
    else return {components[0], components[1], components[2], components[3]};
  }

#define __KILN_COLUMN_OPERATOR(OP, OTHER_TYPE, OTHER)                   \
  friend __KILN_INLINE matrix operator OP(matrix a, OTHER_TYPE b) {     \
    __KILN_EACH(Columns, a.columns[c] = a.columns[c] OP OTHER)          \
    return a;                                                           \
  }                                                                     \
  friend __KILN_INLINE matrix& operator OP##=(matrix& a, OTHER_TYPE b) { return a = a OP b; }
  __KILN_COLUMN_OPERATOR(+, const matrix&, b.columns[c])
  __KILN_COLUMN_OPERATOR(-, const matrix&, b.columns[c])
  __KILN_COLUMN_OPERATOR(*, T, b)
  __KILN_COLUMN_OPERATOR(/, T, b)
  friend __KILN_INLINE matrix operator*(T a, matrix b) { return b * a; }
  friend __KILN_INLINE matrix operator+(matrix a) { return a; }
  friend __KILN_INLINE matrix operator-(matrix a) {
    __KILN_EACH(Columns, a.columns[c] = -a.columns[c])
    return a;
  }

  friend __KILN_INLINE __column operator*(const matrix& a, __row b) {
    __column sum = a.columns[0] * b.x + a.columns[1] * b.y;
    if constexpr (Columns > 2) sum += a.columns[2] * b.z;
    if constexpr (Columns > 3) sum += a.columns[3] * b.w;
    return sum;
  }
  friend __KILN_INLINE __row operator*(__column a, const matrix& b) {
    __row result;
    __KILN_EACH(Columns, result[c] = dot(a, b.columns[c]))
    return result;
  }
  template <int OtherColumns>
  friend __KILN_INLINE matrix<T, OtherColumns, Rows> operator*(const matrix& a,
                                                               const matrix<T, OtherColumns, Columns>& b) {
    matrix<T, OtherColumns, Rows> result;
    __KILN_EACH(OtherColumns, result.columns[c] = a * b.columns[c])
    return result;
  }
  friend __KILN_INLINE matrix& operator*=(matrix& a, const matrix<T, Columns, Columns>& b) { return a = a * b; }

  friend __KILN_INLINE bool operator==(const matrix& a, const matrix& b) {
    bool same = true;
    __KILN_EACH(Columns, same = same && all(a.columns[c] == b.columns[c]))
    return same;
  }
  friend __KILN_INLINE bool operator!=(const matrix& a, const matrix& b) { return !(a == b); }
};

template <class T, int Columns, int Rows>
__KILN_INLINE matrix<T, Rows, Columns> transpose(const matrix<T, Columns, Rows>& m) {
  matrix<T, Rows, Columns> result;
  __KILN_EACH(Columns, result.columns[0][c] = m.columns[c].x; result.columns[1][c] = m.columns[c].y;
              if constexpr (Rows > 2) result.columns[2][c] = m.columns[c].z;
              if constexpr (Rows > 3) result.columns[3][c] = m.columns[c].w)
  return result;
}

__KILN_EXACT_BEGIN
// In float for half too, by cofactors of the first column; those of 4 by the minors of its last two columns.
template <class T, int Size>
__KILN_INLINE T determinant(const matrix<T, Size, Size>& m) {
  auto e = [&](int c, int r) { return float(m.columns[c][r]); };
  // Of rows i and j of the last two columns.
  auto minor = [&](int i, int j) {
    return __kiln::difference_of_products(e(Size - 2, i), e(Size - 1, j), e(Size - 2, j), e(Size - 1, i));
  };
  if constexpr (Size == 2) {
    return T(minor(0, 1));
  } else if constexpr (Size == 3) {
    return T(e(0, 0) * minor(1, 2) - e(0, 1) * minor(0, 2) + e(0, 2) * minor(0, 1));
  } else {
    // Of rows i, j and k of the last three columns.
    auto larger_minor = [&](int i, int j, int k) {
      return e(1, i) * minor(j, k) - e(1, j) * minor(i, k) + e(1, k) * minor(i, j);
    };
    return T(e(0, 0) * larger_minor(1, 2, 3) - e(0, 1) * larger_minor(0, 2, 3) + e(0, 2) * larger_minor(0, 1, 3) -
             e(0, 3) * larger_minor(0, 1, 2));
  }
}
__KILN_EXACT_END

#define __KILN_MATRIX_NAMES(T, C)   \
  typedef matrix<T, C, 2> T##C##x2; \
  typedef matrix<T, C, 3> T##C##x3; \
  typedef matrix<T, C, 4> T##C##x4;
#define __KILN_MATRICES(T)  \
  __KILN_MATRIX_NAMES(T, 2) \
  __KILN_MATRIX_NAMES(T, 3) \
  __KILN_MATRIX_NAMES(T, 4)
__KILN_MATRICES(half)
__KILN_MATRICES(float)

}  // namespace metal
