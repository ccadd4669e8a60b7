// Traits that headers also define for themselves.
namespace metal {

// Address spaces are no part of types here.
#ifndef __KILN_OWN_remove_addrspace
template <class T>
struct remove_addrspace {
  typedef T type;
};
#endif
#ifndef __KILN_OWN_remove_addrspace_t
template <class T>
using remove_addrspace_t = T;
#endif

#define __KILN_ADD(NAME, QUALIFIERS)     \
  template <class T>                     \
  struct NAME {                          \
    typedef QUALIFIERS T type;           \
  };
#define __KILN_ADD_T(NAME, QUALIFIERS)   \
  template <class T>                     \
  using NAME = QUALIFIERS T;
#ifndef __KILN_OWN_add_const
__KILN_ADD(add_const, const)
#endif
#ifndef __KILN_OWN_add_const_t
__KILN_ADD_T(add_const_t, const)
#endif
#ifndef __KILN_OWN_add_volatile
__KILN_ADD(add_volatile, volatile)
#endif
#ifndef __KILN_OWN_add_volatile_t
__KILN_ADD_T(add_volatile_t, volatile)
#endif
#ifndef __KILN_OWN_add_cv
__KILN_ADD(add_cv, const volatile)
#endif
#ifndef __KILN_OWN_add_cv_t
__KILN_ADD_T(add_cv_t, const volatile)
#endif

#ifndef __KILN_OWN_is_trivially_copyable
template <class T>
struct is_trivially_copyable : bool_constant<__is_trivially_copyable(T)> {};
#endif
#ifndef __KILN_OWN_is_trivially_copyable_v
template <class T>
constexpr bool is_trivially_copyable_v = __is_trivially_copyable(T);
#endif

// The first operand that decides, or the last.
#ifndef __KILN_OWN_conjunction
template <class...>
struct conjunction : true_type {};
template <class A>
struct conjunction<A> : A {};
template <class A, class... More>
struct conjunction<A, More...> : conditional_t<bool(A::value), conjunction<More...>, A> {};
#ifndef __KILN_OWN_conjunction_v
template <class... A>
constexpr bool conjunction_v = conjunction<A...>::value;
#endif
#endif
#ifndef __KILN_OWN_disjunction
template <class...>
struct disjunction : false_type {};
template <class A>
struct disjunction<A> : A {};
template <class A, class... More>
struct disjunction<A, More...> : conditional_t<bool(A::value), A, disjunction<More...>> {};
#ifndef __KILN_OWN_disjunction_v
template <class... A>
constexpr bool disjunction_v = disjunction<A...>::value;
#endif
#endif
#ifndef __KILN_OWN_negation
template <class A>
struct negation : bool_constant<!bool(A::value)> {};
#ifndef __KILN_OWN_negation_v
template <class A>
constexpr bool negation_v = !bool(A::value);
#endif
#endif

#ifndef __KILN_OWN_integer_sequence
template <class T, T... Values>
struct integer_sequence {
  typedef T value_type;
  static constexpr size_t size() { return sizeof...(Values); }
};
#ifndef __KILN_OWN_make_integer_sequence
template <class T, T Count>
using make_integer_sequence = __make_integer_seq<integer_sequence, T, Count>;
#endif
#endif

}  // namespace metal
