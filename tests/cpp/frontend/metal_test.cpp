// docs/language.md 1.1. The expected texts are what MLX 0.32 prints for the same calls, but for the function's name;
// that this holds for any call is what tests/python/test_signatures.py shows.
#include <gtest/gtest.h>

#include "core/attribute_table.h"
#include "core/text.h"
#include "frontend/signature_test_base.h"

namespace kiln {
namespace {

std::string metal_text(const SignatureCase& c) { return c.write(&write_metal).text; }

TEST(MetalText, OfTheSmallestKernel) {
  EXPECT_EQ(metal_text({}), R"([[kernel]] void custom_kernel_k_float(
  device float* out [[buffer(0)]]) {
out[0] = 1;
}
)");
}

TEST(MetalText, OfEveryKindOfArgument) {
  SignatureCase c;
  c.name = "my exp";
  c.body = "uint e = thread_position_in_grid.x;\nout[e] = a[e] + s + b[0] + a_shape[0] + a_strides[1] + a_ndim;";
  c.input_names = {"a", "s", "b"};
  c.inputs = {kArray, kScalar, kSmallArray};
  c.template_arguments = {{"T", Dtype::kBFloat16}, {"N", int32_t{-3}}, {"F", true}};
  KernelUnit unit = c.write(&write_metal);
  EXPECT_EQ(unit.text, R"(template <typename T, int N, bool F>
[[kernel]] void custom_kernel_my_exp_bfloat16_t__3_1_float_floats_floatc_float(
  const device float* a [[buffer(0)]],
  const constant int* a_shape [[buffer(1)]],
  const constant int64_t* a_strides [[buffer(2)]],
  const constant int& a_ndim [[buffer(3)]],
  const constant float& s [[buffer(4)]],
  const constant float* b [[buffer(5)]],
  device float* out [[buffer(6)]],
  uint3 thread_position_in_grid [[thread_position_in_grid]]) {
uint e = thread_position_in_grid.x;
out[e] = a[e] + s + b[0] + a_shape[0] + a_strides[1] + a_ndim;
}

template [[host_name("custom_kernel_my_exp_bfloat16_t__3_1_float_floats_floatc_float")]] [[kernel]] decltype(custom_kernel_my_exp_bfloat16_t__3_1_float_floats_floatc_float<bfloat16_t, -3, 1>) custom_kernel_my_exp_bfloat16_t__3_1_float_floats_floatc_float<bfloat16_t, -3, 1>;
)");
  EXPECT_EQ(unit.entry, "custom_kernel_my_exp_bfloat16_t__3_1_float_floats_floatc_float<bfloat16_t, -3, 1>");
  EXPECT_EQ(unit.name, "my exp");
  EXPECT_EQ(unit.dialect, Dialect::kMetal);
}

TEST(MetalText, DescribesItsParameters) {
  SignatureCase c;
  c.body = "a_ndim; a_shape; a_strides; grid_size; grid_origin;";
  c.input_names = {"h", "a"};
  c.inputs = {{Dtype::kFloat16, true, true}, {Dtype::kComplex64, false, false}};
  c.outputs = {Dtype::kUInt64};
  c.atomic_outputs = true;
  KernelUnit unit = c.write(&write_metal);
  struct Expected {
    ParameterRole role;
    uint32_t argument;
    const char* element;
    uint32_t element_bytes, alignment;
    bool by_reference;
  };
  const Expected expected[] = {
      {ParameterRole::kInput, 0, "float16_t", 2, 2, true}, {ParameterRole::kInput, 1, "complex64_t", 8, 4, false},
      {ParameterRole::kShape, 1, "int", 4, 4, false},      {ParameterRole::kStrides, 1, "int64_t", 8, 8, false},
      {ParameterRole::kNdim, 1, "int", 4, 4, true},        {ParameterRole::kOutput, 0, "atomic<uint64_t>", 8, 8, false},
  };
  ASSERT_EQ(unit.parameters.size(), std::size(expected));
  for (size_t i = 0; i < std::size(expected); ++i) {
    const KernelParameter& parameter = unit.parameters[i];
    EXPECT_EQ(parameter.role, expected[i].role) << i;
    EXPECT_EQ(parameter.argument, expected[i].argument) << i;
    EXPECT_EQ(parameter.element, expected[i].element) << i;
    EXPECT_EQ(parameter.element_bytes, expected[i].element_bytes) << i;
    EXPECT_EQ(parameter.alignment, expected[i].alignment) << i;
    EXPECT_EQ(parameter.by_reference, expected[i].by_reference) << i;
    EXPECT_EQ(parameter.is_written(), expected[i].role == ParameterRole::kOutput) << i;
  }
  ASSERT_EQ(unit.attributes.size(), 2u);
  EXPECT_EQ(kAttributes[unit.attributes[0]].name, "grid_origin");
  EXPECT_EQ(kAttributes[unit.attributes[1]].name, "grid_size");
}

TEST(MetalText, HasAttributesInAlphabeticalOrder) {
  SignatureCase c;
  for (auto row = kAttributes.rbegin(); row != kAttributes.rend(); ++row) c.body += concat("\n", row->name, ";");
  std::string result = metal_text(c);
  size_t last = 0;
  for (const AttributeRow& row : kAttributes) {
    std::string line = concat("  ", row.type(), " ", row.name, " [[", row.name, "]]");
    size_t at = result.find(line);
    ASSERT_NE(at, std::string::npos) << row.name;
    EXPECT_GT(at, last) << row.name;
    last = at;
  }
}

TEST(MetalText, HasShapesOnlyWhereTheBodyUsesThem) {
  for (int used = 0; used < 8; ++used) {
    SignatureCase c;
    c.body = "out[0] = a[0];";
    if (used & 1) c.body += "a_shape;";
    if (used & 2) c.body += "a_strides;";
    if (used & 4) c.body += "a_ndim;";
    c.input_names = {"a", "zero"};
    c.inputs = {kSmallArray, kScalar};
    c.body += "zero_shape; zero_strides; zero_ndim;";  // a 0-dimensional input has none
    std::string signature = metal_text(c).substr(0, metal_text(c).find(") {"));
    EXPECT_EQ(signature.find("a_shape [[") != std::string::npos, (used & 1) != 0);
    EXPECT_EQ(signature.find("a_strides [[") != std::string::npos, (used & 2) != 0);
    EXPECT_EQ(signature.find("a_ndim [[") != std::string::npos, (used & 4) != 0);
    EXPECT_EQ(signature.find("zero_"), std::string::npos);
  }
}

TEST(MetalText, OfTheClassGenerationHasShapesAlways) {
  SignatureCase c;
  c.input_names = {"a", "s"};
  c.inputs = {kArray, kScalar};
  c.style = SignatureStyle::kAlways;
  EXPECT_EQ(metal_text(c), R"([[kernel]] void custom_kernel_k_float_floats_float(
  const device float* a [[buffer(0)]],
  const constant int* a_shape [[buffer(1)]],
  const constant size_t* a_strides [[buffer(2)]],
  const constant int& a_ndim [[buffer(3)]],
  const constant float& s [[buffer(4)]],
  device float* out [[buffer(5)]]) {
out[0] = 1;
}
)");
}

