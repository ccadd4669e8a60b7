// What of a call its code is made for: the key by which a kernel finds the code again, and the unit that is compiled.
// Whatever unit_for() and set_known_shapes() read of a call, call_key() must have.
#include <algorithm>

#include "core/array_layout.h"
#include "core/device_traits.h"
#include "core/launch_geometry.h"
#include "core/settings.h"
#include "core/text.h"
#include "core/thread_locals.h"
#include "core/thread_state.h"
#include "runtime/kernel_object.h"

namespace kiln {
namespace {

InputType type_of(const InputArray& input, bool is_batched) {
  std::span<const int64_t> shape = input.shape;
  if (is_batched && !shape.empty()) shape = shape.subspan(1);
  InputType type;
  type.dtype = input.dtype;
  type.is_scalar = shape.empty();
  type.is_small = element_count(shape) < kSmallInputSize;
  return type;
}

constexpr uint64_t kPlainAlignment = 16;
constexpr int64_t kPlainBytes = int64_t{1} << 31;

// Whether an array spans less than kPlainBytes.
bool is_short(std::span<const int64_t> shape, std::span<const int64_t> strides, Dtype dtype) {
  int64_t last = 0, elements = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] >= kPlainBytes / 2) return false;
    elements = std::min(elements * std::max<int64_t>(shape[d], 1), kPlainBytes);
    if (d >= strides.size()) continue;
    if (strides[d] < 0 || strides[d] >= kPlainBytes / 2) return false;
    last = std::min(last + strides[d] * std::max<int64_t>(shape[d] - 1, 0), kPlainBytes);
  }
  return (std::max(elements, last + 1) + 1) * static_cast<int64_t>(size_of(dtype)) < kPlainBytes;
}

// An input without an address is not there yet. A number is not in the GPU's memory yet, but it is one element.
bool has_plain_arrays(const Call& call) {
  for (const InputArray& input : call.inputs) {
    if (input.is_number) continue;
    if (!input.data || reinterpret_cast<uintptr_t>(input.data) % kPlainAlignment != 0) return false;
    if (!is_short(input.shape, input.strides, input.dtype)) return false;
  }
  return std::ranges::all_of(call.outputs,
                             [](const OutputArray& output) { return is_short(output.shape, {}, output.dtype); });
}

}  // namespace

bool KernelObject::is_for_nvrtc(const Call& call) const { return kiln::is_for_nvrtc(spec_.dialect, call.device.kind); }

bool KernelObject::uses_shape_of(const Call& call, size_t input) const {
  if (call.inputs[input].shape.empty()) return false;
  return spec_.input_names ? uses_shape_[input] : body_uses_shape_of(call.input_names[input]);
}

bool KernelObject::body_uses_shape_of(const std::string& name) const {
  return std::any_of(std::begin(kShapeSuffixes), std::end(kShapeSuffixes),
                     [&](std::string_view suffix) { return text_.body_uses(concat(name, suffix)); });
}

uint32_t KernelObject::row_threads_for_code(const LaunchForm& form) const {
  if (cooperation_.waits_at_barriers) return form.row_threads;
  // Where threads do not work together, of rows that are shorter than a simdgroup: positions are multiples of a row's
  // threads, plus the place in a row.
  const uint32_t most = cooperation_.has_collectives ? kSimdgroupSize : kSimdgroupSize - 1;
  return form.row_threads <= most ? form.row_threads : 0;
}

Extent3 KernelObject::threadgroup_of_launch(const Call& call) const {
  if (sees_threadgroups_ || traits_of(call.device).form_use != FormUse::kSimdgroups ||
      !prefers_simd(context_.cpu().spec()))
    return call.threadgroup;
  return threadgroup_of_short_rows(call.grid, call.threadgroup);
}

LaunchForm KernelObject::form_for_code(const Call& call) const {
  LaunchForm form = launch_form(call.grid, threadgroup_of_launch(call));
  // NVRTC makes nothing of it.
  if (is_for_nvrtc(call)) return {};
  if (traits_of(call.device).form_use == FormUse::kWholeRow)
    return {.is_one_row = form.is_one_row,
            .simdgroups_are_full = cooperation_.has_collectives && form.simdgroups_are_full,
            .threadgroups_are_even = has_even_threadgroups(call.grid, call.threadgroup),
            .arrays_are_plain = has_plain_arrays(call)};
  if (!prefers_simd(context_.cpu().spec())) return {};
  const bool work_together = cooperation_.waits_at_barriers || cooperation_.has_collectives;
  const bool rows_are_short = form.rows_are_short && !work_together;
  return {.rows_are_simdgroups = form.rows_are_simdgroups,
          .rows_are_simdgroup_pairs = !cooperation_.waits_at_barriers && form.rows_are_simdgroup_pairs,
          .simdgroups = cooperation_.waits_at_barriers ? form.simdgroups : 0,
          .simdgroups_are_full = (cooperation_.has_collectives || rows_are_short) && form.simdgroups_are_full,
          .row_threads = row_threads_for_code(form),
          .rows_are_short = rows_are_short,
          .threadgroups_are_even = cooperation_.waits_at_barriers && form.simdgroups_are_full &&
                                   has_even_threadgroups(call.grid, call.threadgroup)};
}

