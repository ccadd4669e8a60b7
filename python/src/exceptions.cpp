#include "exceptions.h"

#include <nanobind/nanobind.h>

#include "core/diagnostic.h"
#include "kiln/error.h"

namespace nb = nanobind;

namespace kiln::python {
namespace {

nb::object error_class(const char* name) { return nb::module_::import_("kiln.errors").attr(name); }

nb::str as_str(std::string_view text) { return nb::str(text.data(), text.size()); }

nb::str to_str(const std::string& text) {
  // A kernel's text may be any bytes.
  return nb::steal<nb::str>(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

void raise(nb::handle type, const std::exception& error) { PyErr_SetObject(type.ptr(), to_str(error.what()).ptr()); }

void raise(const char* name, const std::exception& error) { raise(error_class(name), error); }

void raise_compile_error(const CompileError& error) {
  nb::object diagnostic_class = error_class("Diagnostic");
  nb::list diagnostics;
  for (const Diagnostic& d : error.report()->diagnostics)
    diagnostics.append(diagnostic_class(as_str(name_of(d.severity)), to_str(d.message), as_str(name_of(d.text)), d.line,
                                        d.column, to_str(d.source_line)));
  nb::object type = error_class("CompileError");
  nb::object exception =
      type(to_str(error.what()), diagnostics, to_str(error.report()->generated_source), to_str(error.report()->log));
  PyErr_SetObject(type.ptr(), exception.ptr());
}

void translate(const std::exception_ptr& pointer, void*) {
  try {
    std::rethrow_exception(pointer);
  } catch (const CompileError& error) {
    raise_compile_error(error);
  } catch (const UnsupportedError& error) {
    raise("UnsupportedError", error);
  } catch (const DeviceError& error) {
    raise("DeviceError", error);
  } catch (const InternalError& error) {
    raise("InternalError", error);
  } catch (const ValueError& error) {
    raise(nb::handle(PyExc_ValueError), error);
  } catch (const TypeError& error) {
    raise(nb::handle(PyExc_TypeError), error);
  }
}

}  // namespace

void register_exceptions() { nb::register_exception_translator(translate); }

}  // namespace kiln::python
