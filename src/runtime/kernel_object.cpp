#include "runtime/kernel_object.h"

#include <algorithm>
#include <atomic>
#include <limits>

#include "core/array_layout.h"
#include "core/dtype_table.h"
#include "core/fork_guard.h"
#include "core/settings.h"
#include "core/text.h"
#include "core/thread_state.h"
#include "frontend/lexer.h"
#include "frontend/names.h"
#include "kiln/error.h"

namespace kiln {
namespace {

InputType type_of(const InputArray& input) {
  InputType type;
  type.dtype = input.dtype;
  type.is_scalar = input.shape.empty();
  type.is_small = element_count(input.shape) < kSmallInputSize;
  return type;
}

// What says the form of the launch, at the end of what is general in a call's key.
constexpr size_t kFormBytes = 1;

std::atomic<uint64_t> g_next_number{0};

// What the body sees of an input beside its elements.
constexpr std::string_view kShapeSuffixes[] = {"_shape", "_strides", "_ndim"};

}  // namespace

std::string verbose_text(const KernelUnit& unit) {
  return concat("Generated source code for `", unit.name, "`:\n```\n", unit.text, "\n```");
}

bool KernelObject::uses_shape_of(const Call& call, size_t input) const {
  if (call.inputs[input].shape.empty()) return false;
  return spec_.input_names ? uses_shape_[input] : body_uses_shape_of(call.input_names[input]);
}

bool KernelObject::body_uses_shape_of(const std::string& name) const {
  return std::any_of(std::begin(kShapeSuffixes), std::end(kShapeSuffixes),
                     [&](std::string_view suffix) { return text_.body_uses(concat(name, suffix)); });
}

bool KernelObject::is_for_nvrtc(const Call& call) const {
  return context_.is_for_nvrtc(spec_.dialect,
                               call.device.kind == DeviceKind::kNvidia ? TargetKind::kNvidia : TargetKind::kCpu);
}

LaunchForm KernelObject::form_for_code(const Call& call) const {
  LaunchForm form = launch_form(call.grid, call.threadgroup);
  if (call.device.kind == DeviceKind::kNvidia) {
    // NVRTC makes nothing of it.
    return {.is_whole_row = !is_for_nvrtc(call) && form.is_whole_row};
  }
  if (!prefers_simd(context_.cpu().spec())) return {};
  return {.rows_are_simdgroups = form.rows_are_simdgroups,
          .rows_are_runs = !cooperation_.waits_at_barriers && form.rows_are_runs,
          .simdgroups = cooperation_.waits_at_barriers ? form.simdgroups : 0,
          .simdgroups_are_full = cooperation_.has_collectives && form.simdgroups_are_full};
}

// The bytes that tell one combination of argument types from another within one kernel; behind the first
// `general_bytes`, shapes that code may be made for. Built in a buffer that each thread keeps, so that a look-up
// allocates nothing.
std::string_view KernelObject::call_key(const Call& call, size_t& general_bytes) const {
  thread_local ThreadState<std::string> key_of_thread;
  std::string& key = *key_of_thread;
  key.clear();
  auto add = [&](auto value) { key.append(reinterpret_cast<const char*>(&value), sizeof value); };
  auto add_text = [&](const std::string& text) {
    add(static_cast<uint32_t>(text.size()));
    key.append(text);
  };
  add(call.device.kind);
  add(static_cast<uint8_t>(call.device.index));
  add(static_cast<uint32_t>(call.inputs.size()));
  for (const InputArray& input : call.inputs) {
    InputType type = type_of(input);
    add(type.dtype);
    add(static_cast<uint8_t>(type.is_scalar + 2 * type.is_small));
  }
  add(static_cast<uint32_t>(call.outputs.size()));
  for (const OutputArray& output : call.outputs) add(output.dtype);
  add(static_cast<uint32_t>(call.template_arguments.size()));
  for (const TemplateArgument& argument : call.template_arguments) {
    add_text(argument.name);
    add(static_cast<uint8_t>(argument.value.index()));
    std::visit([&](auto value) { add(static_cast<int32_t>(value)); }, argument.value);
  }
  for (const std::string& name : call.input_names) add_text(name);
  for (const std::string& name : call.output_names) add_text(name);
  add(form_for_code(call).packed());
  general_bytes = key.size();
  static_assert(kFormBytes == sizeof(LaunchForm().packed()));
  // NVRTC makes nothing of known shapes.
  if (specializes_ && !is_for_nvrtc(call))
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      if (!uses_shape_of(call, i)) continue;
      add(static_cast<uint32_t>(call.inputs[i].shape.size()));
      for (int64_t dimension : call.inputs[i].shape) add(dimension);
      // Of a copy they follow from the shape.
      if (!copies(call.inputs[i]))
        for (int64_t stride : call.inputs[i].strides) add(stride);
    }
  return key;
}

