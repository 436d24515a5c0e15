// SPDX-License-Identifier: Apache-2.0
#pragma once

// CPython's stable ABI of version 3.10: one file of code serves every later version (docs/decisions/0008).
#define Py_LIMITED_API 0x030a0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <memory>
#include <string>
#include <utility>

#include "core/status.h"

namespace heddle::python {

/// Gives a reference back. Whoever destroys it holds the interpreter's lock.
struct GiveBack {
  void operator()(PyObject* object) const { Py_XDECREF(object); }
};
/// A reference of our own; empty where Python has set an error.
using Owned = std::unique_ptr<PyObject, GiveBack>;

/// Another reference to an object that somebody else holds.
inline Owned Share(PyObject* object) {
  Py_XINCREF(object);
  return Owned(object);
}

/// Holds the interpreter's lock while it lives, on any thread.
class InterpreterLock {
 public:
  InterpreterLock() : state_(PyGILState_Ensure()) {}
  ~InterpreterLock() { PyGILState_Release(state_); }
  InterpreterLock(const InterpreterLock&) = delete;
  InterpreterLock& operator=(const InterpreterLock&) = delete;

 private:
  PyGILState_STATE state_;
};

inline Owned ToText(std::string_view text) {
  return Owned(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

}  // namespace heddle::python
