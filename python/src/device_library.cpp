#include "device_library.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <optional>
#include <span>

#include "core/array_layout.h"
#include "core/device_traits.h"
#include "core/text.h"
#include "dlpack_input.h"
#include "kiln/error.h"
#include "number_input.h"
#include "overlaps.h"
#include "python_object.h"
#include "runtime/run.h"

namespace nb = nanobind;

namespace kiln::python {
namespace {

// A scope in which a stream is the library's current one.
class StreamScope {
 public:
  explicit StreamScope(nb::object manager) : manager_(std::move(manager)) {
    if (manager_.is_valid()) manager_.attr("__enter__")();
  }
  ~StreamScope() {
    if (!manager_.is_valid()) return;
    nb::error_scope keep_error;
    try {
      manager_.attr("__exit__")(nb::none(), nb::none(), nb::none());
    } catch (nb::python_error& error) {
      error.discard_as_unraisable("leaving a stream");
    }
  }
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;

 private:
  nb::object manager_;
};

}  // namespace

bool is_like_new(const InputArray& input, const OutputArray& output) {
  if (input.dtype != output.dtype || !std::ranges::equal(input.shape, output.shape)) return false;
  uint64_t stride = 1;  // of an empty array it may wrap
  for (size_t d = input.shape.size(); d-- > 0; stride *= static_cast<uint64_t>(input.shape[d]))
    if (static_cast<uint64_t>(input.strides[d]) != stride) return false;
  return true;
}

// The arrays and numbers of a call, read.
class DeviceLibrary::Arguments {
 public:
  Arguments(const DeviceLibrary& library, const KernelObject& kernel, const CallArguments& arguments)
      : library_(library), kernel_(kernel), arguments_(arguments), prefix_(message_prefix(kernel.spec().dialect)) {
    read_inputs();
    if (arguments.outputs) {
      library.check_output(prefix_);
      read_given_outputs();
    }
    if (!place_) place_ = library.default_device();
  }

  Device device() const { return *place_; }
  std::string_view prefix() const { return prefix_; }

  /// In a scope of the stream: copies what must be copied, and describes the call.
  Call describe(bool runs) {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (numbers_[i]) {
        input_arrays_.push_back({numbers_[i]->bytes, numbers_[i]->dtype, {}, {}, /*is_number=*/true});
        continue;
      }
      if (const DlpackInput* exported = exported_input(i)) {
        input_arrays_.push_back(exported->array());
        continue;
      }
      ArrayView& view = views_[i];
      // On the CPU Kiln copies faster than others.
      if (runs && traits_of(device()).has_own_memory && kernel_.spec().ensure_row_contiguous && !is_writable(i) &&
          !is_row_contiguous(view.shape, view.strides)) {
        inputs_[i] = library_.copy_row_contiguous(inputs_[i]);
        library_.read(inputs_[i], input(i), view);
      }
      InputArray input;
      input.data = view.data;
      input.dtype = view.dtype;
      input.shape = view.shape;
      input.strides = view.strides;
      input_arrays_.push_back(input);
    }
    if (arguments_.outputs)
      for (const ArrayView& view : output_views_) output_arrays_.push_back({view.dtype, view.shape});
    else
      for (size_t i = 0; i < arguments_.output_shapes.size(); ++i)
        output_arrays_.push_back({i < arguments_.output_dtypes.size() ? arguments_.output_dtypes[i] : Dtype::kFloat32,
                                  arguments_.output_shapes[i]});
    return arguments_.call_on(input_arrays_, output_arrays_, device());
  }

  std::span<const nb::object> given_outputs() const { return outputs_; }
  std::span<const ArrayView> given_views() const { return output_views_; }
  std::span<const nb::object> inputs() const { return inputs_; }
  std::pmr::memory_resource* memory() { return &memory_; }
  bool is_array(size_t input) const { return !numbers_[input] && !exported_input(input); }

  /// Whether the kernel's options name the input to be written in place.
  bool is_writable(size_t input) const {
    return kernel_.writes_inputs() && kernel_.is_writable(arguments_.input_name(kernel_, input));
  }

  /// An input that is as a new array for the output would be; not valid where there is none.
  nb::handle model_of(const OutputArray& output) const {
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (is_array(i) && is_like_new(input_arrays_[i], output)) return inputs_[i];
    return {};
  }

