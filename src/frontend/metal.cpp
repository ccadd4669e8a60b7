// The Metal text of a kernel (docs/language.md 1.1).
//
// The text is MLX's own, so that what `verbose=True` prints is what runs on a Mac. Where MLX's generator errs, this
// one does not: names are found by token, two outputs close the parameter list once, and a header without a final
// line end is not glued to the function.
#include <limits>

#include "core/attribute_table.h"
#include "core/dtype_table.h"
#include "core/text.h"
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

  bool always = request.style == SignatureStyle::kAlways;
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    const InputType& input = request.inputs[i];
    const std::string& name = request.input_names[i];
    parameters.add(ParameterRole::kInput, i, std::string(metal_name(input.dtype)), input.dtype, input.is_scalar,
                   input.is_small ? "const constant" : "const device", name);
    if (input.is_scalar) {
      for (std::string_view suffix : {"_shape", "_strides", "_ndim"})
        unit.missing_names.push_back(concat(name, suffix));
      continue;
    }
    auto wanted = [&](std::string_view suffix) {
      std::string full = concat(name, suffix);
      if (is_argument(request, full) || request.text.body_declares(full)) return false;
      unit.offered_names.push_back(full);
      return always || request.text.body_uses(full);
    };
    if (wanted("_shape"))
      parameters.add(ParameterRole::kShape, i, "int", Dtype::kInt32, false, "const constant", name + "_shape");
    if (wanted("_strides"))
      parameters.add(ParameterRole::kStrides, i, always ? "size_t" : "int64_t", Dtype::kInt64, false, "const constant",
                     name + "_strides");
    if (wanted("_ndim"))
      parameters.add(ParameterRole::kNdim, i, "int", Dtype::kInt32, true, "const constant", name + "_ndim");
  }
  for (size_t i = 0; i < request.outputs.size(); ++i) {
    for (std::string_view suffix : {"_shape", "_strides", "_ndim"})
      unit.missing_names.push_back(concat(request.output_names[i], suffix));
    std::string element(metal_name(request.outputs[i]));
    if (request.atomic_outputs) element = concat("atomic<", element, ">");
    parameters.add(ParameterRole::kOutput, i, std::move(element), request.outputs[i], false, "device",
                   request.output_names[i]);
  }
  for (size_t row = 0; row < kAttributes.size(); ++row) {
    const AttributeRow& attribute = kAttributes[row];
    if (!request.text.body_uses(attribute.name) || is_argument(request, attribute.name)) continue;
    unit.attributes.push_back(static_cast<uint8_t>(row));
    parameters.lines.push_back(concat("  ", attribute.type(), " ", attribute.name, " [[", attribute.name, "]]"));
  }

  std::string function = function_name(request, &metal_name);
  bool is_template = !request.template_arguments.empty();
  if (is_template) unit.text += template_head(request);
  unit.text += concat("[[kernel]] void ", function, "(\n", join(parameters.lines, ",\n"), ") {\n");
  append_body(unit, request.text);
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