TEST(MetalText, LetsArgumentsNamesWin) {
  SignatureCase c;
  c.input_names = {"x", "x_shape", "grid_size"};
  c.inputs = {kArray, kArray, kArray};
  c.output_names = {"x_ndim"};
  c.template_arguments = {{"x_strides", int32_t{3}}, {"threads_per_grid", true}};
  c.body = "x_shape; x_strides; x_ndim; grid_size; threads_per_grid;";
  for (SignatureStyle style : {SignatureStyle::kWhereUsed, SignatureStyle::kAlways}) {
    c.style = style;
    std::string result = metal_text(c);
    EXPECT_NE(result.find("(\n  const device float* x [[buffer(0)]],\n"), std::string::npos) << result;
    EXPECT_NE(result.find(",\n  const device float* x_shape [[buffer(1)]],\n"), std::string::npos) << result;
    EXPECT_NE(result.find("const device float* grid_size [[buffer("), std::string::npos) << result;
    EXPECT_EQ(result.find("uint3"), std::string::npos) << result;
    EXPECT_EQ(result.find("constant int* x_shape [["), std::string::npos) << result;
    EXPECT_EQ(result.find("* x_strides [["), std::string::npos) << result;
    EXPECT_EQ(result.find("constant int& x_ndim [["), std::string::npos) << result;
  }
}

