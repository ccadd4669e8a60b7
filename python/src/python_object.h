// Python objects as both modules read them.
#pragma once

#include <cxxabi.h>
#include <nanobind/nanobind.h>
#include <unistd.h>

#include <optional>
#include <string>

#include "stable_interface.h"

namespace kiln::python {

/// The name of an object's type with its module's, for messages: "int", "numpy.ndarray".
std::string kind_of(nanobind::handle object);

/// Whether it is True or False, or what NumPy's comparisons give.
bool is_bool(nanobind::handle object);

/// Whether other libraries take it for an array. Arrays of one element have `__index__` as well.
bool is_foreign_array(nanobind::handle object);

/// A str as messages have it: UTF-8, in which what UTF-8 cannot have is escaped.
std::string to_utf8(nanobind::handle text);

/// What `repr` gives, or the name of the type where that fails; the beginning of what is very long.
std::string shown(nanobind::handle object);

/// Whether the Python error that is set is one by which an object says that it is not what was asked for: what
/// `__index__`, `__float__`, `__len__` and `__iter__` raise where they cannot answer. Others are the caller's own.
bool is_refusal();

/// Throws a TypeError of Python's with this message. Where a Python error is set that is a refusal it becomes the
/// cause, and any other is thrown in its place.
[[noreturn]] void throw_type_error(const std::string& message);

/// An int of Python's: its value, or where 64 bits do not hold it, how messages show it.
struct Index {
  std::optional<int64_t> value;
  std::string text;
};

/// What `__index__` gives. Null, with a Python error set, where that fails.
std::optional<Index> index_of(nanobind::handle object);

/// Gives the interpreter's lock away for a scope in which nothing of Python is touched.
class WithoutLock {
 public:
  WithoutLock() : state_(PyEval_SaveThread()) {}
  WithoutLock(const WithoutLock&) = delete;
  WithoutLock& operator=(const WithoutLock&) = delete;
  // A daemon thread does not get the lock back once the interpreter shuts down. Before 3.14 Python ends it by unwinding
  // its stack, which ends the process in any function that throws nothing, as destructors are; so the thread stays
  // here until the process has ended, as it does since 3.14.
  ~WithoutLock() {
    try {
      PyEval_RestoreThread(state_);
    } catch (abi::__forced_unwind&) {
      for (;;) pause();
    }
  }

 private:
  PyThreadState* state_;
};

}  // namespace kiln::python
