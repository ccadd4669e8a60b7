#include "call_arguments.h"

#include <algorithm>
#include <limits>
#include <string>

#include "core/dtype_table.h"
#include "core/text.h"
#include "kiln/error.h"
#include "python_object.h"

namespace nb = nanobind;

namespace kiln::python {
namespace {

class Reader {
 public:
  Reader(const KernelObject& kernel, const DtypeReader& read_dtype)
      : kernel_(kernel), interface_(interface_name(kernel.spec().dialect)), read_dtype_(read_dtype) {}

  CallArguments read(nb::handle positional, nb::handle keywords) {
    if (PyTuple_GET_SIZE(positional.ptr()) != 0) fail("takes keyword arguments only");
    // Looked up by interned strings, which compare by address.
    static PyObject* const names[kKeywords] = {
        PyUnicode_InternFromString("inputs"),        PyUnicode_InternFromString("output_shapes"),
        PyUnicode_InternFromString("output_dtypes"), PyUnicode_InternFromString("grid"),
        PyUnicode_InternFromString("threadgroup"),   PyUnicode_InternFromString("template"),
        PyUnicode_InternFromString("init_value"),    PyUnicode_InternFromString("verbose"),
        PyUnicode_InternFromString("stream"),        PyUnicode_InternFromString("outputs")};
    nb::handle values[kKeywords];
    Py_ssize_t found = 0;
    for (size_t i = 0; i < kKeywords; ++i)
      if (PyObject* value = PyDict_GetItemWithError(keywords.ptr(), names[i])) {
        values[i] = nb::handle(value);
        ++found;
      } else if (PyErr_Occurred()) {
        nb::raise_python_error();  // of a key that is a str of the caller's own class
      }
    bool has_outputs = values[kOutputs].is_valid() && !values[kOutputs].is_none();
    for (size_t i = 0; i < kRequiredKeywords; ++i) {
      bool follows = has_outputs && (i == kOutputShapes || i == kOutputDtypes);
      if (values[i].is_valid() && follows) fail(concat("has `outputs`, from which `", to_utf8(names[i]), "` follows"));
      if (!values[i].is_valid() && !follows) fail(concat("misses argument `", to_utf8(names[i]), "`"));
    }
    if (found != PyDict_Size(keywords.ptr())) fail_on_unknown(keywords, names);
    auto [inputs, output_shapes, output_dtypes, grid, threadgroup, template_, init_value, verbose, stream, outputs] =
        values;

    CallArguments call;
    bool by_name = !kernel_.spec().input_names.has_value();
    read_inputs(inputs, by_name, call);
    if (has_outputs)
      read_given_outputs(outputs, by_name, call);
    else
      read_outputs(output_shapes, output_dtypes, by_name, call);
    call.grid = read_extent("`grid`", "each dimension of `grid`", grid);
    call.threadgroup = read_extent("`threadgroup`", "each dimension of `threadgroup`", threadgroup);
    if (template_.is_valid() && !template_.is_none()) read_template(template_, call);
    if (init_value.is_valid() && !init_value.is_none()) call.init_value = read_number("`init_value`", init_value);
    if (verbose.is_valid()) call.verbose = read_bool("`verbose`", verbose);
    if (stream.is_valid() && !stream.is_none()) call.stream = stream.ptr();
    return call;
  }

 private:
  static constexpr size_t kKeywords = 10;
  static constexpr size_t kRequiredKeywords = 5;
  static constexpr size_t kOutputShapes = 1, kOutputDtypes = 2, kOutputs = kKeywords - 1;

  void fail_on_unknown(nb::handle keywords, PyObject* const* names) const {
    PyObject *key, *value;
    Py_ssize_t position = 0;
    while (PyDict_Next(keywords.ptr(), &position, &key, &value)) {
      bool known = false;
      for (size_t i = 0; i < kKeywords; ++i) known = known || PyUnicode_Compare(key, names[i]) == 0;
      if (!known) fail(concat("has no argument `", to_utf8(key), "`"));
    }
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw TypeError(concat("[", interface_, "] The call ", what, "."));
  }

  // `whom`: "`grid`", "each dimension of `grid`". What the object itself has raised is the cause.
  [[noreturn]] void expected(std::string_view whom, std::string_view what, nb::handle got) const {
    throw_type_error(concat("[", interface_, "] Expected ", whom, " to be ", what, " but got ", kind_of(got), "."));
  }

