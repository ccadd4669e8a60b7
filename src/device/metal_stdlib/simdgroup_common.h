// How values travel between the threads of a simdgroup.
//
// Values travel as 64 bits. A combine function works on the values of all 32 lanes at once, [0, 32), and their second
// operands, [32, 64), and writes their results, [64, 96); only the lanes in `mask` take part.
// Each lane in turn. Unrolled, such loops would take most of a kernel's compilation.
#define __KILN_LANES _Pragma("clang loop unroll(disable)") for (uint l = 0; l < 32; ++l)

namespace __kiln {

template <unsigned Bytes>
struct bits_of_size;
template <>
struct bits_of_size<1> {
  typedef uchar type;
};
template <>
struct bits_of_size<2> {
  typedef ushort type;
};
template <>
struct bits_of_size<4> {
  typedef uint type;
};
template <>
struct bits_of_size<8> {
  typedef ulong type;
};

template <class T>
__KILN_INLINE ulong pack(T value) {
  return __builtin_bit_cast(typename bits_of_size<sizeof(T)>::type, value);
}
template <class T>
__KILN_INLINE T unpack(ulong bits) {
  return __builtin_bit_cast(T, static_cast<typename bits_of_size<sizeof(T)>::type>(bits));
}

__KILN_INLINE uint lane() { return __kiln_value(18) & 31; }

// The value of the lane that each thread names; 0 where that lane takes no part.
inline void combine_shuffle(ulong* payload, uint mask) {
  __KILN_LANES {
    uint source = payload[32 + l] & 31;
    payload[64 + l] = mask >> source & 1 ? payload[source] : 0;
  }
}

template <class T>
__KILN_INLINE T shuffle(T value, uint source, Line line) {
  return unpack<T>(__kiln_exchange(line, combine_shuffle, pack(value), source));
}

// Each lane's bit: whether its value is not 0.
inline void combine_ballot(ulong* payload, uint mask) {
  uint set = 0;
  __KILN_LANES
    if (mask >> l & 1 && payload[l]) set |= 1u << l;
  __KILN_LANES payload[64 + l] = set;
}

__KILN_INLINE uint ballot(bool value, Line line) { return __kiln_exchange(line, combine_ballot, value, 0); }

template <class T>
struct without_bool {
  typedef T type;
};
template <>
struct without_bool<bool> {
  typedef int type;
};
// The type in which a reduction takes a scalar of type T: its own, but for bool, which Metal's overloads take as int.
template <class T>
using reduced = typename enable_if<__is_arithmetic(T), typename without_bool<T>::type>::type;
// The type in which a shuffle takes a scalar of type T.
template <class T>
using shuffled = typename enable_if<__is_arithmetic(T), T>::type;

}  // namespace __kiln
