// SPDX-License-Identifier: Apache-2.0
#include "ops/frame/text_column.h"

#include <algorithm>

#include "ops/frame/arrange.h"

namespace heddle::ops {

Result<Column> TextColumn(std::span<const std::optional<std::string>> cells) {
  int64_t bytes = 0;
  bool may_miss = false;
  for (const std::optional<std::string>& cell : cells) {
    bytes += cell ? static_cast<int64_t>(cell->size()) : 0;
    may_miss = may_miss || !cell;
  }
  const auto rows = static_cast<int64_t>(cells.size());
  HEDDLE_ASSIGN_OR_RETURN(Column column, Column::Make(ColumnType::kString, rows, bytes, may_miss));
  int64_t at = 0;
  column.mutable_offsets()[0] = 0;
  for (int64_t i = 0; i < rows; ++i) {
    if (const std::optional<std::string>& cell = cells[static_cast<size_t>(i)]) {
      std::copy(cell->begin(), cell->end(), column.mutable_texts() + at);
      at += static_cast<int64_t>(cell->size());
    } else {
      column.mutable_missing()[i] = 1;
    }
    column.mutable_offsets()[i + 1] = at;
  }
  return column;
}

std::optional<std::string> TextOfCell(const Frame& frame, int64_t row, int64_t column) {
  if (frame.IsMissing(row, column)) return std::nullopt;
  std::string text;
  frame.AppendText(row, column, &text);
  return text;
}

std::shared_ptr<const Schema> SchemaOfTexts(int64_t columns) {
  return std::make_shared<const Schema>(Schema{
      std::vector<ColumnType>(static_cast<size_t>(columns), ColumnType::kString), CountedNames(columns)});
}

}  // namespace heddle::ops
