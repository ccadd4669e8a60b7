// What is wrong with a kernel or a call, before anything is compiled or run.
#include <algorithm>
#include <limits>

#include "core/array_layout.h"
#include "core/device_traits.h"
#include "core/dtype_table.h"
#include "core/launch_geometry.h"
#include "core/text.h"
#include "frontend/lexer.h"
#include "frontend/names.h"
#include "kiln/error.h"
#include "runtime/kernel_object.h"

namespace kiln {

void KernelObject::check(const Call& call) const {
  check_sizes(call);
  check_types(call);
}

void KernelObject::check_sizes(const Call& call) const {
  std::string_view interface = interface_name(spec_.dialect);
  auto inputs = input_names(call);
  auto outputs = output_names(call);
  if (call.inputs.size() != inputs.size())
    throw ValueError(concat("[", interface, "] Expected `inputs` to have size ", inputs.size(), " but got size ",
                            call.inputs.size(), "."));
  if (outputs.empty()) throw ValueError(concat("[", interface, "] Must specify at least one output."));
  if (call.outputs.size() != outputs.size())
    throw ValueError(concat("[", interface, "] Expected `output_shapes` to have size ", outputs.size(),
                            " but got size ", call.outputs.size(), "."));
  for (size_t i = 0; i < call.outputs.size(); ++i) check_output(call.outputs[i], outputs[i]);
  static_cast<void>(divide_grid(interface, spec_.dialect, call.grid, call.threadgroup));
  for (size_t i = 0; i < call.inputs.size(); ++i) check_input(call.inputs[i], inputs[i]);
  check_writable_inputs(call);
}

void KernelObject::check_types(const Call& call) const {
  std::string_view interface = interface_name(spec_.dialect);
  auto inputs = input_names(call);
  auto outputs = output_names(call);
  for (const std::string& name : call.input_names) check_name(name, "Input name");
  for (const std::string& name : call.output_names) check_name(name, "Output name");
  for (const TemplateArgument& argument : call.template_arguments) check_name(argument.name, "Template argument name");
  if (!call.template_arguments.empty() || !spec_.input_names) check_distinct(inputs, outputs, call.template_arguments);
  if (!spec_.input_names) check_writable_names(inputs);

  const DeviceTraits& device = traits_of(call.device);
  if (spec_.dialect == Dialect::kMetal)
    for (size_t i = 0; i < call.inputs.size(); ++i)
      if (call.inputs[i].shape.size() > device.most_shape_dimensions && uses_shape_of(call, i))
        throw UnsupportedError(concat("[", interface, "] Input `", inputs[i], "` has ", call.inputs[i].shape.size(),
                                      " dimensions, and a launch on ", device.title, " has room for ",
                                      device.most_shape_dimensions, " in `", inputs[i], "_shape`."));
  if (spec_.dialect == Dialect::kCuda) {
    for (size_t i = 0; i < call.inputs.size(); ++i)
      for (std::string_view suffix : {"_shape", "_strides"}) {
        std::string name = concat(inputs[i], suffix);
        if (call.inputs[i].shape.size() > kMaxCudaDimensions && text_.body_uses(name))
          throw ValueError(concat("[", interface, "] Input `", inputs[i], "` has ", call.inputs[i].shape.size(),
                                  " dimensions, but `", name, "` has room for ", kMaxCudaDimensions, "."));
      }
    return;
  }
  for (size_t i = 0; i < call.inputs.size(); ++i)
    if (row_of(call.inputs[i].dtype).metal.empty())
      throw ValueError(concat("[", interface, "] Metal has no double, but input `", inputs[i], "` is ",
                              name_of(call.inputs[i].dtype), "."));
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    const DtypeRow& row = row_of(call.outputs[i].dtype);
    if (row.metal.empty())
      throw ValueError(
          concat("[", interface, "] Metal has no double, but output `", outputs[i], "` is ", row.name, "."));
    if (spec_.atomic_outputs && !row.metal_atomic)
      throw UnsupportedError(concat("[", interface, "] Metal has no atomic<", row.metal, ">, which `atomic_outputs` ",
                                    "needs for output `", outputs[i], "`."));
  }
  for (const TemplateArgument& argument : call.template_arguments)
    if (auto* dtype = std::get_if<Dtype>(&argument.value); dtype && row_of(*dtype).metal.empty())
      throw ValueError(concat("[", interface, "] Metal has no double, but template argument `", argument.name, "` is ",
                              name_of(*dtype), "."));
}

void KernelObject::check_guards(const Call& call) const {
  // NVRTC compiles the body as it is.
  if (is_for_nvrtc(call) && spec_.compile_options.bounds == true)
    throw UnsupportedError(concat("[cuda_kernel] `", printable(spec_.name),
                                  "`: `bounds` is on, but CUDA bodies have no guards on an NVIDIA GPU."));
}

