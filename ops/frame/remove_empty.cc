// SPDX-License-Identifier: Apache-2.0
#include "ops/frame/remove_empty.h"

#include <algorithm>
#include <memory>

#include "ops/frame/arrange.h"
#include "ops/frame/empty_cell.h"
#include "ops/frame/text_column.h"

namespace heddle::ops {
namespace {

bool IsEmpty(const Column& column, int64_t row) {
  return IsMissingOrZero(column, row) ||
         (column.storage() == ColumnStorage::kTexts && column.TextAt(row) == "0");
}

Result<Column> RowsOf(const Column& column, std::span<const int64_t> kept) {
  const auto rows = static_cast<int64_t>(kept.size());
  int64_t bytes = 0;
  if (column.storage() == ColumnStorage::kTexts)
    for (const int64_t row : kept) bytes += static_cast<int64_t>(column.TextAt(row).size());
  HEDDLE_ASSIGN_OR_RETURN(Column result, Column::Make(column.type(), rows, bytes, column.MayMiss()));
  int64_t at = 0;
  if (column.storage() == ColumnStorage::kTexts) result.mutable_offsets()[0] = 0;
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t row = kept[static_cast<size_t>(i)];
    if (column.MayMiss()) result.mutable_missing()[i] = column.missing()[row];
    switch (column.storage()) {
      case ColumnStorage::kDoubles: result.mutable_doubles()[i] = column.doubles()[row]; break;
      case ColumnStorage::kIntegers: result.mutable_integers()[i] = column.integers()[row]; break;
      case ColumnStorage::kBooleans: result.mutable_booleans()[i] = column.booleans()[row]; break;
      case ColumnStorage::kTexts: {
        const std::string_view text = column.TextAt(row);
        std::copy(text.begin(), text.end(), result.mutable_texts() + at);
        at += static_cast<int64_t>(text.size());
        result.mutable_offsets()[i + 1] = at;
        break;
      }
    }
  }
  return result;
}

}  // namespace

std::vector<char> NotEmpty(const Frame& frame, bool rows) {
  std::vector<char> found(static_cast<size_t>(rows ? frame.rows() : frame.columns()), 0);
  for (int64_t j = 0; j < frame.columns(); ++j) {
    const Column column = frame.column(j);
    for (int64_t i = 0; i < frame.rows(); ++i)
      if (!IsEmpty(column, i)) found[static_cast<size_t>(rows ? i : j)] = 1;
  }
  return found;
}

Result<Frame> Gathered(const Frame& frame, bool rows, std::span<const int64_t> kept) {
  std::vector<Column> columns;
  if (!rows) {
    auto schema = std::make_shared<Schema>();
    for (const int64_t j : kept) {
      schema->types.push_back(frame.column(j).type());
      schema->names.push_back(frame.schema()->NameOf(j));
      columns.push_back(frame.column(j));
    }
    return Frame(std::move(schema), std::move(columns));
  }
  for (int64_t j = 0; j < frame.columns(); ++j) {
    HEDDLE_ASSIGN_OR_RETURN(Column column, RowsOf(frame.column(j), kept));
    columns.push_back(std::move(column));
  }
  return Frame(OfChangedCopy(frame.schema()), std::move(columns));
}

Result<Frame> NothingLeft(const Frame& frame, bool rows) {
  std::vector<Column> columns;
  if (!rows) {
    const std::vector<std::optional<std::string>> cells(static_cast<size_t>(frame.rows()));
    HEDDLE_ASSIGN_OR_RETURN(Column column, TextColumn(cells));
    columns.push_back(std::move(column));
    return Frame(SchemaOfTexts(1), std::move(columns));
  }
  for (int64_t j = 0; j < frame.columns(); ++j) {
    const ColumnType type = frame.column(j).type();
    const bool is_text = StorageOf(type) == ColumnStorage::kTexts;
    HEDDLE_ASSIGN_OR_RETURN(Column column, Column::Make(type, 1, 0, is_text));
    switch (StorageOf(type)) {
      case ColumnStorage::kDoubles: column.mutable_doubles()[0] = 0; break;
      case ColumnStorage::kIntegers: column.mutable_integers()[0] = 0; break;
      case ColumnStorage::kBooleans: column.mutable_booleans()[0] = 0; break;
      case ColumnStorage::kTexts:
        std::fill_n(column.mutable_offsets(), 2, int64_t{0});
        column.mutable_missing()[0] = 1;
        break;
    }
    columns.push_back(std::move(column));
  }
  return Frame(OfChangedCopy(frame.schema()), std::move(columns));
}

}  // namespace heddle::ops
