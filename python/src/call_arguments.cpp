#include "call_arguments.h"

#include <nanobind/stl/string.h>

#include <limits>

#include "core/text.h"
#include "kiln/error.h"
#include "python_object.h"

namespace nb = nanobind;

namespace kiln::python {
namespace {

// For messages: what UTF-8 cannot have is escaped.
std::string to_string(nb::handle text) {
  nb::object bytes = nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "backslashreplace"));
  if (!bytes.is_valid()) nb::raise_python_error();
  return {PyBytes_AS_STRING(bytes.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(bytes.ptr()))};
}

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
        PyUnicode_InternFromString("stream")};
    nb::handle values[kKeywords];
    Py_ssize_t found = 0;
    for (size_t i = 0; i < kKeywords; ++i)
      if (PyObject* value = PyDict_GetItemWithError(keywords.ptr(), names[i])) {
        values[i] = nb::handle(value);
        ++found;
      } else if (i < kRequiredKeywords) {
        fail(concat("misses argument `", to_string(names[i]), "`"));
      }
    if (found != PyDict_Size(keywords.ptr())) fail_on_unknown(keywords, names);
    auto [inputs, output_shapes, output_dtypes, grid, threadgroup, template_, init_value, verbose, stream] = values;

    CallArguments call;
    bool by_name = !kernel_.spec().input_names.has_value();
    read_inputs(inputs, by_name, call);
    read_outputs(output_shapes, output_dtypes, by_name, call);
    call.grid = read_extent("grid", "each dimension of `grid`", grid);
    call.threadgroup = read_extent("threadgroup", "each dimension of `threadgroup`", threadgroup);
    if (template_.is_valid() && !template_.is_none()) read_template(template_, call);
    if (init_value.is_valid() && !init_value.is_none()) call.init_value = read_number("init_value", init_value);
    if (verbose.is_valid()) call.verbose = read_truth("verbose", verbose);
    if (stream.is_valid() && !stream.is_none()) call.stream = stream.ptr();
    return call;
  }

 private:
  static constexpr size_t kKeywords = 9;
  static constexpr size_t kRequiredKeywords = 5;

  void fail_on_unknown(nb::handle keywords, PyObject* const* names) const {
    PyObject *key, *value;
    Py_ssize_t position = 0;
    while (PyDict_Next(keywords.ptr(), &position, &key, &value)) {
      bool known = false;
      for (size_t i = 0; i < kKeywords; ++i) known = known || PyUnicode_Compare(key, names[i]) == 0;
      if (!known) fail(concat("has no argument `", to_string(key), "`"));
    }
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw TypeError(concat("[", interface_, "] The call ", what, "."));
  }

  // `whom`: "`grid`", "each dimension of `grid`".
  [[noreturn]] void expected(std::string_view whom, std::string_view what, nb::handle got) const {
    throw TypeError(concat("[", interface_, "] Expected ", whom, " to be ", what, " but got ", kind_of(got), "."));
  }

  // A name that the call gives. Whether it is an identifier is the kernel's to check; no C string can hold a NUL, and
  // no UTF-8 text a lone surrogate.
  std::string read_name(std::string_view argument, nb::handle name) const {
    Py_ssize_t size;
    const char* data = PyUnicode_AsUTF8AndSize(name.ptr(), &size);
    if (!data) {
      if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) nb::raise_python_error();
      PyErr_Clear();
    } else if (std::char_traits<char>::find(data, static_cast<size_t>(size), '\0') == nullptr) {
      return {data, static_cast<size_t>(size)};
    }
    throw ValueError(concat("[", interface_, "] Expected the names in `", argument, "` to be identifiers but got ",
                            nb::cast<std::string>(nb::repr(name)), "."));
  }

  static bool clear_type_error() {
    bool matches = PyErr_ExceptionMatches(PyExc_TypeError);
    if (matches) PyErr_Clear();
    return matches;
  }

  bool read_truth(std::string_view argument, nb::handle object) const {
    int truth = PyObject_IsTrue(object.ptr());
    if (truth < 0) {
      PyErr_Clear();
      expected(concat("`", argument, "`"), "a bool", object);
    }
    return truth != 0;
  }

  void check_sequence(std::string_view argument, std::string_view what, nb::handle sequence) const {
    if (PyUnicode_Check(sequence.ptr()) || PyBytes_Check(sequence.ptr()) || PyDict_Check(sequence.ptr()) ||
        !PySequence_Check(sequence.ptr()))
      expected(concat("`", argument, "`"), what, sequence);
  }

  // Calls `function(item)` for each item of a list, a tuple or another sequence that is no string.
  template <typename Function>
  void for_each(std::string_view argument, std::string_view what, nb::handle sequence, const Function& function) const {
    check_sequence(argument, what, sequence);
    nb::object fast = nb::steal(PySequence_Fast(sequence.ptr(), ""));
    if (!fast.is_valid()) nb::raise_python_error();
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast.ptr()); ++i)
      function(nb::handle(PySequence_Fast_GET_ITEM(fast.ptr(), i)));
  }

  void read_inputs(nb::handle inputs, bool by_name, CallArguments& call) const {
    if (!by_name) {
      if (PyDict_Check(inputs.ptr()))
        throw TypeError(concat("[", interface_,
                               "] Expected `inputs` to be a list but got a dict: this kernel was made ",
                               "with `input_names`, so its calls take lists."));
      check_sequence("inputs", "a list", inputs);
      own_inputs(PySequence_Tuple(inputs.ptr()), call);
      return;
    }
    std::vector<nb::object> items;
    for_each_named("inputs", inputs, [&](std::string name, nb::handle item) {
      call.input_names.push_back(std::move(name));
      items.push_back(nb::borrow(item));
    });
    nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(items.size())));
    for (size_t i = 0; tuple.is_valid() && i < items.size(); ++i)
      PyTuple_SET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(i), items[i].release().ptr());
    own_inputs(tuple.release().ptr(), call);
  }

  void own_inputs(PyObject* tuple, CallArguments& call) const {
    if (!tuple) nb::raise_python_error();
    call.owner.reset(tuple);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) call.inputs.push_back(PyTuple_GET_ITEM(tuple, i));
  }

  template <typename Function>
  void for_each_named(std::string_view argument, nb::handle dictionary, const Function& function) const {
    if (!PyDict_Check(dictionary.ptr()))
      throw TypeError(concat("[", interface_, "] Expected `", argument, "` to be a dict but got ", kind_of(dictionary),
                             ": this kernel was made without `input_names`, so its calls take dicts."));
    PyObject *key, *value;
    Py_ssize_t position = 0;
    while (PyDict_Next(dictionary.ptr(), &position, &key, &value)) {
      if (!PyUnicode_Check(key)) expected(concat("the keys of `", argument, "`"), "strings", nb::handle(key));
      function(read_name(argument, key), nb::handle(value));
    }
  }

  void read_outputs(nb::handle shapes, nb::handle dtypes, bool by_name, CallArguments& call) const {
    if (!by_name) {
      for_each("output_shapes", "a list of shapes", shapes,
               [&](nb::handle item) { call.output_shapes.push_back(read_shape(item)); });
      for_each("output_dtypes", "a list of dtypes", dtypes,
               [&](nb::handle item) { call.output_dtypes.push_back(read_dtype("output_dtypes", item)); });
      size_t wanted = kernel_.spec().output_names->size();
      if (call.output_dtypes.size() != wanted && call.output_shapes.size() == wanted)
        throw ValueError(concat("[", interface_, "] Expected `output_dtypes` to have size ", wanted, " but got size ",
                                call.output_dtypes.size(), "."));
      return;
    }
    for_each_named("output_shapes", shapes, [&](std::string name, nb::handle item) {
      call.output_names.push_back(std::move(name));
      call.output_shapes.push_back(read_shape(item));
    });
    if (!PyDict_Check(dtypes.ptr())) for_each_named("output_dtypes", dtypes, [](const std::string&, nb::handle) {});
    for (const std::string& name : call.output_names) {
      PyObject* dtype = PyDict_GetItemString(dtypes.ptr(), name.c_str());
      if (!dtype)
        throw ValueError(concat("[", interface_,
                                "] Expected `output_dtypes` to have the keys of `output_shapes`, but `", name,
                                "` is missing."));
      call.output_dtypes.push_back(read_dtype("output_dtypes", nb::handle(dtype)));
    }
    for_each_named("output_dtypes", dtypes, [&](const std::string& name, nb::handle) {
      for (const std::string& known : call.output_names)
        if (known == name) return;
      throw ValueError(concat("[", interface_,
                              "] Expected `output_dtypes` to have the keys of `output_shapes`, but got `", name, "`."));
    });
  }

  std::vector<int64_t> read_shape(nb::handle shape) const {
    std::vector<int64_t> dimensions;
    for_each("output_shapes", "a list of shapes", shape,
             [&](nb::handle item) { dimensions.push_back(read_int("each dimension in `output_shapes`", item)); });
    return dimensions;
  }

  Dtype read_dtype(std::string_view argument, nb::handle object) const {
    if (std::optional<Dtype> dtype = read_dtype_(object.ptr())) return *dtype;
    if (PyUnicode_Check(object.ptr()))
      throw ValueError(concat("[", interface_, "] `", to_string(object), "` in `", argument, "` is no dtype."));
    throw TypeError(concat("[", interface_, "] Expected `", argument, "` to have dtypes but got ",
                           nb::cast<std::string>(nb::repr(object)), "."));
  }

  int64_t read_int(std::string_view whom, nb::handle object, int bits = 64) const {
    if (!PyIndex_Check(object.ptr())) expected(whom, "an int", object);
    nb::object number = nb::steal(PyNumber_Index(object.ptr()));
    if (!number.is_valid()) {
      if (clear_type_error()) expected(whom, "an int", object);
      nb::raise_python_error();
    }
    int overflow;
    int64_t value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
    int64_t most = std::numeric_limits<int64_t>::max() >> (64 - bits);
    if (overflow || value > most || value < -most - 1)
      throw ValueError(concat("[", interface_, "] Expected ", whom, " to fit into ", bits, " bits but got ",
                              nb::cast<std::string>(nb::str(number)), "."));
    return value;
  }

  Extent3 read_extent(std::string_view argument, std::string_view each, nb::handle object) const {
    Extent3 extent{};
    size_t count = 0;
    for_each(argument, "3 ints", object, [&](nb::handle item) {
      if (count < 3) extent[count] = read_int(each, item);
      ++count;
    });
    if (count != 3)
      throw ValueError(concat("[", interface_, "] Expected `", argument, "` to have 3 ints but got ", count, "."));
    return extent;
  }

  Number read_number(std::string_view argument, nb::handle object) const {
    if (!PyFloat_Check(object.ptr()) && !PyIndex_Check(object.ptr()) &&
        (!PyNumber_Check(object.ptr()) || PyComplex_Check(object.ptr())))
      expected(concat("`", argument, "`"), "a number", object);
    // An int is taken exactly where 64 bits hold it.
    if (PyLong_Check(object.ptr())) {
      int overflow;
      int64_t value = PyLong_AsLongLongAndOverflow(object.ptr(), &overflow);
      if (!overflow) return value;
      if (overflow > 0) {
        uint64_t positive = PyLong_AsUnsignedLongLong(object.ptr());
        if (!PyErr_Occurred()) return positive;
        PyErr_Clear();
      }
    }
    double value = PyFloat_AsDouble(object.ptr());
    if (value == -1 && PyErr_Occurred()) {
      // What arrays of several elements say does not name the argument.
      if (clear_type_error()) expected(concat("`", argument, "`"), "a number", object);
      if (!PyErr_ExceptionMatches(PyExc_OverflowError)) nb::raise_python_error();
      PyErr_Clear();
      throw ValueError(concat("[", interface_, "] Expected `", argument, "` to fit into a double."));
    }
    return value;
  }

  void read_template(nb::handle object, CallArguments& call) const {
    auto add = [&](std::string name, nb::handle value) {
      call.template_arguments.push_back({std::move(name), read_template_value(value)});
    };
    if (PyDict_Check(object.ptr())) {
      if (kernel_.spec().input_names)
        throw TypeError(concat("[", interface_, "] Expected `template` to be a list of pairs but got a dict: this ",
                               "kernel was made with `input_names`, so its calls take lists."));
      for_each_named("template", object, add);
      return;
    }
    for_each("template", "a list of pairs of a name and a value", object, [&](nb::handle item) {
      if (!PySequence_Check(item.ptr()) || PyUnicode_Check(item.ptr()) || PySequence_Size(item.ptr()) != 2)
        expected("`template`", "a list of pairs of a name and a value", item);
      nb::object name = nb::steal(PySequence_GetItem(item.ptr(), 0));
      nb::object value = nb::steal(PySequence_GetItem(item.ptr(), 1));
      if (!PyUnicode_Check(name.ptr())) expected("the names in `template`", "strings", name);
      add(read_name("template", name), value);
    });
  }

  TemplateValue read_template_value(nb::handle value) const {
    if (PyBool_Check(value.ptr())) return value.ptr() == Py_True;
    if (std::optional<Dtype> dtype = read_dtype_(value.ptr())) return *dtype;
    if (PyIndex_Check(value.ptr())) return static_cast<int32_t>(read_int("ints in `template`", value, 32));
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