std::array<uint16_t, 3> KernelObject::known_threads(const Call& call) const {
  if (!knows_threadgroups_ || traits_of(call.device).form_use != FormUse::kWholeRow || is_for_nvrtc(call)) return {};
  std::array<uint16_t, 3> threads;
  for (size_t d = 0; d < 3; ++d)
    threads[d] = static_cast<uint16_t>(std::max<int64_t>(1, std::min(call.grid[d], call.threadgroup[d])));
  return threads;
}

// The bytes that tell one combination of argument types from another within one kernel; behind them the threads and the
// shapes that code may be made for. Built in a buffer that each thread keeps, so that a look-up allocates nothing.
KernelObject::CallKey KernelObject::call_key(const Call& call) const {
  KILN_STATIC_TLS thread_local ThreadState<std::string> key_of_thread;
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
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    InputType type = type_of(call.inputs[i], is_batched(i));
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
  static_assert(kFormBytes == sizeof form_for_code(call).packed());
  const size_t general_bytes = key.size();
  // Six bytes; those of shapes and sizes are a multiple of four. So no key of threads is one of them.
  if (const auto threads = known_threads(call); threads[0] > 0)
    for (uint16_t extent : threads) add(extent);
  const size_t thread_bytes = key.size() - general_bytes;
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
  const size_t shape_bytes = key.size() - general_bytes - thread_bytes;
  if (may_know_sizes(call)) {
    add(~uint32_t{0});  // no rank, with which shapes begin
    for (const InputArray& input : call.inputs) add(byte_count(input.shape, input.dtype));
    for (const OutputArray& output : call.outputs) add(byte_count(output.shape, output.dtype));
    for (int64_t threads : call.grid) add(threads);
  }
  return {key, general_bytes, thread_bytes, shape_bytes};
}

KernelUnit KernelObject::unit_for(const Call& call) const {
  std::vector<InputType> inputs;
  for (size_t i = 0; i < call.inputs.size(); ++i) inputs.push_back(type_of(call.inputs[i], is_batched(i)));
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
                           spec_.style,
                           spec_.part};
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
  if (traits_of(call.device).compiles_dynamic_memory)
    unit.dynamic_memory_bytes = static_cast<uint64_t>(spec_.shared_memory);
  return unit;
}

void KernelObject::set_known_shapes(KernelUnit& unit, const Call& call) const {
  for (KernelParameter& parameter : unit.parameters) {
    if (parameter.role == ParameterRole::kOutput || !uses_shape_of(call, parameter.argument)) continue;
    const InputArray& input = call.inputs[parameter.argument];
    switch (parameter.role) {
      case ParameterRole::kInput:
        // Shapes prove accesses to be inside: `img[clamp(y, 0, height - 1) * width + clamp(x, 0, width - 1)]`.
        if (spec_.ensure_row_contiguous && !is_batched(parameter.argument))
          parameter.known_bytes = static_cast<uint64_t>(byte_count(input.shape, input.dtype));
        break;
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

// Guards on a CPU compare with what the launch says, which is in a register there, mostly outside of loops.
bool KernelObject::may_know_sizes(const Call& call) const {
  return may_specialize_ && traits_of(call.device).form_use == FormUse::kWholeRow && !is_for_nvrtc(call) &&
         spec_.compile_options.bounds.value_or(settings().bounds);
}

void KernelObject::set_known_sizes(KernelUnit& unit, const Call& call) const {
  const LaunchGeometry geometry = divide_grid("", spec_.dialect, call.grid, call.threadgroup);
  unit.known_grid = geometry.threads_per_grid;
  for (KernelParameter& parameter : unit.parameters) {
    if (parameter.is_batch || !parameter.from_zero) continue;
    if (parameter.role == ParameterRole::kInput) {
      const InputArray& input = call.inputs[parameter.argument];
      parameter.known_bytes = static_cast<uint64_t>(byte_count(input.shape, input.dtype));
    } else if (parameter.role == ParameterRole::kOutput) {
      const OutputArray& output = call.outputs[parameter.argument];
      parameter.known_bytes = static_cast<uint64_t>(byte_count(output.shape, output.dtype));
    }
  }
}

bool KernelObject::may_specialize(const Call& call) const {
  for (size_t i = 0; i < call.inputs.size(); ++i)
    if (specializes_ && uses_shape_of(call, i)) return true;
  return false;
}

}  // namespace kiln
