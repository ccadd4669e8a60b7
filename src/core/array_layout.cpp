#include "core/array_layout.h"

#include "core/text.h"
#include "kiln/error.h"

namespace kiln {

int64_t element_count(std::span<const int64_t> shape) {
  int64_t count = 1;
  bool is_empty = false;
  bool overflows = false;
  for (int64_t dimension : shape) {
    if (dimension < 0) throw ValueError(concat("array dimension ", dimension, " is negative"));
    is_empty = is_empty || dimension == 0;
    overflows = overflows || __builtin_mul_overflow(count, dimension, &count);
  }
  if (is_empty) return 0;
  if (overflows) throw ValueError("array has more than 2^63 - 1 elements");
  return count;
}

int64_t byte_count(std::span<const int64_t> shape, Dtype dtype) {
  int64_t bytes;
  if (__builtin_mul_overflow(element_count(shape), static_cast<int64_t>(size_of(dtype)), &bytes))
    throw ValueError("array has more than 2^63 - 1 bytes");
  return bytes;
}

bool is_row_contiguous(std::span<const int64_t> shape, std::span<const int64_t> strides) {
  // An empty array fits whatever its strides are, and the product of its other dimensions may be anything.
  for (int64_t dimension : shape)
    if (dimension == 0) return true;
  int64_t expected = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] == 1) continue;
    if (strides[d] != expected) return false;
    expected *= shape[d];
  }
  return true;
}

void write_row_contiguous_strides(std::span<const int64_t> shape, std::span<int64_t> strides) {
  // Of an empty array they may exceed int64; nobody goes by them.
  uint64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0; stride *= static_cast<uint64_t>(shape[d]))
    strides[d] = static_cast<int64_t>(stride);
}

ElementRange element_range(std::span<const int64_t> shape, std::span<const int64_t> strides) {
  ElementRange range{0, 0};
  bool overflows = false;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0) return {0, 0};
    int64_t span;
    overflows = overflows || __builtin_mul_overflow(shape[d] - 1, strides[d], &span);
    int64_t& bound = span < 0 ? range.first : range.end;
    overflows = overflows || __builtin_add_overflow(bound, span, &bound);
  }
  overflows = overflows || __builtin_add_overflow(range.end, 1, &range.end);
  if (overflows) throw ValueError("array's strides reach beyond 2^63 elements");
  return range;
}

ElementRange byte_range(std::span<const int64_t> shape, std::span<const int64_t> strides, Dtype dtype) {
  ElementRange range = element_range(shape, strides);
  auto size = static_cast<int64_t>(size_of(dtype));
  if (__builtin_mul_overflow(range.first, size, &range.first) || __builtin_mul_overflow(range.end, size, &range.end))
    throw ValueError("array's strides reach beyond 2^63 bytes");
  return range;
}

}  // namespace kiln
