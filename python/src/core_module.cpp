// `kiln._core`: kernels, without any array library but NumPy, which is reached when it is there.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "array_library.h"
#include "call_arguments.h"
#include "core/settings.h"
#include "core/text.h"
#include "exceptions.h"
#include "kiln/error.h"
#include "numpy_library.h"
#include "python_object.h"
#include "runtime/compiler_library.h"

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
  for (ArrayLibrary* library : libraries())
    if (library->owns(object)) return library;
  if (PyBool_Check(object) || PyFloat_Check(object) || PyComplex_CheckExact(object) || PyLong_Check(object))
    return nullptr;
  size_t met = libraries().size();
  meet_library_of(object);
  for (size_t i = met; i < libraries().size(); ++i)
    if (libraries()[i]->owns(object)) return libraries()[i];
  return nullptr;
}

// A dtype and the library that it belongs to; null for a string.
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
      : kernel_(std::make_shared<Kernel>(std::move(spec))), library_name_(std::move(library)) {}

  nb::object call(nb::handle arguments, nb::handle keywords, Wanted wanted) const {
    ArrayLibrary* of_dtypes = nullptr;
    CallArguments call = read_call(*kernel_, arguments, keywords, [&](PyObject* object) {
      ArrayLibrary* owner = nullptr;
      std::optional<Dtype> dtype = read_dtype(object, owner);
      if (!of_dtypes) of_dtypes = owner;
      return dtype;
    });
    ArrayLibrary* library = library_for(call, of_dtypes);
    nb::object result = nb::steal(library->call(kernel_, call, wanted));
    if (wanted != Wanted::kResult || kernel_->spec().input_names) return result;
    // The dictionary generations return a dictionary.
    nb::dict by_name;
    for (size_t i = 0; i < call.output_names.size(); ++i)
      by_name[nb::str(call.output_names[i].c_str(), call.output_names[i].size())] = result[i];
    return by_name;
  }

  const Kernel& kernel() const { return *kernel_; }

 private:
  // The kernel's own, else that of the first array among the inputs, else that of the dtypes, else NumPy. A library
  // that is the kernel's own decides itself what it takes of other libraries' arrays.
  ArrayLibrary* library_for(const CallArguments& call, ArrayLibrary* of_dtypes) const {
    if (!library_name_.empty()) return library_named(library_name_);
    ArrayLibrary* library = nullptr;
    for (PyObject* input : call.inputs) {
      ArrayLibrary* owner = library_of(input);
      if (!owner) continue;
      if (!library) library = owner;
      if (owner != library)
        throw TypeError(concat("[", interface_name(kernel_->spec().dialect),
                               "] Expected all `inputs` to be arrays of one library but got arrays of ",
                               library->name(), " and ", owner->name(), "."));
    }
    if (library) return library;
    return of_dtypes ? of_dtypes : library_named("numpy");
  }

  std::shared_ptr<Kernel> kernel_;
  std::string library_name_;
};

// What `.compile()` returns.
struct CompiledKernel {
  std::shared_ptr<Kernel> kernel;
  std::shared_ptr<const Variant> variant;
};

std::string_view name_of(CodeSource source) {
  switch (source) {
    case CodeSource::kMemory: return "memory";
    case CodeSource::kDisk: return "disk";
    case CodeSource::kCompiled: return "compiled";
  }
  return "";
}

// One entry of `.history`.
struct Launch {
  std::string target, engine, engine_reason, code;
  bool specialized;
  double compile_ms, run_ms;
};

std::vector<Launch> history_of(const PyKernel& self) {
  std::vector<Launch> launches;
  for (const LaunchRecord& record : self.kernel().history().records())
    launches.push_back({std::string(record.target), std::string(record.engine), std::string(record.reason),
                        std::string(name_of(record.source)), record.specialized, record.compile_ms, record.run_ms});
  return launches;
}

Dialect dialect_named(std::string_view name) { return name == "metal" ? Dialect::kMetal : Dialect::kCuda; }

MathMode math_mode_named(std::string_view name) {
  return name == "fast" ? MathMode::kFast : name == "relaxed" ? MathMode::kRelaxed : MathMode::kSafe;
}

}  // namespace

PyObject* make_compiled_kernel(const std::shared_ptr<Kernel>& kernel, const Kernel::Found& found) {
  return nb::cast(CompiledKernel{kernel, found.variant}).release().ptr();
}

