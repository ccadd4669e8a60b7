// What Metal has of <utility>, and uniform<T>. Headers often have a function of one of these names.
namespace metal {

#ifndef __KILN_OWN_swap
template <class T>
__KILN_INLINE constexpr void swap(T& a, T& b) {
  T before = a;
  a = b;
  b = before;
}
#endif

#ifndef __KILN_OWN_move
template <class T>
__KILN_INLINE constexpr __remove_reference_t(T) && move(T&& value) {
  return static_cast<__remove_reference_t(T)&&>(value);
}
#endif

// A value that is the same in all threads, which nothing here makes use of. It becomes a T where one is needed.
#ifndef __KILN_OWN_uniform
template <class T>
struct uniform {
  T __value;

  uniform() = default;
  __KILN_INLINE constexpr uniform(T value) : __value(value) {}
  template <class U, class = typename __kiln::enable_if<!__is_same(U, T) && __is_convertible_to(U, T)>::type>
  __KILN_INLINE constexpr uniform(uniform<U> other) : __value(static_cast<T>(other.__value)) {}
  __KILN_INLINE constexpr operator T&() { return __value; }
  __KILN_INLINE constexpr operator const T&() const { return __value; }
};

#ifndef __KILN_OWN_make_uniform
template <class T>
__KILN_INLINE constexpr uniform<T> make_uniform(T value) {
  return value;
}
#endif
#endif

}  // namespace metal
