// How an array's elements lie in memory.
#pragma once

#include <cstdint>
#include <span>

#include "kiln/dtype.h"

namespace kiln {

/// The product of the dimensions. Throws ValueError where a dimension is negative or the product exceeds int64.
int64_t element_count(std::span<const int64_t> shape);

/// How many bytes the elements are together. Throws ValueError where element_count() does or the product exceeds int64.
int64_t byte_count(std::span<const int64_t> shape, Dtype dtype);

/// Whether the elements follow one another, the last dimension fastest. Dimensions of one element and empty arrays
/// fit any strides. Strides are in elements.
bool is_row_contiguous(std::span<const int64_t> shape, std::span<const int64_t> strides);

/// Writes the strides of an array whose elements follow one another, the last dimension fastest; in elements.
void write_row_contiguous_strides(std::span<const int64_t> shape, std::span<int64_t> strides);

// Elements, or bytes, [first, end) that an array reaches, relative to the element at index (0, …, 0).
struct ElementRange {
  int64_t first = 0;
  int64_t end = 0;

  bool operator==(const ElementRange&) const = default;
};

/// From the lowest to one past the highest element; empty for an empty array. Throws ValueError on overflow.
ElementRange element_range(std::span<const int64_t> shape, std::span<const int64_t> strides);

/// The same in bytes. Throws ValueError on overflow.
ElementRange byte_range(std::span<const int64_t> shape, std::span<const int64_t> strides, Dtype dtype);

}  // namespace kiln
