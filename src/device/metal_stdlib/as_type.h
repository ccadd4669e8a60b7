// as_type: the bits of one type as another of the same size.
namespace metal {

template <class To, class From>
__KILN_INLINE constexpr To as_type(From value) {
  static_assert(sizeof(To) == sizeof(From), "as_type needs types of the same size");
  return __builtin_bit_cast(To, value);
}

}  // namespace metal