NB_MODULE(_core, m) {
  // Who holds a kernel when the interpreter ends has done nothing wrong.
  nb::set_leak_warnings(false);
  register_exceptions();
  m.attr("version") = KILN_VERSION;

  nb::class_<CompiledKernel>(m, "CompiledKernel",
                             "Machine code for one combination of argument types, as `Kernel.compile` returns it.")
      .def_prop_ro(
          "target", [](const CompiledKernel& self) { return self.kernel->context().cpu().name(); },
          "Where it runs: \"cpu\".")
      .def_prop_ro(
          "architecture", [](const CompiledKernel& self) { return self.kernel->context().cpu().spec().cpu; },
          "What the code was made for, in LLVM's words: \"x86-64-v3\".")
      .def_prop_ro(
          "engine", [](const CompiledKernel& self) { return self.variant->binary->engine; },
          "How threads are run: \"scalar\".")
      .def_prop_ro(
          "engine_reason", [](const CompiledKernel& self) { return self.variant->binary->engine_reason; },
          "Why that engine.")
      .def_prop_ro(
          "source", [](const CompiledKernel& self) { return self.variant->unit.text; }, "The generated text.")
      .def_prop_ro(
          "machine_code",
          [](const CompiledKernel& self) {
            auto code = self.variant->binary->code->code();
            return nb::bytes(code.data(), code.size());
          },
          "The machine code, as bytes.")
      .def_prop_ro(
          "code_bytes", [](const CompiledKernel& self) { return self.variant->binary->code->code().size(); },
          "Size of the machine code in bytes.")
      .def_prop_ro(
          "threadgroup_memory_bytes",
          [](const CompiledKernel& self) { return self.variant->binary->code->threadgroup_memory_bytes(); },
          "Threadgroup memory that each threadgroup needs, in bytes.")
      .def_prop_ro(
          "compile_ms", [](const CompiledKernel& self) { return self.variant->binary->compile_ms; },
          "How long compiling took, in milliseconds.")
      .def("__repr__", [](const CompiledKernel& self) {
        return concat("<kiln.CompiledKernel `", self.variant->unit.name, "` for ",
                      self.kernel->context().cpu().spec().cpu, ", ", self.variant->binary->code->code().size(),
                      " bytes of code>");
      });

  nb::class_<Launch>(m, "Launch", "One launch of a kernel, as `Kernel.history` lists it.")
      .def_ro("target", &Launch::target, "Where it ran: \"cpu\".")
      .def_ro("engine", &Launch::engine, "How threads were run: \"scalar\".")
      .def_ro("engine_reason", &Launch::engine_reason, "Why that engine.")
      .def_ro("code", &Launch::code, "Where its machine code came from: \"compiled\", \"memory\" or \"disk\".")
      .def_ro("specialized", &Launch::specialized, "Whether the code was made for these shapes.")
      .def_ro("compile_ms", &Launch::compile_ms, "Milliseconds of compiling, 0 unless `code` is \"compiled\".")
      .def_ro("run_ms", &Launch::run_ms, "Milliseconds from the start of the launch to the end of its last thread.")
      .def("__repr__", [](const Launch& self) {
        return concat("<kiln.Launch on ", self.target, ", ", self.engine, ", code: ", self.code, ", ", self.run_ms,
                      " ms>");
      });

  nb::class_<PyKernel>(m, "Kernel", "A kernel; made by `kiln.metal_kernel` and `kiln.cuda_kernel`.")
      .def(
          "__init__",
          [](PyKernel* self, std::string_view dialect, std::string name,
             std::optional<std::vector<std::string>> input_names, std::optional<std::vector<std::string>> output_names,
             std::string source, std::string header, bool ensure_row_contiguous, bool atomic_outputs,
             int64_t shared_memory, std::string_view math_mode, std::optional<bool> bounds,
             std::optional<bool> specialize, bool always_shapes, std::string library) {
            KernelSpec spec;
            spec.dialect = dialect_named(dialect);
            spec.name = std::move(name);
            spec.input_names = std::move(input_names);
            spec.output_names = std::move(output_names);
            spec.source = std::move(source);
            spec.header = std::move(header);
            spec.ensure_row_contiguous = ensure_row_contiguous;
            spec.atomic_outputs = atomic_outputs;
            spec.shared_memory = shared_memory;
            spec.math_mode = math_mode_named(math_mode);
            spec.bounds_guards = bounds;
            spec.specialize = specialize;
            spec.style = always_shapes ? SignatureStyle::kAlways : SignatureStyle::kWhereUsed;
            new (self) PyKernel(std::move(spec), std::move(library));
          },
          nb::kw_only(), "dialect"_a, "name"_a, "input_names"_a.none(), "output_names"_a.none(), "source"_a, "header"_a,
          "ensure_row_contiguous"_a, "atomic_outputs"_a, "shared_memory"_a, "math_mode"_a, "bounds"_a.none(),
          "specialize"_a.none(), "always_shapes"_a, "library"_a)
      .def(
          "__call__",
          [](const PyKernel& self, const nb::args& arguments, const nb::kwargs& keywords) {
            return self.call(arguments, keywords, Wanted::kResult);
          },
          nb::sig("def __call__(self, *, inputs, output_shapes, output_dtypes, grid, threadgroup, template=None, "
                  "init_value=None, verbose=False, stream=None)"),
          R"(Runs the kernel.

Args:
  inputs (list): arrays of one library, or numbers, which become 0-dimensional arrays (bool, int32, float32 or
    complex64; int64 where an int is too large). With a kernel made without input names, a dict of them.
  output_shapes (list): a shape for each output; or a dict, whose order is that of the outputs.
  output_dtypes (list): a dtype for each output, as a string or as a dtype of any array library; or a dict.
  grid (tuple of 3 ints): how many threads to run, in each dimension.
  threadgroup (tuple of 3 ints): threads of a threadgroup, in each dimension; at most 1024 in all. It is clamped to
    the grid; threadgroups at the grid's edge may be smaller.
  template (list of pairs, optional): names and values of template arguments: dtypes, ints of 32 bits, bools.
  init_value (number, optional): what all outputs are filled with first. Without it, what the kernel does not write
    is unspecified.
  verbose (bool): whether to print the generated text.
  stream (optional): where to run, in the array library's own terms. MLX: a stream or a device.

Returns:
  A list of arrays, one for each output, row-contiguous, of the library of the first array among the inputs; with no
  array there, of the library whose dtypes were given. Or a dict of them.

Raises:
  ValueError, TypeError: an argument is wrong. Nothing ran.
  kiln.CompileError: the body or the header is not valid.
  kiln.UnsupportedError: it is valid, but cannot run here.
  kiln.DeviceError: the kernel failed while it ran.
  MemoryError: there is no memory for an output, for a copy of an input or for threads.

With MLX arrays the result is lazy: compiling happens when it is evaluated.)")
      .def(
          "source_for",
          [](const PyKernel& self, const nb::args& arguments, const nb::kwargs& keywords) {
            return self.call(arguments, keywords, Wanted::kSource);
          },
          nb::sig("def source_for(self, *, inputs, output_shapes, output_dtypes, grid, threadgroup, template=None, "
                  "init_value=None, verbose=False, stream=None) -> str"),
          "The text that a call with these keywords compiles, signature and all. Runs and compiles nothing.")
      .def(
          "compile",
          [](const PyKernel& self, const nb::args& arguments, const nb::kwargs& keywords) {
            return self.call(arguments, keywords, Wanted::kCompile);
          },
          nb::sig("def compile(self, *, inputs, output_shapes, output_dtypes, grid, threadgroup, template=None, "
                  "init_value=None, verbose=False, stream=None) -> CompiledKernel"),
          "Compiles now what a call with these keywords would run, and runs nothing. Raises what the call would raise.")
      // Nothing of a kernel can be changed, so it is its own copy.
      .def("__copy__", [](nb::handle self) { return nb::borrow(self); })
      .def("__deepcopy__", [](nb::handle self, nb::handle) { return nb::borrow(self); })
      .def_prop_ro(
          "name", [](const PyKernel& self) { return self.kernel().spec().name; }, "The name it was made with.")
      .def_prop_ro("history", &history_of, "The last 1,000 launches, oldest first: a list of `Launch`.")
      .def("__repr__", [](const PyKernel& self) { return concat("<kiln.Kernel `", self.kernel().spec().name, "`>"); });

  m.def("register_library", [](nb::capsule library) {
    libraries().push_back(static_cast<ArrayLibrary*>(library.data("kiln.ArrayLibrary")));
  });
  m.def("make_compiled_kernel",
        [] { return nb::capsule(reinterpret_cast<void*>(&make_compiled_kernel), "kiln.make_compiled_kernel"); });
  m.def("register_numpy", [] { libraries().push_back(make_numpy_library().release()); });
  // The name of what a call takes for a dtype; None for everything else.
  m.def("dtype_name", [](nb::handle object) -> std::optional<std::string> {
    ArrayLibrary* owner = nullptr;
    std::optional<Dtype> dtype = read_dtype(object.ptr(), owner);
    if (!dtype) return std::nullopt;
    return std::string(name_of(*dtype));
  });
  m.def("kind_of", &kind_of, "object"_a.none());
  m.def("settings", [] {
    nb::list rows;
    for (const SettingRow& row : kSettingRows) rows.append(nb::make_tuple(row.variable, row.values, row.meaning));
    return rows;
  });
  m.def("cpu_threads", [] { return Context::shared().cpu().concurrency(); });
  m.def("cpu_architecture", [] { return Context::shared().cpu().spec().cpu; });
  m.def("compiler_path", &CompilerLibrary::path);
}

}  // namespace kiln::python
