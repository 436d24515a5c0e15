// SPDX-License-Identifier: Apache-2.0
#include "python/module/values.h"

#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "core/values/schema.h"
#include "python/module/arrow.h"
#include "python/module/errors.h"
#include "python/module/release_queue.h"

namespace heddle::python {
namespace {

PyTypeObject* value_type = nullptr;  // set once, while the module is imported

struct ValueObject {
  PyObject_HEAD engine::HostValue value;
};

engine::HostValue& ValueOf(PyObject* object) { return reinterpret_cast<ValueObject*>(object)->value; }

// --- the type Value ---

Owned NewValue(engine::HostValue value) {
  const auto allocate = reinterpret_cast<allocfunc>(PyType_GetSlot(value_type, Py_tp_alloc));
  Owned self(allocate(value_type, 0));
  if (self != nullptr) new (&ValueOf(self.get())) engine::HostValue(std::move(value));
  return self;
}

void Deallocate(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  ValueOf(self).~HostValue();
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

const char* KindOf(const engine::HostValue& value) {
  if (value.list != nullptr) return "list";
  switch (value.value.kind()) {
    case Value::Kind::kScalar: return "scalar";
    case Value::Kind::kMatrix: return value.value.matrix().IsSparse() ? "csr" : "dense";
    case Value::Kind::kFrame: return "frame";
    case Value::Kind::kPanels: return "panels";
  }
  return "";
}

PyObject* Kind(PyObject* self, void*) { return PyUnicode_FromString(KindOf(ValueOf(self))); }

PyObject* ShapeOf(PyObject* self, void*) {
  const engine::HostValue& value = ValueOf(self);
  if (value.list != nullptr) return Py_BuildValue("(n)", static_cast<Py_ssize_t>(value.list->size()));
  const Shape shape = value.value.shape();
  return Py_BuildValue("(LL)", static_cast<long long>(shape.rows), static_cast<long long>(shape.columns));
}

PyObject* ElementTypeOf(PyObject* self, void*) {
  const engine::HostValue& value = ValueOf(self);
  if (value.list != nullptr || !value.value.IsMatrix()) Py_RETURN_NONE;
  return PyUnicode_FromString(value.value.matrix().element_type() == ElementType::kFloat64 ? "f8" : "f4");
}

PyObject* Bytes(PyObject* self, void*) {
  const engine::HostValue& value = ValueOf(self);
  return PyLong_FromLongLong(value.list != nullptr ? 0 : value.value.bytes());
}

// True where nobody else can see the cells of this dense matrix, so that Python may write to them.
PyObject* HoldsCellsAlone(PyObject* self, void*) {
  const engine::HostValue& value = ValueOf(self);
  return PyBool_FromLong(value.list == nullptr && value.value.IsMatrix() &&
                         !value.value.matrix().IsSparse() && value.value.matrix().HoldsCellsAlone());
}

PyObject* Address(const void* pointer) { return PyLong_FromVoidPtr(const_cast<void*>(pointer)); }

// (cells), (values, column indexes, row offsets, stored), addresses as integers.
PyObject* Buffers(PyObject* self, PyObject*) {
  const engine::HostValue& value = ValueOf(self);
  if (value.list != nullptr || !value.value.IsMatrix()) {
    PyErr_SetString(PyExc_TypeError, "only matrices have buffers");
    return nullptr;
  }
  const Matrix& matrix = value.value.matrix();
  if (!matrix.IsSparse()) return Py_BuildValue("(N)", Address(matrix.data<char>()));
  // A panel of rows has its entries from its first offset on.
  const int64_t first = matrix.rows() == 0 ? 0 : matrix.row_offsets()[0];
  return Py_BuildValue("(NNNL)", Address(matrix.values<char>() + first * BytesOf(matrix.element_type())),
                       Address(matrix.column_indexes() + first), Address(matrix.row_offsets()),
                       static_cast<long long>(matrix.stored()));
}

// (names, [(type, cells, texts, bytes of texts, missing), ...])
PyObject* Columns(PyObject* self, PyObject*) {
  const engine::HostValue& value = ValueOf(self);
  if (value.list != nullptr || !value.value.IsFrame()) {
    PyErr_SetString(PyExc_TypeError, "only frames have columns");
    return nullptr;
  }
  const Frame& frame = value.value.frame();
  Owned names(PyList_New(0)), columns(PyList_New(0));
  for (int64_t i = 0; i < frame.columns(); ++i) {
    const Column column = frame.column(i);
    const Owned name = ToText(frame.schema()->NameOf(i));
    const bool is_text = column.storage() == ColumnStorage::kTexts;
    const std::string type(Name(column.type()));
    const void* const cells =
        is_text                                        ? static_cast<const void*>(column.offsets())
        : column.storage() == ColumnStorage::kDoubles  ? static_cast<const void*>(column.doubles())
        : column.storage() == ColumnStorage::kIntegers ? static_cast<const void*>(column.integers())
                                                       : static_cast<const void*>(column.booleans());
    const Owned entry(Py_BuildValue("(sNNLN)", type.c_str(), Address(cells),
                                    Address(is_text ? column.texts() : nullptr),
                                    static_cast<long long>(column.text_bytes()), Address(column.missing())));
    if (name == nullptr || entry == nullptr || PyList_Append(names.get(), name.get()) < 0 ||
        PyList_Append(columns.get(), entry.get()) < 0)
      return nullptr;
  }
  return Py_BuildValue("(OO)", names.get(), columns.get());
}

// arrow_stream() -> capsule
PyObject* ArrowStream(PyObject* self, PyObject*) {
  const engine::HostValue& value = ValueOf(self);
  if (value.list == nullptr && value.value.IsFrame()) return FrameToArrow(value.value.frame()).release();
  PyErr_SetString(PyExc_TypeError, "only frames are tables of Arrow");
  return nullptr;
}

// texts(column) -> [str or None, ...]
PyObject* Texts(PyObject* self, PyObject* argument) {
  const engine::HostValue& value = ValueOf(self);
  const int64_t index = PyLong_AsLongLong(argument);
  if (index == -1 && PyErr_Occurred() != nullptr) return nullptr;
  if (value.list != nullptr || !value.value.IsFrame() || index < 0 ||
      index >= value.value.frame().columns() ||
      value.value.frame().column(index).storage() != ColumnStorage::kTexts) {
    PyErr_SetString(PyExc_IndexError, "no column of texts has this number");
    return nullptr;
  }
  const Column column = value.value.frame().column(index);
  Owned list(PyList_New(static_cast<Py_ssize_t>(column.rows())));
  for (int64_t row = 0; row < column.rows() && list != nullptr; ++row) {
    Owned text = column.IsMissing(row) ? Share(Py_None) : ToText(column.TextAt(row));
    if (text == nullptr || PyList_SetItem(list.get(), static_cast<Py_ssize_t>(row), text.release()) < 0)
      return nullptr;
  }
  return list.release();
}

// (names or None, [element, ...])
PyObject* Elements(PyObject* self, PyObject*) {
  const engine::HostValue& value = ValueOf(self);
  if (value.list == nullptr) {
    PyErr_SetString(PyExc_TypeError, "only lists have elements");
    return nullptr;
  }
  Owned elements(PyList_New(0)), names = value.list->names.empty() ? Share(Py_None) : Owned(PyList_New(0));
  for (const engine::HostValue& element : value.list->elements) {
    const Owned object = ToPython(element);
    if (object == nullptr || PyList_Append(elements.get(), object.get()) < 0) return nullptr;
  }
  for (const std::string& name : value.list->names) {
    const Owned text = ToText(name);
    if (text == nullptr || PyList_Append(names.get(), text.get()) < 0) return nullptr;
  }
  return Py_BuildValue("(OO)", names.get(), elements.get());
}

PyGetSetDef properties[] = {
    {"kind", Kind, nullptr, "'dense', 'csr', 'frame' or 'list'", nullptr},
    {"shape", ShapeOf, nullptr, "rows and columns; of a list its length", nullptr},
    {"element_type", ElementTypeOf, nullptr, "'f8' or 'f4' of a matrix", nullptr},
    {"nbytes", Bytes, nullptr, "bytes of its cells", nullptr},
    {"holds_cells_alone", HoldsCellsAlone, nullptr, "whether nobody else can see its dense cells", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMethodDef methods[] = {
    {"buffers", Guarded<Buffers>, METH_NOARGS, "Addresses of the arrays of a matrix."},
    {"columns", Guarded<Columns>, METH_NOARGS, "Names and arrays of the columns of a frame."},
    {"texts", Guarded<Texts>, METH_O, "The texts of a column of a frame, None where one is missing."},
    {"arrow_stream", Guarded<ArrowStream>, METH_NOARGS,
     "The frame as a capsule of Arrow's C stream interface."},
    {"elements", Guarded<Elements>, METH_NOARGS, "Names and elements of a list."},
    {nullptr, nullptr, 0, nullptr},
};

// --- inputs ---

// nullptr with an error set.
const void* AddressOf(PyObject* object) { return PyLong_AsVoidPtr(object); }

// What is wrong with an input is an argument's fault (heddle.UsageError), unless memory is short.
bool Fail(const Status& status) {
  Raise(status.code() == StatusCode::kResourceExhausted ? status : status.WithCode(StatusCode::kUsage));
  return false;
}

std::optional<ElementType> ElementTypeNamed(const char* name) {
  const std::string_view text = name;
  if (text == "f8") return ElementType::kFloat64;
  if (text == "f4") return ElementType::kFloat32;
  PyErr_Format(PyExc_ValueError, "cells are f8 or f4, not %s", name);
  return std::nullopt;
}

bool DenseFromPython(PyObject* tuple, engine::HostValue* value) {
  PyObject *cells = nullptr, *owner = nullptr;
  long long rows = 0, columns = 0;
  const char *kind = nullptr, *type = nullptr;
  if (!PyArg_ParseTuple(tuple, "sOLLsO", &kind, &cells, &rows, &columns, &type, &owner)) return false;
  const void* const address = AddressOf(cells);
  if (PyErr_Occurred() != nullptr) return false;
  const std::optional<ElementType> element_type = ElementTypeNamed(type);
  if (!element_type) return false;
  std::function<void()> release = ReleaseLater(owner);
  Result<Matrix> matrix = Matrix::AdoptDense(address, rows, columns, *element_type, release);
  if (!matrix.ok()) {
    release();
    return Fail(matrix.status());
  }
  *value = std::move(*matrix);
  return true;
}

bool SparseFromPython(PyObject* tuple, engine::HostValue* value) {
  PyObject *values = nullptr, *columns_of_values = nullptr, *offsets = nullptr, *owner = nullptr;
  long long rows = 0, columns = 0;
  const char *kind = nullptr, *type = nullptr;
  if (!PyArg_ParseTuple(tuple, "sOOOLLsO", &kind, &values, &columns_of_values, &offsets, &rows, &columns,
                        &type, &owner))
    return false;
  const void* const value_address = AddressOf(values);
  const auto* const column_indexes = static_cast<const int32_t*>(AddressOf(columns_of_values));
  const auto* const row_offsets = static_cast<const int64_t*>(AddressOf(offsets));
  if (PyErr_Occurred() != nullptr) return false;
  const std::optional<ElementType> element_type = ElementTypeNamed(type);
  if (!element_type) return false;
  std::function<void()> release = ReleaseLater(owner);
  Result<Matrix> matrix =
      Matrix::AdoptSparse(value_address, column_indexes, row_offsets, rows, columns, *element_type, release);
  if (!matrix.ok()) {
    release();
    return Fail(matrix.status());
  }
  *value = std::move(*matrix);
  return true;
}

// ("texts", sequence of str or None): the bytes are copied one behind the other.
bool TextsFromPython(PyObject* sequence, Column* column) {
  const Py_ssize_t rows = PySequence_Size(sequence);
  if (rows < 0) return false;
  std::vector<Owned> texts;  // keeps what the views see
  std::vector<std::string_view> views;
  bool some_miss = false;
  int64_t bytes = 0;
  for (Py_ssize_t row = 0; row < rows; ++row) {
    Owned cell(PySequence_GetItem(sequence, row));
    if (cell == nullptr) return false;
    if (cell.get() == Py_None) {
      some_miss = true;
      views.push_back({});
    } else {
      const std::optional<std::string_view> text = BytesOfText(cell.get());
      if (!text) return false;
      views.push_back(*text);
      bytes += static_cast<int64_t>(text->size());
    }
    texts.push_back(std::move(cell));
  }
  Result<Column> made = Column::Make(ColumnType::kString, rows, bytes, some_miss);
  if (!made.ok()) return Fail(made.status());
  int64_t offset = 0;
  for (Py_ssize_t row = 0; row < rows; ++row) {
    const std::string_view text = views[static_cast<size_t>(row)];
    made->mutable_offsets()[row] = offset;
    text.copy(made->mutable_texts() + offset, text.size());
    offset += static_cast<int64_t>(text.size());
    if (some_miss) made->mutable_missing()[row] = texts[static_cast<size_t>(row)].get() == Py_None ? 1 : 0;
  }
  made->mutable_offsets()[rows] = offset;
  *column = std::move(*made);
  return true;
}

bool ColumnFromPython(PyObject* tuple, Column* column) {
  if (PyTuple_Size(tuple) == 2) {
    const char* kind = nullptr;
    PyObject* texts = nullptr;
    return PyArg_ParseTuple(tuple, "sO", &kind, &texts) && TextsFromPython(texts, column);
  }
  const char* type_name = nullptr;
  long long rows = 0;
  PyObject *cells = nullptr, *texts = nullptr, *missing = nullptr, *owner = nullptr;
  if (!PyArg_ParseTuple(tuple, "sLOOOO", &type_name, &rows, &cells, &texts, &missing, &owner)) return false;
  const std::optional<ColumnType> type = ParseColumnType(type_name);
  if (!type) {
    PyErr_Format(PyExc_ValueError, "no column has the type %s", type_name);
    return false;
  }
  const void* const cell_address = AddressOf(cells);
  const auto* const text_address = static_cast<const char*>(AddressOf(texts));
  const auto* const missing_address = static_cast<const uint8_t*>(AddressOf(missing));
  if (PyErr_Occurred() != nullptr) return false;
  std::function<void()> release = ReleaseLater(owner);
  Result<Column> adopted = Column::Adopt(*type, rows, cell_address, text_address, missing_address, release);
  if (!adopted.ok()) {
    release();
    return Fail(adopted.status());
  }
  *column = std::move(*adopted);
  return true;
}

bool FrameFromPython(PyObject* tuple, engine::HostValue* value) {
  const char* kind = nullptr;
  PyObject *names = nullptr, *columns = nullptr;
  if (!PyArg_ParseTuple(tuple, "sOO", &kind, &names, &columns)) return false;
  std::vector<std::string> column_names;
  std::vector<Column> column_values;
  for (Py_ssize_t i = 0; i < PySequence_Size(names); ++i) {
    const Owned name(PySequence_GetItem(names, i));
    if (name == nullptr || !TextOf(name.get(), &column_names.emplace_back())) return false;
  }
  for (Py_ssize_t i = 0; i < PySequence_Size(columns); ++i) {
    const Owned column(PySequence_GetItem(columns, i));
    if (column == nullptr || !ColumnFromPython(column.get(), &column_values.emplace_back())) return false;
  }
  if (PyErr_Occurred() != nullptr) return false;
  Result<Frame> frame = Frame::Of(std::move(column_names), std::move(column_values));
  if (!frame.ok()) return Fail(frame.status());
  *value = std::move(*frame);
  return true;
}

// ("arrow", capsule)
bool TableFromPython(PyObject* tuple, engine::HostValue* value) {
  const char* kind = nullptr;
  PyObject* capsule = nullptr;
  if (!PyArg_ParseTuple(tuple, "sO", &kind, &capsule)) return false;
  Result<Frame> frame = FrameFromArrow(capsule);
  if (!frame.ok()) return Fail(frame.status());
  *value = std::move(*frame);
  return true;
}

bool ListFromPython(PyObject* tuple, engine::HostValue* value) {
  const char* kind = nullptr;
  PyObject *names = nullptr, *elements = nullptr;
  if (!PyArg_ParseTuple(tuple, "sOO", &kind, &names, &elements)) return false;
  auto list = std::make_shared<ListOf<engine::HostValue>>();
  for (Py_ssize_t i = 0; i < PySequence_Size(elements); ++i) {
    const Owned element(PySequence_GetItem(elements, i));
    engine::HostValue converted;
    if (element == nullptr || !FromPython(element.get(), &converted)) return false;
    std::string name;
    if (names != Py_None) {
      const Owned text(PySequence_GetItem(names, i));
      if (text == nullptr || !TextOf(text.get(), &name)) return false;
    }
    if (Status status = list->Add(std::move(name), std::move(converted)); !status.ok()) return Fail(status);
  }
  if (PyErr_Occurred() != nullptr) return false;
  value->list = std::move(list);
  return true;
}

}  // namespace

bool AddValueType(PyObject* module) {
  static PyType_Slot slots[] = {
      {Py_tp_dealloc, reinterpret_cast<void*>(Deallocate)},
      {Py_tp_getset, properties},
      {Py_tp_methods, methods},
      {Py_tp_doc, const_cast<char*>("What a script has made, in the engine's memory.")},
      {0, nullptr},
  };
  static PyType_Spec spec = {"heddle._engine.Value", sizeof(ValueObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  Owned type(PyType_FromSpec(&spec));
  if (type == nullptr || PyModule_AddObjectRef(module, "Value", type.get()) < 0) return false;
  value_type = reinterpret_cast<PyTypeObject*>(type.release());
  return true;
}

Owned ToPython(engine::HostValue value) {
  if (value.list != nullptr || !value.value.IsScalar()) return NewValue(std::move(value));
  const Scalar& scalar = value.value.scalar();
  if (scalar.IsString()) return ToText(scalar.AsString());
  if (scalar.IsBoolean()) return Owned(PyBool_FromLong(scalar.AsBoolean()));
  if (scalar.IsInteger()) return Owned(PyLong_FromLongLong(scalar.AsInteger()));
  return Owned(PyFloat_FromDouble(scalar.AsDouble()));
}

bool FromPython(PyObject* object, engine::HostValue* value) {
  if (PyBool_Check(object)) {
    *value = Scalar(object == Py_True);
    return true;
  }
  if (PyLong_Check(object)) {
    const int64_t number = PyLong_AsLongLong(object);
    if (number == -1 && PyErr_Occurred() != nullptr) return false;
    *value = Scalar(number);
    return true;
  }
  if (PyFloat_Check(object)) {
    *value = Scalar(PyFloat_AsDouble(object));
    return true;
  }
  if (PyUnicode_Check(object)) {
    std::string text;
    if (!TextOf(object, &text)) return false;
    *value = Scalar(std::move(text));
    return true;
  }
  if (Py_TYPE(object) == value_type) {
    *value = ValueOf(object);
    return true;
  }
  std::string kind;
  if (PyTuple_Check(object) && PyTuple_Size(object) > 0) {
    PyObject* const first = PyTuple_GetItem(object, 0);
    if (PyUnicode_Check(first) && !TextOf(first, &kind)) return false;
  }
  if (kind == "dense") return DenseFromPython(object, value);
  if (kind == "csr") return SparseFromPython(object, value);
  if (kind == "frame") return FrameFromPython(object, value);
  if (kind == "arrow") return TableFromPython(object, value);
  if (kind == "list") return ListFromPython(object, value);
  PyErr_SetString(PyExc_TypeError, "no input of the engine");
  return false;
}

}  // namespace heddle::python
