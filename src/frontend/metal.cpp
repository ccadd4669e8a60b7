// The Metal text of a kernel (docs/language.md 1.1).
//
// The text is MLX's own, so that what `verbose=True` prints is what runs on a Mac. Where MLX's generator errs, this
// one does not: names are found by token, two outputs close the parameter list once, and a header without a final
// line end is not glued to the function.
#include <limits>

#include "core/attribute_table.h"
#include "core/dtype_table.h"
#include "core/text.h"
#include "frontend/grid_part.h"
#include "frontend/signature_common.h"

namespace kiln {
namespace {

std::string_view metal_name(Dtype dtype) { return row_of(dtype).metal; }

struct ParameterWriter {
  KernelUnit& unit;
  std::vector<std::string> lines;

  void add(ParameterRole role, size_t argument, std::string element, Dtype dtype, bool by_reference,
           std::string_view qualifiers, std::string_view name) {
    lines.push_back(concat("  ", qualifiers, " ", element, by_reference ? "& " : "* ", name, " [[buffer(",
                           unit.parameters.size(), ")]]"));
    unit.parameters.push_back(make_parameter(role, static_cast<uint32_t>(argument), std::string(name),
                                             std::move(element), dtype, by_reference));
  }
};

std::string template_head(const SignatureRequest& request) {
  std::vector<std::string> parameters;
  for (const TemplateArgument& argument : request.template_arguments) {
    std::string_view kind = std::holds_alternative<Dtype>(argument.value)     ? "typename"
                            : std::holds_alternative<int32_t>(argument.value) ? "int"
                                                                              : "bool";
    parameters.push_back(concat(kind, " ", argument.name));
  }
  return concat("template <", join(parameters, ", "), ">\n");
}

std::string template_arguments(const SignatureRequest& request) {
  std::vector<std::string> arguments;
  for (const TemplateArgument& argument : request.template_arguments) {
    if (auto* dtype = std::get_if<Dtype>(&argument.value))
      arguments.emplace_back(metal_name(*dtype));
    else if (auto* integer = std::get_if<int32_t>(&argument.value))
      arguments.push_back(std::to_string(*integer));
    else
      arguments.emplace_back(std::get<bool>(argument.value) ? "1" : "0");
  }
  return concat("<", join(arguments, ", "), ">");
}

}  // namespace

KernelUnit write_metal(const SignatureRequest& request) {
  KernelUnit unit = begin_unit(Dialect::kMetal, request);
  ParameterWriter parameters{unit, {}};
  PartText part(Dialect::kMetal, request);

  bool always = request.style == SignatureStyle::kAlways;
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    const InputType& input = request.inputs[i];
    const std::string& name = request.input_names[i];
    std::string_view qualifiers = input.is_small ? "const constant" : "const device";
    bool is_batched = part.is_batched(i);
    parameters.add(ParameterRole::kInput, i, std::string(metal_name(input.dtype)), input.dtype,
                   input.is_scalar && !is_batched, qualifiers, name);
    unit.parameters.back().is_batch = is_batched;
    auto add_strides = [&] {
      parameters.add(ParameterRole::kStrides, i, always ? "size_t" : "int64_t", Dtype::kInt64, false, "const constant",
                     name + "_strides");
    };
    if (is_batched) {
      std::string type = concat(qualifiers, " ", metal_name(input.dtype), input.is_scalar ? "&" : "*");
      std::string step = concat("int64_t(kiln_batch) * int64_t(", name, "_strides[0])");
      part.declare(type, name, concat(input.is_scalar ? "*" : "", "__kiln::element(", name, ", ", step, ")"));
    }
    if (input.is_scalar) {
      for (std::string_view suffix : {"_shape", "_strides", "_ndim"})
        unit.missing_names.push_back(concat(name, suffix));
      if (is_batched) add_strides();
      continue;
    }
    auto wanted = [&](std::string_view suffix) {
      std::string full = concat(name, suffix);
      if (is_argument(request, full) || request.text.body_declares(full)) return false;
      unit.offered_names.push_back(full);
      return always || request.text.body_uses(full);
    };
    if (wanted("_shape")) {
      parameters.add(ParameterRole::kShape, i, "int", Dtype::kInt32, false, "const constant", name + "_shape");
      if (is_batched) part.declare("const constant int*", name + "_shape", name + "_shape + 1");
    }
    bool wants_strides = wanted("_strides");
    if (wants_strides || is_batched) add_strides();
    if (wants_strides && is_batched)
      part.declare(always ? "const constant size_t*" : "const constant int64_t*", name + "_strides",
                   name + "_strides + 1");
    if (wanted("_ndim")) {
      parameters.add(ParameterRole::kNdim, i, "int", Dtype::kInt32, true, "const constant", name + "_ndim");
      if (is_batched) part.declare("const int", name + "_ndim", name + "_ndim - 1");
    }
  }
  for (size_t i = 0; i < request.outputs.size(); ++i) {
    for (std::string_view suffix : {"_shape", "_strides", "_ndim"})
      unit.missing_names.push_back(concat(request.output_names[i], suffix));
    std::string element(metal_name(request.outputs[i]));
    if (request.atomic_outputs) element = concat("atomic<", element, ">");
    if (request.part.has_batch()) part.declare_output(concat("device ", element, "*"), request.output_names[i]);
    parameters.add(ParameterRole::kOutput, i, std::move(element), request.outputs[i], false, "device",
                   request.output_names[i]);
    unit.parameters.back().is_batch = request.part.has_batch();
  }
  auto uses_attribute = [&](std::string_view name) {
    return request.text.body_uses(name) && !is_argument(request, name);
  };
  if (!request.part.is_whole()) part.declare_positions(uses_attribute);
  for (size_t row = 0; row < kAttributes.size(); ++row) {
    const AttributeRow& attribute = kAttributes[row];
    if (!part.needs(attribute.name, uses_attribute(attribute.name))) continue;
    unit.attributes.push_back(static_cast<uint8_t>(row));
    parameters.lines.push_back(concat("  ", attribute.type(), " ", attribute.name, " [[", attribute.name, "]]"));
  }

  std::string function = function_name(request, &metal_name);
  bool is_template = !request.template_arguments.empty();
  if (is_template) unit.text += template_head(request);
  unit.text += concat("[[kernel]] void ", function, "(\n", join(parameters.lines, ",\n"), ") {\n");
  unit.text += part.before();
  append_body(unit, request.text);
  unit.text += part.after();
  unit.text += "}\n";

  unit.entry = function;
  if (is_template) {
    unit.entry += template_arguments(request);
    unit.text += concat("\ntemplate [[host_name(\"", function, "\")]] [[kernel]] decltype(", unit.entry, ") ",
                        unit.entry, ";\n");
  }
  number_included_lines(unit);
  return unit;
}

}  // namespace kiln
