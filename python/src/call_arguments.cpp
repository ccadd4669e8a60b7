#include "call_arguments.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <string>

#include "core/dtype_table.h"
#include "core/text.h"
#include "kiln/error.h"
#include "python_object.h"

namespace nb = nanobind;

namespace kiln::python {
namespace {

constexpr size_t kKeywords = 10;
constexpr size_t kRequiredKeywords = 5;
constexpr size_t kInputs = 0, kOutputShapes = 1, kOutputDtypes = 2, kStreamKeyword = kKeywords - 2,
                 kOutputs = kKeywords - 1;

// Interned, so that most are found by their address.
const std::array<PyObject*, kKeywords>& keyword_names() {
  static const std::array<PyObject*, kKeywords> names = {
      PyUnicode_InternFromString("inputs"),        PyUnicode_InternFromString("output_shapes"),
      PyUnicode_InternFromString("output_dtypes"), PyUnicode_InternFromString("grid"),
      PyUnicode_InternFromString("threadgroup"),   PyUnicode_InternFromString("template"),
      PyUnicode_InternFromString("init_value"),    PyUnicode_InternFromString("verbose"),
      PyUnicode_InternFromString("stream"),        PyUnicode_InternFromString("outputs")};
  return names;
}

// The place of a keyword among them, or kKeywords.
size_t keyword_of(PyObject* name) {
  const auto& names = keyword_names();
  auto found = std::ranges::find(names, name);
  if (found == names.end())
    found = std::ranges::find_if(names, [&](PyObject* known) { return PyUnicode_Compare(name, known) == 0; });
  return static_cast<size_t>(found - names.begin());
}

// What a compilation may have in the place of `inputs`.
constexpr size_t kDescriptionKeywords = 3;
constexpr std::array<const char*, kDescriptionKeywords> kDescriptionNames = {"input_shapes", "input_dtypes", "target"};
constexpr size_t kInputShapes = 0, kInputDtypes = 1, kTarget = 2;

// A call's values by keyword, not valid where it has none.
struct Given {
  std::array<nb::handle, kKeywords> values;
  nb::handle unknown;  // the first name that is no keyword's
};

Given given_in(nb::handle dict) {
  Given given;
  PyObject *key, *value;
  for (Py_ssize_t position = 0; PyDict_Next(dict.ptr(), &position, &key, &value);) {
    size_t keyword = keyword_of(key);
    if (keyword < kKeywords)
      given.values[keyword] = nb::handle(value);
    else if (!given.unknown.is_valid())
      given.unknown = nb::handle(key);
  }
  return given;
}

ObjectOwner own(nb::handle object) { return ObjectOwner(object.inc_ref().ptr()); }

bool is_constant_int(PyObject* object) { return PyLong_CheckExact(object) || PyBool_Check(object); }

bool is_tuple_of_ints(PyObject* object) {
  if (!PyTuple_CheckExact(object)) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i)
    if (!is_constant_int(PyTuple_GET_ITEM(object, i))) return false;
  return true;
}

// What an object that can't change was read as.
template <typename T>
struct Known {
  ObjectOwner object;
  T value{};
};

}  // namespace

class CallReader::State {
 public:
  State(const KernelObject& kernel, DtypeReader read_dtype)
      : kernel_(kernel), prefix_(message_prefix(kernel.spec().dialect)), read_dtype_(read_dtype) {}

  const CallArguments& read(nb::handle positional, nb::handle keywords) {
    if (PyTuple_GET_SIZE(positional.ptr()) != 0) fail_on_positional();
    return read(given_in(keywords));
  }

  const CallArguments& read(PyObject* const* values, size_t positional, PyObject* names) {
    if (positional != 0) fail_on_positional();
    if (known_names_.get() != names && !are_known(names)) learn_names(names);
    Given given;
    given.unknown = unknown_name_;
    for (size_t i = 0; i < known_order_.size(); ++i)
      if (known_order_[i] < kKeywords) given.values[known_order_[i]] = values[i];
    return read(given);
  }

