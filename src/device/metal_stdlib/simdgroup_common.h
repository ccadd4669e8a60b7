// How values travel between the threads of a simdgroup: as 64 bits.
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
__KILN_INLINE constexpr ulong pack(T value) {
  return __builtin_bit_cast(typename bits_of_size<sizeof(T)>::type, value);
}
template <class T>
__KILN_INLINE T unpack(ulong bits) {
  return __builtin_bit_cast(T, static_cast<typename bits_of_size<sizeof(T)>::type>(bits));
}

__KILN_INLINE uint lane() { return __kiln_value(ThreadValue::index_in_threadgroup) & 31; }

// The value of the lane that each thread names.
template <class T>
__KILN_INLINE T shuffle(T value, uint source, Line line) {
  return unpack<T>(__kiln_exchange(line, Exchange::shuffle, 32, nullptr, 0, pack(value), source));
}

__KILN_INLINE uint ballot(bool value, Line line) {
  return __kiln_exchange(line, Exchange::ballot, 32, nullptr, 0, value, 0);
}

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
