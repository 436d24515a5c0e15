// SPDX-License-Identifier: Apache-2.0
#include "engine/wire/frame_wire.h"

#include <algorithm>

#include "core/memory/counted_heap.h"
#include "core/values/sizes.h"
#include "engine/wire/bytes.h"

namespace heddle::engine {
namespace {

Status Malformed() { return DataLoss("the columns of a frame arrived malformed"); }

// Of the cells of a column of `rows` rows; nothing travels of one without rows.
int64_t CellBytes(ColumnStorage storage, int64_t rows) {
  switch (storage) {
    case ColumnStorage::kDoubles:
    case ColumnStorage::kIntegers: return rows * 8;
    case ColumnStorage::kBooleans: return rows;
    case ColumnStorage::kTexts: return rows == 0 ? 0 : (rows + 1) * 8;
  }
  HEDDLE_CHECK(false, "cells of every storage have a size");
}

bool AreTruthValues(const uint8_t* bytes, int64_t count) {
  return std::all_of(bytes, bytes + count, [](uint8_t byte) { return byte <= 1; });
}

}  // namespace

std::string EncodeColumns(const heddle::Frame& frame) {
  const Schema& schema = *frame.schema();
  std::string out;
  Append(&out, static_cast<uint64_t>(frame.columns()));
  Append(&out, static_cast<uint8_t>(!schema.names.empty()));
  for (int64_t j = 0; j < frame.columns(); ++j) {
    const Column column = frame.column(j);
    Append(&out, static_cast<uint8_t>(column.type()));
    Append(&out, static_cast<uint8_t>(column.MayMiss()));
    Append(&out, column.text_bytes());
    if (!schema.names.empty()) AppendText(&out, schema.names[static_cast<size_t>(j)]);
  }
  return out;
}

std::vector<ColumnPart> PartsOf(const heddle::Frame& frame) {
  std::vector<ColumnPart> parts;
  if (frame.rows() == 0) return parts;
  for (int64_t j = 0; j < frame.columns(); ++j) {
    const Column column = frame.column(j);
    parts.push_back({column.doubles(), CellBytes(column.storage(), column.rows())});
    if (column.storage() == ColumnStorage::kTexts)
      parts.push_back({column.texts() + column.offsets()[0], column.text_bytes()});
    if (column.MayMiss()) parts.push_back({column.missing(), column.rows()});
  }
  return parts;
}

Status IncomingFrame::Begin(int64_t rows, int64_t schema_bytes) {
  rows_ = rows;
  return WithinMemory("a frame from another worker", [&] {
    schema_.resize(static_cast<size_t>(schema_bytes));
    return OkStatus();
  });
}

void IncomingFrame::AddPart(void* data, int64_t bytes) {
  if (bytes == 0) return;
  parts_.push_back(
      {static_cast<uint64_t>(bytes_), static_cast<uint64_t>(bytes), static_cast<uint8_t*>(data)});
  bytes_ += bytes;
}

Status IncomingFrame::MakeColumn(std::string_view* in, bool is_named) {
  uint8_t type = 0;
  uint8_t may_miss = 0;
  int64_t text_bytes = 0;
  std::string name;
  if (!Take(in, &type) || type >= kColumnTypes || !Take(in, &may_miss) || may_miss > 1 ||
      !Take(in, &text_bytes) || text_bytes < 0 || text_bytes > kMostLength ||
      (is_named && !TakeText(in, &name)))
    return Malformed();
  const auto column_type = static_cast<ColumnType>(type);
  const bool holds_texts = StorageOf(column_type) == ColumnStorage::kTexts;
  if (text_bytes > 0 && (!holds_texts || rows_ == 0)) return Malformed();
  HEDDLE_ASSIGN_OR_RETURN(Column column, Column::Make(column_type, rows_, text_bytes, may_miss != 0));
  if (holds_texts && rows_ == 0) column.mutable_offsets()[0] = 0;
  AddPart(column.mutable_doubles(), CellBytes(column.storage(), rows_));
  AddPart(column.mutable_texts(), text_bytes);
  if (may_miss != 0) AddPart(column.mutable_missing(), rows_);
  types_.types.push_back(column_type);
  if (is_named) types_.names.push_back(std::move(name));
  columns_.push_back(std::move(column));
  text_bytes_.push_back(text_bytes);
  return OkStatus();
}

Status IncomingFrame::MakeColumns() {
  if (is_made_) return OkStatus();
  is_made_ = true;
  std::string_view in = schema_;
  uint64_t columns = 0;
  uint8_t is_named = 0;
  if (!Take(&in, &columns) || !Take(&in, &is_named) || is_named > 1 || columns > in.size())
    return Malformed();
  // Without columns a frame has no rows.
  if (columns == 0 && rows_ != 0) return Malformed();
  for (uint64_t j = 0; j < columns; ++j)
    HEDDLE_RETURN_IF_ERROR(
        WithinMemory("a frame from another worker", [&] { return MakeColumn(&in, is_named != 0); }));
  return in.empty() ? OkStatus() : Malformed();
}

Result<uint8_t*> IncomingFrame::Place(uint64_t offset, uint64_t size) {
  const auto behind = std::upper_bound(parts_.begin(), parts_.end(), offset,
                                       [](uint64_t wanted, const Part& part) { return wanted < part.begin; });
  if (behind == parts_.begin()) return Malformed();
  const Part& part = *(behind - 1);
  const uint64_t at = offset - part.begin;
  if (at > part.bytes || size > part.bytes - at) return Malformed();
  return part.data + at;
}

Result<heddle::Frame> IncomingFrame::Finish() {
  for (size_t j = 0; j < columns_.size(); ++j) {
    Column& column = columns_[j];
    if (column.storage() == ColumnStorage::kTexts && rows_ > 0)
      HEDDLE_RETURN_IF_ERROR(
          StartAtZero(column.mutable_offsets(), rows_, text_bytes_[j], "a column of texts"));
    if ((column.storage() == ColumnStorage::kBooleans && !AreTruthValues(column.booleans(), rows_)) ||
        (column.MayMiss() && !AreTruthValues(column.missing(), rows_)))
      return DataLoss("a column arrived with truth values that are neither 0 nor 1");
  }
  return heddle::Frame(std::make_shared<const Schema>(std::move(types_)), std::move(columns_));
}

Status StartAtZero(int64_t* offsets, int64_t rows, int64_t entries, const char* what) {
  const int64_t first = offsets[0];
  for (int64_t row = 0; row <= rows; ++row) {
    offsets[row] -= first;
    if (offsets[row] < 0 || offsets[row] > entries || (row > 0 && offsets[row] < offsets[row - 1]))
      return DataLoss("{} arrived with offsets that do not ascend", what);
  }
  if (offsets[rows] != entries) return DataLoss("{} arrived with the wrong number of entries", what);
  return OkStatus();
}

}  // namespace heddle::engine