  const CallArguments& read_compilation(nb::handle positional, nb::handle keywords,
                                        std::optional<DescribedInputs>& described) {
    if (PyTuple_GET_SIZE(positional.ptr()) != 0) fail_on_positional();
    nb::object others = nb::steal(PyDict_Copy(keywords.ptr()));
    if (!others.is_valid()) nb::raise_python_error();
    std::array<nb::object, kDescriptionKeywords> description;
    bool is_described = false;
    for (size_t i = 0; i < kDescriptionKeywords; ++i) {
      PyObject* value = PyDict_GetItemString(others.ptr(), kDescriptionNames[i]);
      if (!value) continue;
      if (value != Py_None) {
        description[i] = nb::borrow(value);
        is_described = true;
      }
      if (PyDict_DelItemString(others.ptr(), kDescriptionNames[i]) < 0) nb::raise_python_error();
    }
    Given given = given_in(others);
    if (given.unknown.is_valid()) fail_on_unknown(given.unknown, /*is_compilation=*/true);
    described.reset();
    if (!is_described) return read(given);

    auto is_given = [&](size_t i) { return given.values[i].is_valid() && !given.values[i].is_none(); };
    for (size_t i = 0; i < kDescriptionKeywords; ++i)
      if (description[i].is_valid() && is_given(kInputs))
        fail(concat("has `inputs`, from which `", kDescriptionNames[i], "` follows"));
    for (size_t i : {kInputShapes, kInputDtypes})
      if (!description[i].is_valid()) fail(concat("is missing the argument `", kDescriptionNames[i], "`"));
    for (size_t i : {kStreamKeyword, kOutputs})
      if (is_given(i))
        fail(concat("has `input_shapes`, beside which `", to_utf8(keyword_names()[i]), "` has no meaning"));
    const CallArguments& call = read(given, /*has_inputs=*/false);
    described.emplace();
    read_description(description[kInputShapes], description[kInputDtypes], *described);
    if (description[kTarget].is_valid()) described->device = read_target(description[kTarget]);
    return call;
  }

  ArrayLibrary* library_of_dtypes() const { return library_of_dtypes_; }

  void forget_arrays() {
    call_.inputs.clear();
    if (call_.outputs) call_.outputs->clear();
  }

 private:
  const CallArguments& read(const Given& given, bool has_inputs = true) {
    const auto& values = given.values;
    // First: a name that is misspelt is missing as well.
    if (given.unknown.is_valid()) fail_on_unknown(given.unknown, /*is_compilation=*/false);
    bool has_outputs = values[kOutputs].is_valid() && !values[kOutputs].is_none();
    for (size_t i = 0; i < kRequiredKeywords; ++i) {
      nb::handle name = keyword_names()[i];
      bool follows = has_outputs && (i == kOutputShapes || i == kOutputDtypes);
      if (values[i].is_valid() && follows) fail(concat("has `outputs`, from which `", to_utf8(name), "` follows"));
      if (!values[i].is_valid() && !follows && (has_inputs || i != kInputs))
        fail(concat("is missing the argument `", to_utf8(name), "`"));
    }
    auto [inputs, output_shapes, output_dtypes, grid, threadgroup, template_, init_value, verbose, stream, outputs] =
        values;

    bool by_name = !kernel_.spec().input_names.has_value();
    call_.input_names.clear();
    call_.output_names.clear();
    library_of_dtypes_ = nullptr;
    if (has_inputs) read_inputs(inputs, by_name);
    if (has_outputs) {
      call_.output_shapes.clear();
      call_.output_dtypes.clear();
      known_shapes_.clear();
      read_given_outputs(outputs, by_name);
    } else {
      call_.outputs.reset();
      read_outputs(output_shapes, output_dtypes, by_name);
    }
    call_.grid = read_extent("`grid`", "each dimension of `grid`", grid, known_grid_);
    call_.threadgroup =
        read_extent("`threadgroup`", "each dimension of `threadgroup`", threadgroup, known_threadgroup_);
    read_template(template_.is_valid() && !template_.is_none() ? template_ : nb::handle());
    call_.init_value.reset();
    if (init_value.is_valid() && !init_value.is_none()) call_.init_value = read_number("`init_value`", init_value);
    call_.verbose = verbose.is_valid() && read_bool("`verbose`", verbose);
    call_.stream = stream.is_valid() && !stream.is_none() ? stream.ptr() : nullptr;
    return call_;
  }

