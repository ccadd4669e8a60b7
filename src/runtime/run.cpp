#include "runtime/run.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "core/array_layout.h"
#include "core/device_traits.h"
#include "core/dtype_table.h"
#include "core/floating_point_state.h"
#include "core/log.h"
#include "core/number_conversion.h"
#include "core/out_of_memory.h"
#include "core/text.h"
#include "core/thread_locals.h"
#include "core/thread_state.h"

namespace kiln {
namespace {

// What a launch's arguments point to besides arrays. Each thread keeps one, so that a launch allocates nothing once
// its capacity fits.
struct LaunchScratch {
  std::vector<LaunchArgument> arguments;
  std::vector<int32_t> shapes;  // of all inputs, one after the other
  std::vector<int64_t> strides;
  std::vector<int32_t> ndims;
  std::vector<size_t> first_dimension;  // of each input, in shapes and strides
  std::vector<const void*> data;        // of each input, copied or not
};

// Entries of an input in shapes and strides, with the zeros behind them.
size_t padded_rank(const InputArray& input) { return std::max<size_t>(kPaddedDimensions, input.shape.size()); }

// A dtype that Metal has, of elements of this size.
Dtype copied_as(size_t bytes) {
  switch (bytes) {
    case 1: return Dtype::kUInt8;
    case 2: return Dtype::kUInt16;
    case 4: return Dtype::kUInt32;
    default: return Dtype::kUInt64;
  }
}

// Numbers among the inputs of a launch on a GPU, in its memory. They are written as memory is filled, not copied: a
// graph that captures the launch then holds their values, not the address that they had in this process.
class NumbersOnDevice {
 public:
  NumbersOnDevice(Target& target, const Call& call) : target_(target), stream_(call.stream) {
    if (!traits_of(call.device).has_own_memory) return;
    auto numbers = std::ranges::count_if(call.inputs, &InputArray::is_number);
    if (numbers > 0) memory_ = target.allocate(static_cast<size_t>(numbers) * kBytes, stream_);
  }

  const void* place(const InputArray& number) {
    if (!memory_) return number.data;
    std::byte* place = static_cast<std::byte*>(memory_.get()) + kBytes * used_++;
    target_.fill(place, 1, {static_cast<const std::byte*>(number.data), size_of(number.dtype)}, stream_);
    return place;
  }

