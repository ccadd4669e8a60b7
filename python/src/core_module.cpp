// `kiln._core`: kernels, without any array library but NumPy, which is reached when it is there.
#include <cxxabi.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "adapters/torch_operator.h"
#include "array_library.h"
#include "call_arguments.h"
#include "core/diagnostic.h"
#include "core/dtype_table.h"
#include "core/library_folders.h"
#include "core/settings.h"
#include "core/text.h"
#include "cupy_library.h"
#include "described_call.h"
#include "exceptions.h"
#include "frontend/grid_part.h"
#include "frontend/includes.h"
#include "jax_library.h"
#include "kiln/error.h"
#include "kiln/kernel.h"
#include "number_input.h"
#include "numpy_library.h"
#include "python_object.h"
#include "runtime/compiler_library.h"
#include "runtime/recording.h"
#include "runtime/target_registry.h"
#include "torch_launch.h"
#include "torch_library.h"
#include "xla_launch.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace kiln::python {
namespace {

// The array libraries of this process that a kernel has met, in the order of meeting. Guarded by the interpreter lock.
std::vector<ArrayLibrary*>& libraries() {
  static std::vector<ArrayLibrary*> instance;
  return instance;
}

// Asks Python, which knows the libraries by the names of their modules, for one that has not been met yet. The function
// is kept: while the interpreter shuts down nothing can be imported any more.
void meet_library_of(PyObject* object) {
  static nb::handle meet;
  if (!meet.is_valid()) meet = nb::object(nb::module_::import_("kiln._libraries").attr("meet")).release();
  meet(nb::handle(object));
}

ArrayLibrary* library_named(std::string_view name) {
  for (ArrayLibrary* library : libraries())
    if (library->name() == name) return library;
  nb::module_::import_("kiln._libraries").attr("meet_by_name")(name);
  for (ArrayLibrary* library : libraries())
    if (library->name() == name) return library;
  throw InternalError(concat("array library ", name, " did not register"));
}

// The library whose array the object is, or null for a number.
ArrayLibrary* library_of(PyObject* object) {
  if (PyBool_Check(object) || PyFloat_Check(object) || PyComplex_CheckExact(object) || PyLong_Check(object))
    return nullptr;
  // By number: what a library asks its arrays may be Python's, and another thread meet one more meanwhile.
  auto ask = [&](size_t first) -> ArrayLibrary* {
    for (size_t i = first; i < libraries().size(); ++i)
      if (ArrayLibrary* library = libraries()[i]; library->owns(object)) return library;
    return nullptr;
  };
  size_t met = libraries().size();
  if (ArrayLibrary* library = ask(0)) return library;
  meet_library_of(object);
  return ask(met);
}

// A dtype and the library that it belongs to, which stays as it is for a string.
std::optional<Dtype> read_dtype(PyObject* object, ArrayLibrary*& owner) {
  if (PyUnicode_Check(object)) {
    Py_ssize_t size;
    const char* data = PyUnicode_AsUTF8AndSize(object, &size);
    if (!data) {
      PyErr_Clear();  // a lone surrogate, which no dtype's name has
      return std::nullopt;
    }
    return dtype_from_name({data, static_cast<size_t>(size)});
  }
  if (PyLong_Check(object) || PyFloat_Check(object)) return std::nullopt;
  auto ask = [&](size_t first) -> std::optional<Dtype> {
    for (size_t i = first; i < libraries().size(); ++i)
      if (std::optional<Dtype> dtype = libraries()[i]->dtype_of(object)) {
        owner = libraries()[i];
        return dtype;
      }
    return std::nullopt;
  };
  size_t met = libraries().size();
  if (std::optional<Dtype> dtype = ask(0)) return dtype;
  meet_library_of(object);
  return ask(met);
}

class PyKernel {
 public:
  PyKernel(KernelSpec spec, std::string library)
      : kernel_(std::make_shared<KernelObject>(std::move(spec))), library_name_(std::move(library)) {}

  /// Runs a call. `read(reader)` has it read the call, and gives what was read.
  template <typename Read>
  nb::object call(const Read& read) const {
    // A call that comes in the middle of another, from here or from another thread, has a reader of its own.
    std::unique_ptr<CallReader> reader = std::move(reader_);
    if (!reader) reader = std::make_unique<CallReader>(*kernel_, read_dtype);
    const CallArguments& call = read(*reader);
    ArrayLibrary* library = library_for(call, reader->library_of_dtypes());
    nb::object result = nb::steal(library->call(kernel_, call, Wanted::kResult));
    if (!kernel_->spec().input_names) {
      // The dictionary generations return a dictionary.
      nb::dict by_name;
      for (size_t i = 0; i < call.output_names.size(); ++i)
        by_name[nb::str(call.output_names[i].c_str(), call.output_names[i].size())] = result[i];
      result = std::move(by_name);
    }
    reader->forget_arrays();
    reader_ = std::move(reader);
    return result;
  }

  /// What a call compiles, of arrays or of what is said of them.
  nb::object compile(Wanted wanted, nb::handle arguments, nb::handle keywords) const {
    std::unique_ptr<CallReader> reader = std::move(reader_);
    if (!reader) reader = std::make_unique<CallReader>(*kernel_, read_dtype);
    std::optional<DescribedInputs> described;
    const CallArguments& call = reader->read_compilation(arguments, keywords, described);
    nb::object result = described
                            ? compile_described(kernel_, call, *described, wanted)
                            : nb::steal(library_for(call, reader->library_of_dtypes())->call(kernel_, call, wanted));
    reader->forget_arrays();
    reader_ = std::move(reader);
    return result;
  }

  const KernelObject& kernel() const { return *kernel_; }
  const std::shared_ptr<KernelObject>& shared_kernel() const { return kernel_; }
  const std::string& library_name() const { return library_name_; }

#ifndef Py_LIMITED_API
  static PyObject* call_kernel(PyObject* self, PyObject* const* values, size_t flags, PyObject* names) noexcept;
#endif

