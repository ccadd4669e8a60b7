// What Metal has of <type_traits>.
namespace metal {

template <class T, T V>
struct integral_constant {
  typedef T value_type;
  static constexpr T value = V;
  constexpr operator T() const { return V; }
};
template <bool V>
using bool_constant = integral_constant<bool, V>;
typedef bool_constant<true> true_type;
typedef bool_constant<false> false_type;

template <bool Condition, class T = void>
struct enable_if {};
template <class T>
struct enable_if<true, T> {
  typedef T type;
};
template <bool Condition, class T = void>
using enable_if_t = typename enable_if<Condition, T>::type;

template <bool Condition, class A, class B>
struct conditional {
  typedef A type;
};
template <class A, class B>
struct conditional<false, A, B> {
  typedef B type;
};
template <bool Condition, class A, class B>
using conditional_t = typename conditional<Condition, A, B>::type;

#define __KILN_TRANSFORM(NAME, BUILTIN) \
  template <class T>                    \
  struct NAME {                         \
    typedef BUILTIN(T) type;            \
  };                                    \
  template <class T>                    \
  using NAME##_t = BUILTIN(T);
__KILN_TRANSFORM(remove_const, __remove_const)
__KILN_TRANSFORM(remove_volatile, __remove_volatile)
__KILN_TRANSFORM(remove_cv, __remove_cv)
__KILN_TRANSFORM(remove_reference, __remove_reference_t)
__KILN_TRANSFORM(decay, __decay)
__KILN_TRANSFORM(make_signed, __make_signed)
__KILN_TRANSFORM(make_unsigned, __make_unsigned)

#define __KILN_TRAIT(NAME, ...)                       \
  template <class T>                                  \
  struct NAME : bool_constant<(__VA_ARGS__)> {};      \
  template <class T>                                  \
  constexpr bool NAME##_v = NAME<T>::value;
__KILN_TRAIT(is_integral, __is_integral(T))
__KILN_TRAIT(is_floating_point, __is_floating_point(T))
__KILN_TRAIT(is_arithmetic, __is_arithmetic(T))
__KILN_TRAIT(is_scalar, __is_scalar(T))
__KILN_TRAIT(is_signed, __is_signed(T))
__KILN_TRAIT(is_unsigned, __is_unsigned(T))
__KILN_TRAIT(is_pointer, __is_pointer(T))
__KILN_TRAIT(is_enum, __is_enum(T))
__KILN_TRAIT(is_class, __is_class(T))
__KILN_TRAIT(is_const, __is_const(T))
__KILN_TRAIT(is_reference, __is_reference(T))

template <class T>
struct is_vector : false_type {};
template <class T, int N>
struct is_vector<vec<T, N>> : true_type {};
template <class T>
constexpr bool is_vector_v = is_vector<T>::value;

template <class A, class B>
struct is_same : bool_constant<__is_same(A, B)> {};
template <class A, class B>
constexpr bool is_same_v = __is_same(A, B);

template <class From, class To>
struct is_convertible : bool_constant<__is_convertible_to(From, To)> {};
template <class From, class To>
constexpr bool is_convertible_v = __is_convertible_to(From, To);

template <class T, class... Arguments>
struct is_constructible : bool_constant<__is_constructible(T, Arguments...)> {};
template <class T, class... Arguments>
constexpr bool is_constructible_v = __is_constructible(T, Arguments...);

template <class T>
T&& declval();

}  // namespace metal
