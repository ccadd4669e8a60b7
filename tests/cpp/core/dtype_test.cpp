#include <gtest/gtest.h>

#include <set>
#include <string>

#include "core/attribute_table.h"
#include "core/dtype_table.h"

namespace kiln {
namespace {

struct Expected {
  Dtype dtype;
  const char* name;
  size_t size;
  const char* metal;
  const char* cuda;
};

// Names as NumPy and MLX print them, spellings as in the texts that MLX generates.
const Expected kExpected[] = {
    {Dtype::kBool, "bool", 1, "bool", "bool"},
    {Dtype::kUInt8, "uint8", 1, "uint8_t", "uint8_t"},
    {Dtype::kUInt16, "uint16", 2, "uint16_t", "uint16_t"},
    {Dtype::kUInt32, "uint32", 4, "uint32_t", "uint32_t"},
    {Dtype::kUInt64, "uint64", 8, "uint64_t", "uint64_t"},
    {Dtype::kInt8, "int8", 1, "int8_t", "int8_t"},
    {Dtype::kInt16, "int16", 2, "int16_t", "int16_t"},
    {Dtype::kInt32, "int32", 4, "int32_t", "int32_t"},
    {Dtype::kInt64, "int64", 8, "int64_t", "int64_t"},
    {Dtype::kFloat16, "float16", 2, "float16_t", "__half"},
    {Dtype::kBFloat16, "bfloat16", 2, "bfloat16_t", "__nv_bfloat16"},
    {Dtype::kFloat32, "float32", 4, "float", "float"},
    {Dtype::kFloat64, "float64", 8, "", "double"},
    {Dtype::kComplex64, "complex64", 8, "complex64_t", "complex64_t"},
};

TEST(Dtype, HasTheRowThatItsNameSays) {
  ASSERT_EQ(std::size(kExpected), kDtypeCount);
  for (const Expected& expected : kExpected) {
    EXPECT_EQ(name_of(expected.dtype), expected.name);
    EXPECT_EQ(size_of(expected.dtype), expected.size) << expected.name;
    EXPECT_EQ(row_of(expected.dtype).metal, expected.metal) << expected.name;
    EXPECT_EQ(row_of(expected.dtype).cuda, expected.cuda) << expected.name;
  }
}

TEST(Dtype, IsFoundByItsName) {
  for (const Expected& expected : kExpected) EXPECT_EQ(dtype_from_name(expected.name), expected.dtype);
  for (const char* name : {"", "float", "Float32", "float32 ", "int", "complex128", "half", "bool_"})
    EXPECT_EQ(dtype_from_name(name), std::nullopt) << name;
}

TEST(Dtype, KnowsOfWhatMetalHasAtomics) {
  std::set<std::string_view> atomic;
  for (const DtypeRow& row : kDtypes)
    if (row.metal_atomic) atomic.insert(row.name);
  EXPECT_EQ(atomic, (std::set<std::string_view>{"bool", "int32", "uint32", "uint64", "float32"}));
}

TEST(Dtype, HasAKind) {
  for (const DtypeRow& row : kDtypes) {
    DtypeKind expected = row.name == "bool"                ? DtypeKind::kBool
                         : row.name.starts_with("uint")    ? DtypeKind::kUnsigned
                         : row.name.starts_with("int")     ? DtypeKind::kSigned
                         : row.name.starts_with("complex") ? DtypeKind::kComplex
                                                           : DtypeKind::kFloat;
    EXPECT_EQ(row.kind, expected) << row.name;
  }
}

// Metal specification, Table 5.8, the rows of compute functions.
TEST(AttributeTable, HasTheSpecificationsTypes) {
  const std::set<std::string_view> vectors = {"dispatch_threads_per_threadgroup",
                                              "grid_origin",
                                              "grid_size",
                                              "thread_position_in_grid",
                                              "thread_position_in_threadgroup",
                                              "threads_per_grid",
                                              "threadgroups_per_grid",
                                              "threadgroup_position_in_grid",
                                              "threads_per_threadgroup"};
  for (const AttributeRow& row : kAttributes)
    EXPECT_EQ(row.type(), vectors.contains(row.name) ? "uint3" : "uint") << row.name;
}

}  // namespace
}  // namespace kiln