 private:
  // The kernel's own, else that of the first array among inputs and outputs, else that of the dtypes, else NumPy. A
  // library that is the kernel's own decides itself what it takes of other libraries' arrays.
  ArrayLibrary* library_for(const CallArguments& call, ArrayLibrary* of_dtypes) const {
    if (!library_name_.empty()) return library_named(library_name_);
    ArrayLibrary* library = nullptr;
    auto meet = [&](PyObject* array, const char* argument) {
      ArrayLibrary* owner = library_of(array);
      if (!owner) return;
      if (!library) library = owner;
      if (owner != library)
        throw TypeError(concat(message_prefix(kernel_->spec().dialect), "Expected all `", argument,
                               "` to be arrays of one library but got arrays of ", library->name(), " and ",
                               owner->name(), "."));
    };
    for (const ObjectOwner& input : call.inputs) meet(input.get(), "inputs");
    if (call.outputs)
      for (const ObjectOwner& output : *call.outputs) meet(output.get(), "inputs` and `outputs");
    if (library) return library;
    return of_dtypes ? of_dtypes : library_named("numpy");
  }

#ifndef Py_LIMITED_API
  // The first member, where Python looks for it (`offer_calls`).
  vectorcallfunc vectorcall_ = call_kernel;
#endif
  std::shared_ptr<KernelObject> kernel_;
  std::string library_name_;
  mutable std::unique_ptr<CallReader> reader_;  // while no call runs; guarded by the interpreter lock
};

Dialect dialect_named(std::string_view name) { return name == "metal" ? Dialect::kMetal : Dialect::kCuda; }

MathMode math_mode_named(std::string_view name) {
  return name == "fast" ? MathMode::kFast : name == "relaxed" ? MathMode::kRelaxed : MathMode::kSafe;
}

// ---- The cache on disk, and compiling ahead: what kiln._cache and kiln._recording show and read.

std::string_view name_of(CacheMode mode) {
  return mode == CacheMode::kOff ? "off" : mode == CacheMode::kRead ? "read" : "on";
}

std::string_view name_of(MathMode mode) {
  return mode == MathMode::kFast ? "fast" : mode == MathMode::kRelaxed ? "relaxed" : "safe";
}

#ifndef Py_LIMITED_API

// What `function` returns, for Python. A daemon thread that runs the caller's code in here when the interpreter shuts
// down is ended by unwinding (see WithoutLock), which nothing below may swallow.
template <typename Function>
PyObject* for_python(const Function& function) noexcept {
  try {
    return function();
  } catch (abi::__forced_unwind&) {
    for (;;) pause();
  } catch (...) {
    set_error_from_exception();
    return nullptr;
  }
}

// What Python calls in the place of `__call__`, which stays for those who ask for it by name: by the name a call costs
// a dict and two tuples more, as much as a small launch.
PyObject* PyKernel::call_kernel(PyObject* self, PyObject* const* values, size_t flags, PyObject* names) noexcept {
  return for_python([&] {
    auto positional = static_cast<size_t>(PyVectorcall_NARGS(flags));
    auto read = [&](CallReader& reader) -> auto& { return reader.read(values, positional, names); };
    return nb::inst_ptr<PyKernel>(self)->call(read).release().ptr();
  });
}

// Of what has not been made.
PyObject* refuse_call(PyObject*, PyObject* const*, size_t, PyObject*) noexcept {
  PyErr_SetString(PyExc_TypeError, "a Kernel is made by kiln.metal_kernel or kiln.cuda_kernel");
  return nullptr;
}

// Where a kernel's memory begins in its Python object: nanobind puts it behind the header.
constexpr Py_ssize_t kHeaderBytes = sizeof(PyObject) + 2 * sizeof(uint32_t);

PyObject* allocate_kernel(PyTypeObject* type, PyObject*, PyObject*) noexcept {
  return for_python([&] {
    nb::object self = nb::inst_alloc(nb::handle(reinterpret_cast<PyObject*>(type)));
    auto* memory = reinterpret_cast<std::byte*>(self.ptr()) + kHeaderBytes;
    if (reinterpret_cast<std::byte*>(nb::inst_ptr<PyKernel>(self)) != memory)
      throw InternalError("a kernel is not where its Python object's header ends");
    vectorcallfunc refuse = refuse_call;
    std::memcpy(memory, &refuse, sizeof refuse);
    return self.release().ptr();
  });
}

void offer_calls(nb::handle type) {
  auto* kernel = reinterpret_cast<PyTypeObject*>(type.ptr());
  kernel->tp_new = allocate_kernel;
  kernel->tp_call = PyVectorcall_Call;
  kernel->tp_vectorcall_offset = kHeaderBytes;
  // Before 3.12 Python would not notice another `__call__`.
  kernel->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_IMMUTABLETYPE;
  PyType_Modified(kernel);
}

#endif

std::vector<std::string> names_of(const std::vector<Dtype>& dtypes) {
  std::vector<std::string> names;
  for (Dtype dtype : dtypes) names.emplace_back(kiln::name_of(dtype));
  return names;
}

// As a caller writes them.
nb::dict options_of(const KernelSpec& spec) {
  const CompileOptions& given = spec.compile_options;
  nb::dict compile_options;
  compile_options["math_mode"] = name_of(given.math_mode);
  if (given.bounds) compile_options["bounds"] = *given.bounds ? "on" : "off";
  if (given.specialize) compile_options["specialize"] = *given.specialize;
  if (!spec.files.include_dirs.empty()) compile_options["include_dirs"] = spec.files.include_dirs;
  if (!given.writable_inputs.empty()) compile_options["writable_inputs"] = given.writable_inputs;
  nb::dict options;
  options["ensure_row_contiguous"] = spec.ensure_row_contiguous;
  if (spec.dialect == Dialect::kMetal)
    options["atomic_outputs"] = spec.atomic_outputs;
  else
    options["shared_memory"] = spec.shared_memory;
  options["compile_options"] = compile_options;
  return options;
}

nb::dict cache_status() {
  Context& context = Context::shared();
  const DiskCacheOptions& options = context.cache().options();
  DiskCache::Status status;
  {
    WithoutLock without_lock;
    status = context.cache().status();
  }
  nb::dict result;
  result["mode"] = name_of(options.mode);
  result["directory"] = options.directory;
  result["problem"] = status.problem;
  result["entries"] = status.entries;
  result["bytes"] = status.bytes;
  result["limit_bytes"] = options.limit_bytes;
  result["hits"] = status.hits;
  result["misses"] = status.misses;
  return result;
}

nb::dict bundle_status() {
  Context& context = Context::shared();
  nb::dict result;
  result["path"] = context.bundle() ? context.bundle()->path() : settings().bundle_path;
  result["problem"] = context.bundle_problem();
  result["entries"] = context.bundle() ? context.bundle()->size() : 0;
  result["compiler"] = context.bundle() ? kiln::join(context.bundle()->compilers(), "\n") : "";
  return result;
}

nb::list as_list(const std::vector<DiskCache::Item>& items) {
  // Its texts are checked when they are written, but a file of another program's may have any.
  auto text = [](const std::string& bytes) {
    return nb::steal(PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "replace"));
  };
  nb::list result;
  for (const DiskCache::Item& item : items) {
    nb::dict row;
    row["id"] = item.id;
    row["bytes"] = item.bytes;
    row["last_used"] = item.last_used;
    row["problem"] = text(item.problem);
    row["kernel"] = text(item.entry.kernel);
    row["architecture"] = text(item.entry.target.cpu);
    row["engine"] = text(item.entry.engine);
    row["compiler"] = text(item.entry.compiler);
    row["compile_ms"] = item.entry.compile_ms;
    result.append(row);
  }
  return result;
}

