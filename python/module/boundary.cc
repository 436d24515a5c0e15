// SPDX-License-Identifier: Apache-2.0
#include "python/module/boundary.h"

#include <structmember.h>

#include <cstddef>

#include "python/module/errors.h"

namespace heddle::python {
namespace {

// An instance has a __dict__, so that functools.update_wrapper() gives it the name, the text and the
// signature of the function.
struct Boundary {
  PyObject_HEAD PyObject* function;
  PyObject* attributes;
};

Boundary* Self(PyObject* object) { return reinterpret_cast<Boundary*>(object); }

PyObject* New(PyTypeObject* type, PyObject* arguments, PyObject*) {
  PyObject* function = nullptr;
  if (!PyArg_ParseTuple(arguments, "O:Boundary", &function)) return nullptr;
  const auto allocate = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc));
  PyObject* const self = allocate(type, 0);
  if (self == nullptr) return nullptr;
  Py_INCREF(function);
  Self(self)->function = function;
  Self(self)->attributes = nullptr;
  return self;
}

int Traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Self(self)->function);
  Py_VISIT(Self(self)->attributes);
  Py_VISIT(Py_TYPE(self));
  return 0;
}

int Clear(PyObject* self) {
  Py_CLEAR(Self(self)->function);
  Py_CLEAR(Self(self)->attributes);
  return 0;
}

void Deallocate(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  Clear(self);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

PyObject* Call(PyObject* self, PyObject* arguments, PyObject* keywords) {
  PyObject* const result = PyObject_Call(Self(self)->function, arguments, keywords);
  if (result != nullptr) return result;
  if (PyErr_ExceptionMatches(PyExc_MemoryError) != 0) MakeMemoryErrorOurs();
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (value != nullptr) PyException_SetTraceback(value, Py_None);
  Py_XDECREF(traceback);
  PyErr_Restore(type, value, nullptr);
  return nullptr;
}

// types.MethodType, which the stable ABI does not have; kept for ever.
PyObject* MethodType() {
  static PyObject* method_type = nullptr;
  if (method_type == nullptr) {
    const Owned types(PyImport_ImportModule("types"));
    if (types != nullptr) method_type = PyObject_GetAttrString(types.get(), "MethodType");
  }
  return method_type;
}

// As methods are: types.MethodType(self, instance).
PyObject* Get(PyObject* self, PyObject* instance, PyObject*) {
  if (instance == nullptr || instance == Py_None) {
    Py_INCREF(self);
    return self;
  }
  PyObject* const method_type = MethodType();
  return method_type == nullptr ? nullptr
                                : PyObject_CallFunctionObjArgs(method_type, self, instance, nullptr);
}

// Of a function of the library its signature, which says more than an address: <function heddle.lm(X, y)>.
PyObject* Represent(PyObject* self) {
  const Owned name(PyObject_GetAttrString(self, "__qualname__")),
      module(PyObject_GetAttrString(self, "__module__")),
      signature(PyObject_GetAttrString(self, "__signature__"));
  PyErr_Clear();
  if (name == nullptr || module == nullptr) return PyObject_Repr(Self(self)->function);
  if (signature == nullptr) return PyUnicode_FromFormat("<function %S.%S>", module.get(), name.get());
  return PyUnicode_FromFormat("<function %S.%S%S>", module.get(), name.get(), signature.get());
}

PyMemberDef members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(Boundary, attributes), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
PyGetSetDef properties[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

}  // namespace

bool AddBoundaryType(PyObject* module) {
  static PyType_Slot slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(New)},
      {Py_tp_dealloc, reinterpret_cast<void*>(Deallocate)},
      {Py_tp_traverse, reinterpret_cast<void*>(Traverse)},
      {Py_tp_clear, reinterpret_cast<void*>(Clear)},
      {Py_tp_call, reinterpret_cast<void*>(Call)},
      {Py_tp_repr, reinterpret_cast<void*>(Represent)},
      {Py_tp_descr_get, reinterpret_cast<void*>(Get)},
      {Py_tp_members, members},
      {Py_tp_getset, properties},
      {Py_tp_doc, const_cast<char*>("A function of which an error ends in the line that called it.")},
      {0, nullptr},
  };
  // Named as help() is to call it: "function in module heddle".
  static PyType_Spec spec = {"heddle._engine.function", sizeof(Boundary), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};
  const Owned type(PyType_FromSpec(&spec));
  return type != nullptr && PyModule_AddObjectRef(module, "Boundary", type.get()) == 0;
}

}  // namespace heddle::python
