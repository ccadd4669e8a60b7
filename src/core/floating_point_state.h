// How the processor computes with floating-point numbers, which each thread has a setting of.
#pragma once

#ifdef __SSE__
#include <xmmintrin.h>
#endif

namespace kiln {

// While it lives, this thread rounds to nearest, keeps subnormal numbers and raises no traps; afterwards it computes as
// before. Programs change these settings (fesetround, libraries built with -ffast-math), and a new thread takes over
// its creator's, whereas a kernel's results may depend on neither.
class DefaultFloatingPoint {
 public:
#ifdef __SSE__
  DefaultFloatingPoint() : before_(_mm_getcsr()) { _mm_setcsr(kDefault); }
  ~DefaultFloatingPoint() { _mm_setcsr(before_); }
#else
  DefaultFloatingPoint() = default;
#endif
  DefaultFloatingPoint(const DefaultFloatingPoint&) = delete;
  DefaultFloatingPoint& operator=(const DefaultFloatingPoint&) = delete;

#ifdef __SSE__
 private:
  static constexpr unsigned kDefault = 0x1f80;
  unsigned before_;
#endif
};

}  // namespace kiln