std::tuple<uint64_t, uint64_t> as_tuple(const DiskCache::Removed& removed) { return {removed.entries, removed.bytes}; }

nb::object template_value(const TemplateValue& value) {
  if (auto* dtype = std::get_if<Dtype>(&value)) return nb::str(std::string(kiln::name_of(*dtype)).c_str());
  if (auto* flag = std::get_if<bool>(&value)) return nb::bool_(*flag);
  return nb::int_(std::get<int32_t>(value));
}

using InclusionTuple = std::tuple<size_t, size_t, uint32_t>;

nb::list as_list(const std::vector<Inclusion>& inclusions) {
  nb::list result;
  for (const Inclusion& inclusion : inclusions)
    result.append(nb::make_tuple(inclusion.begin, inclusion.end, inclusion.file));
  return result;
}

nb::dict as_dict(const KernelFiles& files) {
  nb::list included;
  for (const IncludedFile& file : files.included)
    included.append(nb::make_tuple(file.path, file.text, as_list(file.inclusions)));
  nb::dict result;
  result["source"] = files.source_path;
  result["header"] = files.header_path;
  result["include_dirs"] = files.include_dirs;
  result["source_inclusions"] = as_list(files.source_inclusions);
  result["header_inclusions"] = as_list(files.header_inclusions);
  result["included"] = included;
  return result;
}

// What as_dict() gave. Throws TypeError for what it cannot have given.
KernelFiles read_files(const nb::dict& recorded, const std::string& source, const std::string& header) {
  KernelFiles files;
  auto read_inclusions = [&](nb::handle list, const std::string& text) {
    std::vector<Inclusion> inclusions;
    size_t end = 0;
    for (auto [begin, next, file] : nb::cast<std::vector<InclusionTuple>>(list)) {
      if (begin < end || next < begin || next > text.size() || file >= files.included.size())
        throw TypeError("a text has no such inclusion");
      inclusions.push_back({begin, next, file});
      end = next;
    }
    return inclusions;
  };
  try {
    files.source_path = nb::cast<std::string>(recorded["source"]);
    files.header_path = nb::cast<std::string>(recorded["header"]);
    files.include_dirs = nb::cast<std::vector<std::string>>(recorded["include_dirs"]);
    auto included = nb::cast<std::vector<std::tuple<std::string, std::string, nb::list>>>(recorded["included"]);
    for (auto& [path, text, inclusions] : included) files.included.push_back({path, text, {}});
    for (size_t i = 0; i < included.size(); ++i)
      files.included[i].inclusions = read_inclusions(std::get<2>(included[i]), files.included[i].text);
    files.source_inclusions = read_inclusions(recorded["source_inclusions"], source);
    files.header_inclusions = read_inclusions(recorded["header_inclusions"], header);
  } catch (const nb::cast_error&) {
    throw TypeError("these are no files of a kernel");
  }
  return files;
}

// As the constructor of Kernel takes it.
nb::dict as_dict(const KernelSpec& spec) {
  nb::dict result;
  result["dialect"] = spec.dialect == Dialect::kMetal ? "metal" : "cuda";
  result["name"] = spec.name;
  result["input_names"] = spec.input_names;
  result["output_names"] = spec.output_names;
  result["source"] = spec.source;
  result["header"] = spec.header;
  result["ensure_row_contiguous"] = spec.ensure_row_contiguous;
  result["atomic_outputs"] = spec.atomic_outputs;
  result["shared_memory"] = spec.shared_memory;
  result["math_mode"] = name_of(spec.compile_options.math_mode);
  result["bounds"] = spec.compile_options.bounds;
  result["specialize"] = spec.compile_options.specialize;
  result["writable_inputs"] = spec.compile_options.writable_inputs;
  result["allows_input_stores"] = spec.allows_input_stores;
  result["always_shapes"] = spec.style == SignatureStyle::kAlways;
  if (spec.part.has_batch()) result["batched_inputs"] = spec.part.batched_inputs;
  if (spec.part.is_slice()) result["sliced_axis"] = spec.part.sliced_axis;
  if (spec.files != KernelFiles()) result["files"] = as_dict(spec.files);
  return result;
}

// The same of a kernel that is there, with its library.
nb::dict spec_of(const PyKernel& kernel) {
  nb::dict result = as_dict(kernel.kernel().spec());
  result["library"] = kernel.library_name();
  return result;
}

// As compile_ahead() takes it.
nb::dict as_dict(const RecordedCall& call) {
  nb::list inputs, outputs, templates;
  for (const RecordedInput& input : call.inputs)
    inputs.append(nb::make_tuple(kiln::name_of(input.dtype), input.shape, input.strides));
  for (const RecordedOutput& output : call.outputs)
    outputs.append(nb::make_tuple(kiln::name_of(output.dtype), output.shape));
  for (const TemplateArgument& argument : call.template_arguments)
    templates.append(nb::make_tuple(argument.name, template_value(argument.value)));
  nb::dict result;
  result["inputs"] = inputs;
  result["outputs"] = outputs;
  result["template"] = templates;
  result["input_names"] = call.input_names;
  result["output_names"] = call.output_names;
  result["specialized"] = call.specialized;
  result["grid"] = call.extents.grid;
  result["threadgroup"] = call.extents.threadgroup;
  return result;
}

nb::list recorded_kernels() {
  nb::list result;
  Recording* recording = Context::shared().recording();
  if (!recording) return result;
  for (const RecordedKernel& kernel : recording->kernels()) {
    nb::dict row = as_dict(kernel.spec);
    nb::list calls;
    for (const RecordedCall& call : kernel.calls) calls.append(as_dict(call));
    row["calls"] = calls;
    result.append(row);
  }
  return result;
}

Dtype recorded_dtype(const std::string& name) {
  if (std::optional<Dtype> dtype = dtype_from_name(name)) return *dtype;
  throw ValueError(concat("`", name, "` is no dtype"));
}

using RecordedTemplates = std::vector<std::tuple<std::string, std::variant<bool, int32_t, std::string>>>;