 private:
  void read_inputs() {
    size_t count = arguments_.inputs.size();
    views_.reserve(count);
    for (size_t i = 0; i < count; ++i) views_.emplace_back(&memory_);
    numbers_.resize(count);
    inputs_.reserve(count);
    input_arrays_.reserve(count);
    for (size_t i = 0; i < count; ++i) {
      PyObject* object = arguments_.inputs[i].get();
      inputs_.push_back(nb::borrow(object));
      if (library_.owns(object)) continue;
      numbers_[i] = read_number_input(object, input(i), kernel_.spec().dialect == Dialect::kCuda);
      if (numbers_[i]) continue;
      if (PyErr_Occurred() || !is_foreign_array(object))
        throw_type_error(concat(prefix_, "Expected `inputs` to be ", library_.title(), " or numbers but got ",
                                kind_of(object), " for `", input(i).text(), "`."));
      exported_.resize(count);
      exported_[i].emplace(object, input(i));
    }
    if (library_.may_record()) check_recorder();
    for (size_t i = 0; i < count; ++i) {
      if (numbers_[i]) continue;
      if (exported_input(i)) {
        if (is_writable(i)) refuse_to_write(input(i), kOfUnknownLibrary);
        place({}, input(i));
        continue;
      }
      if (is_writable(i)) library_.check_writable(inputs_[i], input(i));
      library_.read(inputs_[i], input(i), views_[i]);
      if (is_writable(i) && inputs_[i].ptr() != arguments_.inputs[i].get())
        refuse_to_write(input(i), "but is a view that cannot be written");
      place(views_[i].device, input(i));
    }
  }

  // The kernel would run now, and be missing from what is recorded.
  void check_recorder() const {
    std::string recorder = library_.recorder();
    if (recorder.empty()) return;
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (is_array(i)) throw TypeError(concat(input(i), recorder));
    if (arguments_.outputs && !arguments_.outputs->empty()) throw TypeError(concat(output(0), recorder));
    throw TypeError(concat(prefix_, "The call", recorder));
  }

  void place(Device device, const ArgumentName& whom) {
    if (!place_) {
      place_ = device;
      placed_by_ = whom;
    } else if (*place_ != device) {
      throw ValueError(concat(prefix_, "Expected all arrays of a call to be on one device but got `",
                              placed_by_->text(), "` on ", library_.show(*place_), " and `", whom.text(), "` on ",
                              library_.show(device), "."));
    }
  }

  void read_given_outputs() {
    const std::vector<ObjectOwner>& given = *arguments_.outputs;
    output_views_.reserve(given.size());
    outputs_.reserve(given.size());
    for (size_t i = 0; i < given.size(); ++i) {
      ArgumentName what = output(i);
      if (!library_.owns(given[i].get()))
        throw TypeError(concat(prefix_, "Expected `outputs` to be ", library_.title(), " but got ",
                               kind_of(given[i].get()), " for `", what.text(), "`."));
      nb::object object = nb::borrow(given[i].get());
      ArrayView& view = output_views_.emplace_back(&memory_);
      library_.read(object, what, view);
      // Not a copy, as of elements that memory does not show as they are.
      if (object.ptr() != given[i].get()) throw ValueError(concat(what, " is a view that cannot be written."));
      library_.check_writable(object, what);
      if (!is_row_contiguous(view.shape, view.strides)) throw ValueError(concat(what, " is not row-contiguous."));
      place(view.device, what);
      outputs_.push_back(std::move(object));
    }
    auto named = [](const ArgumentName& name, const ArrayView& view) {
      return NamedArray{name, {view.data, view.dtype, view.shape, view.strides}};
    };
    std::pmr::vector<NamedArray> read(&memory_), written(&memory_);
    read.reserve(views_.size());
    written.reserve(output_views_.size());
    for (size_t i = 0; i < views_.size(); ++i) {
      if (const DlpackInput* exported = exported_input(i))
        read.push_back({input(i), exported->array()});
      else if (!numbers_[i])
        read.push_back(named(input(i), views_[i]));
    }
    for (size_t i = 0; i < output_views_.size(); ++i) written.push_back(named(output(i), output_views_[i]));
    check_overlaps(prefix_, read, written);
  }

  // Null unless the input is an array of a library that Kiln does not know.
  const DlpackInput* exported_input(size_t i) const {
    return i < exported_.size() && exported_[i] ? &*exported_[i] : nullptr;
  }

