// Everything Kiln knows of an element type, one row each. A new dtype is an enumerator, a row here, a row in the
// adapters' tables, and a type of that name in the device library.
#pragma once

#include <array>

#include "kiln/dtype.h"

namespace kiln {

enum class DtypeKind : uint8_t { kBool, kUnsigned, kSigned, kFloat, kComplex };

struct DtypeRow {
  Dtype dtype;
  DtypeKind kind;
  uint8_t size;            // bytes
  std::string_view name;   // array libraries' name
  std::string_view metal;  // spelling in a generated Metal signature; empty: Metal has no such type
  std::string_view cuda;   // spelling in a generated CUDA signature
  bool metal_atomic;       // whether Metal has atomic<T> for it
};

// clang-format off
inline constexpr std::array<DtypeRow, kDtypeCount> kDtypes = {{
    {Dtype::kBool,      DtypeKind::kBool,     1, "bool",      "bool",        "bool",           true},
    {Dtype::kUInt8,     DtypeKind::kUnsigned, 1, "uint8",     "uint8_t",     "uint8_t",        false},
    {Dtype::kUInt16,    DtypeKind::kUnsigned, 2, "uint16",    "uint16_t",    "uint16_t",       false},
    {Dtype::kUInt32,    DtypeKind::kUnsigned, 4, "uint32",    "uint32_t",    "uint32_t",       true},
    {Dtype::kUInt64,    DtypeKind::kUnsigned, 8, "uint64",    "uint64_t",    "uint64_t",       true},
    {Dtype::kInt8,      DtypeKind::kSigned,   1, "int8",      "int8_t",      "int8_t",         false},
    {Dtype::kInt16,     DtypeKind::kSigned,   2, "int16",     "int16_t",     "int16_t",        false},
    {Dtype::kInt32,     DtypeKind::kSigned,   4, "int32",     "int32_t",     "int32_t",        true},
    {Dtype::kInt64,     DtypeKind::kSigned,   8, "int64",     "int64_t",     "int64_t",        false},
    {Dtype::kFloat16,   DtypeKind::kFloat,    2, "float16",   "float16_t",   "__half",         false},
    {Dtype::kBFloat16,  DtypeKind::kFloat,    2, "bfloat16",  "bfloat16_t",  "__nv_bfloat16",  false},
    {Dtype::kFloat32,   DtypeKind::kFloat,    4, "float32",   "float",       "float",          true},
    {Dtype::kFloat64,   DtypeKind::kFloat,    8, "float64",   "",            "double",         false},
    {Dtype::kComplex64, DtypeKind::kComplex,  8, "complex64", "complex64_t", "complex64_t",    false},
}};
// clang-format on

static_assert([] {
  for (size_t i = 0; i < kDtypes.size(); ++i)
    if (static_cast<size_t>(kDtypes[i].dtype) != i) return false;
  return true;
}());

constexpr const DtypeRow& row_of(Dtype dtype) { return kDtypes[static_cast<size_t>(dtype)]; }

}  // namespace kiln