  // A name that the call gives. Whether it is an identifier is the kernel's to check, as far as the characters have one
  // byte: of the others it knows nothing, no C string can hold a NUL, and no UTF-8 text a lone surrogate.
  std::string read_name(std::string_view whom, nb::handle name) const {
    Py_ssize_t size;
    const char* data = PyUnicode_AsUTF8AndSize(name.ptr(), &size);
    if (!data) {
      if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) nb::raise_python_error();
      PyErr_Clear();
    } else if (std::string_view text(data, static_cast<size_t>(size)); text.find('\0') == std::string_view::npos) {
      bool is_ascii =
          std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
      if (is_ascii || PyUnicode_IsIdentifier(name.ptr()) == 1) return std::string(text);
    }
    throw ValueError(
        concat("[", interface_, "] Expected the names in ", whom, " to be identifiers but got ", shown(name), "."));
  }

  bool read_bool(std::string_view whom, nb::handle object) const {
    if (!is_bool(object)) expected(whom, "a bool", object);
    int truth = PyObject_IsTrue(object.ptr());
    if (truth < 0) nb::raise_python_error();
    return truth != 0;
  }

  // Dictionaries and what behaves like one.
  static bool is_mapping(nb::handle object) {
    if (PyDict_Check(object.ptr())) return true;
    if (PyTuple_Check(object.ptr()) || PyList_Check(object.ptr()) || !PyMapping_Check(object.ptr())) return false;
    nb::object mapping = nb::module_::import_("collections.abc").attr("Mapping");
    int is_instance = PyObject_IsInstance(object.ptr(), mapping.ptr());
    if (is_instance < 0) nb::raise_python_error();
    return is_instance != 0;
  }

  // The items of a list, a tuple or another sequence that is no string, as a tuple of their own: what reads an item may
  // run code of the caller's, which may change the sequence.
  nb::object items_of(std::string_view whom, std::string_view what, nb::handle sequence) const {
    if (!PyTuple_Check(sequence.ptr()) && !PyList_Check(sequence.ptr()) &&
        (PyUnicode_Check(sequence.ptr()) || PyBytes_Check(sequence.ptr()) || !PySequence_Check(sequence.ptr()) ||
         is_mapping(sequence)))
      expected(whom, what, sequence);
    nb::object items = nb::steal(PySequence_Tuple(sequence.ptr()));
    if (!items.is_valid()) expected(whom, what, sequence);
    return items;
  }

