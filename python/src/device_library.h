// What array libraries whose arrays lie on several devices have in common: a call runs on the device of its arrays and,
// on a GPU, on the library's current stream.
//
// A launch on a GPU is only put on the stream. Nothing here waits, and inputs need not be kept: the libraries give the
// memory of an array that is gone to others in the order of the stream as well.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <memory_resource>
#include <span>
#include <string>
#include <vector>

#include "array_library.h"

namespace kiln::python {

// An array as a launch reads or writes it.
struct ArrayView {
  void* data = nullptr;
  Dtype dtype = Dtype::kFloat32;
  Device device{};
  std::pmr::vector<int64_t> shape;
  std::pmr::vector<int64_t> strides;  // in elements

  explicit ArrayView(std::pmr::memory_resource* memory) : shape(memory), strides(memory) {}
};

// An array as a launch that is repeated reads or writes it, on the stack.
struct PlainArray {
  static constexpr int kMostDimensions = 8;

  void* data;
  Dtype dtype;
  Device device;
  int dimensions;
  int64_t shape[kMostDimensions], strides[kMostDimensions];  // in elements
};

/// Whether the array has the output's dtype and shape, and the strides of a new array, also where a dimension has one
/// element.
bool is_like_new(const InputArray& input, const OutputArray& output);

class DeviceLibrary : public ArrayLibrary {
 public:
  PyObject* call(const std::shared_ptr<KernelObject>& kernel, const CallArguments& arguments, Wanted wanted) final;

  /// Inputs and outputs together, of the launches that run_operator() and repeat() take.
  static constexpr size_t kMostArrays = 12;

  /// A new list of the outputs of an operator of the library's that launches a kernel; `call` has all but inputs,
  /// device and stream. Null where an input is not as read_plain() takes it, or something looks at the library's
  /// operators besides running them. In repeated_call.cpp.
  PyObject* run_operator(KernelObject& kernel, std::span<PyObject* const> inputs, Call call) const;

 protected:
  /// How messages call the library's arrays: "PyTorch tensors".
  virtual const char* title() const = 0;

  /// How the library writes a device: "cuda:0".
  virtual std::string show(Device device) const = 0;

  /// Whether something in this thread may record operations, and not just run them; asked once a call, so it is cheap.
  virtual bool may_record() const { return false; }

  /// The same of operators of the library's, which transformations and profilers see.
  virtual bool may_see_operators() const { return may_record(); }

  /// A range of the library's profilers, around a call; null where none looks. What end_range() is given.
  virtual void* begin_range(const KernelObject& kernel) const {
    static_cast<void>(kernel);
    return nullptr;
  }
  virtual void end_range(void* range) const { static_cast<void>(range); }

  /// The end of a sentence that begins with an array: what records operations, and the remedy. Empty where nothing does
  /// that would miss a kernel.
  virtual std::string recorder() const { return {}; }

  /// The array in memory. `object` becomes a copy where memory does not show its elements as they are. Throws TypeError
  /// for arrays that cannot be read. `what` begins its message.
  virtual void read(nanobind::object& object, const ArgumentName& what, ArrayView& view) const = 0;

  /// The same of an array that memory shows as it is, and that may be written if `is_output`: a small part of what
  /// read() and check_writable() take; where `on_gpu`, of one on a GPU alone. False where it is not all of that, or
  /// that is not found out sooner; nothing is thrown.
  virtual bool read_plain(nanobind::handle object, bool is_output, bool on_gpu, PlainArray& array) const {
    static_cast<void>(object);
    static_cast<void>(is_output);
    static_cast<void>(on_gpu);
    static_cast<void>(array);
    return false;
  }

  /// Throws where a caller must not give outputs. `prefix`: "[metal_kernel] ".
  virtual void check_output(std::string_view prefix) const { static_cast<void>(prefix); }

  /// Throws where an array must not be written: an output that was read, or an input that is about to be.
  virtual void check_writable(nanobind::handle object, const ArgumentName& what) const = 0;

  /// Tells the library that a kernel writes these arrays, which the caller has given: a version counter must rise.
  virtual void mark_written(std::span<const nanobind::object> arrays) const { static_cast<void>(arrays); }

  virtual nanobind::object copy_row_contiguous(nanobind::handle object) const = 0;

  /// A new array on a device, and where it lies: `data` is set. `model`, where it is valid, is an array of the library
  /// with the same shape, dtype, device and strides.
  virtual nanobind::object make(const OutputArray& output, Device device, nanobind::handle model,
                                void*& data) const = 0;

  /// What the call returns in the place of an array that was made, when it has been put on the stream.
  virtual nanobind::object finish(nanobind::object made, Device) const { return made; }

  /// Whether a call returns only when the kernel has run.
  virtual bool waits() const { return false; }

  /// Where a call without arrays runs.
  virtual Device default_device() const { return {}; }

  /// The stream that the library uses on a GPU.
  virtual void* current_stream(Device device) const = 0;

  /// A context manager within which a stream that the caller has given is the current one. Throws TypeError, ValueError
  /// where it is none of this device. `prefix`: "[metal_kernel] ".
  virtual nanobind::object stream_scope(nanobind::handle stream, Device device, std::string_view prefix) const = 0;

  /// Within such a scope: tells the library that an array from outside is in use on the current stream.
  virtual void mark_used(nanobind::handle array, Device device) const {
    static_cast<void>(array);
    static_cast<void>(device);
  }

 private:
  class Arguments;
  class Range;

  // What call() returns with kResult, of a call that the thread's plan for it serves (runtime/run.h); null where there
  // is none, or the call has more than such calls mostly have. In repeated_call.cpp.
  PyObject* repeat(KernelObject& kernel, const CallArguments& given) const;

  // A new list of what a call returns; those that were made are finished.
  PyObject* list_of(std::span<nanobind::object> results, bool were_given, Device device) const;
};

}  // namespace kiln::python
