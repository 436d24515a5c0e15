// SPDX-License-Identifier: Apache-2.0
#include "python/module/errors.h"

namespace heddle::python {
namespace {

PyObject* error_maker = nullptr;  // set once, while the package is imported

Owned Texts(const std::vector<std::string>& texts) {
  Owned list(PyList_New(0));
  for (const std::string& text : texts) {
    const Owned element = ToText(text);
    if (element == nullptr || PyList_Append(list.get(), element.get()) < 0) return nullptr;
  }
  return list;
}

}  // namespace

void SetErrorMaker(PyObject* make) {
  Py_XDECREF(error_maker);
  Py_XINCREF(make);
  error_maker = make;
}

PyObject* Raise(const Status& status) {
  const Owned text = ToText(status.ToString()), message = ToText(status.message()),
              file = ToText(status.position().file), notes = Texts(status.notes());
  if (error_maker == nullptr || text == nullptr || message == nullptr || file == nullptr ||
      notes == nullptr) {
    if (PyErr_Occurred() == nullptr) PyErr_SetString(PyExc_RuntimeError, status.ToString().c_str());
    return nullptr;
  }
  const Owned error(PyObject_CallFunction(
      error_maker, "isOOOiiO", ExitCode(status), StatusCodeName(status.code()), text.get(), message.get(),
      file.get(), status.position().line, status.position().column, notes.get()));
  if (error == nullptr) return nullptr;
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.get())), error.get());
  return nullptr;
}

}  // namespace heddle::python