std::vector<TemplateArgument> read_templates(const RecordedTemplates& templates) {
  std::vector<TemplateArgument> result;
  for (const auto& [name, value] : templates) {
    TemplateArgument& argument = result.emplace_back(name, false);
    if (auto* dtype = std::get_if<std::string>(&value))
      argument.value = recorded_dtype(*dtype);
    else if (auto* number = std::get_if<int32_t>(&value))
      argument.value = *number;
    else
      argument.value = std::get<bool>(value);
  }
  return result;
}

using RecordedArray = std::tuple<std::string, std::vector<int64_t>, std::vector<int64_t>>;

// What a recorded call needs, for one architecture: its id, what identifies the compiler, where the code came from, why
// it was not stored, and the entry as a bundle holds it.
std::tuple<std::string, std::string, std::string, std::string, nb::bytes> compile_ahead(
    const PyKernel& kernel, const std::vector<RecordedArray>& inputs,
    const std::vector<std::tuple<std::string, std::vector<int64_t>>>& outputs, const RecordedTemplates& templates,
    std::vector<std::string> input_names, std::vector<std::string> output_names, bool specialized,
    const std::string& architecture, const Extent3& grid, const Extent3& threadgroup) {
  RecordedCall recorded;
  for (const auto& [dtype, shape, strides] : inputs) {
    if (shape.size() != strides.size() || std::any_of(shape.begin(), shape.end(), [](int64_t n) { return n < 0; }))
      throw ValueError("an input has no such shape and strides");
    recorded.inputs.push_back({recorded_dtype(dtype), shape, strides});
  }
  for (const auto& [dtype, shape] : outputs) recorded.outputs.push_back({recorded_dtype(dtype), shape});
  recorded.template_arguments = read_templates(templates);
  recorded.input_names = std::move(input_names);
  recorded.output_names = std::move(output_names);
  recorded.extents = {grid, threadgroup};
  MadeCode made;
  std::vector<std::byte> content;
  {
    WithoutLock without_lock;
    TargetSpec target = architecture.empty() ? Context::shared().cpu().spec() : target_named(architecture);
    recorded.view([&](const Call& call) { made = kernel.kernel().compile_ahead(call, target, specialized); });
    content = encode_entry(made.id, made.entry);
  }
  return {made.id, made.entry.compiler, std::string(kiln::name_of(made.source)), made.not_stored,
          nb::bytes(content.data(), content.size())};
}

void write_bundle_of(const std::string& path, const std::vector<std::string>& compilers, const nb::dict& entries) {
  std::map<std::string, std::vector<std::byte>> contents;
  for (auto [id, content] : entries) {
    auto bytes = nb::cast<nb::bytes>(content);
    const auto* data = static_cast<const std::byte*>(bytes.data());
    contents[nb::cast<std::string>(id)].assign(data, data + bytes.size());
  }
  write_bundle(path, compilers, contents);
}

}  // namespace

PyObject* make_compiled_kernel(const std::shared_ptr<KernelObject>& kernel, const KernelObject::Found& found) {
  return nb::cast(CompiledKernel(kernel, found.variant)).release().ptr();
}