TEST(MetalText, LetsTheBodysDeclarationsWin) {
  SignatureCase c;
  c.input_names = {"x"};
  c.inputs = {kArray};
  c.body = "uint grid_size = 3; int x_shape[2]; out[0] = grid_size;";
  EXPECT_EQ(metal_text(c).find("[[grid_size]]"), std::string::npos);
  EXPECT_EQ(metal_text(c).find("x_shape [["), std::string::npos);
  // The class generation passes shapes used or not, but no parameter can have the name of a local variable.
  c.style = SignatureStyle::kAlways;
  EXPECT_EQ(metal_text(c).find("x_shape [["), std::string::npos);
  EXPECT_NE(metal_text(c).find("x_strides [["), std::string::npos);
}

TEST(MetalText, KnowsWhereTheCallersLinesAre) {
  SignatureCase c;
  c.body = "int a = 1;\nout[0] = a;";
  KernelUnit unit = c.write(&write_metal);
  EXPECT_EQ(unit.source_map.locate(3), (SourcePosition{SourceText::kBody, 1}));
  EXPECT_EQ(unit.source_map.locate(4), (SourcePosition{SourceText::kBody, 2}));
  EXPECT_EQ(unit.source_map.locate(5), (SourcePosition{SourceText::kGenerated, 5}));

  for (const char* header : {"float f();\nfloat g();", "float f();\nfloat g();\n"}) {
    c.header = header;
    unit = c.write(&write_metal);
    EXPECT_TRUE(unit.text.starts_with("float f();\nfloat g();\n[[kernel]]")) << unit.text;
    EXPECT_EQ(unit.source_map.locate(2), (SourcePosition{SourceText::kHeader, 2}));
    EXPECT_EQ(unit.source_map.locate(3), (SourcePosition{SourceText::kGenerated, 3}));
    EXPECT_EQ(unit.source_map.locate(5), (SourcePosition{SourceText::kBody, 1}));
  }
}

TEST(MetalText, DoesNotLetABackslashAtATextsEndTakeInTheNextLine) {
  for (const char* end : {"\\", "\\  ", "\\\r"}) {
    SignatureCase c;
    c.header = concat("// header ", end);
    c.body = concat("out[0] = 1; // body ", end);
    const std::string expected = concat(c.header, "\n\n[[kernel]] void custom_kernel_k_float(\n",
                                        "  device float* out [[buffer(0)]]) {\n", c.body, "\n\n}\n");
    EXPECT_EQ(metal_text(c), expected);
    c.header += '\n';
    EXPECT_EQ(metal_text(c), expected);
  }
  // Here the line that is taken in is empty already.
  SignatureCase c;
  c.header = "#define N 3 \\\n\n";
  c.body = "#define M 4 \\\n";
  EXPECT_EQ(metal_text(c),
            concat(c.header, "[[kernel]] void custom_kernel_k_float(\n  device float* out [[buffer(0)]]) {\n", c.body,
                   "\n}\n"));
}

TEST(MetalText, TakesHeaderAndBodyAsTheyAre) {
  SignatureCase c;
  c.header = "// h\xc3\xa9 \t\r\n";
  c.body = "\n\n  out[0] = 1;\t// \xe2\x82\xac\r\n";
  EXPECT_EQ(metal_text(c),
            concat(c.header, "[[kernel]] void custom_kernel_k_float(\n  device float* out [[buffer(0)]]) {\n", c.body,
                   "\n}\n"));
}

}  // namespace
}  // namespace kiln