  // `kernel(**call)` makes a tuple of names for each call.
  bool are_known(PyObject* names) const {
    if (!names || !known_names_ || PyTuple_GET_SIZE(names) != PyTuple_GET_SIZE(known_names_.get())) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i)
      if (PyTuple_GET_ITEM(names, i) != PyTuple_GET_ITEM(known_names_.get(), i)) return false;
    return true;
  }

  void learn_names(PyObject* names) {
    known_names_.reset();
    known_order_.clear();
    unknown_name_ = nb::handle();
    for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); ++i) {
      nb::handle name = PyTuple_GET_ITEM(names, i);
      known_order_.push_back(keyword_of(name.ptr()));
      if (known_order_.back() == kKeywords && !unknown_name_.is_valid()) unknown_name_ = name;
    }
    if (names) known_names_ = own(names);
  }

  [[noreturn]] void fail_on_positional() const { fail("takes keyword arguments only"); }

  [[noreturn]] void fail_on_unknown(nb::handle name, bool is_compilation) const {
    const std::string text = to_utf8(name);
    const std::string before = concat(prefix_, "The call has no argument `", text, "`");
    const bool is_cuda = kernel_.spec().dialect == Dialect::kCuda;
    auto has_name = [&](std::string_view known) { return text == known; };
    if (std::ranges::any_of(kDescriptionNames, has_name)) throw TypeError(concat(before, "; `compile` has it."));
    const std::array<std::string_view, 4> of_kernel = {"header", "ensure_row_contiguous", "compile_options",
                                                       is_cuda ? "shared_memory" : "atomic_outputs"};
    if (std::ranges::any_of(of_kernel, has_name))
      throw TypeError(concat(before, "; pass it to `", is_cuda ? "cuda_kernel" : "metal_kernel", "`."));

    // CUDA's words.
    if (text == "block" || text == "block_dim" || text == "block_size" || text == "blockDim")
      throw TypeError(concat(before, "; did you mean `threadgroup`?"));
    if (text == "blocks") throw TypeError(concat(before, "; did you mean `grid`? It counts threads."));
    if (is_cuda && (text == "shared" || text == "shared_mem" || text == "smem"))
      throw TypeError(concat(before, "; pass `shared_memory` to `cuda_kernel`."));

    nb::list known;
    for (PyObject* keyword : keyword_names()) known.append(nb::handle(keyword));
    if (is_compilation)
      for (const char* keyword : kDescriptionNames) known.append(nb::str(keyword));
    // The default of 0.6 suggests `inputs` for "init".
    nb::object similar = nb::module_::import_("difflib").attr("get_close_matches")(name, known, 1, 0.65);
    if (nb::len(similar) == 0) throw TypeError(concat(before, "."));
    throw TypeError(concat(before, "; did you mean `", to_utf8(nb::object(similar[0])), "`?"));
  }

  [[noreturn]] void fail(const std::string& what) const { throw TypeError(concat(prefix_, "The call ", what, ".")); }

  // `whom`: "`grid`", "each dimension of `grid`". What the object itself has raised is the cause.
  [[noreturn]] void expected(std::string_view whom, std::string_view what, nb::handle got) const {
    throw_type_error(concat(prefix_, "Expected ", whom, " to be ", what, " but got ", kind_of(got), "."));
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
    throw ValueError(concat(prefix_, "Expected the names in ", whom, " to be identifiers but got ", shown(name), "."));
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
    if (PyList_CheckExact(sequence.ptr()) && PyList_GET_SIZE(sequence.ptr()) == 1) {
      // The most frequent one needs no tuple: what happens to the list while its one item is read doesn't matter.
      nb::object item = nb::borrow(PyList_GET_ITEM(sequence.ptr(), 0));
      return function(nb::handle(item));
    }
    nb::object items = items_of(whom, what, sequence);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.ptr()); ++i)
      function(nb::handle(PyTuple_GET_ITEM(items.ptr(), i)));
  }

  // Calls `function(name, item)` for each item of a dictionary, as it was before the first call.
  template <typename Function>
  void for_each_named(std::string_view whom, nb::handle dictionary, const Function& function) const {
    if (!is_mapping(dictionary))
      throw_type_error(concat(prefix_, "Expected ", whom, " to be a dict but got ", kind_of(dictionary),
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

  void read_inputs(nb::handle inputs, bool by_name) {
    call_.inputs.clear();
    if (by_name) {
      for_each_named("`inputs`", inputs, [&](std::string name, nb::handle item) {
        call_.input_names.push_back(std::move(name));
        call_.inputs.push_back(own(item));
      });
      return;
    }
    if (is_mapping(inputs))
      throw TypeError(concat(prefix_, "Expected `inputs` to be a list but got a dict: this kernel was made ",
                             "with `input_names`, so its calls take lists."));
    own_items("`inputs`", "a list", inputs, kernel_.spec().input_names->size(), call_.inputs);
  }

  static bool has_rows(nb::handle array, size_t count) {
    Py_ssize_t size = PySequence_Size(array.ptr());
    if (size < 0) PyErr_Clear();
    return size >= 0 && static_cast<size_t>(size) == count;
  }

  // Nothing of the caller's runs between two items of a list or a tuple. An array is a sequence of its rows, too:
  // unless there are as many as `wanted`, one array was meant.
  void own_items(std::string_view whom, std::string_view what, nb::handle sequence, size_t wanted,
                 std::vector<ObjectOwner>& result) const {
    nb::object items;
    if (!PyList_CheckExact(sequence.ptr()) && !PyTuple_CheckExact(sequence.ptr())) {
      if (is_foreign_array(sequence) && !has_rows(sequence, wanted))
        throw TypeError(concat(prefix_, "Expected ", whom, " to be ", what, " but got ", kind_of(sequence),
                               ": write [x] for one array x."));
      items = items_of(whom, what, sequence);
      sequence = items;
    }
    bool is_list = PyList_CheckExact(sequence.ptr());
    Py_ssize_t count = is_list ? PyList_GET_SIZE(sequence.ptr()) : PyTuple_GET_SIZE(sequence.ptr());
    for (Py_ssize_t i = 0; i < count; ++i)
      result.push_back(own(is_list ? PyList_GET_ITEM(sequence.ptr(), i) : PyTuple_GET_ITEM(sequence.ptr(), i)));
  }

  void read_given_outputs(nb::handle outputs, bool by_name) {
    if (!call_.outputs) call_.outputs.emplace();
    call_.outputs->clear();
    if (by_name) {
      for_each_named("`outputs`", outputs, [&](std::string name, nb::handle item) {
        call_.output_names.push_back(std::move(name));
        call_.outputs->push_back(own(item));
      });
      return;
    }
    size_t wanted = kernel_.spec().output_names->size();
    own_items("`outputs`", "a list of arrays", outputs, wanted, *call_.outputs);
    size_t got = call_.outputs->size();
    if (got != wanted)
      throw ValueError(concat(prefix_, "Expected `outputs` to have size ", wanted, " but got size ", got, "."));
  }

  void read_outputs(nb::handle shapes, nb::handle dtypes, bool by_name) {
    size_t count = 0;
    auto add_shape = [&](nb::handle item) {
      if (call_.output_shapes.size() == count) call_.output_shapes.emplace_back();
      if (known_shapes_.size() == count) known_shapes_.emplace_back();
      read_shape(item, call_.output_shapes[count], known_shapes_[count]);
      ++count;
    };
    call_.output_dtypes.clear();
    if (!by_name) {
      size_t wanted = kernel_.spec().output_names->size();
      refuse_one_shape("`output_shapes`", shapes, wanted);
      for_each("`output_shapes`", kShapes, shapes, add_shape);
      call_.output_shapes.resize(count);
      known_shapes_.resize(count);
      for_each("`output_dtypes`", kDtypeList, dtypes,
               [&](nb::handle item) { call_.output_dtypes.push_back(read_dtype("output_dtypes", item)); });
      if (call_.output_dtypes.size() != wanted && call_.output_shapes.size() == wanted)
        throw ValueError(concat(prefix_, "Expected `output_dtypes` to have size ", wanted, " but got size ",
                                call_.output_dtypes.size(), "."));
      return;
    }
    for_each_named("`output_shapes`", shapes, [&](std::string name, nb::handle item) {
      call_.output_names.push_back(std::move(name));
      add_shape(item);
    });
    call_.output_shapes.resize(count);
    known_shapes_.resize(count);
    read_dtypes_by_name("output", dtypes, call_.output_names, call_.output_dtypes);
  }

  // A dict of dtypes with the keys of the dict of shapes before it, in its order. `kind`: "output".
  void read_dtypes_by_name(std::string_view kind, nb::handle dtypes, const std::vector<std::string>& names,
                           std::vector<Dtype>& result) {
    std::string argument = concat(kind, "_dtypes");
    std::string same_keys = concat("Expected `", argument, "` to have the keys of `", kind, "_shapes`, but ");
    std::vector<std::optional<Dtype>> found(names.size());
    for_each_named(concat("`", argument, "`"), dtypes, [&](const std::string& name, nb::handle item) {
      auto known = std::find(names.begin(), names.end(), name);
      if (known == names.end()) throw ValueError(concat(prefix_, same_keys, "got `", name, "`."));
      found[static_cast<size_t>(known - names.begin())] = read_dtype(argument, item);
    });
    for (size_t i = 0; i < found.size(); ++i) {
      if (!found[i]) throw ValueError(concat(prefix_, same_keys, "`", names[i], "` is missing."));
      result.push_back(*found[i]);
    }
  }

  // Shapes and dtypes of inputs, of which there are no arrays.
  void read_description(nb::handle shapes, nb::handle dtypes, DescribedInputs& described) {
    auto add_shape = [&](nb::handle item) {
      std::vector<int64_t>& shape = described.shapes.emplace_back();
      read_dimensions("`input_shapes`", "each dimension in `input_shapes`", item, shape);
      for (int64_t dimension : shape)
        if (dimension < 0)
          throw ValueError(
              concat(prefix_, "Expected each dimension in `input_shapes` to be at least 0 but got ", dimension, "."));
    };
    if (!kernel_.spec().input_names) {
      for_each_named("`input_shapes`", shapes, [&](std::string name, nb::handle item) {
        call_.input_names.push_back(std::move(name));
        add_shape(item);
      });
      return read_dtypes_by_name("input", dtypes, call_.input_names, described.dtypes);
    }
    size_t wanted = kernel_.spec().input_names->size();
    refuse_one_shape("`input_shapes`", shapes, wanted);
    for_each("`input_shapes`", kShapes, shapes, add_shape);
    for_each("`input_dtypes`", kDtypeList, dtypes,
             [&](nb::handle item) { described.dtypes.push_back(read_dtype("input_dtypes", item)); });
    auto check_size = [&](std::string_view argument, size_t got) {
      if (got != wanted)
        throw ValueError(
            concat(prefix_, "Expected `", argument, "` to have size ", wanted, " but got size ", got, "."));
    };
    check_size("input_shapes", described.shapes.size());
    check_size("input_dtypes", described.dtypes.size());
  }

  // As CompiledKernel's `target` has it.
  Device read_target(nb::handle object) const {
    constexpr std::string_view kGpu = "nvidia:";
    if (!PyUnicode_Check(object.ptr())) expected("`target`", "a string", object);
    std::string text = to_utf8(object);
    if (text == "cpu") return {};
    int index = 0;
    const char* end = text.data() + text.size();
    if (text.starts_with(kGpu))
      if (auto [rest, error] = std::from_chars(text.data() + kGpu.size(), end, index);
          error == std::errc() && rest == end && index >= 0)
        return {DeviceKind::kNvidia, index};
    throw ValueError(
        concat(prefix_, "Expected `target` to be \"cpu\" or, of the first GPU, \"nvidia:0\" but got \"", text, "\"."));
  }

  // `x.shape` in the place of a list of shapes, a tuple of ints; or `[x.shape[0]]`.
  void refuse_one_shape(std::string_view whom, nb::handle shapes, size_t wanted) const {
    const bool is_list = PyList_CheckExact(shapes.ptr());
    if (!is_list && !PyTuple_Check(shapes.ptr())) return;
    std::vector<std::string> sizes;
    for (Py_ssize_t i = 0; i < (is_list ? PyList_GET_SIZE(shapes.ptr()) : PyTuple_GET_SIZE(shapes.ptr())); ++i) {
      PyObject* item = is_list ? PyList_GET_ITEM(shapes.ptr(), i) : PyTuple_GET_ITEM(shapes.ptr(), i);
      int overflow = 0;
      if (!PyLong_CheckExact(item)) return;
      long long size = PyLong_AsLongLongAndOverflow(item, &overflow);
      if (overflow) return;
      sizes.push_back(std::to_string(size));
    }
    if (sizes.empty()) return;
    const bool is_one_each = sizes.size() == 1 || (is_list && sizes.size() == wanted);
    throw TypeError(concat(prefix_, "Expected ", whom, " to be ", kShapes, " but got ",
                           is_list ? "a list of ints" : "one shape", ": write [(",
                           join(sizes, is_one_each ? ",), (" : ", "), is_one_each ? ",)]." : ")]."));
  }

  void read_dimensions(std::string_view whom, std::string_view each, nb::handle shape,
                       std::vector<int64_t>& dimensions) const {
    for_each(whom, kShapes, shape, [&](nb::handle item) { dimensions.push_back(read_int(each, item)); });
  }

  // `known`: the tuple whose dimensions `dimensions` has already, if any.
  void read_shape(nb::handle shape, std::vector<int64_t>& dimensions, ObjectOwner& known) const {
    if (known && known.get() == shape.ptr()) return;
    known.reset();
    dimensions.clear();
    read_dimensions("`output_shapes`", "each dimension in `output_shapes`", shape, dimensions);
    if (is_tuple_of_ints(shape.ptr())) known = own(shape);
  }

  // Null: it is no dtype.
  std::optional<Dtype> find_dtype(nb::handle object) {
    auto meet = [&](const KnownDtype& found) {
      if (!library_of_dtypes_) library_of_dtypes_ = found.library;
      return found.dtype;
    };
    for (const Known<KnownDtype>& known : known_dtypes_)
      if (known.object.get() == object.ptr()) return meet(known.value);
    KnownDtype found;
    std::optional<Dtype> dtype = read_dtype_(object.ptr(), found.library);
    if (!dtype) return std::nullopt;
    found.dtype = *dtype;
    // A class of the caller's may own the kernel: nobody would find that they are garbage together.
    if (PyType_Check(object.ptr()) &&
        PyType_HasFeature(reinterpret_cast<PyTypeObject*>(object.ptr()), Py_TPFLAGS_HEAPTYPE))
      return meet(found);
    // A call has a few. Objects that are made for each call are not to pile up.
    if (known_dtypes_.size() >= kMostKnownDtypes) known_dtypes_.clear();
    known_dtypes_.push_back({own(object), found});
    return meet(found);
  }

  Dtype read_dtype(std::string_view argument, nb::handle object) {
    if (std::optional<Dtype> dtype = find_dtype(object)) return *dtype;
    if (PyUnicode_Check(object.ptr()))
      throw ValueError(
          concat(prefix_, "`", to_utf8(object), "` in `", argument, "` is no dtype. Those are ", dtype_names(), "."));
    throw TypeError(concat(prefix_, "Expected `", argument, "` to have dtypes but got ", shown(object), "."));
  }

  static std::string dtype_names() {
    std::string names;
    for (const DtypeRow& row : kDtypes)
      names += concat(names.empty() ? "" : row.dtype == kDtypes.back().dtype ? " and " : ", ", row.name);
    return names;
  }

  int64_t read_int(std::string_view whom, nb::handle object) const {
    if (PyLong_CheckExact(object.ptr())) {
      int overflow;
      int64_t value = PyLong_AsLongLongAndOverflow(object.ptr(), &overflow);
      if (!overflow) return value;
    }
    std::optional<Index> index;
    if (PyIndex_Check(object.ptr())) index = index_of(object);
    if (!index) expected(whom, "an int", object);
    return check_bits(whom, *index, 64);
  }

  int64_t check_bits(std::string_view whom, const Index& index, int bits) const {
    int64_t most = std::numeric_limits<int64_t>::max() >> (64 - bits);
    if (!index.value || *index.value > most || *index.value < -most - 1)
      throw ValueError(concat(prefix_, "Expected ", whom, " to fit into ", bits, " bits but got ",
                              index.value ? std::to_string(*index.value) : index.text, "."));
    return *index.value;
  }

  Extent3 read_extent(std::string_view whom, std::string_view each, nb::handle object, Known<Extent3>& known) const {
    if (known.object && known.object.get() == object.ptr()) return known.value;
    // An array of one element has `__index__`, and is a sequence if it has a dimension.
    bool is_int = PyIndex_Check(object.ptr()) && (!PySequence_Check(object.ptr()) || PySequence_Size(object.ptr()) < 0);
    PyErr_Clear();
    if (is_int) {
      std::optional<Index> index = index_of(object);
      if (!index) expected(whom, kExtent, object);
      return {check_bits(whom, *index, 64), 1, 1};
    }
    nb::object items = items_of(whom, kExtent, object);
    Py_ssize_t count = PyTuple_GET_SIZE(items.ptr());
    Extent3 extent{1, 1, 1};
    for (size_t i = 0; i < std::min<size_t>(3, static_cast<size_t>(count)); ++i)
      extent[i] = read_int(each, PyTuple_GET_ITEM(items.ptr(), static_cast<Py_ssize_t>(i)));
    if (count < 1 || count > 3)
      throw ValueError(concat(prefix_, "Expected ", whom, " to have 1 to 3 ints but got ", count, "."));
    if (is_tuple_of_ints(object.ptr())) known = {own(object), extent};
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
    throw ValueError(concat(prefix_, "Expected ", whom, " to fit into a double."));
  }

  // `object`: not valid where the call has none.
  void read_template(nb::handle object) {
    std::vector<TemplateArgument>& arguments = call_.template_arguments;
    size_t count = 0;
    if (object.is_valid() && is_mapping(object)) {
      if (kernel_.spec().input_names)
        throw TypeError(concat(prefix_, "Expected `template` to be a list of pairs but got a dict: this ",
                               "kernel was made with `input_names`, so its calls take lists."));
      arguments.clear();
      known_pairs_.clear();
      for_each_named("`template`", object, [&](std::string name, nb::handle value) {
        TemplateValue read = read_template_value(name, value);
        arguments.push_back({std::move(name), read});
        known_pairs_.emplace_back();
      });
      return;
    }
    if (object.is_valid())
      for_each("`template`", kTemplate, object, [&](nb::handle pair) {
        if (arguments.size() == count) arguments.push_back({{}, false});
        if (known_pairs_.size() == count) known_pairs_.emplace_back();
        read_template_pair(pair, arguments[count], known_pairs_[count]);
        ++count;
      });
    arguments.erase(arguments.begin() + static_cast<std::ptrdiff_t>(count), arguments.end());
    known_pairs_.resize(count);
  }

  // `known`: the pair that `argument` has already, if any.
  void read_template_pair(nb::handle pair, TemplateArgument& argument, ObjectOwner& known) {
    if (known && is_pair_of(known.get(), pair.ptr())) {
      // For the library that it belongs to.
      if (std::holds_alternative<Dtype>(argument.value)) find_dtype(PyTuple_GET_ITEM(pair.ptr(), 1));
      return;
    }
    known.reset();
    nb::object items = items_of("`template`", kTemplate, pair);
    if (PyTuple_GET_SIZE(items.ptr()) != 2) expected("`template`", kTemplate, pair);
    nb::handle name(PyTuple_GET_ITEM(items.ptr(), 0)), value(PyTuple_GET_ITEM(items.ptr(), 1));
    if (!PyUnicode_Check(name.ptr())) expected("the names in `template`", "strings", name);
    argument.name = read_name("`template`", name);
    argument.value = read_template_value(argument.name, value);
    bool is_constant = std::holds_alternative<Dtype>(argument.value) || is_constant_int(value.ptr());
    if (PyTuple_CheckExact(pair.ptr()) && PyUnicode_CheckExact(name.ptr()) && is_constant) known = own(pair);
  }

  // `template=[("T", x.dtype)]` makes a pair for each call.
  static bool is_pair_of(PyObject* known, PyObject* pair) {
    return known == pair || (PyTuple_CheckExact(pair) && PyTuple_GET_SIZE(pair) == 2 &&
                             PyTuple_GET_ITEM(pair, 0) == PyTuple_GET_ITEM(known, 0) &&
                             PyTuple_GET_ITEM(pair, 1) == PyTuple_GET_ITEM(known, 1));
  }

  TemplateValue read_template_value(std::string_view name, nb::handle value) {
    if (PyBool_Check(value.ptr())) return value.ptr() == Py_True;
    if (std::optional<Dtype> dtype = find_dtype(value)) return *dtype;
    if (PyIndex_Check(value.ptr())) {
      if (std::optional<Index> index = index_of(value))
        return static_cast<int32_t>(check_bits(concat("template argument `", name, "`"), *index, 32));
      if (!is_refusal()) nb::raise_python_error();
      PyErr_Clear();
    }
    if (is_bool(value)) return PyObject_IsTrue(value.ptr()) == 1;  // NumPy's
    throw ValueError(concat(prefix_, "Invalid template argument. Must be `mlx.core.Dtype`, `int` or `bool`. Got ",
                            shown(value), " for `", name, "`."));
  }

  struct KnownDtype {
    Dtype dtype = Dtype::kFloat32;
    ArrayLibrary* library = nullptr;
  };

  static constexpr std::string_view kShapes = "a list of shapes";
  static constexpr std::string_view kDtypeList = "a list of dtypes";
  static constexpr std::string_view kExtent = "an int or 1 to 3 ints";
  static constexpr std::string_view kTemplate = "a list of pairs of a name and a value";
  static constexpr size_t kMostKnownDtypes = 8;

  const KernelObject& kernel_;
  const std::string_view prefix_;
  const DtypeReader read_dtype_;
  CallArguments call_;
  ArrayLibrary* library_of_dtypes_ = nullptr;

  ObjectOwner known_names_;          // of a vectorcall
  std::vector<size_t> known_order_;  // which keywords they are
  nb::handle unknown_name_;          // the first that is none
  Known<Extent3> known_grid_, known_threadgroup_;
  std::vector<ObjectOwner> known_shapes_;  // of call_.output_shapes; null: to be read each time
  std::vector<ObjectOwner> known_pairs_;   // of call_.template_arguments, likewise
  std::vector<Known<KnownDtype>> known_dtypes_;
};

CallReader::CallReader(const KernelObject& kernel, DtypeReader read_dtype)
    : state_(std::make_unique<State>(kernel, read_dtype)) {}

CallReader::~CallReader() = default;

const CallArguments& CallReader::read(nb::handle positional, nb::handle keywords) {
  return state_->read(positional, keywords);
}

const CallArguments& CallReader::read(PyObject* const* values, size_t positional, PyObject* names) {
  return state_->read(values, positional, names);
}

const CallArguments& CallReader::read_compilation(nb::handle positional, nb::handle keywords,
                                                  std::optional<DescribedInputs>& described) {
  return state_->read_compilation(positional, keywords, described);
}

ArrayLibrary* CallReader::library_of_dtypes() const { return state_->library_of_dtypes(); }

void CallReader::forget_arrays() { state_->forget_arrays(); }

}  // namespace kiln::python
