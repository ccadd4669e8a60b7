// What NVRTC itself knows of C++'s library.
namespace std {
// The compiler knows its layout.
template <class T>
class initializer_list {
 public:
  __KILN_DEVICE constexpr initializer_list() : first_(nullptr), count_(0) {}
  __KILN_DEVICE constexpr const T* begin() const { return first_; }
  __KILN_DEVICE constexpr const T* end() const { return first_ + count_; }
  __KILN_DEVICE constexpr size_t size() const { return count_; }

 private:
  const T* first_;
  size_t count_;
};
template <class T>
struct remove_reference {
  typedef T type;
};
template <class T>
struct remove_reference<T&> {
  typedef T type;
};
template <class T>
struct remove_reference<T&&> {
  typedef T type;
};
template <class T>
__KILN_DEVICE constexpr typename remove_reference<T>::type&& move(T&& value) noexcept {
  return static_cast<typename remove_reference<T>::type&&>(value);
}
template <class T>
__KILN_DEVICE constexpr T&& forward(typename remove_reference<T>::type& value) noexcept {
  return static_cast<T&&>(value);
}
}  // namespace std