NB_MODULE(_core, m) {
  // Who holds a kernel when the interpreter ends has done nothing wrong.
  nb::set_leak_warnings(false);
  register_exceptions();
  let_signals_interrupt();
  m.attr("version") = KILN_VERSION;

  nb::class_<CompilePass>(m, "CompilePass", "One run of a pass of the compiler, as ``CompiledKernel.passes`` lists it.")
      .def_ro("name", &CompilePass::name,
              "The pass's name, such as ``\"prefetch\"``; LLVM's passes have their names of ``opt -passes=…``.")
      .def_ro("function", &CompilePass::function, "The LLVM function that it ran on; empty for the whole module.")
      .def_ro("fired", &CompilePass::fired, "Whether it changed the code.")
      .def_prop_ro(
          "number", [](const CompilePass& self) { return self.number ? nb::cast(self.number) : nb::none(); },
          nb::sig("def number(self) -> int | None"),
          "Its number for ``KILN_PASS_LIMIT``, from 1; None for a pass that correctness needs, which always runs.")
      .def_ro("switched_off", &CompilePass::switched_off,
              "Whether ``KILN_PASSES`` or ``KILN_PASS_LIMIT`` kept it from running.")
      .def_ro("ms", &CompilePass::ms, "How long it took, in milliseconds.")
      .def_ro("instructions_before", &CompilePass::instructions_before,
              "The number of LLVM instructions in the function, or the module, before it ran.")
      .def_ro("instructions_after", &CompilePass::instructions_after, "The number after it ran.")
      .def("__repr__", [](const CompilePass& self) {
        return concat("<kiln.CompilePass ", self.name,
                      self.switched_off ? ", switched off>"
                      : self.fired      ? ", fired>"
                                        : ">");
      });

  nb::class_<CompileRemark>(m, "CompileRemark",
                            "The reason why a pass of the compiler did not apply where one would expect it, as\n"
                            "``CompiledKernel.remarks`` lists it.")
      .def_ro("name", &CompileRemark::pass, "The pass's name, as ``CompilePass`` has it.")
      .def_ro("message", &CompileRemark::message, "The reason, in one line.")
      .def_prop_ro(
          "text", [](const CompileRemark& self) { return kiln::name_of(self.text); }, nb::sig("def text(self) -> str"),
          "The text that contains the line: ``\"source\"``, ``\"header\"`` or ``\"included\"``.")
      .def_ro("line", &CompileRemark::line, "The line, from 1; 0 if it is unknown.")
      .def_ro("file", &CompileRemark::file, "The path of the file with the text; empty for a string.")
      .def("__str__", [](const CompileRemark& self) { return kiln::render(self); })
      .def("__repr__",
           [](const CompileRemark& self) { return concat("<kiln.CompileRemark ", kiln::render(self), ">"); });

  nb::class_<CompiledKernel>(
      m, "CompiledKernel",
      "Machine code for one combination of argument types, and of shapes if it is specialized for them, as\n"
      "``Kernel.compile`` returns it.")
      .def_prop_ro("name", &CompiledKernel::name, "The kernel's name.")
      .def_prop_ro("target", &CompiledKernel::target,
                   "The device that it runs on: ``\"cpu\"``, or ``\"nvidia:0\"`` for the first GPU.")
      .def_prop_ro("architecture", &CompiledKernel::architecture,
                   "The architecture that the code is for, by its name in LLVM, such as ``\"x86-64-v3\"``.")
      .def_prop_ro("engine", &CompiledKernel::engine,
                   "The engine that runs the threads, on the CPU ``\"simd\"`` or ``\"scalar\"``; for a GPU the "
                   "compiler, ``\"ptx\"`` or\n"
                   "``\"nvrtc\"``.")
      .def_prop_ro("engine_reason", &CompiledKernel::engine_reason, "The reason for that engine.")
      .def_prop_ro("source", &CompiledKernel::source, "The generated text, as ``Kernel.source_for`` returns it.")
      .def_prop_ro(
          "machine_code",
          [](const CompiledKernel& self) {
            auto code = self.machine_code();
            return nb::bytes(code.data(), code.size());
          },
          "The machine code with its constants, as bytes.")
      .def_prop_ro(
          "code_bytes", [](const CompiledKernel& self) { return self.machine_code().size(); },
          "Size of ``machine_code`` in bytes.")
      .def_prop_ro("threadgroup_memory_bytes", &CompiledKernel::threadgroup_memory_bytes,
                   "The threadgroup memory of one threadgroup, in bytes.")
      .def_prop_ro("thread_memory_bytes", &CompiledKernel::thread_memory_bytes,
                   "The memory of one suspended thread, in bytes; 0 if no thread waits.")
      .def(
          "stages",
          [](const CompiledKernel& self, const std::vector<std::string>& after) {
            std::vector<CompileStage> stages;
            {
              WithoutLock without_lock;
              stages = self.stages(after);
            }
            nb::dict by_name;
            for (const CompileStage& stage : stages)
              by_name[stage.name.c_str()] = nb::str(stage.text.data(), stage.text.size());
            return by_name;
          },
          nb::arg("after") = std::vector<std::string>(),
          nb::sig("def stages(self, after: collections.abc.Sequence[str] = ()) -> dict[str, str]"),
          R"(The stages before the machine code, by name and in this order. Compiles again, because they are not kept.

* ``clang``: LLVM IR as Clang emits it;
* ``guarded``: LLVM IR with defined arithmetic, inlined calls and guarded accesses;
* ``lanes``, ``components``, ``structured``, ``widened``: stages of the SIMD engine, if it compiles the kernel;
* ``optimized``: LLVM IR of the code for a launch;
* ``assembly``, for a GPU ``ptx``: the same in the target's assembly language.

A CUDA body that NVRTC compiles has the stages ``text`` and ``assembly``.

``after`` names passes of the compiler (``passes`` lists them). The IR after each is added as ``after:<name>``. Of a pass
that runs several times it is the last one; a pass that does not run adds none.)")
      .def(
          "passes",
          [](const CompiledKernel& self) {
            WithoutLock without_lock;
            return self.passes();
          },
          nb::sig("def passes(self) -> list[CompilePass]"),
          "The runs of the compiler's passes in order, also of those that were switched off. Compiles again.\n"
          "Empty for a CUDA body that NVRTC compiles.")
      .def(
          "remarks",
          [](const CompiledKernel& self) {
            WithoutLock without_lock;
            return self.remarks();
          },
          nb::sig("def remarks(self) -> list[CompileRemark]"),
          "Reasons why optional passes did not apply, why the SIMD engine did not compile the kernel, and which "
          "accesses\n"
          "became gathers and scatters, in the order of the passes. Compiles again. Empty for a CUDA body that NVRTC\n"
          "compiles.")
      .def_prop_ro("compile_ms", &CompiledKernel::compile_ms,
                   "The time to compile, in milliseconds. Code from memory or disk keeps the time of its compilation.")
      .def_prop_ro(
          "diagnostics", [](const CompiledKernel& self) { return diagnostics_list(self.diagnostics()); },
          nb::sig("def diagnostics(self) -> list[kiln.errors.Diagnostic]"),
          "The compiler's warnings about body and header, each followed by its notes. Code from the cache on disk and\n"
          "from a bundle has the warnings of its compilation. NVRTC's warnings are not included.")
      .def("__repr__", [](const CompiledKernel& self) {
        return concat("<kiln.CompiledKernel `", self.name(), "` for ", self.architecture(), ", ",
                      self.machine_code().size(), " bytes of code>");
      });

  nb::class_<Launch>(m, "Launch", "One launch of a kernel, as ``Kernel.history`` lists it.")
      .def_ro("target", &Launch::target,
              "The device that it ran on: ``\"cpu\"``, or ``\"nvidia:0\"`` for the first GPU.")
      .def_ro("engine", &Launch::engine,
              "The engine that ran the threads, on the CPU ``\"simd\"`` or ``\"scalar\"``; on a GPU the compiler, "
              "``\"ptx\"``\n"
              "or ``\"nvrtc\"``.")
      .def_ro("engine_reason", &Launch::engine_reason, "The reason for that engine.")
      .def_ro("code", &Launch::code,
              "The origin of its machine code: ``\"compiled\"`` for this launch, ``\"memory\"`` of this process, or "
              "code of\n"
              "an earlier process on ``\"disk\"`` or in a ``\"bundle\"``.")
      .def_ro("specialized", &Launch::specialized,
              "Whether the code is specialized for these shapes. False also if the body uses no shapes.")
      .def_ro("not_stored", &Launch::not_stored,
              "If ``code`` is ``\"compiled\"``, the reason why it is not stored on disk; empty if it is stored.")
      .def_ro("compile_ms", &Launch::compile_ms, "Milliseconds of compiling; 0 unless ``code`` is ``\"compiled\"``.")
      .def_ro("run_ms", &Launch::run_ms,
              "Milliseconds from the start of the launch to the end of its last thread; on a GPU, until it was put on\n"
              "the stream.")
      .def_prop_ro(
          "grid", [](const Launch& self) { return nb::make_tuple(self.grid[0], self.grid[1], self.grid[2]); },
          nb::sig("def grid(self) -> tuple[int, int, int]"),
          "How many threads ran in each dimension, as the call said.")
      .def_prop_ro(
          "threadgroup",
          [](const Launch& self) {
            return nb::make_tuple(self.threadgroup[0], self.threadgroup[1], self.threadgroup[2]);
          },
          nb::sig("def threadgroup(self) -> tuple[int, int, int]"),
          "Threads of a threadgroup in each dimension, as the call said.")
      .def_prop_ro(
          "input_dtypes", [](const Launch& self) { return names_of(self.input_dtypes); },
          nb::sig("def input_dtypes(self) -> list[str]"), "The dtype of each input, as ``\"float32\"``.")
      .def_prop_ro(
          "output_dtypes", [](const Launch& self) { return names_of(self.output_dtypes); },
          nb::sig("def output_dtypes(self) -> list[str]"), "The dtype of each output.")
      .def("__repr__", [](const Launch& self) {
        return concat("<kiln.Launch on ", self.target, ", ", self.engine, ", code: ", self.code, ", ", self.run_ms,
                      " ms>");
      });

  nb::class_<PyKernel> kernel(
      m, "Kernel",
      "A kernel; made by ``kiln.metal_kernel`` and ``kiln.cuda_kernel``.\n\n"
      "A kernel is immutable. It can be called from any thread. Its machine code is kept for the life of the process\n"
      "and shared with equal kernels.");
  kernel
      .def(
          "__init__",
          [](PyKernel* self, std::string_view dialect, std::string name,
             std::optional<std::vector<std::string>> input_names, std::optional<std::vector<std::string>> output_names,
             std::string source, std::string header, bool ensure_row_contiguous, bool atomic_outputs,
             int64_t shared_memory, std::string_view math_mode, std::optional<bool> bounds,
             std::optional<bool> specialize, bool always_shapes, std::string library,
             std::optional<std::string> source_path, std::optional<std::string> header_path,
             std::vector<std::string> include_dirs, std::vector<std::string> writable_inputs, bool allows_input_stores,
             const std::optional<nb::dict>& files, std::vector<bool> batched_inputs, int sliced_axis) {
            KernelSpec spec;
            spec.dialect = dialect_named(dialect);
            spec.name = std::move(name);
            spec.input_names = std::move(input_names);
            spec.output_names = std::move(output_names);
            TextArgument source_text{std::move(source), std::move(source_path)};
            TextArgument header_text{std::move(header), std::move(header_path)};
            if (files) {
              spec.files = read_files(*files, source_text.text, header_text.text);
            } else {
              WithoutLock without_lock;
              spec.files =
                  read_kernel_files(interface_name(spec.dialect), source_text, header_text, std::move(include_dirs));
            }
            spec.source = std::move(source_text.text);
            spec.header = std::move(header_text.text);
            spec.ensure_row_contiguous = ensure_row_contiguous;
            spec.atomic_outputs = atomic_outputs;
            spec.shared_memory = shared_memory;
            spec.compile_options = {math_mode_named(math_mode), bounds, specialize, {}, std::move(writable_inputs)};
            spec.allows_input_stores = allows_input_stores;
            spec.style = always_shapes ? SignatureStyle::kAlways : SignatureStyle::kWhereUsed;
            if (sliced_axis < -1 || sliced_axis > 2) throw ValueError("a grid has no such axis");
            spec.part = {std::move(batched_inputs), sliced_axis};
            new (self) PyKernel(std::move(spec), std::move(library));
          },
          nb::kw_only(), "dialect"_a, "name"_a, "input_names"_a.none(), "output_names"_a.none(), "source"_a, "header"_a,
          "ensure_row_contiguous"_a, "atomic_outputs"_a, "shared_memory"_a, "math_mode"_a, "bounds"_a.none(),
          "specialize"_a.none(), "always_shapes"_a, "library"_a, "source_path"_a.none() = nb::none(),
          "header_path"_a.none() = nb::none(), "include_dirs"_a = std::vector<std::string>(),
          "writable_inputs"_a = std::vector<std::string>(), "allows_input_stores"_a = false,
          "files"_a.none() = nb::none(), "batched_inputs"_a = std::vector<bool>(), "sliced_axis"_a = -1)
      .def(
          "__call__",
          [](const PyKernel& self, const nb::args& arguments, const nb::kwargs& keywords) {
            return self.call([&](CallReader& reader) -> auto& { return reader.read(arguments, keywords); });
          },
          nb::sig(
              "def __call__(self, *, inputs, output_shapes=None, output_dtypes=None, grid, threadgroup, template=None, "
              "init_value=None, verbose=False, stream=None, outputs=None)"),
          R"(Runs the kernel. All arguments are keywords.

Example:
  >>> import kiln
  >>> import numpy as np
  >>> scale = kiln.metal_kernel(
  ...     name="scale",
  ...     input_names=["x", "factor"],
  ...     output_names=["y"],
  ...     source="uint i = thread_position_in_grid.x; y[i] = T(x[i] * factor);",
  ... )
  >>> x = np.arange(4, dtype=np.float32)
  >>> scale(
  ...     inputs=[x, 2.5],
  ...     template=[("T", np.int32)],
  ...     output_shapes=[x.shape],
  ...     output_dtypes=["int32"],
  ...     grid=(4, 1, 1),
  ...     threadgroup=(256, 1, 1),
  ... )
  [array([0, 2, 5, 7], dtype=int32)]

Args:
  inputs (list): arrays of one library, or numbers, which become arrays without dimensions: a bool becomes bool, an int
    int32 (int64 if it does not fit), a float float32, a complex complex64. A NumPy scalar keeps its dtype; Metal has no
    float64, so ``numpy.float64`` becomes float32 there. Arrays of a library that Kiln does not know are accepted through
    DLPack (``__dlpack__``) in the CPU's memory. Views are accepted. Inputs are not written, except those in
    ``writable_inputs``. For a kernel that was made without input names, a dict of inputs by name.
  output_shapes (list): the shape of each output, a list or tuple of ints from 0; or a dict of shapes by name, which
    gives the order of the outputs.
  output_dtypes (list): the dtype of each output, as a string (``"float32"``) or a dtype of any array library; or a
    dict with the names of ``output_shapes``. Metal has no float64.
  grid (an int or a tuple of 1 to 3 ints): the number of threads in each dimension, x first, each from 0 to 2^31 - 1.
    Dimensions that are left out are 1. With no threads nothing runs.
  threadgroup (an int or a tuple of 1 to 3 ints): the number of threads of a threadgroup in each dimension, each at
    least 1, their product at most 1024. It is clamped to the grid; threadgroups at the grid's edge may be smaller.
  template (list of pairs, optional): names and values of template arguments. A value is a dtype, a 32-bit int or a bool.
    For a kernel that was made without input names, a dict.
  init_value (number, optional): the initial value of all elements of all outputs, converted to the output's dtype.
    Without it, elements that the kernel does not write are unspecified.
  verbose (bool): whether to print the generated text. A failure to print does not end the call.
  stream (optional): the stream to run on. MLX: a stream or a device. PyTorch and CuPy: a stream of the arrays' GPU or
    its handle as an int, instead of the current stream. NumPy and JAX have none.
  outputs (list, optional): arrays of the inputs' library that the kernel writes, one for each output, instead of
    ``output_shapes`` and ``output_dtypes``; or a dict of arrays by name. Each is row-contiguous and overlaps no input
    and no other output. The call increments the version counter of PyTorch's tensors. MLX's and JAX's arrays cannot be
    written.

Returns:
  A list of arrays, one for each output: the arrays of ``outputs``, or new row-contiguous arrays. New arrays belong to
  the library of the first array among the inputs; without such an array to the library of the dtypes; otherwise to
  NumPy. A kernel of ``kiln.mlx`` always returns MLX arrays. A kernel that was made without input names returns a dict
  of arrays by name.

Raises:
  ValueError, TypeError: an argument is wrong. Nothing ran.
  kiln.CompileError: the body or the header is not valid.
  kiln.UnsupportedError: it is valid, but cannot run here.
  kiln.DeviceError: the kernel failed while it ran.
  MemoryError: there is no memory for an output, for a copy of an input or for threads.

With arrays in the CPU's memory the kernel has run when the call returns. With arrays of PyTorch and CuPy on a GPU it has
been put on the stream. With MLX arrays the result is lazy: the call raises errors about arguments, and the evaluation of
the result compiles, runs and raises all other errors.)")
      .def(
          "source_for",
          [](const PyKernel& self, const nb::args& arguments, const nb::kwargs& keywords) {
            return self.compile(Wanted::kSource, arguments, keywords);
          },
          "The text that a call with these keywords compiles, signature and all. Runs and compiles nothing.\n\n"
          "Takes what ``compile`` takes, and raises ``ValueError`` and ``TypeError`` as it does.")
      .def(
          "compile",
          [](const PyKernel& self, const nb::args& arguments, const nb::kwargs& keywords) {
            return self.compile(Wanted::kCompile, arguments, keywords);
          },
          R"(Compiles now what a call with these keywords would run, and runs nothing.

Example:
  >>> import kiln
  >>> double = kiln.metal_kernel("double", ["x"], ["y"], "uint i = thread_position_in_grid.x; y[i] = 2 * x[i];")
  >>> compiled = double.compile(
  ...     input_shapes=[(1024,)],
  ...     input_dtypes=["float32"],
  ...     output_shapes=[(1024,)],
  ...     output_dtypes=["float32"],
  ...     grid=1024,
  ...     threadgroup=256,
  ... )
  >>> compiled.target
  'cpu'

Takes what ``__call__`` takes. Instead of ``inputs`` it may take these:

Args:
  input_shapes (list): the shape of each input, ``()`` for a number; or a dict of them by name, where the kernel was made
    without input names. Inputs are row-contiguous.
  input_dtypes (list): the dtype of each, as in ``output_dtypes``; or a dict with the names of ``input_shapes``.
  target (str): where the code is to run, as ``CompiledKernel.target`` has it: by default ``"cpu"``; ``"nvidia:0"`` is
    the first GPU.

Returns:
  A ``CompiledKernel``. A call with arrays of the same dtypes and shapes does not compile again.

Raises what the call would raise before it runs.)")
      .def(
          "function",
          [](nb::handle self, const nb::kwargs& keywords) {
            return nb::module_::import_("kiln._functions").attr("make_function")(self, **keywords);
          },
          nb::sig("def function(self, *, output_shapes, output_dtypes, grid, threadgroup, template=None, "
                  "init_value=None) -> kiln._functions.Function"),
          R"(Makes a function of arrays alone, which array libraries can transform: ``torch.compile``, ``jax.jit``,
gradients, batches.

Example:
  >>> import kiln
  >>> import numpy as np
  >>> twice = kiln.metal_kernel(
  ...     name="twice",
  ...     input_names=["x"],
  ...     output_names=["y"],
  ...     source="uint i = thread_position_in_grid.x; y[i] = 2 * x[i];",
  ... ).function(
  ...     output_shapes=lambda x: [x.shape],
  ...     output_dtypes=lambda x: [x.dtype],
  ...     grid=lambda x: (x.size, 1, 1),
  ...     threadgroup=(256, 1, 1),
  ... )
  >>> twice(np.arange(4, dtype=np.float32))
  array([0., 2., 4., 6.], dtype=float32)

Args:
  output_shapes, output_dtypes, grid, threadgroup, template, init_value: as for a call. Each is a value, or a callable
    that takes one argument for each input, with its ``shape``, ``dtype``, ``ndim`` and ``size``, and returns the value.
    It must compute it from these alone: arrays that are traced have no elements yet.

Returns:
  A ``Function``; ``help(type(f))`` says what it takes.

Raises:
  ValueError, TypeError: a value is wrong; the kernel was made without ``input_names``, or writes its inputs.)")
      // A process that is given a kernel finds its machine code in the cache.
      .def("__reduce__",
           [](nb::handle self) {
             nb::object type = nb::borrow(self.type());
             return nb::make_tuple(
                 nb::module_::import_("kiln._functions").attr("restore_kernel"),
                 nb::make_tuple(nb::object(type.attr("__module__")), nb::object(type.attr("__qualname__")),
                                spec_of(nb::cast<const PyKernel&>(self))));
           })
      // Nothing of a kernel can be changed, so it is its own copy.
      .def("__copy__", [](nb::handle self) { return nb::borrow(self); })
      .def("__deepcopy__", [](nb::handle self, nb::handle) { return nb::borrow(self); })
      .def_prop_ro(
          "name", [](const PyKernel& self) { return self.kernel().spec().name; }, "The name it was made with.")
      .def_prop_ro(
          "source",
          [](const PyKernel& self) {
            const std::string& text = self.kernel().spec().source;
            return nb::str(text.data(), text.size());
          },
          "The body. Of a kernel that was made from a file, what the file held then.")
      .def_prop_ro(
          "header",
          [](const PyKernel& self) {
            const std::string& text = self.kernel().spec().header;
            return nb::str(text.data(), text.size());
          },
          "The text before the function. Of a kernel that was made from a file, what the file held then.\n"
          "Empty where there is none.")
      .def_prop_ro(
          "input_names", [](const PyKernel& self) { return self.kernel().spec().input_names; },
          nb::sig("def input_names(self) -> list[str] | None"),
          "The names of the inputs, as a new list; None where calls give them.")
      .def_prop_ro(
          "output_names", [](const PyKernel& self) { return self.kernel().spec().output_names; },
          nb::sig("def output_names(self) -> list[str] | None"),
          "The names of the outputs, as a new list; None where calls give them.")
      .def_prop_ro(
          "options", [](const PyKernel& self) { return options_of(self.kernel().spec()); },
          nb::sig("def options(self) -> dict[str, typing.Any]"),
          "How it was made beside names and texts, as a new dict of the other keywords of ``metal_kernel`` or\n"
          "``cuda_kernel``. Its ``compile_options`` has ``math_mode`` and what was given of the others.")
      .def_prop_ro(
          "history", [](const PyKernel& self) { return self.kernel().history().launches(); },
          "The last 1,000 launches, oldest first, as a list of ``Launch``. With MLX arrays a launch is there when the\n"
          "result was evaluated.")
      .def("__repr__", [](const PyKernel& self) { return concat("<kiln.Kernel `", self.kernel().spec().name, "`>"); });
  nb::module_::import_("kiln._signatures").attr("describe")(kernel);
#ifndef Py_LIMITED_API
  offer_calls(kernel);
#endif

  m.def("register_library", [](const nb::capsule& library) {
    libraries().push_back(static_cast<ArrayLibrary*>(library.data("kiln.ArrayLibrary")));
  });
  m.def("make_compiled_kernel",
        [] { return nb::capsule(reinterpret_cast<void*>(&make_compiled_kernel), "kiln.make_compiled_kernel"); });
  m.def("register_numpy", [] { libraries().push_back(make_numpy_library().release()); });
  m.def("register_torch", [] { libraries().push_back(make_torch_library().release()); });
  m.def("register_cupy", [] { libraries().push_back(make_cupy_library().release()); });
  m.def("register_jax", [] { libraries().push_back(make_jax_library().release()); });
  // The name of what a call takes for a dtype; None for everything else.
  m.def("dtype_name", [](nb::handle object) -> std::optional<std::string> {
    ArrayLibrary* owner = nullptr;
    std::optional<Dtype> dtype = read_dtype(object.ptr(), owner);
    if (!dtype) return std::nullopt;
    return std::string(name_of(*dtype));
  });
  nb::list dtypes;
  for (const DtypeRow& row : kDtypes) dtypes.append(std::string(row.name));
  m.attr("DTYPES") = nb::tuple(dtypes);
  m.def("kind_of", &kind_of, "object"_a.none());
  m.def("is_numpy_scalar", [](nb::handle object) { return is_numpy_scalar(object.ptr()); }, "object"_a.none());
  m.def("settings", [] {
    nb::list rows;
    for (const SettingRow& row : kSettingRows) rows.append(nb::make_tuple(row.variable, row.values, row.meaning));
    return rows;
  });
  m.def("cpu_threads", [] { return Context::shared().cpu().concurrency(); });
  m.def("cpu_architecture", [] { return Context::shared().cpu().spec().cpu; });
  m.def("cpu_engine", [] {
    // The SIMD engine serves AVX2 and up (compiler/engines/simd_engine.cpp).
    const TargetSpec& spec = Context::shared().cpu().spec();
    return (spec.cpu == "x86-64-v3" || spec.cpu == "x86-64-v4") && prefers_simd(spec) ? "simd" : "scalar";
  });
  m.def("nvidia_status", [] {
    CudaInfo info;
    {
      WithoutLock without_lock;
      info = cuda_info();
    }
    nb::list gpus;
    for (const CudaDeviceInfo& gpu : info.devices) {
      nb::dict row;
      row["name"] = gpu.name;
      row["architecture"] = gpu.architecture;
      row["multiprocessors"] = gpu.multiprocessors;
      row["memory_bytes"] = gpu.memory_bytes;
      gpus.append(row);
    }
    nb::dict result;
    result["driver"] = concat(info.driver_version / 1000, ".", info.driver_version % 1000 / 10);
    result["path"] = info.path;
    result["gpus"] = gpus;
    return result;
  });
  m.def("compiler_path", &CompilerLibrary::path);
  m.def("byte_count", &read_byte_count);
  m.def("cache_status", &cache_status);
  m.def("bundle_status", &bundle_status);
  m.def("cache_items", [] { return as_list(Context::shared().cache().items()); });
  m.def("cache_prune", [](uint64_t bytes) { return as_tuple(Context::shared().cache().prune(bytes)); });
  m.def("cache_clear", [] { return as_tuple(Context::shared().cache().clear()); });
  m.def("cache_verify", [] { return as_list(Context::shared().cache().remove_damaged()); });
  m.def("start_recording", [] { Context::shared().start_recording(); });
  m.def("recorded_kernels", &recorded_kernels);
  // What a kernel was made of, as the constructor of Kernel takes it.
  m.def("spec_of", &spec_of);
  // The names of the inputs that a part of a grid has after its body's own.
  m.def("part_inputs",
        [](std::vector<bool> batched_inputs, int sliced_axis, const std::vector<std::string>& output_names) {
          return part_inputs({std::move(batched_inputs), sliced_axis}, output_names);
        });
  // The texts that a kernel was made from, and whether they include others.
  m.def("texts_of", [](const PyKernel& kernel) {
    const KernelSpec& spec = kernel.kernel().spec();
    return nb::make_tuple(spec.source, spec.header, !spec.files.included.empty());
  });
  // What all launches of a kernel come to.
  m.def("launch_totals", [](const PyKernel& kernel) {
    LaunchTotals totals = kernel.kernel().history().totals();
    nb::dict result;
    result["launches"] = totals.launches;
    result["compiled"] = totals.compiled;
    result["compile_ms"] = totals.compile_ms;
    result["run_ms"] = totals.run_ms;
    result["longest_run_ms"] = totals.longest_run_ms;
    return result;
  });
  m.def("compile_ahead", &compile_ahead, nb::kw_only(), "kernel"_a, "inputs"_a, "outputs"_a, "template"_a,
        "input_names"_a, "output_names"_a, "specialized"_a, "architecture"_a, "grid"_a = Extent3{1, 1, 1},
        "threadgroup"_a = Extent3{1, 1, 1});
  // Launches that XLA makes.
  m.def(
      "register_xla_launch",
      [](const std::string& key, const PyKernel& kernel, const RecordedTemplates& templates,
         std::optional<std::variant<int64_t, double>> init_value) {
        std::optional<Number> value;
        if (init_value) value = std::visit([](auto number) { return Number(number); }, *init_value);
        register_xla_launch(key, kernel.shared_kernel(), read_templates(templates), value);
      },
      "key"_a, "kernel"_a, "templates"_a, "init_value"_a.none());
  // Launches that PyTorch's dispatcher makes.
  m.def("has_defined_torch_operator", &has_defined_torch_operator);
  m.def("implement_torch_operator", &let_torch_launch);
  m.def("add_torch_launch",
        [](std::string_view text, const PyKernel& kernel) { add_torch_launch(text, kernel.shared_kernel()); });
  m.def("make_torch_call", &make_torch_call);
  m.def("xla_handler", [](bool on_gpu) {
    return nb::capsule(xla_handler(on_gpu ? DeviceKind::kNvidia : DeviceKind::kCpu), "xla._CUSTOM_CALL_TARGET");
  });
  m.def("write_bundle", &write_bundle_of);
  m.def("add_package_folder", &add_package_folder);
  m.def("describe_nvrtc", &Context::describe_nvrtc, nb::call_guard<WithoutLock>());
}

}  // namespace kiln::python
