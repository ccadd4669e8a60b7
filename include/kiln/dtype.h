// Element types of the arrays that kernels read and write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kiln {

/// The type of one array element. The order is the order of the table in `src/core/dtype_table.h`.
enum class Dtype : uint8_t {
  kBool,
  kUInt8,
  kUInt16,
  kUInt32,
  kUInt64,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64,  ///< CUDA dialect only: Metal has no double.
  kComplex64,
};

inline constexpr size_t kDtypeCount = 14;

/// Size of one element in bytes.
size_t size_of(Dtype dtype);

/// The name that array libraries use: "float32", "bfloat16", "bool", …
std::string_view name_of(Dtype dtype);

/// The dtype with that name, if there is one.
std::optional<Dtype> dtype_from_name(std::string_view name);

}  // namespace kiln
