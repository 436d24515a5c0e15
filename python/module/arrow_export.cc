// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "python/module/arrow.h"
#include "python/module/arrow_structures.h"

namespace heddle::python {
namespace {

constexpr uint8_t kAllValid = 0;

// A column as an array: the frame's own memory, but for marks and booleans, which Arrow has as bits.
struct ColumnArray {
  Column column;
  std::vector<uint8_t> valid, booleans;
  std::vector<const void*> buffers;
  ArrowArray array{};
};
struct Batch {
  std::vector<std::unique_ptr<ColumnArray>> columns;
  std::vector<ArrowArray*> children;
  const void* no_buffer = nullptr;
};
struct ColumnSchema {
  std::string name, format;
  ArrowSchema schema{};
};
struct Columns {
  std::vector<std::unique_ptr<ColumnSchema>> columns;
  std::vector<ArrowSchema*> children;
};
struct Stream {
  Frame frame;
  bool is_read = false;
};

std::string FormatOf(const Column& column) {
  switch (column.storage()) {
    case ColumnStorage::kDoubles: return "g";
    case ColumnStorage::kIntegers: return "l";
    case ColumnStorage::kBooleans: return "b";
    case ColumnStorage::kTexts: return "U";
  }
  return "n";
}

template <typename IsSet>
std::vector<uint8_t> Bits(int64_t rows, const IsSet& is_set) {
  std::vector<uint8_t> bits(static_cast<size_t>(rows / 8 + 1), 0);
  for (int64_t row = 0; row < rows; ++row)
    if (is_set(row)) bits[static_cast<size_t>(row / 8)] |= static_cast<uint8_t>(1u << (row % 8));
  return bits;
}

std::unique_ptr<ColumnArray> ArrayOf(Column column) {
  auto made = std::make_unique<ColumnArray>();
  made->column = std::move(column);
  const Column& cells = made->column;
  int64_t missing = 0;
  if (cells.MayMiss()) {
    made->valid = Bits(cells.rows(), [&](int64_t row) { return !cells.IsMissing(row); });
    for (int64_t row = 0; row < cells.rows(); ++row) missing += cells.IsMissing(row) ? 1 : 0;
  }
  made->buffers.push_back(missing > 0 ? made->valid.data() : nullptr);
  switch (cells.storage()) {
    case ColumnStorage::kDoubles: made->buffers.push_back(cells.doubles()); break;
    case ColumnStorage::kIntegers: made->buffers.push_back(cells.integers()); break;
    case ColumnStorage::kBooleans:
      made->booleans = Bits(cells.rows(), [&](int64_t row) { return cells.booleans()[row] != 0; });
      made->buffers.push_back(made->booleans.data());
      break;
    case ColumnStorage::kTexts:
      made->buffers.push_back(cells.offsets());
      made->buffers.push_back(cells.texts() != nullptr ? static_cast<const void*>(cells.texts())
                                                       : &kAllValid);
      break;
  }
  made->array = {.length = cells.rows(),
                 .null_count = missing,
                 .offset = 0,
                 .n_buffers = static_cast<int64_t>(made->buffers.size()),
                 .n_children = 0,
                 .buffers = made->buffers.data(),
                 .children = nullptr,
                 .dictionary = nullptr,
                 .release = [](ArrowArray* array) { array->release = nullptr; },
                 .private_data = nullptr};
  return made;
}

void ReleaseBatch(ArrowArray* array) {
  delete static_cast<Batch*>(array->private_data);
  array->release = nullptr;
}

void ReleaseSchema(ArrowSchema* schema) {
  delete static_cast<Columns*>(schema->private_data);
  schema->release = nullptr;
}

int GetSchema(ArrowArrayStream* stream, ArrowSchema* out) {
  const Frame& frame = static_cast<Stream*>(stream->private_data)->frame;
  auto columns = std::make_unique<Columns>();
  for (int64_t i = 0; i < frame.columns(); ++i) {
    auto column = std::make_unique<ColumnSchema>();
    column->name = frame.schema()->NameOf(i);
    column->format = FormatOf(frame.column(i));
    column->schema = {.format = column->format.c_str(),
                      .name = column->name.c_str(),
                      .metadata = nullptr,
                      .flags = kArrowNullable,
                      .n_children = 0,
                      .children = nullptr,
                      .dictionary = nullptr,
                      .release = [](ArrowSchema* schema) { schema->release = nullptr; },
                      .private_data = nullptr};
    columns->children.push_back(&column->schema);
    columns->columns.push_back(std::move(column));
  }
  *out = {.format = "+s",
          .name = "",
          .metadata = nullptr,
          .flags = 0,
          .n_children = frame.columns(),
          .children = columns->children.data(),
          .dictionary = nullptr,
          .release = ReleaseSchema,
          .private_data = columns.get()};
  columns.release();
  return 0;
}

int GetNext(ArrowArrayStream* stream, ArrowArray* out) {
  Stream& state = *static_cast<Stream*>(stream->private_data);
  *out = {};
  if (std::exchange(state.is_read, true)) return 0;
  auto batch = std::make_unique<Batch>();
  for (int64_t i = 0; i < state.frame.columns(); ++i) {
    batch->columns.push_back(ArrayOf(state.frame.column(i)));
    batch->children.push_back(&batch->columns.back()->array);
  }
  *out = {.length = state.frame.rows(),
          .null_count = 0,
          .offset = 0,
          .n_buffers = 1,
          .n_children = state.frame.columns(),
          .buffers = &batch->no_buffer,
          .children = batch->children.data(),
          .dictionary = nullptr,
          .release = ReleaseBatch,
          .private_data = batch.get()};
  batch.release();
  return 0;
}

// What a library of C or Rust calls must not throw.
template <auto function, typename Filled>
int WithinMemory(ArrowArrayStream* stream, Filled* out) {
  try {
    return function(stream, out);
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
}

void ReleaseStream(ArrowArrayStream* stream) {
  delete static_cast<Stream*>(stream->private_data);
  stream->release = nullptr;
}

void ReleaseCapsule(PyObject* capsule) {
  auto* const stream = static_cast<ArrowArrayStream*>(PyCapsule_GetPointer(capsule, kArrowStreamName));
  if (stream == nullptr) return PyErr_Clear();
  if (stream->release != nullptr) stream->release(stream);
  delete stream;
}

}  // namespace

Owned FrameToArrow(const Frame& frame) {
  auto stream = std::make_unique<ArrowArrayStream>(
      ArrowArrayStream{.get_schema = WithinMemory<GetSchema, ArrowSchema>,
                       .get_next = WithinMemory<GetNext, ArrowArray>,
                       .get_last_error = [](ArrowArrayStream*) -> const char* { return nullptr; },
                       .release = ReleaseStream,
                       .private_data = new Stream{frame}});
  Owned capsule(PyCapsule_New(stream.get(), kArrowStreamName, ReleaseCapsule));
  if (capsule != nullptr) {
    stream.release();
  } else {
    ReleaseStream(stream.get());
  }
  return capsule;
}

}  // namespace heddle::python
