#include "targets/cpu/strided_copy.h"

#include <cstring>
#include <vector>

namespace kiln {
namespace {

struct Dimension {
  int64_t size;
  int64_t stride;  // elements
};

// Dimensions of one element are dropped, and dimensions that lie one behind the other become one.
std::vector<Dimension> collapse(std::span<const int64_t> shape, std::span<const int64_t> strides) {
  std::vector<Dimension> dimensions;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) continue;
    if (!dimensions.empty() && dimensions.back().stride == strides[d] * shape[d]) {
      dimensions.back().size *= shape[d];
      dimensions.back().stride = strides[d];
    } else {
      dimensions.push_back({shape[d], strides[d]});
    }
  }
  return dimensions;
}

template <typename T>
T* copy(const T* data, std::span<const Dimension> dimensions, T* out) {
  if (dimensions.empty()) {
    *out = *data;
    return out + 1;
  }
  const Dimension& outer = dimensions.front();
  if (dimensions.size() == 1) {
    if (outer.stride == 1) {
      std::memcpy(out, data, static_cast<size_t>(outer.size) * sizeof(T));
      return out + outer.size;
    }
    for (int64_t i = 0; i < outer.size; ++i) *out++ = data[i * outer.stride];
    return out;
  }
  for (int64_t i = 0; i < outer.size; ++i) out = copy(data + i * outer.stride, dimensions.subspan(1), out);
  return out;
}

}  // namespace

void copy_strided(const void* data, std::span<const int64_t> shape, std::span<const int64_t> strides,
                  size_t element_bytes, void* out) {
  for (int64_t dimension : shape)
    if (dimension == 0) return;
  std::vector<Dimension> dimensions = collapse(shape, strides);
  auto run = [&](auto element) {
    using T = decltype(element);
    copy(static_cast<const T*>(data), std::span<const Dimension>(dimensions), static_cast<T*>(out));
  };
  switch (element_bytes) {
    case 1: return run(uint8_t{});
    case 2: return run(uint16_t{});
    case 4: return run(uint32_t{});
    default: return run(uint64_t{});
  }
}

}  // namespace kiln
