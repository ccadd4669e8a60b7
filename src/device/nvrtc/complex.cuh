// complex64_t, and complex_t<T>. Beside the headers of cuda::std it is cuda::std::complex.
namespace mlx::core::cu {

#ifdef __KILN_CUDA_STD
template <typename T>
using complex_t = cuda::std::complex<T>;
#else
template <typename T>
struct alignas(2 * sizeof(T)) complex_t {
  using value_type = T;
  __device__ constexpr complex_t(T re = T(), T im = T()) : re_(re), im_(im) {}
  template <typename U>
  __device__ constexpr complex_t(const complex_t<U>& z) : re_(T(z.real())), im_(T(z.imag())) {}
  __device__ constexpr T real() const { return re_; }
  __device__ constexpr T imag() const { return im_; }
  __device__ constexpr void real(T value) { re_ = value; }
  __device__ constexpr void imag(T value) { im_ = value; }
  __device__ complex_t& operator=(T value) {
    re_ = value;
    im_ = T();
    return *this;
  }
  __device__ complex_t& operator+=(const complex_t& z) { return *this = *this + z; }
  __device__ complex_t& operator-=(const complex_t& z) { return *this = *this - z; }
  __device__ complex_t& operator*=(const complex_t& z) { return *this = *this * z; }
  __device__ complex_t& operator/=(const complex_t& z) { return *this = *this / z; }

  // Friends, so that a number beside a complex one is converted.
  friend __device__ constexpr complex_t operator+(const complex_t& a, const complex_t& b) {
    return {a.re_ + b.re_, a.im_ + b.im_};
  }
  friend __device__ constexpr complex_t operator-(const complex_t& a, const complex_t& b) {
    return {a.re_ - b.re_, a.im_ - b.im_};
  }
  friend __device__ constexpr complex_t operator*(const complex_t& a, const complex_t& b) {
    return {a.re_ * b.re_ - a.im_ * b.im_, a.re_ * b.im_ + a.im_ * b.re_};
  }
  friend __device__ constexpr complex_t operator/(const complex_t& a, const complex_t& b) {
    T size = b.re_ * b.re_ + b.im_ * b.im_;
    return {(a.re_ * b.re_ + a.im_ * b.im_) / size, (a.im_ * b.re_ - a.re_ * b.im_) / size};
  }
  friend __device__ constexpr complex_t operator+(const complex_t& z) { return z; }
  friend __device__ constexpr complex_t operator-(const complex_t& z) { return {-z.re_, -z.im_}; }
  friend __device__ constexpr bool operator==(const complex_t& a, const complex_t& b) {
    return a.re_ == b.re_ && a.im_ == b.im_;
  }
  friend __device__ constexpr bool operator!=(const complex_t& a, const complex_t& b) { return !(a == b); }

  friend __device__ T real(const complex_t& z) { return z.re_; }
  friend __device__ T imag(const complex_t& z) { return z.im_; }
  friend __device__ T abs(const complex_t& z) { return ::hypot(z.re_, z.im_); }
  friend __device__ T arg(const complex_t& z) { return ::atan2(z.im_, z.re_); }
  friend __device__ T norm(const complex_t& z) { return z.re_ * z.re_ + z.im_ * z.im_; }
  friend __device__ complex_t conj(const complex_t& z) { return {z.re_, -z.im_}; }
  friend __device__ complex_t exp(const complex_t& z) {
    T size = ::exp(z.re_), sine, cosine;
    ::sincos(z.im_, &sine, &cosine);
    return {size * cosine, size * sine};
  }
  friend __device__ complex_t log(const complex_t& z) { return {::log(abs(z)), arg(z)}; }
  friend __device__ complex_t sqrt(const complex_t& z) {
    T size = abs(z);
    if (size == T(0)) return {T(0), z.im_};
    T half = ::sqrt((size + ::fabs(z.re_)) / 2);
    if (z.re_ >= T(0)) return {half, z.im_ / (2 * half)};
    return {::fabs(z.im_) / (2 * half), ::copysign(half, z.im_)};
  }

 private:
  T re_, im_;
};
#endif

using complex64_t = complex_t<float>;
using complex128_t = complex_t<double>;

template <typename T>
inline constexpr bool is_complex_v = false;
template <typename T>
inline constexpr bool is_complex_v<complex_t<T>> = true;
template <typename T>
struct is_complex {
  static constexpr bool value = is_complex_v<T>;
};

// As MLX orders and divides them: by the real part, then by the imaginary one; each part for itself.
template <typename T>
__device__ bool operator<(complex_t<T> a, complex_t<T> b) {
  return a.real() < b.real() || (a.real() == b.real() && a.imag() < b.imag());
}
template <typename T>
__device__ bool operator>(complex_t<T> a, complex_t<T> b) {
  return b < a;
}
template <typename T>
__device__ bool operator<=(complex_t<T> a, complex_t<T> b) {
  return !(b < a);
}
template <typename T>
__device__ bool operator>=(complex_t<T> a, complex_t<T> b) {
  return !(a < b);
}
template <typename T>
__device__ complex_t<T> operator%(complex_t<T> a, complex_t<T> b) {
  return {a.real() - ::floor(a.real() / b.real()) * b.real(), a.imag() - ::floor(a.imag() / b.imag()) * b.imag()};
}

}  // namespace mlx::core::cu
