// SPDX-License-Identifier: Apache-2.0
#include "python/module/errors.h"

#include "core/memory/counted_heap.h"

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

PyObject* RaiseCaught() {
  PyErr_Clear();
  try {
    return Raise(WithinMemory("values of Python", []() -> Status { throw; }));
  } catch (const std::exception&) {  // no memory for the message either
    return PyErr_NoMemory();
  }
}

void MakeMemoryErrorOurs() {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (value == nullptr || PyObject_HasAttrString(value, "exit_code") != 0)
    return PyErr_Restore(type, value, traceback);
  const Owned text(PyObject_Str(value));
  for (PyObject* part : {type, value, traceback}) Py_XDECREF(part);
  std::string why;
  if (text == nullptr || !TextOf(text.get(), &why)) PyErr_Clear();
  Raise(ResourceExhausted("out of memory: {}", why.empty() ? "Python gets no more from the machine" : why));
}

std::optional<std::string_view> BytesOfText(PyObject* object) {
  Py_ssize_t size = 0;
  const char* const bytes = PyUnicode_AsUTF8AndSize(object, &size);
  if (bytes != nullptr) return std::string_view(bytes, static_cast<size_t>(size));
  if (PyErr_ExceptionMatches(PyExc_UnicodeError) != 0) {
    PyErr_Clear();
    Raise(Usage("a text has half of a surrogate pair, which UTF-8 does not have"));
  } else if (PyErr_ExceptionMatches(PyExc_TypeError) != 0) {
    PyErr_Clear();
    Raise(Usage("a text is needed, not a value of another type"));
  }
  return std::nullopt;
}

bool TextOf(PyObject* object, std::string* text) {
  const std::optional<std::string_view> bytes = BytesOfText(object);
  if (bytes) text->assign(*bytes);
  return bytes.has_value();
}

bool PathOf(PyObject* object, std::string* path) {
  PyObject* encoded = nullptr;
  if (PyUnicode_FSConverter(object, &encoded) == 0) return false;
  const Owned bytes(encoded);
  path->assign(PyBytes_AsString(encoded), static_cast<size_t>(PyBytes_Size(encoded)));
  return true;
}

}  // namespace heddle::python
