// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <optional>
#include <string>
#include <string_view>

#include "core/status.h"
#include "python/module/object.h"

namespace heddle::python {

/// The exceptions are classes of python/heddle/_errors.py, which hands them over: `make(code, text, message,
/// file, line, column, notes)` returns one.
void SetErrorMaker(PyObject* make);

/// Sets the exception that a failure is. Returns nullptr, for `return Raise(...)`.
PyObject* Raise(const Status& status);

/// Sets the exception that an exception of C++ is, heddle.ResourceError for want of memory; to be called
/// where that is caught. Returns nullptr.
PyObject* RaiseCaught();

/// The MemoryError that is set becomes heddle.ResourceError, if it is of Python or NumPy.
void MakeMemoryErrorOurs();

/// What CPython calls for a function that may throw: Guarded<Run>. An interpreter that ends unwinds threads
/// through here as well, which is no std::exception and goes on.
template <auto function>
struct Guard;
template <typename... Arguments, PyObject* (*function)(Arguments...)>
struct Guard<function> {
  static PyObject* Call(Arguments... arguments) {
    try {
      return function(arguments...);
    } catch (const std::exception&) {
      return RaiseCaught();
    }
  }
};
template <auto function>
constexpr auto Guarded = &Guard<function>::Call;

/// The bytes of a `str` in UTF-8, which live as long as the object. Empty, with an error set in Python, for
/// anything else, and for a text with half of a surrogate pair, which UTF-8 does not have.
std::optional<std::string_view> BytesOfText(PyObject* object);

/// A copy of them; false with an error set in Python.
bool TextOf(PyObject* object, std::string* text);

/// A path as the system has it, from a `str`, `bytes` or `os.PathLike`; false with an error set in Python.
bool PathOf(PyObject* object, std::string* path);

}  // namespace heddle::python
