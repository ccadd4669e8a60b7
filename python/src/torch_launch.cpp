#include "torch_launch.h"

#include <array>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include "adapters/torch_operator.h"
#include "device_library.h"
#include "exceptions.h"
#include "torch_library.h"

namespace nb = nanobind;

namespace kiln::python {
namespace {

// The exception, and the message that PyTorch has of it. A thread of PyTorch's that ends keeps its last one: what could
// give it back would need the interpreter.
struct LastError {
  PyObject* exception = nullptr;
  std::string message;
};
thread_local LastError* t_error = nullptr;

std::string message_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& exception) {
    return exception.what();
  } catch (...) {
    return {};
  }
}

void keep_error(const std::exception_ptr& error) noexcept {
  // (Nothing of PyTorch's calls a launch while the interpreter ends but threads that do not know of it.)
  if (!Py_IsInitialized()) return;
  PyGILState_STATE state = PyGILState_Ensure();
  // An interruption has left its exception where the thread's errors are.
  if (!PyErr_Occurred()) {
    try {
      std::rethrow_exception(error);
    } catch (...) {
      set_error_from_exception();
    }
  }
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  try {
    if (!t_error) t_error = new LastError;
    t_error->message = message_of(error);
    std::swap(t_error->exception, value);
  } catch (const std::bad_alloc&) {
    // PyTorch's error, which has the message, is raised as it is.
  }
  Py_XDECREF(value);
  PyGILState_Release(state);
}

// The exception, as Python knows it, that a launch of this thread has thrown, of which PyTorch has raised an error with
// such a message; not valid where it is none.
nb::object take_error(const std::string& message) {
  if (!t_error || !t_error->exception) return {};
  nb::object exception = nb::steal(std::exchange(t_error->exception, nullptr));
  return message.find(t_error->message) == std::string::npos ? nb::object() : exception;
}

// An error of PyTorch's that is set becomes the launch's.
void restore_own_error() {
  if (!PyErr_ExceptionMatches(PyExc_Exception)) return;
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  nb::object text = nb::steal(PyObject_Str(value));
  nb::object own = text.is_valid() ? take_error(to_utf8(text)) : nb::object();
  if (!own.is_valid()) {
    PyErr_Restore(type, value, traceback);
    return;
  }
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(own.ptr())), own.ptr());
}

constexpr size_t kMostSizes = 64;

// Null where the call is not one of plain values of a launch that is known.
PyObject* launch_plain(PyObject* text, PyObject* inputs, PyObject* given) {
  static const DeviceLibrary* const library = make_torch_library().release();
  if (!PyUnicode_Check(text) || !PyList_Check(inputs) || !PyList_Check(given)) return nullptr;
  Py_ssize_t length = 0;
  const char* characters = PyUnicode_AsUTF8AndSize(text, &length);
  if (!characters) {
    PyErr_Clear();
    return nullptr;
  }
  const TorchLaunch* launch = find_torch_launch({characters, static_cast<size_t>(length)});
  constexpr size_t kMostArrays = DeviceLibrary::kMostArrays;
  const auto count = static_cast<size_t>(PyList_Size(inputs));
  if (!launch || launch->sizes != static_cast<size_t>(PyList_Size(given)) || launch->sizes > kMostSizes ||
      launch->outputs.size() + count > kMostArrays)
    return nullptr;
  std::array<int64_t, kMostSizes> sizes;
  for (size_t i = 0; i < launch->sizes; ++i) {
    PyObject* size = PyList_GetItem(given, static_cast<Py_ssize_t>(i));
    if (!PyLong_CheckExact(size)) return nullptr;
    sizes[i] = PyLong_AsLongLong(size);
  }
  if (PyErr_Occurred()) {  // too large
    PyErr_Clear();
    return nullptr;
  }
  // Owned: another thread may change the list.
  std::array<nb::object, kMostArrays> owned;
  std::array<PyObject*, kMostArrays> arrays;
  for (size_t i = 0; i < count; ++i) {
    owned[i] = nb::borrow(PyList_GetItem(inputs, static_cast<Py_ssize_t>(i)));
    arrays[i] = owned[i].ptr();
  }
  std::array<OutputArray, kMostArrays> outputs;
  Call call = launch->call({sizes.data(), launch->sizes}, {outputs.data(), launch->outputs.size()});
  return library->run_operator(*launch->kernel, {arrays.data(), count}, call);
}

PyObject* call_operator(PyObject* dispatch, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  if (count == 3 && !names) {
    try {
      if (PyObject* outputs = launch_plain(arguments[0], arguments[1], arguments[2])) return outputs;
    } catch (...) {
      set_error_from_exception();
      return nullptr;
    }
  }
  PyObject* result = PyObject_Vectorcall(dispatch, arguments, static_cast<size_t>(count), names);
  if (!result) restore_own_error();
  return result;
}

}  // namespace

bool let_torch_launch() {
  set_torch_error_hook(keep_error);
  return implement_torch_operator();
}

nb::object make_torch_call(const nb::object& dispatch) {
  static PyMethodDef method{"launch", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call_operator)),
                            METH_FASTCALL | METH_KEYWORDS, nullptr};
  return nb::steal(PyCFunction_NewEx(&method, dispatch.ptr(), nullptr));
}

}  // namespace kiln::python
