// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/status.h"
#include "python/module/object.h"

namespace heddle::python {

/// The exceptions are classes of python/heddle/_errors.py, which hands them over: `make(code, text, message,
/// file, line, column, notes)` returns one.
void SetErrorMaker(PyObject* make);

/// Sets the exception that a failure is. Returns nullptr, for `return Raise(...)`.
PyObject* Raise(const Status& status);

}  // namespace heddle::python
