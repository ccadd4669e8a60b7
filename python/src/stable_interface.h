// What Python's stable interface lacks of what the modules use: there are functions for it, where Python's own headers
// have macros that look into the objects. `_core` for Pythons that came later than this one is built so
// (tools/build_wheels.py). It is right, and slower: kernels are called by `__call__`, too.
#pragma once

#include <Python.h>

#ifdef Py_LIMITED_API

// NOLINTBEGIN(readability-identifier-naming): as Python names them
namespace kiln::python {

inline Py_ssize_t PyTuple_GET_SIZE(PyObject* tuple) { return PyTuple_Size(tuple); }
inline PyObject* PyTuple_GET_ITEM(PyObject* tuple, Py_ssize_t i) { return PyTuple_GetItem(tuple, i); }
inline void PyTuple_SET_ITEM(PyObject* tuple, Py_ssize_t i, PyObject* item) { PyTuple_SetItem(tuple, i, item); }
inline Py_ssize_t PyList_GET_SIZE(PyObject* list) { return PyList_Size(list); }
inline PyObject* PyList_GET_ITEM(PyObject* list, Py_ssize_t i) { return PyList_GetItem(list, i); }
inline void PyList_SET_ITEM(PyObject* list, Py_ssize_t i, PyObject* item) { PyList_SetItem(list, i, item); }
inline double PyFloat_AS_DOUBLE(PyObject* number) { return PyFloat_AsDouble(number); }
inline PyObject* PyObject_CallOneArg(PyObject* function, PyObject* argument) {
  return PyObject_CallFunctionObjArgs(function, argument, nullptr);
}

}  // namespace kiln::python
// NOLINTEND(readability-identifier-naming)

#endif
