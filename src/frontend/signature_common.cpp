#include "frontend/signature_common.h"

#include <algorithm>

#include "core/text.h"
#include "frontend/names.h"

namespace kiln {
namespace {

int line_ends(const std::string& text) { return static_cast<int>(std::count(text.begin(), text.end(), '\n')); }

// A backslash at the end of the last line would take in the line that follows it.
void end_splice(std::string& text) {
  if (text.empty()) return;
  size_t last = text.find_last_not_of(" \t\v\f\r", text.size() - 2);
  if (last != std::string::npos && text[last] == '\\') text += '\n';
}

}  // namespace

bool is_argument(const SignatureRequest& request, std::string_view name) {
  auto is_name = [&](const std::string& argument) { return argument == name; };
  return std::ranges::any_of(request.input_names, is_name) || std::ranges::any_of(request.output_names, is_name) ||
         std::ranges::any_of(request.template_arguments, is_name, &TemplateArgument::name);
}

std::string function_name(const SignatureRequest& request, std::string_view (*spell)(Dtype)) {
  std::string name = concat("custom_kernel_", request.kernel_name);
  for (const TemplateArgument& argument : request.template_arguments) {
    name += "_";
    if (auto* dtype = std::get_if<Dtype>(&argument.value))
      name += spell(*dtype);
    else if (auto* integer = std::get_if<int32_t>(&argument.value))
      name += std::to_string(*integer);
    else
      name += std::get<bool>(argument.value) ? "1" : "0";
  }
  for (const InputType& input : request.inputs)
    name += concat("_", spell(input.dtype), input.is_scalar ? "s" : input.is_small ? "c" : "");
  for (Dtype output : request.outputs) name += concat("_", spell(output));
  return to_identifier(name);
}

KernelUnit begin_unit(Dialect dialect, const SignatureRequest& request) {
  KernelUnit unit;
  unit.dialect = dialect;
  unit.name = request.kernel_name;
  unit.identifiers = request.text.identifiers();
  unit.pastes_tokens = request.text.pastes_tokens();
  unit.own_names = request.text.own_names();
  unit.included_names = request.text.included_names();
  unit.text = request.text.header();
  if (!unit.text.empty() && unit.text.back() != '\n') unit.text += '\n';
  end_splice(unit.text);
  unit.source_map.header_lines = line_ends(unit.text);
  const KernelFiles& files = request.text.files();
  unit.inclusions = files.header_inclusions;
  unit.included_files = files.included;
  unit.source_path = files.source_path;
  unit.header_path = files.header_path;
  unit.include_dirs = files.include_dirs;
  return unit;
}

KernelParameter make_parameter(ParameterRole role, uint32_t argument, std::string name, std::string element,
                               Dtype dtype, bool by_reference) {
  KernelParameter parameter;
  parameter.role = role;
  parameter.argument = argument;
  parameter.name = std::move(name);
  parameter.element = std::move(element);
  parameter.element_bytes = static_cast<uint32_t>(size_of(dtype));
  // A complex number is aligned like its parts.
  parameter.alignment = dtype == Dtype::kComplex64 ? 4 : parameter.element_bytes;
  parameter.by_reference = by_reference;
  return parameter;
}

void append_body(KernelUnit& unit, const KernelText& text) {
  unit.source_map.body_first_line = line_ends(unit.text) + 1;
  unit.source_map.body_lines = line_ends(text.body()) + 1;
  for (Inclusion inclusion : text.files().source_inclusions)
    unit.inclusions.push_back({unit.text.size() + inclusion.begin, unit.text.size() + inclusion.end, inclusion.file});
  unit.text += text.body();
  unit.text += '\n';
  end_splice(unit.text);
}

void number_included_lines(KernelUnit& unit) {
  int next = line_ends(unit.text) + 1;
  for (const IncludedFile& file : unit.included_files) {
    unit.source_map.included_first_lines.push_back(next);
    next += line_ends(file.text) + 1;
  }
}

}  // namespace kiln
