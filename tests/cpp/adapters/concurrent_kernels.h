// Kernels for tests in which many threads use them, each with the values that it has to give. Inputs are whole
// simdgroups of floats; x[i] is `input(i)`.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "core/text.h"

namespace kiln {

inline float input(size_t i) { return static_cast<float>(i % 251); }

inline std::vector<float> inputs(size_t count) {
  std::vector<float> x(count);
  for (size_t i = 0; i < count; ++i) x[i] = input(i);
  return x;
}

struct NumberedKernel {
  static constexpr int kKinds = 4;
  static constexpr size_t kSimdgroup = 32;

  int number;

  std::string name() const { return concat("kernel_", number); }

  // By turns code for each shape, threads that wait at barriers and in simdgroups, and a plain loop.
  std::string source() const {
    constexpr const char* kIndex = "uint i = thread_position_in_grid.x, l = thread_index_in_threadgroup;\n";
    switch (number % kKinds) {
      case 0: return concat(kIndex, "y[i] = x[i] * ", number, " + x_shape[0];");
      case 1:
        return concat(kIndex, "threadgroup float s[32];\ns[l] = x[i];\n",
                      "threadgroup_barrier(mem_flags::mem_threadgroup);\ny[i] = s[31 - l] + ", number, ";");
      case 2: return concat(kIndex, "y[i] = simd_max(x[i]) + ", number, ";");
      default: return concat(kIndex, "y[i] = ", number, " - x[i];");
    }
  }

  float expected(size_t i, size_t count) const {
    auto n = static_cast<float>(number);
    size_t first = i / kSimdgroup * kSimdgroup;
    switch (number % kKinds) {
      case 0: return input(i) * n + static_cast<float>(count);
      case 1: return input(first + 31 - (i - first)) + n;
      case 2: {
        float most = input(first);
        for (size_t lane = 1; lane < kSimdgroup; ++lane) most = std::max(most, input(first + lane));
        return most + n;
      }
      default: return n - input(i);
    }
  }

  std::vector<float> expected(size_t count) const {
    std::vector<float> y(count);
    for (size_t i = 0; i < count; ++i) y[i] = expected(i, count);
    return y;
  }
};

}  // namespace kiln
