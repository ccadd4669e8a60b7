// Positions of elements in strided arrays. Shapes and strides are those that a kernel gets as `a_shape` and
// `a_strides`; results are in elements, in the type of the index.
#define MLX_MTL_PRAGMA_UNROLL _Pragma("clang loop unroll(full)")

// Of element number `elem`, counted with the last dimension fastest.
template <typename IdxT = int64_t, typename Stride>
METAL_FUNC IdxT elem_to_loc(IdxT elem, const int* shape, const Stride* strides, int ndim) {
  IdxT location = 0;
  for (int d = ndim - 1; d >= 0 && elem > 0; --d) {
    location += (elem % IdxT(shape[d])) * IdxT(strides[d]);
    elem /= IdxT(shape[d]);
  }
  return location;
}

// Of the element whose last index is elem.x and whose last but one is elem.y; elem.z numbers the rest.
template <typename IdxT = int64_t, typename U, typename Stride>
METAL_FUNC IdxT elem_to_loc(vec<U, 3> elem, const int* shape, const Stride* strides, int ndim) {
  IdxT location = IdxT(elem.x) * IdxT(strides[ndim - 1]) + IdxT(elem.y) * IdxT(strides[ndim - 2]);
  U rest = elem.z;
  for (int d = ndim - 3; d >= 0; --d) {
    location += IdxT(rest % U(shape[d])) * IdxT(strides[d]);
    rest /= U(shape[d]);
  }
  return location;
}

template <typename IdxT = int64_t, typename Stride>
METAL_FUNC IdxT elem_to_loc_1(uint elem, const Stride& stride) {
  return IdxT(elem) * IdxT(stride);
}

template <typename IdxT = int64_t, typename U, typename Stride>
METAL_FUNC IdxT elem_to_loc_2(vec<U, 2> elem, const Stride* strides) {
  return IdxT(elem.x) * IdxT(strides[1]) + IdxT(elem.y) * IdxT(strides[0]);
}

template <typename IdxT = int64_t, typename U, typename Stride>
METAL_FUNC IdxT elem_to_loc_3(vec<U, 3> elem, const Stride* strides) {
  return IdxT(elem.x) * IdxT(strides[2]) + IdxT(elem.y) * IdxT(strides[1]) + IdxT(elem.z) * IdxT(strides[0]);
}

// Of the same element in two and in three arrays of one shape.
template <typename IdxT = int64_t, typename U, typename Stride>
METAL_FUNC vec<IdxT, 2> elem_to_loc_2_nd(vec<U, 3> elem, const int* shape, const Stride* a_strides,
                                         const Stride* b_strides, int ndim) {
  return {elem_to_loc<IdxT>(elem, shape, a_strides, ndim), elem_to_loc<IdxT>(elem, shape, b_strides, ndim)};
}

template <typename IdxT = int64_t, typename U, typename Stride>
METAL_FUNC vec<IdxT, 3> elem_to_loc_3_nd(vec<U, 3> elem, const int* shape, const Stride* a_strides,
                                         const Stride* b_strides, const Stride* c_strides, int ndim) {
  return {elem_to_loc<IdxT>(elem, shape, a_strides, ndim), elem_to_loc<IdxT>(elem, shape, b_strides, ndim),
          elem_to_loc<IdxT>(elem, shape, c_strides, ndim)};
}

// The location of one element after another. It begins at element 0; DIM says how many dimensions the caller expects.
template <int DIM, typename OffsetT = size_t, bool General = true>
struct LoopedElemToLoc {
  int dim;
  OffsetT offset{0};
  OffsetT index{0};

  LoopedElemToLoc(int ndim) : dim(ndim) {}

  template <typename Stride>
  void next(const int* shape, const Stride* strides) {
    next(1, shape, strides);
  }
  template <typename Stride>
  void next(int n, const int* shape, const Stride* strides) {
    if (dim == 0) return;
    index += OffsetT(n);
    offset = dim == 1 ? index * OffsetT(strides[0]) : elem_to_loc<OffsetT>(index, shape, strides, dim);
  }
  OffsetT location() { return offset; }
};

// Arrays of one dimension.
template <typename OffsetT>
struct LoopedElemToLoc<1, OffsetT, false> {
  OffsetT offset{0};

  LoopedElemToLoc(int) {}

  template <typename Stride>
  void next(const int*, const Stride* strides) {
    offset += OffsetT(strides[0]);
  }
  template <typename Stride>
  void next(int n, const int*, const Stride* strides) {
    offset += OffsetT(n) * OffsetT(strides[0]);
  }
  OffsetT location() { return offset; }
};
