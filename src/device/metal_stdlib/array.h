// metal::array.
namespace metal {

template <class T, size_t N>
struct array {
  T __elements[N];

  constexpr T& operator[](size_t i) { return __elements[i]; }
  constexpr const T& operator[](size_t i) const { return __elements[i]; }
  constexpr T& at(size_t i) { return __elements[i]; }
  constexpr const T& at(size_t i) const { return __elements[i]; }
  constexpr T& front() { return __elements[0]; }
  constexpr const T& front() const { return __elements[0]; }
  constexpr T& back() { return __elements[N - 1]; }
  constexpr const T& back() const { return __elements[N - 1]; }
  constexpr T* data() { return __elements; }
  constexpr const T* data() const { return __elements; }
  constexpr T* begin() { return __elements; }
  constexpr const T* begin() const { return __elements; }
  constexpr T* end() { return __elements + N; }
  constexpr const T* end() const { return __elements + N; }
  constexpr size_t size() const { return N; }
  constexpr bool empty() const { return N == 0; }
  void fill(const T& value) {
    for (size_t i = 0; i < N; ++i) __elements[i] = value;
  }
};

template <class T, class... More>
constexpr array<T, 1 + sizeof...(More)> make_array(T first, More... more) {
  return {{first, static_cast<T>(more)...}};
}

}  // namespace metal