  ArgumentName input(size_t i) const { return {kernel_, arguments_, ArgumentName::Kind::kInput, i}; }
  ArgumentName output(size_t i) const { return {kernel_, arguments_, ArgumentName::Kind::kOutput, i}; }
  const DeviceLibrary& library_;
  const KernelObject& kernel_;
  const CallArguments& arguments_;
  const std::string_view prefix_;
  // A call of few arrays needs no memory but the stack's.
  std::byte buffer_[4096];
  std::pmr::monotonic_buffer_resource memory_{buffer_, sizeof buffer_};
  std::pmr::vector<nb::object> inputs_{&memory_};
  std::pmr::vector<ArrayView> views_{&memory_};
  std::pmr::vector<std::optional<NumberInput>> numbers_{&memory_};  // of those inputs that are numbers
  std::vector<std::optional<DlpackInput>> exported_;  // of those that other libraries export; mostly empty
  std::optional<Device> place_;
  std::optional<ArgumentName> placed_by_;
  std::pmr::vector<nb::object> outputs_{&memory_};  // that the caller has given
  std::pmr::vector<ArrayView> output_views_{&memory_};
  std::pmr::vector<InputArray> input_arrays_{&memory_};
  std::pmr::vector<OutputArray> output_arrays_{&memory_};
};

// A call as the library's profilers see it.
class DeviceLibrary::Range {
 public:
  Range(const DeviceLibrary& library, const KernelObject& kernel)
      : library_(library), range_(library.begin_range(kernel)) {}
  ~Range() {
    if (range_) library_.end_range(range_);
  }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

 private:
  const DeviceLibrary& library_;
  void* range_;
};

PyObject* DeviceLibrary::call(const std::shared_ptr<KernelObject>& kernel, const CallArguments& given, Wanted wanted) {
  std::optional<Range> range;
  if (wanted == Wanted::kResult) range.emplace(*this, *kernel);
  if (wanted == Wanted::kResult)
    if (PyObject* result = repeat(*kernel, given)) return result;
  Arguments arguments(*this, *kernel, given);
  Device device = arguments.device();
  const bool on_gpu = traits_of(device).is_asynchronous;
  if (given.stream && !on_gpu)
    throw ValueError(
        concat(arguments.prefix(), "`stream` has no meaning for ", title(), " on the CPU, whose kernels run at once."));
  StreamScope scope(given.stream ? stream_scope(given.stream, device, arguments.prefix()) : nb::object());
  Call call = arguments.describe(wanted == Wanted::kResult);
  std::shared_ptr<LaunchPlan> plan = on_gpu && wanted == Wanted::kResult ? find_plan(*kernel, call) : nullptr;
  if (!plan) kernel->check_sizes(call);
  if (wanted == Wanted::kSource || given.verbose) {
    kernel->check(call);
    KernelUnit unit = kernel->unit_for(call);
    if (wanted == Wanted::kSource) return nb::str(unit.text.data(), unit.text.size()).release().ptr();
    print_source(unit);
  }
  if (wanted == Wanted::kCompile) {
    KernelObject::Found found;
    {
      WithoutLock without_lock;
      found = kernel->find_or_compile(call);
    }
    return make_compiled_kernel(kernel, found);
  }
  if (on_gpu) call.stream = current_stream(device);

  std::span<const nb::object> given_outputs = arguments.given_outputs();
  std::pmr::vector<nb::object> results(given_outputs.begin(), given_outputs.end(), arguments.memory());
  std::pmr::vector<void*> data(arguments.memory());
  data.reserve(call.outputs.size());
  if (given.outputs)
    for (const ArrayView& view : arguments.given_views()) data.push_back(view.data);
  else
    for (const OutputArray& output : call.outputs) {
      void* place = nullptr;
      results.push_back(make(output, device, arguments.model_of(output), place));
      data.push_back(place);
    }
  if (given.stream) {
    for (size_t i = 0; i < arguments.inputs().size(); ++i)
      if (arguments.is_array(i)) mark_used(arguments.inputs()[i], device);
    for (const nb::object& output : given_outputs) mark_used(output, device);
  }
  if (given.outputs) mark_written(given_outputs);
  if (kernel->writes_inputs())
    for (size_t i = 0; i < arguments.inputs().size(); ++i)
      if (arguments.is_writable(i)) mark_written(arguments.inputs().subspan(i, 1));
  {
    WithoutLock without_lock;
    if (plan)
      run_again(*plan, *kernel, call, data);
    else
      run(*kernel, call, data);
    if (waits()) kernel->context().target(device).wait(call.stream);
  }
  return list_of(results, given.outputs.has_value(), device);
}

PyObject* DeviceLibrary::list_of(std::span<nb::object> results, bool were_given, Device device) const {
  nb::object list = nb::steal(PyList_New(static_cast<Py_ssize_t>(results.size())));
  if (!list.is_valid()) nb::raise_python_error();
  for (size_t i = 0; i < results.size(); ++i) {
    nb::object result = were_given ? std::move(results[i]) : finish(std::move(results[i]), device);
    PyList_SET_ITEM(list.ptr(), static_cast<Py_ssize_t>(i), result.release().ptr());
  }
  return list.release().ptr();
}

}  // namespace kiln::python