  // Calls `function(item)` for each item of such a sequence.
  template <typename Function>
  void for_each(std::string_view whom, std::string_view what, nb::handle sequence, const Function& function) const {
    nb::object items = items_of(whom, what, sequence);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.ptr()); ++i)
      function(nb::handle(PyTuple_GET_ITEM(items.ptr(), i)));
  }

  // Calls `function(name, item)` for each item of a dictionary, as it was before the first call.
  template <typename Function>
  void for_each_named(std::string_view whom, nb::handle dictionary, const Function& function) const {
    if (!is_mapping(dictionary))
      throw_type_error(concat("[", interface_, "] Expected ", whom, " to be a dict but got ", kind_of(dictionary),
                              ": this kernel was made without `input_names`, so its calls take dicts."));
    nb::object pairs = nb::steal(PyMapping_Items(dictionary.ptr()));
    if (!pairs.is_valid()) expected(whom, "a dict", dictionary);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(pairs.ptr()); ++i) {
      nb::handle pair(PyList_GET_ITEM(pairs.ptr(), i));
      if (!PyTuple_Check(pair.ptr()) || PyTuple_GET_SIZE(pair.ptr()) != 2) expected(whom, "a dict", dictionary);
      nb::handle key(PyTuple_GET_ITEM(pair.ptr(), 0)), value(PyTuple_GET_ITEM(pair.ptr(), 1));
      if (!PyUnicode_Check(key.ptr())) expected(concat("the keys of ", whom), "strings", key);
      function(read_name(whom, key), value);
    }
  }

  void read_inputs(nb::handle inputs, bool by_name, CallArguments& call) const {
    if (!by_name) {
      if (is_mapping(inputs))
        throw TypeError(concat("[", interface_,
                               "] Expected `inputs` to be a list but got a dict: this kernel was made ",
                               "with `input_names`, so its calls take lists."));
      own_inputs(items_of("`inputs`", "a list", inputs), call);
      return;
    }
    std::vector<nb::object> items;
    for_each_named("`inputs`", inputs, [&](std::string name, nb::handle item) {
      call.input_names.push_back(std::move(name));
      items.push_back(nb::borrow(item));
    });
    nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(items.size())));
    if (!tuple.is_valid()) nb::raise_python_error();
    for (size_t i = 0; i < items.size(); ++i)
      PyTuple_SET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(i), items[i].release().ptr());
    own_inputs(std::move(tuple), call);
  }

  static void own_inputs(nb::object tuple, CallArguments& call) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple.ptr()); ++i)
      call.inputs.push_back(PyTuple_GET_ITEM(tuple.ptr(), i));
    call.owner.reset(tuple.release().ptr());
  }

  void read_given_outputs(nb::handle outputs, bool by_name, CallArguments& call) const {
    std::vector<PyObject*>& arrays = call.outputs.emplace();
    nb::object items;
    if (by_name) {
      nb::list values;
      for_each_named("`outputs`", outputs, [&](std::string name, nb::handle item) {
        call.output_names.push_back(std::move(name));
        values.append(item);
      });
      items = nb::steal(PyList_AsTuple(values.ptr()));
    } else {
      items = items_of("`outputs`", "a list of arrays", outputs);
      size_t wanted = kernel_.spec().output_names->size(), got = static_cast<size_t>(PyTuple_GET_SIZE(items.ptr()));
      if (got != wanted)
        throw ValueError(
            concat("[", interface_, "] Expected `outputs` to have size ", wanted, " but got size ", got, "."));
    }
    if (!items.is_valid()) nb::raise_python_error();
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.ptr()); ++i) arrays.push_back(PyTuple_GET_ITEM(items.ptr(), i));
    call.output_owner.reset(items.release().ptr());
  }

  void read_outputs(nb::handle shapes, nb::handle dtypes, bool by_name, CallArguments& call) const {
    if (!by_name) {
      for_each("`output_shapes`", "a list of shapes", shapes,
               [&](nb::handle item) { call.output_shapes.push_back(read_shape(item)); });
      for_each("`output_dtypes`", "a list of dtypes", dtypes,
               [&](nb::handle item) { call.output_dtypes.push_back(read_dtype("output_dtypes", item)); });
      size_t wanted = kernel_.spec().output_names->size();
      if (call.output_dtypes.size() != wanted && call.output_shapes.size() == wanted)
        throw ValueError(concat("[", interface_, "] Expected `output_dtypes` to have size ", wanted, " but got size ",
                                call.output_dtypes.size(), "."));
      return;
    }
    for_each_named("`output_shapes`", shapes, [&](std::string name, nb::handle item) {
      call.output_names.push_back(std::move(name));
      call.output_shapes.push_back(read_shape(item));
    });
    constexpr std::string_view kSameKeys = "] Expected `output_dtypes` to have the keys of `output_shapes`, but ";
    std::vector<std::optional<Dtype>> found(call.output_names.size());
    for_each_named("`output_dtypes`", dtypes, [&](const std::string& name, nb::handle item) {
      auto output = std::find(call.output_names.begin(), call.output_names.end(), name);
      if (output == call.output_names.end()) throw ValueError(concat("[", interface_, kSameKeys, "got `", name, "`."));
      found[static_cast<size_t>(output - call.output_names.begin())] = read_dtype("output_dtypes", item);
    });
    for (size_t i = 0; i < found.size(); ++i) {
      if (!found[i]) throw ValueError(concat("[", interface_, kSameKeys, "`", call.output_names[i], "` is missing."));
      call.output_dtypes.push_back(*found[i]);
    }
  }

  std::vector<int64_t> read_shape(nb::handle shape) const {
    std::vector<int64_t> dimensions;
    for_each("`output_shapes`", "a list of shapes", shape,
             [&](nb::handle item) { dimensions.push_back(read_int("each dimension in `output_shapes`", item)); });
    return dimensions;
  }

  Dtype read_dtype(std::string_view argument, nb::handle object) const {
    if (std::optional<Dtype> dtype = read_dtype_(object.ptr())) return *dtype;
    if (PyUnicode_Check(object.ptr()))
      throw ValueError(concat("[", interface_, "] `", to_utf8(object), "` in `", argument, "` is no dtype. Those are ",
                              dtype_names(), "."));
    throw TypeError(concat("[", interface_, "] Expected `", argument, "` to have dtypes but got ", shown(object), "."));
  }

  static std::string dtype_names() {
    std::string names;
    for (const DtypeRow& row : kDtypes)
      names += concat(names.empty() ? "" : row.dtype == kDtypes.back().dtype ? " and " : ", ", row.name);
    return names;
  }

  int64_t read_int(std::string_view whom, nb::handle object) const {
    std::optional<Index> index;
    if (PyIndex_Check(object.ptr())) index = index_of(object);
    if (!index) expected(whom, "an int", object);
    return check_bits(whom, *index, 64);
  }

  int64_t check_bits(std::string_view whom, const Index& index, int bits) const {
    int64_t most = std::numeric_limits<int64_t>::max() >> (64 - bits);
    if (!index.value || *index.value > most || *index.value < -most - 1)
      throw ValueError(concat("[", interface_, "] Expected ", whom, " to fit into ", bits, " bits but got ",
                              index.value ? std::to_string(*index.value) : index.text, "."));
    return *index.value;
  }

  Extent3 read_extent(std::string_view whom, std::string_view each, nb::handle object) const {
    nb::object items = items_of(whom, "3 ints", object);
    Py_ssize_t count = PyTuple_GET_SIZE(items.ptr());
    Extent3 extent{};
    for (size_t i = 0; i < std::min<size_t>(3, static_cast<size_t>(count)); ++i)
      extent[i] = read_int(each, PyTuple_GET_ITEM(items.ptr(), static_cast<Py_ssize_t>(i)));
    if (count != 3)
      throw ValueError(concat("[", interface_, "] Expected ", whom, " to have 3 ints but got ", count, "."));
    return extent;
  }

  // An int is taken exactly where 64 bits hold it.
  Number read_number(std::string_view whom, nb::handle object) const {
    if (PyFloat_Check(object.ptr())) return PyFloat_AS_DOUBLE(object.ptr());
    if (PyIndex_Check(object.ptr())) {
      nb::object number = nb::steal(PyNumber_Index(object.ptr()));
      if (number.is_valid()) {
        int overflow;
        int64_t value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
        if (!overflow) return value;
        if (overflow > 0) {
          uint64_t positive = PyLong_AsUnsignedLongLong(number.ptr());
          if (!PyErr_Occurred()) return positive;
          PyErr_Clear();
        }
        return to_double(whom, number);
      }
      // Arrays of floats have an `__index__` that raises.
      if (!is_refusal()) nb::raise_python_error();
      PyErr_Clear();
    }
    if (!PyNumber_Check(object.ptr()) || is_complex(object)) expected(whom, "a number", object);
    return to_double(whom, object);
  }

  // NumPy's complex numbers are none of Python's and give their real part for a float.
  static bool is_complex(nb::handle object) {
    if (PyComplex_Check(object.ptr())) return true;
    nb::object dtype = nb::steal(PyObject_GetAttrString(object.ptr(), "dtype"));
    nb::object text = nb::steal(dtype.is_valid() ? PyObject_Str(dtype.ptr()) : nullptr);
    PyErr_Clear();
    return text.is_valid() && to_utf8(text).find("complex") != std::string::npos;
  }

  double to_double(std::string_view whom, nb::handle object) const {
    double value = PyFloat_AsDouble(object.ptr());
    if (value != -1 || !PyErr_Occurred()) return value;
    if (!PyErr_ExceptionMatches(PyExc_OverflowError)) expected(whom, "a number", object);
    PyErr_Clear();
    throw ValueError(concat("[", interface_, "] Expected ", whom, " to fit into a double."));
  }

  void read_template(nb::handle object, CallArguments& call) const {
    auto add = [&](std::string name, nb::handle value) {
      TemplateValue read = read_template_value(name, value);
      call.template_arguments.push_back({std::move(name), read});
    };
    if (is_mapping(object)) {
      if (kernel_.spec().input_names)
        throw TypeError(concat("[", interface_, "] Expected `template` to be a list of pairs but got a dict: this ",
                               "kernel was made with `input_names`, so its calls take lists."));
      for_each_named("`template`", object, add);
      return;
    }
    constexpr std::string_view kWhat = "a list of pairs of a name and a value";
    for_each("`template`", kWhat, object, [&](nb::handle item) {
      nb::object pair = items_of("`template`", kWhat, item);
      if (PyTuple_GET_SIZE(pair.ptr()) != 2) expected("`template`", kWhat, item);
      nb::handle name(PyTuple_GET_ITEM(pair.ptr(), 0)), value(PyTuple_GET_ITEM(pair.ptr(), 1));
      if (!PyUnicode_Check(name.ptr())) expected("the names in `template`", "strings", name);
      add(read_name("`template`", name), value);
    });
  }

  TemplateValue read_template_value(std::string_view name, nb::handle value) const {
    if (PyBool_Check(value.ptr())) return value.ptr() == Py_True;
    if (std::optional<Dtype> dtype = read_dtype_(value.ptr())) return *dtype;
    if (PyIndex_Check(value.ptr())) {
      if (std::optional<Index> index = index_of(value))
        return static_cast<int32_t>(check_bits(concat("template argument `", name, "`"), *index, 32));
      if (!is_refusal()) nb::raise_python_error();
      PyErr_Clear();
    }
    throw ValueError(
        concat("[", interface_, "] Invalid template argument. Must be `mlx.core.Dtype`, `int` or `bool`."));
  }

  const KernelObject& kernel_;
  std::string_view interface_;
  const DtypeReader& read_dtype_;
};

}  // namespace

CallArguments read_call(const KernelObject& kernel, nb::handle arguments, nb::handle keywords,
                        const DtypeReader& read_dtype) {
  return Reader(kernel, read_dtype).read(arguments, keywords);
}

}  // namespace kiln::python
