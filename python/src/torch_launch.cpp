#include "torch_launch.h"

#include <exception>
#include <new>
#include <string>
#include <utility>

#include "adapters/torch_operator.h"
#include "exceptions.h"

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

}  // namespace

bool let_torch_launch() {
  set_torch_error_hook(keep_error);
  return implement_torch_operator();
}

nb::object take_torch_error(const std::string& message) {
  if (!t_error || !t_error->exception) return nb::none();
  nb::object exception = nb::steal(std::exchange(t_error->exception, nullptr));
  return message.find(t_error->message) == std::string::npos ? nb::none() : exception;
}

}  // namespace kiln::python
