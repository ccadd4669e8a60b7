// The CUDA text of a kernel (docs/language.md 1.6).
//
// Header, then the function inside `namespace mlx::core::cu`, template arguments as declarations at the head of the
// body. The body's text is never changed.
#include "core/dtype_table.h"
#include "core/text.h"
#include "frontend/grid_part.h"
#include "frontend/signature_common.h"
#include "kiln/error.h"

namespace kiln {
namespace {

std::string_view cuda_name(Dtype dtype) { return row_of(dtype).cuda; }

}  // namespace

KernelUnit write_cuda(const SignatureRequest& request) {
  KernelUnit unit = begin_unit(Dialect::kCuda, request);
  std::vector<std::string> lines;
  PartText part(Dialect::kCuda, request);
  // `type`: as the declaration has it.
  auto add = [&](ParameterRole role, size_t argument, std::string element, Dtype dtype, std::string_view type,
                 std::string name) {
    lines.push_back(concat("    ", type, " ", name));
    unit.parameters.push_back(make_parameter(role, static_cast<uint32_t>(argument), std::move(name), std::move(element),
                                             dtype, /*by_reference=*/false));
  };
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    const std::string& name = request.input_names[i];
    std::string element(cuda_name(request.inputs[i].dtype));
    add(ParameterRole::kInput, i, element, request.inputs[i].dtype, concat("const ", element, "*"), name);
    bool is_batched = part.is_batched(i);
    unit.parameters.back().is_batch = is_batched;
    auto add_strides = [&] {
      add(ParameterRole::kStrides, i, "Strides", Dtype::kInt64, "const __grid_constant__ Strides", name + "_strides");
    };
    if (is_batched) part.declare_pointer(concat("const ", element, "*"), name, name + "_strides[0]");
    if (request.inputs[i].is_scalar) {
      if (is_batched) add_strides();
      for (std::string_view suffix : {"_shape", "_strides", "_ndim"})
        unit.missing_names.push_back(concat(name, suffix));
      continue;
    }
    auto wanted = [&](std::string_view suffix) {
      std::string full = concat(name, suffix);
      if (is_argument(request, full)) return false;
      unit.offered_names.push_back(full);
      return request.text.body_uses(full);
    };
    if (wanted("_shape")) {
      add(ParameterRole::kShape, i, "Shape", Dtype::kInt32, "const __grid_constant__ Shape", name + "_shape");
      if (is_batched) part.declare_without_first("Shape", name + "_shape");
    }
    bool wants_strides = wanted("_strides");
    if (wants_strides || is_batched) add_strides();
    if (wants_strides && is_batched) part.declare_without_first("Strides", name + "_strides");
    if (wanted("_ndim")) {
      add(ParameterRole::kNdim, i, "int", Dtype::kInt32, "const __grid_constant__ int", name + "_ndim");
      if (is_batched) part.declare("const int", name + "_ndim", name + "_ndim - 1");
    }
  }
  for (size_t i = 0; i < request.outputs.size(); ++i) {
    for (std::string_view suffix : {"_shape", "_strides", "_ndim"})
      unit.missing_names.push_back(concat(request.output_names[i], suffix));
    std::string element(cuda_name(request.outputs[i]));
    if (request.part.has_batch()) part.declare_output(concat(element, "*"), request.output_names[i]);
    add(ParameterRole::kOutput, i, element, request.outputs[i], concat(element, "*"), request.output_names[i]);
    unit.parameters.back().is_batch = request.part.has_batch();
  }

  unit.entry = function_name(request, &cuda_name);
  unit.text += concat("namespace mlx::core::cu {\n\n__global__ void ", unit.entry, "(\n", join(lines, ",\n"), ") {\n");
  for (const TemplateArgument& argument : request.template_arguments) {
    if (auto* dtype = std::get_if<Dtype>(&argument.value))
      unit.text += concat("  using ", argument.name, " = ", cuda_name(*dtype), ";\n");
    else if (auto* integer = std::get_if<int32_t>(&argument.value))
      unit.text += concat("  constexpr int ", argument.name, " = ", *integer, ";\n");
    else
      unit.text +=
          concat("  constexpr bool ", argument.name, " = ", std::get<bool>(argument.value) ? "true" : "false", ";\n");
  }
  if (!request.part.is_whole()) part.declare_positions([](std::string_view) { return true; });
  unit.text += part.before();
  append_body(unit, request.text);
  unit.text += part.after();
  unit.text += "}\n\n}  // namespace mlx::core::cu\n";
  unit.entry = "mlx::core::cu::" + unit.entry;
  number_included_lines(unit);
  return unit;
}

}  // namespace kiln