void KernelObject::check_text(const std::string& text, std::string_view what) const {
  if (std::optional<size_t> place = first_invalid_utf8(text))
    throw ValueError(
        concat(message_prefix(spec_.dialect), "Expected `", what, "` to be UTF-8 but byte ", *place, " is not."));
}

void KernelObject::check_name(const std::string& name, std::string_view what) const {
  std::string_view interface = interface_name(spec_.dialect);
  if (first_invalid_utf8(name)) throw ValueError(concat("[", interface, "] ", what, "s must be UTF-8."));
  if (!is_identifier(name)) throw ValueError(concat("[", interface, "] ", what, " `", name, "` is not an identifier."));
  if (is_keyword(spec_.dialect, name))
    throw ValueError(concat("[", interface, "] ", what, " `", name, "` is a keyword of the ",
                            spec_.dialect == Dialect::kMetal ? "Metal" : "CUDA", " dialect."));
}

void KernelObject::check_distinct(std::span<const std::string> inputs, std::span<const std::string> outputs,
                                  std::span<const TemplateArgument> template_arguments) const {
  std::vector<std::string_view> names(inputs.begin(), inputs.end());
  names.insert(names.end(), outputs.begin(), outputs.end());
  for (const TemplateArgument& argument : template_arguments) names.push_back(argument.name);
  std::sort(names.begin(), names.end());
  auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end())
    throw ValueError(concat(message_prefix(spec_.dialect), "Name `", *twice, "` is used twice."));
}

void KernelObject::check_writable_names(std::span<const std::string> inputs) const {
  for (const std::string& name : spec_.compile_options.writable_inputs)
    if (std::ranges::find(inputs, name) == inputs.end())
      throw ValueError(
          concat(message_prefix(spec_.dialect), "`writable_inputs` names `", printable(name), "`, which is no input",
                 inputs.empty() ? std::string("; there are none.")
                                : concat(". Those are `", join({inputs.begin(), inputs.end()}, "`, `"), "`.")));
}

void KernelObject::check_writable_inputs(const Call& call) const {
  if (!writes_inputs()) return;
  auto inputs = input_names(call);
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (!is_writable(inputs[i])) continue;
    const InputArray& input = call.inputs[i];
    auto refuse = [&](auto... why) {
      throw ValueError(
          concat(message_prefix(spec_.dialect), "Input `", inputs[i], "` is to be written in place, ", why...));
    };
    if (input.is_number) refuse("but is a number.");
    if (element_count(input.shape) == 0) continue;
    for (size_t d = 0; d < input.shape.size(); ++d)
      if (input.strides[d] == 0 && input.shape[d] > 1) refuse("but is broadcast: its elements share memory.");
    if (copies(input)) refuse("but is not row-contiguous, and `ensure_row_contiguous` would have a copy written.");
  }
}

// A launch reads the array where it is or copies it, and tells the body its dimensions as ints.
void KernelObject::check_input(const InputArray& input, const std::string& name) const {
  std::string_view interface = interface_name(spec_.dialect);
  try {
    // Arrays that repeat elements may have far more of them than there is memory.
    static_cast<void>(byte_count(input.shape, input.dtype));
    static_cast<void>(byte_range(input.shape, input.strides, input.dtype));
  } catch (const ValueError& error) {
    throw ValueError(concat("[", interface, "] Input `", name, "`: ", error.what(), "."));
  }
  for (int64_t dimension : input.shape)
    if (dimension > std::numeric_limits<int32_t>::max() && text_.body_uses(concat(name, "_shape")))
      throw ValueError(concat("[", interface, "] Input `", name, "` has a dimension of ", dimension,
                              ", which does not fit into the ints of `", name, "_shape`."));
}

void KernelObject::check_output(const OutputArray& output, const std::string& name) const {
  std::string_view interface = interface_name(spec_.dialect);
  for (int64_t dimension : output.shape)
    if (dimension < 0)
      throw ValueError(concat("[", interface, "] Expected the dimensions of output `", name,
                              "` to be at least 0 but got ", dimension, "."));
  try {
    static_cast<void>(byte_count(output.shape, output.dtype));
  } catch (const ValueError&) {
    throw ValueError(concat("[", interface, "] Output `", name, "` has more than 2^63 - 1 bytes."));
  }
}

std::string KernelObject::input_write_warning(const Call& call, const Variant& variant) {
  if (variant.binary->written_inputs.empty() || has_warned_of_input_writes_.exchange(true)) return {};
  std::vector<std::string> names;
  for (uint32_t i : variant.binary->written_inputs)
    if (i < call.inputs.size()) names.push_back(concat("`", input_name(call, i), "`"));
  bool is_one = names.size() == 1;
  return concat(message_prefix(spec_.dialect), "`", printable(spec_.name), "` writes its ",
                is_one ? "input " : "inputs ", join(names, " and "), " through a cast, in place, as on a Mac. Name ",
                is_one ? "it" : "them",
                " in compile_options={\"writable_inputs\": […]} where that is meant, or write an output.");
}

}  // namespace kiln
