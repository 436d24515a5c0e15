// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/column_builder.h"

#include <algorithm>
#include <optional>

#include "ops/io/formats/frame_cells.h"

namespace heddle::ops {

ColumnBuilder::ColumnBuilder(ColumnType type) : type_(type) {
  if (StorageOf(type_) == ColumnStorage::kTexts) numbers_.push_back(0);
}

void ColumnBuilder::MissUntil(int64_t rows) {
  if (rows_ >= rows) return;
  missing_.resize(static_cast<size_t>(rows_), 0);
  missing_.resize(static_cast<size_t>(rows), 1);
  const auto size = static_cast<size_t>(rows);
  switch (StorageOf(type_)) {
    case ColumnStorage::kDoubles: doubles_.resize(size, 0); break;
    case ColumnStorage::kTexts: numbers_.resize(size + 1, static_cast<int64_t>(texts_.size())); break;
    default: numbers_.resize(size, 0);
  }
  rows_ = rows;
}

bool ColumnBuilder::Add(std::string_view text) {
  switch (StorageOf(type_)) {
    case ColumnStorage::kDoubles: {
      const std::optional<double> x = DoubleInText(text, type_);
      if (!x) return false;
      doubles_.push_back(*x);
      ++rows_;
      return true;
    }
    case ColumnStorage::kIntegers: {
      const std::optional<int64_t> x = IntegerInText(text, type_);
      if (x) Append(*x);
      return x.has_value();
    }
    case ColumnStorage::kBooleans: {
      const std::optional<bool> x = BooleanInText(text);
      if (x) Append(*x);
      return x.has_value();
    }
    case ColumnStorage::kTexts:
      if (type_ == ColumnType::kCharacter && !IsOneCharacter(text)) return false;
      texts_.append(text);
      Append(0);
      return true;
  }
  return false;
}

Result<Column> ColumnBuilder::Finish(int64_t rows) {
  MissUntil(rows);
  HEDDLE_ASSIGN_OR_RETURN(Column column,
                          Column::Make(type_, rows_, static_cast<int64_t>(texts_.size()), !missing_.empty()));
  switch (column.storage()) {
    case ColumnStorage::kDoubles:
      std::copy(doubles_.begin(), doubles_.end(), column.mutable_doubles());
      break;
    case ColumnStorage::kIntegers:
      std::copy(numbers_.begin(), numbers_.end(), column.mutable_integers());
      break;
    case ColumnStorage::kBooleans:
      std::copy(numbers_.begin(), numbers_.end(), column.mutable_booleans());
      break;
    case ColumnStorage::kTexts:
      std::copy(numbers_.begin(), numbers_.end(), column.mutable_offsets());
      std::copy(texts_.begin(), texts_.end(), column.mutable_texts());
      break;
  }
  if (!missing_.empty()) std::copy(missing_.begin(), missing_.end(), column.mutable_missing());
  *this = ColumnBuilder(type_);  // Gives its memory back before the next column is made.
  return column;
}

void ColumnBuilder::Append(int64_t number) {
  switch (StorageOf(type_)) {
    case ColumnStorage::kDoubles: doubles_.push_back(static_cast<double>(number)); break;
    case ColumnStorage::kTexts: numbers_.push_back(static_cast<int64_t>(texts_.size())); break;
    default: numbers_.push_back(number);
  }
  ++rows_;
}

Result<Frame> FinishFrame(const std::shared_ptr<const Schema>& schema, int64_t rows,
                          std::vector<ColumnBuilder>* builders) {
  std::vector<Column> columns;
  for (ColumnBuilder& builder : *builders) {
    HEDDLE_ASSIGN_OR_RETURN(Column column, builder.Finish(rows));
    columns.push_back(std::move(column));
  }
  return Frame(schema, std::move(columns));
}

}  // namespace heddle::ops
