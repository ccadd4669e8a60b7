// Kiln's exceptions as Python's (`kiln/errors.py`).
#pragma once

#include <nanobind/nanobind.h>

#include <exception>
#include <memory>
#include <vector>

#include "kiln/error.h"

namespace kiln::python {

/// As `kiln.Diagnostic`s.
nanobind::list diagnostics_list(const std::vector<Diagnostic>& diagnostics);

/// An error that Python code has raised, on its way to Python through code that knows nothing of Python, such as MLX's,
/// or from one of Kiln's modules to another. These may be built with different versions of nanobind, whose own
/// exception then is not the other's.
class RaisedInPython : public std::exception {
 public:
  /// Takes the error that is set. The interpreter's lock is held.
  RaisedInPython();

  const char* what() const noexcept override { return "an error that Python code has raised"; }
  /// Sets the error again. The interpreter's lock is held.
  void restore() const;

 private:
  std::shared_ptr<PyObject> error_;
};

/// Makes nanobind translate Kiln's exceptions, in every module that shares this one's nanobind domain.
void register_exceptions();

/// Makes what Python's signal handlers raise, as Ctrl-C's does, end launches and compilations. Python runs them on its
/// main thread.
void let_signals_interrupt();

/// In a handler of an exception, in a function that Python calls without nanobind in between: sets the Python error
/// that nanobind would have set.
void set_error_from_exception();

}  // namespace kiln::python