 private:
  static constexpr size_t kBytes = 8;  // of the largest
  Target& target_;
  void* const stream_;
  TargetMemory memory_;
  size_t used_ = 0;
};

void copy_row_contiguous(Context& context, Target& target, const Call& call, const InputArray& input, void* out) {
  size_t bytes = size_of(input.dtype);
  if (target.copy_row_contiguous(input.data, input.shape, input.strides, bytes, out)) return;
  OutputArray output{copied_as(bytes), input.shape};
  InputArray source = input;
  source.dtype = output.dtype;
  Call copy{};
  copy.inputs = {&source, 1};
  copy.outputs = {&output, 1};
  constexpr int64_t kRow = int64_t{1} << 30;  // as the copier counts
  int64_t count = element_count(input.shape);
  copy.grid = {std::min(count, kRow), (count + kRow - 1) / kRow, 1};
  copy.threadgroup = {256, 1, 1};
  copy.device = call.device;
  copy.stream = call.stream;
  run(context.copier(), copy, {&out, 1});
}

void collect_inputs(const KernelObject& kernel, const Call& call, const InputCopies& copies, NumbersOnDevice& numbers,
                    LaunchScratch& scratch) {
  size_t copied = 0;
  scratch.shapes.clear();
  scratch.strides.clear();
  scratch.ndims.clear();
  scratch.first_dimension.clear();
  scratch.data.clear();
  for (const InputArray& input : call.inputs) {
    scratch.first_dimension.push_back(scratch.shapes.size());
    scratch.ndims.push_back(static_cast<int32_t>(input.shape.size()));
    size_t first = scratch.strides.size();
    size_t padded = padded_rank(input);
    for (int64_t dimension : input.shape) scratch.shapes.push_back(static_cast<int32_t>(dimension));
    scratch.shapes.resize(first + padded);
    scratch.strides.resize(first + padded);
    std::span<int64_t> strides(scratch.strides.data() + first, input.shape.size());
    if (!kernel.copies(input)) {
      std::copy(input.strides.begin(), input.strides.end(), strides.begin());
      scratch.data.push_back(input.is_number ? numbers.place(input) : input.data);
      continue;
    }
    write_row_contiguous_strides(input.shape, strides);
    scratch.data.push_back(copies[copied++].get());
  }
}

LaunchArgument argument_for(const KernelParameter& parameter, const Call& call, std::span<void* const> output_data,
                            LaunchScratch& scratch) {
  size_t i = parameter.argument;
  switch (parameter.role) {
    case ParameterRole::kInput: {
      const InputArray& input = call.inputs[i];
      std::span<const int64_t> strides(scratch.strides.data() + scratch.first_dimension[i], input.shape.size());
      const size_t own = parameter.is_batch ? 1 : 0;
      ElementRange range = byte_range(input.shape.subspan(own), strides.subspan(own), input.dtype);
      // Code that would write an input that is not writable is refused.
      return {const_cast<void*>(scratch.data[i]), range.first, range.end};
    }
    case ParameterRole::kShape:
      return {scratch.shapes.data() + scratch.first_dimension[i], 0,
              static_cast<int64_t>(padded_rank(call.inputs[i]) * sizeof(int32_t))};
    case ParameterRole::kStrides:
      return {scratch.strides.data() + scratch.first_dimension[i], 0,
              static_cast<int64_t>(padded_rank(call.inputs[i]) * sizeof(int64_t))};
    case ParameterRole::kNdim: return {&scratch.ndims[i], 0, sizeof(int32_t)};
    case ParameterRole::kOutput: {
      const OutputArray& output = call.outputs[i];
      return {output_data[i], 0, byte_count(output.shape.subspan(parameter.is_batch ? 1 : 0), output.dtype)};
    }
  }
  return {};
}

// Before anything of the launch itself is prepared: on a GPU, copying is a launch too.
void copy_inputs(KernelObject& kernel, Target& target, const Call& call, const InputCopies& copies) {
  if (copies.empty()) return;
  size_t copied = 0;
  for (const InputArray& input : call.inputs)
    if (kernel.copies(input)) copy_row_contiguous(kernel.context(), target, call, input, copies[copied++].get());
}

void initialize_outputs(Target& target, const Call& call, std::span<void* const> output_data) {
  DefaultFloatingPoint floating_point;  // the value is converted
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    size_t size = size_of(call.outputs[i].dtype);
    auto pattern = element_bytes(call.outputs[i].dtype, *call.init_value);
    target.fill(output_data[i], static_cast<size_t>(element_count(call.outputs[i].shape)), {pattern.data(), size},
                call.stream);
  }
}

LaunchRecord record_of(const KernelObject::Found& found, const Extent3& grid, const Extent3& threadgroup) {
  LaunchRecord record;
  record.target = found.variant->target->name();
  record.engine = found.variant->binary->engine;
  record.reason = found.variant->binary->engine_reason;
  record.source = found.source;
  record.specialized = found.variant->is_specialized();
  if (found.source == CodeSource::kCompiled) {
    record.compile_ms = found.variant->binary->compile_ms;
    record.not_stored = found.variant->binary->not_stored;
  }
  record.grid = grid;
  record.threadgroup = threadgroup;
  record.input_dtypes = found.variant->input_dtypes;
  record.output_dtypes = found.variant->output_dtypes;
  return record;
}

// An array library may show an array whose memory is gone or was never there; an access would end the process.
void check_addresses(const KernelObject& kernel, const Call& call, std::span<void* const> output_data) {
  auto check = [&](const void* data, std::span<const int64_t> shape, std::string_view what, auto name) {
    if (data || element_count(shape) == 0) return;
    throw ValueError(concat(message_prefix(kernel.spec().dialect), what, " `", name(),
                            "` has no memory: the address of ", "its elements is null."));
  };
  for (size_t i = 0; i < call.inputs.size(); ++i)
    check(call.inputs[i].data, call.inputs[i].shape, "Input", [&] { return kernel.input_name(call, i); });
  for (size_t i = 0; i < output_data.size(); ++i)
    check(output_data[i], call.outputs[i].shape, "Output", [&] { return kernel.output_name(call, i); });
}

// "copies 1 input, outputs filled": the parts of a launch besides its threads.
void log_launch(const KernelObject& kernel, const Call& call, const LaunchRecord& record, size_t copies) {
  auto extent = [](const Extent3& sizes) { return concat(sizes[0], "x", sizes[1], "x", sizes[2]); };
  // Nothing waits here for a launch that goes on after the call.
  const bool is_done = !traits_of(call.device).is_asynchronous;
  log(LogCategory::kLaunch, kernel.spec().name, ": ", record.target, ", ", record.engine, " engine, grid ",
      extent(call.grid), ", threadgroup ", extent(call.threadgroup), ", ", call.outputs.size(),
      call.outputs.size() == 1 ? " output " : " outputs ", call.init_value ? "filled with init_value" : "not filled",
      ", ", copies, copies == 1 ? " input copied, " : " inputs copied, ", is_done ? "ran in " : "enqueued in ",
      in_milliseconds(record.run_ms));
}

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

// ---- Plans

class LaunchPlan {
 public:
  // Only what a stream takes as it is: MLX's graphs have no stream, and the rest is more than one call of the driver.
  static bool serves(const KernelObject& kernel, const Call& call) {
    auto is_as_it_is = [&](const InputArray& input) { return !input.is_number && !kernel.copies(input); };
    return traits_of(call.device).is_asynchronous && !call.queue && !call.init_value && call.input_names.empty() &&
           call.output_names.empty() && std::ranges::all_of(call.inputs, is_as_it_is) && !kernel.writes_inputs() &&
           !kernel.spec().allows_input_stores;
  }

