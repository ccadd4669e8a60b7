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

// Text is read here, where accesses are guarded, and not by the target, which would follow any pointer to any zero.
template <unsigned Bytes>
struct text_copy {
  char text[Bytes];
  __KILN_DEVICE explicit text_copy(const char* from) {
    unsigned i = 0;
    for (; i + 1 < Bytes; ++i) {
      char letter = from[i];
      if (letter == '\0') break;
      text[i] = letter;
    }
    text[i] = '\0';
  }
};
constexpr unsigned longest_format = 1024, longest_text = 256;

// An argument while it is printed.
template <class T>
struct printed {
  static constexpr char kind = print_argument<T>::kind;
  unsigned long value;
  __KILN_DEVICE explicit printed(T argument) : value(print_argument<T>::bits(argument)) {}
  __KILN_DEVICE unsigned long bits() const { return value; }
};
template <>
struct printed<const char*> {
  static constexpr char kind = 's';
  bool is_there;
  text_copy<longest_text> copy;
  __KILN_DEVICE explicit printed(const char* argument) : is_there(argument != nullptr), copy(argument) {}
  __KILN_DEVICE unsigned long bits() const { return is_there ? reinterpret_cast<unsigned long>(copy.text) : 0; }
};
template <>
struct printed<char*> : printed<const char*> {
  using printed<const char*>::printed;
};

template <class... Printed>
__KILN_DEVICE int print(const text_copy<longest_format>& format, const Printed&... arguments) {
  static constexpr char kinds[] = {Printed::kind..., '\0'};
  unsigned long values[sizeof...(Printed) + 1] = {arguments.bits()..., 0};
  return __kiln_print(format.text, kinds, values, sizeof...(Printed));
}
}  // namespace __kiln

template <class... T>
__KILN_DEVICE int printf(const char* format, T... arguments) {
  return __kiln::print(__kiln::text_copy<__kiln::longest_format>(format), __kiln::printed<T>(arguments)...);
}

__KILN_DEVICE void __kiln_assertion(bool holds, unsigned line, const char* text) {
  if (!holds) __kiln::__kiln_fail(line, text);  // a literal
}
#define assert(...) __kiln_assertion(static_cast<bool>(__VA_ARGS__), __LINE__, #__VA_ARGS__)
__KILN_DEVICE void __assertfail(const char* text, const char*, unsigned line, const char*, size_t) {
  __kiln::text_copy<__kiln::longest_text> copy(text);
  __kiln::__kiln_fail(line, copy.text);
}
__KILN_DEVICE void __trap(unsigned line = __builtin_LINE()) { __kiln::__kiln_fail(line, nullptr); }
