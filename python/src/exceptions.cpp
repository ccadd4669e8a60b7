#include "exceptions.h"

#include <nanobind/nanobind.h>

#include <new>
#include <stdexcept>

#include "core/diagnostic.h"
#include "core/interruption.h"
#include "kiln/error.h"

namespace nb = nanobind;

namespace kiln::python {
namespace {

// Kept from the beginning: while the interpreter shuts down nothing can be imported any more.
struct Classes {
  nb::handle diagnostic, compile_error, unsupported_error, device_error, internal_error;
};
Classes g_classes;

nb::str as_str(std::string_view text) { return nb::str(text.data(), text.size()); }

nb::str to_str(const std::string& text) {
  // A kernel's text may be any bytes.
  return nb::steal<nb::str>(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

void raise(nb::handle type, const std::exception& error) { PyErr_SetObject(type.ptr(), to_str(error.what()).ptr()); }

}  // namespace

nb::list diagnostics_list(const std::vector<Diagnostic>& diagnostics) {
  nb::list list;
  for (const Diagnostic& d : diagnostics)
    list.append(g_classes.diagnostic(as_str(name_of(d.severity)), to_str(d.message), as_str(name_of(d.text)), d.line,
                                     d.column, to_str(d.source_line), to_str(d.file)));
  return list;
}

namespace {

PyObject* take_raised() {
#if PY_VERSION_HEX >= 0x030C0000
  return PyErr_GetRaisedException();
#else
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback) PyException_SetTraceback(value, traceback);
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  return value;
#endif
}

void release_with_lock(PyObject* object) {
  if (!object || !Py_IsInitialized()) return;
  PyGILState_STATE state = PyGILState_Ensure();
  Py_DECREF(object);
  PyGILState_Release(state);
}

}  // namespace

RaisedInPython::RaisedInPython() : error_(take_raised(), release_with_lock) {}

void RaisedInPython::restore() const {
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error_.get())), error_.get());
}

namespace {

void raise_compile_error(const CompileError& error) {
  nb::object exception = g_classes.compile_error(to_str(error.what()), diagnostics_list(error.report()->diagnostics),
                                                 to_str(error.report()->generated_source), to_str(error.report()->log));
  PyErr_SetObject(g_classes.compile_error.ptr(), exception.ptr());
}

void translate(const std::exception_ptr& pointer, void*) {
  try {
    std::rethrow_exception(pointer);
  } catch (const RaisedInPython& error) {
    error.restore();
  } catch (const CompileError& error) {
    raise_compile_error(error);
  } catch (const UnsupportedError& error) {
    raise(g_classes.unsupported_error, error);
  } catch (const DeviceError& error) {
    raise(g_classes.device_error, error);
  } catch (const InternalError& error) {
    raise(g_classes.internal_error, error);
  } catch (const ValueError& error) {
    raise(nb::handle(PyExc_ValueError), error);
  } catch (const TypeError& error) {
    raise(nb::handle(PyExc_TypeError), error);
  } catch (const Interrupted&) {
    // What the signal's handler has raised is set already (`check_signals`).
    if (!PyErr_Occurred()) PyErr_SetNone(PyExc_KeyboardInterrupt);
  }
}

unsigned long g_main_thread = 0;

bool is_main_thread() { return PyThread_get_thread_ident() == g_main_thread; }

// Leaves the exception set in the thread's state, where it stays while the interpreter's lock is given away.
bool check_signals() {
  if (!Py_IsInitialized()) return false;
  PyGILState_STATE state = PyGILState_Ensure();
  bool raised = !PyErr_Occurred() && PyErr_CheckSignals() < 0;
  PyGILState_Release(state);
  return raised;
}

}  // namespace

void let_signals_interrupt() {
  nb::object main = nb::module_::import_("threading").attr("main_thread")();
  g_main_thread = nb::cast<unsigned long>(main.attr("ident"));
  set_interruption_hook({is_main_thread, check_signals});
}

void register_exceptions() {
  nb::module_ errors = nb::module_::import_("kiln.errors");
  auto keep = [&](const char* name) -> nb::handle { return nb::object(errors.attr(name)).release(); };
  g_classes = {keep("Diagnostic"), keep("CompileError"), keep("UnsupportedError"), keep("DeviceError"),
               keep("InternalError")};
  nb::register_exception_translator(translate);
}

void set_error_from_exception() {
  try {
    translate(std::current_exception(), nullptr);
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const nb::builtin_exception& error) {
    PyErr_SetString(error.type() == nb::exception_type::type_error ? PyExc_TypeError : PyExc_RuntimeError,
                    error.what() ? error.what() : "");
  } catch (const std::bad_alloc& error) {
    PyErr_SetString(PyExc_MemoryError, error.what());
  } catch (const std::out_of_range& error) {
    PyErr_SetString(PyExc_IndexError, error.what());
  } catch (const std::logic_error& error) {
    PyErr_SetString(PyExc_ValueError, error.what());
  } catch (const std::range_error& error) {
    PyErr_SetString(PyExc_ValueError, error.what());
  } catch (const std::overflow_error& error) {
    PyErr_SetString(PyExc_OverflowError, error.what());
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
}

}  // namespace kiln::python