  LaunchPlan(const KernelObject& kernel, const Call& call, const KernelObject::Found& found)
      : kernel_(kernel.number()),
        device_(call.device),
        grid_(call.grid),
        threadgroup_(call.threadgroup),
        inputs_(call.inputs.size()),
        template_arguments_(call.template_arguments.begin(), call.template_arguments.end()),
        found_{found.variant, CodeSource::kMemory},
        record_(record_of(found_, grid_, threadgroup_)) {
    for (const InputArray& input : call.inputs) add(input.dtype, input.shape, input.strides);
    for (const OutputArray& output : call.outputs) add(output.dtype, output.shape, {});
    const KernelUnit& unit = found_.variant->unit;
    geometry_ = divide_grid(interface_name(unit.dialect), unit.dialect, grid_, kernel.threadgroup_of_launch(call));
    NumbersOnDevice none(*found_.variant->target, call);
    collect_inputs(kernel, call, {}, none, scratch_);
    std::vector<void*> no_data(call.outputs.size());
    for (const KernelParameter& parameter : unit.parameters)
      scratch_.arguments.push_back(argument_for(parameter, call, no_data, scratch_));
  }

  bool is_for(const KernelObject& kernel, const Call& call) const {
    if (kernel.number() != kernel_ || call.device != device_ || call.grid != grid_ ||
        call.threadgroup != threadgroup_ || call.inputs.size() != inputs_ ||
        call.outputs.size() != dtypes_.size() - inputs_ || call.queue || call.init_value || !call.input_names.empty() ||
        !call.output_names.empty() || !std::ranges::equal(call.template_arguments, template_arguments_))
      return false;
    Cursor cursor{dimensions_};
    auto dtype = dtypes_.begin();
    for (const InputArray& input : call.inputs)
      if (input.is_number || input.dtype != *dtype++ || !cursor.meets(input.shape) || !cursor.meets(input.strides))
        return false;
    for (const OutputArray& output : call.outputs)
      if (output.dtype != *dtype++ || !cursor.meets(output.shape) || !cursor.meets({})) return false;
    return cursor.rest.empty();
  }

  void launch(KernelObject& kernel, const Call& call, std::span<void* const> output_data) {
    auto start = std::chrono::steady_clock::now();
    const KernelUnit& unit = found_.variant->unit;
    for (size_t i = 0; i < unit.parameters.size(); ++i) {
      const KernelParameter& parameter = unit.parameters[i];
      if (parameter.role == ParameterRole::kInput)
        scratch_.arguments[i].data = const_cast<void*>(call.inputs[parameter.argument].data);
      else if (parameter.role == ParameterRole::kOutput)
        scratch_.arguments[i].data = output_data[parameter.argument];
    }
    LaunchOptions options{call.stream, static_cast<size_t>(kernel.spec().shared_memory)};
    found_.variant->target->launch(*found_.variant->binary->code, unit, geometry_, scratch_.arguments, options);
    record_.run_ms = milliseconds_since(start);
    kernel.record(record_);
    if (is_logged(LogCategory::kLaunch)) [[unlikely]]
      log_launch(kernel, call, record_, /*copies=*/0);
  }

 private:
  // Reads what add() has written.
  struct Cursor {
    std::span<const int64_t> rest;

    bool meets(std::span<const int64_t> dimensions) {
      size_t size = dimensions.size();
      if (rest.size() < size + 1 || rest[0] != static_cast<int64_t>(size) ||
          !std::ranges::equal(dimensions, rest.subspan(1, size)))
        return false;
      rest = rest.subspan(size + 1);
      return true;
    }
  };

