// printf, assert and __trap, which the target provides (targets/cpu/kernel_output.cpp).
namespace __kiln {
// Arguments travel as 64 bits each, with a letter that says what they are: i, u (integers), f (double), s (text).
extern "C" int __kiln_print(const char* format, const char* kinds, const unsigned long* values, unsigned count);
// The launch ends with an error when its threads have run.
extern "C" void __kiln_fail(unsigned line, const char* what);

template <class T>
struct print_argument {
  static_assert(__is_integral(T) || __is_floating_point(T) || __is_enum(T) || __is_pointer(T),
                "printf takes numbers, pointers and text");
  static constexpr char kind = __is_floating_point(T) ? 'f' : __is_integral(T) && T(-1) > T(0) ? 'u' : 'i';
  __KILN_DEVICE static unsigned long bits(T value) {
    if constexpr (__is_floating_point(T)) return __builtin_bit_cast(unsigned long, double(value));
    else return static_cast<unsigned long>(value);
  }
};
template <class T>
struct print_argument<T*> {
  static constexpr char kind = 'p';
  __KILN_DEVICE static unsigned long bits(const volatile void* value) { return reinterpret_cast<unsigned long>(value); }
};
template <>
struct print_argument<const char*> {
  static constexpr char kind = 's';
  __KILN_DEVICE static unsigned long bits(const char* value) { return reinterpret_cast<unsigned long>(value); }
};
template <>
struct print_argument<char*> : print_argument<const char*> {};
}  // namespace __kiln

template <class... T>
__KILN_DEVICE int printf(const char* format, T... arguments) {
  static constexpr char kinds[] = {__kiln::print_argument<T>::kind..., '\0'};
  unsigned long values[sizeof...(T) + 1] = {__kiln::print_argument<T>::bits(arguments)..., 0};
  return __kiln::__kiln_print(format, kinds, values, sizeof...(T));
}

__KILN_DEVICE void __kiln_assertion(bool holds, unsigned line, const char* text) {
  if (!holds) __kiln::__kiln_fail(line, text);
}
#define assert(...) __kiln_assertion(static_cast<bool>(__VA_ARGS__), __LINE__, #__VA_ARGS__)
__KILN_DEVICE void __assertfail(const char* text, const char*, unsigned line, const char*, size_t) {
  __kiln::__kiln_fail(line, text);
}
__KILN_DEVICE void __trap(unsigned line = __builtin_LINE()) { __kiln::__kiln_fail(line, nullptr); }