KernelObject::KernelObject(KernelSpec spec, Context& context)
    : number_(g_next_number++),
      spec_(std::move(spec)),
      context_(context),
      text_(spec_.header, spec_.source, spec_.files) {
  std::string_view interface = interface_name(spec_.dialect);
  if (spec_.output_names && spec_.output_names->empty())
    throw ValueError(concat("[", interface, "] Must specify at least one output."));
  if (spec_.shared_memory < 0)
    throw ValueError(
        concat("[", interface, "] Expected `shared_memory` to be at least 0 but got ", spec_.shared_memory, "."));
  check_text(spec_.name, "name");
  check_text(spec_.source, "source");
  check_text(spec_.header, "header");
  if (spec_.input_names)
    for (const std::string& name : *spec_.input_names) check_name(name, "Input name");
  if (spec_.output_names)
    for (const std::string& name : *spec_.output_names) check_name(name, "Output name");
  if (spec_.input_names && spec_.output_names) check_distinct(*spec_.input_names, *spec_.output_names, {});
  std::vector<std::string> writable = spec_.compile_options.writable_inputs;
  std::ranges::sort(writable);
  if (auto twice = std::ranges::adjacent_find(writable); twice != writable.end())
    throw ValueError(concat(message_prefix(spec_.dialect), "`writable_inputs` names `", printable(*twice), "` twice."));
  if (spec_.input_names) check_writable_names(*spec_.input_names);

  if (spec_.input_names)
    for (const std::string& name : *spec_.input_names) uses_shape_.push_back(body_uses_shape_of(name));
  auto ends_like_a_shape = [](const std::string& name) {
    return std::any_of(std::begin(kShapeSuffixes), std::end(kShapeSuffixes),
                       [&](std::string_view suffix) { return name.ends_with(suffix); });
  };
  cooperation_ = cooperation_of(spec_.dialect, text_);
  specializes_ = spec_.compile_options.specialize.value_or(settings().specialize) &&
                 std::any_of(text_.identifiers().begin(), text_.identifiers().end(), ends_like_a_shape);
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

std::span<const std::string> KernelObject::input_names(const Call& call) const {
  return spec_.input_names ? std::span<const std::string>(*spec_.input_names) : call.input_names;
}

std::span<const std::string> KernelObject::output_names(const Call& call) const {
  return spec_.output_names ? std::span<const std::string>(*spec_.output_names) : call.output_names;
}

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

void KernelObject::check_types(const Call& call) const {
  std::string_view interface = interface_name(spec_.dialect);
  auto inputs = input_names(call);
  auto outputs = output_names(call);
  for (const std::string& name : call.input_names) check_name(name, "Input name");
  for (const std::string& name : call.output_names) check_name(name, "Output name");
  for (const TemplateArgument& argument : call.template_arguments) check_name(argument.name, "Template argument name");
  if (!call.template_arguments.empty() || !spec_.input_names) check_distinct(inputs, outputs, call.template_arguments);
  if (!spec_.input_names) check_writable_names(inputs);

  if (call.device.kind == DeviceKind::kNvidia && spec_.dialect == Dialect::kMetal)
    for (size_t i = 0; i < call.inputs.size(); ++i)
      if (call.inputs[i].shape.size() > kPaddedDimensions && uses_shape_of(call, i))
        throw UnsupportedError(concat("[", interface, "] Input `", inputs[i], "` has ", call.inputs[i].shape.size(),
                                      " dimensions, and a launch on an NVIDIA GPU has room for ", kPaddedDimensions,
                                      " in `", inputs[i], "_shape`."));
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

KernelUnit KernelObject::unit_for(const Call& call) const {
  std::vector<InputType> inputs;
  for (const InputArray& input : call.inputs) inputs.push_back(type_of(input));
  std::vector<Dtype> outputs;
  for (const OutputArray& output : call.outputs) outputs.push_back(output.dtype);
  SignatureRequest request{text_,
                           spec_.name,
                           input_names(call),
                           inputs,
                           output_names(call),
                           outputs,
                           call.template_arguments,
                           spec_.atomic_outputs,
                           spec_.style};
  KernelUnit unit = spec_.dialect == Dialect::kMetal ? write_metal(request) : write_cuda(request);
  if (!spec_.ensure_row_contiguous)
    for (KernelParameter& parameter : unit.parameters)
      if (parameter.role == ParameterRole::kInput) parameter.from_zero = false;
  for (KernelParameter& parameter : unit.parameters)
    if (parameter.role == ParameterRole::kInput) parameter.is_writable_input = is_writable(parameter.name);
  unit.allows_input_stores = spec_.allows_input_stores;
  unit.math_mode = spec_.compile_options.math_mode;
  unit.form = form_for_code(call);
  // NVRTC has no room for guards.
  unit.bounds_guards = spec_.compile_options.bounds.value_or(settings().bounds) && !is_for_nvrtc(call);
  if (call.device.kind == DeviceKind::kCpu) unit.dynamic_memory_bytes = static_cast<uint64_t>(spec_.shared_memory);
  return unit;
}

void KernelObject::set_known_shapes(KernelUnit& unit, const Call& call) const {
  for (KernelParameter& parameter : unit.parameters) {
    if (parameter.role == ParameterRole::kInput || parameter.role == ParameterRole::kOutput) continue;
    if (!uses_shape_of(call, parameter.argument)) continue;
    const InputArray& input = call.inputs[parameter.argument];
    switch (parameter.role) {
      case ParameterRole::kShape: parameter.values.assign(input.shape.begin(), input.shape.end()); break;
      case ParameterRole::kNdim: parameter.values = {static_cast<int64_t>(input.shape.size())}; break;
      case ParameterRole::kStrides:
        parameter.values.assign(input.strides.begin(), input.strides.end());
        if (copies(input)) write_row_contiguous_strides(input.shape, parameter.values);
        break;
      default: break;
    }
  }
}

void KernelObject::check_guards(const Call& call) const {
  // NVRTC compiles the body as it is.
  if (is_for_nvrtc(call) && spec_.compile_options.bounds == true)
    throw UnsupportedError(concat("[cuda_kernel] `", printable(spec_.name),
                                  "`: `bounds` is on, but CUDA bodies have no guards on an NVIDIA GPU."));
}

bool KernelObject::may_specialize(const Call& call) const {
  for (size_t i = 0; i < call.inputs.size(); ++i)
    if (specializes_ && uses_shape_of(call, i)) return true;
  return false;
}

MadeCode KernelObject::compile_ahead(const Call& any_call, const TargetSpec& target, bool specialized) const {
  Call call = any_call;
  call.device.kind = target.kind == TargetKind::kCpu ? DeviceKind::kCpu : DeviceKind::kNvidia;
  check(call);
  check_guards(call);
  KernelUnit unit = unit_for(call);
  // NVRTC makes nothing of known shapes.
  if (specialized && may_specialize(call) && !is_for_nvrtc(call)) set_known_shapes(unit, call);
  return context_.compile_ahead(unit, target);
}

bool KernelObject::may_specialize(std::string_view general_key, std::string_view key) {
  ForkGuard guard;
  std::lock_guard lock(specialized_mutex_);
  // However threadgroups are shaped.
  std::set<std::string>& keys = specialized_[std::string(general_key.substr(0, general_key.size() - kFormBytes))];
  std::string own(key);
  if (keys.contains(own)) return true;
  if (keys.size() == kMostSpecialized) return false;
  keys.insert(std::move(own));
  return true;
}

void KernelObject::give_back_specialization(std::string_view general_key, std::string_view key) {
  ForkGuard guard;
  std::lock_guard lock(specialized_mutex_);
  auto found = specialized_.find(general_key.substr(0, general_key.size() - kFormBytes));
  if (found != specialized_.end()) found->second.erase(std::string(key));
}

SingleFlight<Binary>::Found KernelObject::find_or_make_binary(KernelUnit& unit, Target& target) const {
  try {
    return context_.binary_for(unit, target);
  } catch (const MissingCompilerError&) {
    // A bundle may have the code that serves any form of launch.
    if (unit.form.is_general()) throw;
    unit.form = {};
    return context_.binary_for(unit, target);
  }
}

KernelObject::Found KernelObject::find_or_compile(const Call& call) {
  size_t general_bytes;
  std::string_view key = call_key(call, general_bytes);
  if (std::shared_ptr<const Variant> variant = variants_.find(key)) return {std::move(variant), CodeSource::kMemory};
  std::string_view general_key = key.substr(0, general_bytes);
  bool specialize = key.size() > general_bytes;
  // It is there when there were enough others before.
  if (specialize)
    if (auto variant = variants_.find(general_key)) return {std::move(variant), CodeSource::kMemory};
  Target& target = context_.target(call.device);
  check_types(call);
  check_guards(call);
  if (specialize) {
    specialize = !variants_.has_failed(general_key) && may_specialize(general_key, key);
    if (!specialize) key = general_key;
  }
  CodeSource source = CodeSource::kMemory;
  auto make = [&] {
    KernelUnit unit = unit_for(call);
    if (specialize) set_known_shapes(unit, call);
    auto binary = find_or_make_binary(unit, target);
    if (binary.made_now) source = binary.value->source;
    if (Recording* recording = context_.recording()) recording->add(spec_, call, specialize);
    size_t bytes = binary.value->code->threadgroup_memory_bytes(), limit = target.threadgroup_memory_limit();
    if (bytes > limit)
      throw UnsupportedError(concat(message_prefix(spec_.dialect), "`", printable(spec_.name), "` needs ", bytes,
                                    " bytes of threadgroup memory, and the ", target.name(), " target has ", limit,
                                    "."));
    for (KernelParameter& parameter : unit.parameters)
      if (parameter.role == ParameterRole::kInput &&
          std::ranges::find(binary.value->written_inputs, parameter.argument) != binary.value->written_inputs.end())
        parameter.is_writable_input = true;
    return std::make_shared<const Variant>(Variant{std::move(unit), binary.value, &target});
  };
  if (!specialize) return {variants_.get(std::string(key), make).value, source};
  std::string own(key), general(general_key);
  try {
    return {variants_.get(own, make).value, source};
  } catch (...) {
    give_back_specialization(general, own);
    try {
      throw;
    } catch (const MissingCompilerError& error) {
      // A bundle may have the code that serves any shape.
      specialize = false;
      try {
        return {variants_.get(general, make).value, source};
      } catch (const MissingCompilerError&) {
      }
      throw error;
    } catch (const CompileError&) {
      // Shapes become constants only behind the front end: no other shape makes this text valid.
      auto rethrow = []() -> std::shared_ptr<const Variant> { throw; };
      return {variants_.get(general, rethrow).value, source};
    }
  }
}

}  // namespace kiln