  void add(Dtype dtype, std::span<const int64_t> shape, std::span<const int64_t> strides) {
    dtypes_.push_back(dtype);
    for (std::span<const int64_t> dimensions : {shape, strides}) {
      dimensions_.push_back(std::ssize(dimensions));
      dimensions_.insert(dimensions_.end(), dimensions.begin(), dimensions.end());
    }
  }

  const uint64_t kernel_;
  const Device device_;
  const Extent3 grid_, threadgroup_;
  const size_t inputs_;
  const std::vector<TemplateArgument> template_arguments_;
  const KernelObject::Found found_;
  std::vector<Dtype> dtypes_;        // of inputs, then outputs
  std::vector<int64_t> dimensions_;  // of each: how many and which, of its shape and of its strides
  LaunchGeometry geometry_;
  LaunchScratch scratch_;
  LaunchRecord record_;
};

namespace {

// A thread's plans, found by their kernel's number. A program launches many kernels in turn, and some with shapes that
// alternate, such as a batch and what is left of it.
class PlanTable {
 public:
  std::shared_ptr<LaunchPlan> find(const KernelObject& kernel, const Call& call) const {
    for (const std::shared_ptr<LaunchPlan>& plan : set_of(kernel))
      if (plan && plan->is_for(kernel, call)) return plan;
    return nullptr;
  }

  /// Notes a call that has no plan. True where the same one was noted before, and a plan is worth its making: shapes
  /// may be new at each call.
  bool is_seen_again(const KernelObject& kernel, const Call& call) {
    uint64_t hash = hash_of(kernel, call);
    uint64_t& noted = noted_[hash % noted_.size()];
    return std::exchange(noted, hash) == hash;
  }

  /// In the place of the one of its set that was made first.
  void add(const KernelObject& kernel, std::shared_ptr<LaunchPlan> plan) {
    auto& set = set_of(kernel);
    std::move_backward(set.begin(), set.end() - 1, set.end());
    set.front() = std::move(plan);
  }

 private:
  static constexpr size_t kSets = 64, kWays = 4;
  using Set = std::array<std::shared_ptr<LaunchPlan>, kWays>;

  Set& set_of(const KernelObject& kernel) { return sets_[kernel.number() % kSets]; }
  const Set& set_of(const KernelObject& kernel) const { return sets_[kernel.number() % kSets]; }

  // Of what mostly differs between calls of a kernel. Where it is wrong, a plan is made too early.
  static uint64_t hash_of(const KernelObject& kernel, const Call& call) {
    uint64_t hash = kernel.number() + 1;
    auto add = [&](int64_t value) { hash = (hash ^ static_cast<uint64_t>(value)) * 0x9E3779B97F4A7C15 + (hash >> 29); };
    for (int64_t size : call.grid) add(size);
    for (int64_t size : call.threadgroup) add(size);
    for (const InputArray& input : call.inputs) {
      for (int64_t size : input.shape) add(size);
      for (int64_t stride : input.strides) add(stride);
    }
    return hash;
  }

  std::array<Set, kSets> sets_;
  std::array<uint64_t, 256> noted_{};
};

PlanTable& plans() {
  KILN_STATIC_TLS thread_local ThreadState<PlanTable> table;
  return *table;
}

}  // namespace

std::shared_ptr<LaunchPlan> find_plan(const KernelObject& kernel, const Call& call) {
  if (!traits_of(call.device).is_asynchronous) return nullptr;
  return plans().find(kernel, call);
}

void run_again(LaunchPlan& plan, KernelObject& kernel, const Call& call, std::span<void* const> output_data) {
  check_addresses(kernel, call, output_data);
  plan.launch(kernel, call, output_data);
}

void run(KernelObject& kernel, const Call& call, std::span<void* const> output_data) {
  check_addresses(kernel, call, output_data);
  KernelObject::Found found = kernel.find_or_compile(call);
  launch(kernel, found, call, output_data, allocate_copies(kernel, call));
  if (!LaunchPlan::serves(kernel, call) || !plans().is_seen_again(kernel, call)) return;
  try {
    plans().add(kernel, std::make_shared<LaunchPlan>(kernel, call, found));
  } catch (const std::bad_alloc&) {
    // The launch is made; the next one is as long.
  }
}

void check_written_inputs(const KernelObject& kernel, const Variant& variant, const Call& call,
                          std::span<void* const> output_data) {
  struct Range {
    uintptr_t begin = 0, end = 0;
    bool overlaps(const Range& other) const {
      return begin != end && other.begin != other.end && begin < other.end && other.begin < end;
    }
  };
  auto range_of_input = [&](size_t i) -> Range {
    const InputArray& input = call.inputs[i];
    // A number has no memory of the caller's, and a copy is the launch's own.
    if (input.is_number || kernel.copies(input)) return {};
    ElementRange bytes = byte_range(input.shape, input.strides, input.dtype);
    auto data = reinterpret_cast<uintptr_t>(input.data);
    return {data + static_cast<uintptr_t>(bytes.first), data + static_cast<uintptr_t>(bytes.end)};
  };
  for (const KernelParameter& parameter : variant.unit.parameters) {
    if (!parameter.is_writable_input) continue;
    size_t written = parameter.argument;
    Range range = range_of_input(written);
    auto check = [&](const Range& other, std::string_view what, const std::string& name) {
      if (range.overlaps(other))
        throw ValueError(concat(message_prefix(kernel.spec().dialect), "The memory of ", what, " `", name,
                                "` and of input `", kernel.input_name(call, written),
                                "`, which is written in place, overlap."));
    };
    for (size_t i = 0; i < call.inputs.size(); ++i)
      if (i != written) check(range_of_input(i), "input", kernel.input_name(call, i));
    for (size_t i = 0; i < output_data.size(); ++i) {
      auto data = reinterpret_cast<uintptr_t>(output_data[i]);
      auto bytes = static_cast<uintptr_t>(byte_count(call.outputs[i].shape, call.outputs[i].dtype));
      check({data, data + bytes}, "output", kernel.output_name(call, i));
    }
  }
}

InputCopies allocate_copies(const KernelObject& kernel, const Call& call) {
  InputCopies copies;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const InputArray& input = call.inputs[i];
    if (!kernel.copies(input)) continue;
    int64_t bytes = byte_count(input.shape, input.dtype);
    try {
      copies.push_back(kernel.context().target(call.device).allocate(static_cast<size_t>(bytes), call.stream));
    } catch (const std::bad_alloc&) {
      throw OutOfMemory(concat(message_prefix(kernel.spec().dialect), "There is no memory for the ", bytes,
                               " bytes of a row-contiguous copy of input `", kernel.input_name(call, i), "`."));
    }
  }
  return copies;
}

void launch(KernelObject& kernel, const KernelObject::Found& found, const Call& call,
            std::span<void* const> output_data, const InputCopies& copies, LaunchStop* stop) {
  auto start = std::chrono::steady_clock::now();
  Target& target = *found.variant->target;
  const KernelUnit& unit = found.variant->unit;
  LaunchGeometry geometry =
      divide_grid(interface_name(unit.dialect), unit.dialect, call.grid, kernel.threadgroup_of_launch(call));
  const LoadedKernel& code = *found.variant->binary->code;
  LaunchOptions options{call.stream, static_cast<size_t>(kernel.spec().shared_memory), call.queue,
                        call.init_value.has_value(), stop};
  if (kernel.spec().part.has_batch()) options.batch = call.outputs[0].shape[0];
  target.check_launch(code, unit, geometry, options);
  check_written_inputs(kernel, *found.variant, call, output_data);
  copy_inputs(kernel, target, call, copies);

  KILN_STATIC_TLS thread_local ThreadState<LaunchScratch> scratch_of_thread;
  Borrowed borrowed(*scratch_of_thread);
  LaunchScratch& scratch = *borrowed;
  NumbersOnDevice numbers(target, call);
  collect_inputs(kernel, call, copies, numbers, scratch);
  scratch.arguments.clear();
  for (const KernelParameter& parameter : unit.parameters)
    scratch.arguments.push_back(argument_for(parameter, call, output_data, scratch));

  if (call.init_value) initialize_outputs(target, call, output_data);
  try {
    target.launch(code, unit, geometry, scratch.arguments, options);
  } catch (const std::bad_alloc&) {
    throw OutOfMemory(concat(message_prefix(unit.dialect), "There is no memory for the threads of `",
                             printable(kernel.spec().name), "` in threadgroups of ",
                             geometry.threads_in_full_threadgroup(), "."));
  }

  LaunchRecord record = record_of(found, call.grid, call.threadgroup);
  record.run_ms = milliseconds_since(start);
  kernel.record(record);
  if (is_logged(LogCategory::kLaunch)) [[unlikely]]
    log_launch(kernel, call, record, copies.size());
}

}  // namespace kiln
