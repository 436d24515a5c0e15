// SPDX-License-Identifier: Apache-2.0
#include "core/values/frame.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/memory/block_pool.h"
#include "core/text/double_text.h"
#include "core/values/sizes.h"

namespace heddle {
namespace {

// Bytes of the cells of a column: the offsets, where it holds texts.
int64_t CellBytes(ColumnStorage storage, int64_t rows) {
  switch (storage) {
    case ColumnStorage::kDoubles:
    case ColumnStorage::kIntegers: return SaturatingProduct(rows, 8);
    case ColumnStorage::kBooleans: return rows;
    case ColumnStorage::kTexts: return SaturatingProduct(SaturatingSum(rows, 1), 8);
  }
  HEDDLE_CHECK(false, "cells of every storage have a size");
}

// Bytes of one entry of the cells.
int64_t EntryBytes(ColumnStorage storage) { return storage == ColumnStorage::kBooleans ? 1 : 8; }

template <typename T>
Result<Column> OfNumbers(std::span<const T> cells, ColumnType type) {
  HEDDLE_ASSIGN_OR_RETURN(Column column,
                          Column::Make(type, static_cast<int64_t>(cells.size()), /*text_bytes=*/0,
                                       /*may_miss=*/false));
  HEDDLE_CHECK(column.storage() != ColumnStorage::kTexts, "numbers are no texts");
  std::memcpy(column.mutable_doubles(), cells.data(), cells.size_bytes());
  return column;
}

bool SameBits(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b) || (std::isnan(a) && std::isnan(b));
}

bool SameCell(const Column& a, const Column& b, int64_t row) {
  if (a.IsMissing(row) != b.IsMissing(row)) return false;
  if (a.IsMissing(row)) return true;
  switch (a.storage()) {
    case ColumnStorage::kDoubles: return SameBits(a.doubles()[row], b.doubles()[row]);
    case ColumnStorage::kIntegers: return a.integers()[row] == b.integers()[row];
    case ColumnStorage::kBooleans: return a.booleans()[row] == b.booleans()[row];
    case ColumnStorage::kTexts: return a.TextAt(row) == b.TextAt(row);
  }
  HEDDLE_CHECK(false, "cells of every storage compare");
}

}  // namespace

Result<Column> Column::Make(ColumnType type, int64_t rows, int64_t text_bytes, bool may_miss) {
  HEDDLE_CHECK(rows >= 0 && text_bytes >= 0, "sizes are not negative");
  const ColumnStorage storage = StorageOf(type);
  HEDDLE_CHECK(storage == ColumnStorage::kTexts || text_bytes == 0,
               "only texts have bytes beside their cells");
  const int64_t texts_at = CellBytes(storage, rows);
  const int64_t missing_at = SaturatingSum(texts_at, text_bytes);
  const int64_t bytes = SaturatingSum(missing_at, may_miss ? rows : 0);
  if (bytes == INT64_MAX)
    return DoesNotFit(fmt::format("a column of {} rows", rows), MemoryBudget::Process());
  Column column;
  HEDDLE_ASSIGN_OR_RETURN(column.memory_, Buffer::Allocate(bytes));
  char* const begin = static_cast<char*>(column.memory_->data());
  column.type_ = type;
  column.rows_ = rows;
  column.cells_ = begin;
  column.texts_ = begin + texts_at;
  if (may_miss) {
    column.missing_ = reinterpret_cast<uint8_t*>(begin + missing_at);
    std::fill_n(column.missing_, rows, uint8_t{0});
  }
  return column;
}

Result<Column> Column::OfTexts(std::span<const std::string_view> texts, ColumnType type) {
  int64_t bytes = 0;
  for (const std::string_view text : texts) bytes += static_cast<int64_t>(text.size());
  HEDDLE_ASSIGN_OR_RETURN(Column column, Make(type, static_cast<int64_t>(texts.size()), bytes, false));
  HEDDLE_CHECK(column.storage() == ColumnStorage::kTexts, "texts are no numbers");
  int64_t at = 0;
  column.mutable_offsets()[0] = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    std::copy(texts[i].begin(), texts[i].end(), column.texts_ + at);
    at += static_cast<int64_t>(texts[i].size());
    column.mutable_offsets()[i + 1] = at;
  }
  return column;
}

Result<Column> Column::OfDoubles(std::span<const double> cells, ColumnType type) {
  HEDDLE_CHECK(StorageOf(type) == ColumnStorage::kDoubles, "the type is one of doubles");
  return OfNumbers(cells, type);
}

Result<Column> Column::OfIntegers(std::span<const int64_t> cells, ColumnType type) {
  HEDDLE_CHECK(StorageOf(type) == ColumnStorage::kIntegers, "the type is one of integers");
  return OfNumbers(cells, type);
}

Result<Column> Column::OfBooleans(std::span<const bool> cells) {
  return OfNumbers(cells, ColumnType::kBoolean);
}

Column Column::Rows(int64_t begin, int64_t end) const {
  HEDDLE_CHECK(0 <= begin && begin <= end && end <= rows_, "a view lies within its column");
  Column view = *this;
  view.rows_ = end - begin;
  if (cells_ != nullptr) view.cells_ = static_cast<char*>(cells_) + begin * EntryBytes(storage());
  if (missing_ != nullptr) view.missing_ += begin;
  return view;
}

int64_t Column::bytes() const {
  return CellBytes(storage(), rows_) + text_bytes() + (missing_ == nullptr ? 0 : rows_);
}

Frame::Frame(std::shared_ptr<const Schema> schema, std::vector<Column> columns) {
  HEDDLE_CHECK(schema->types.size() == columns.size(), "a schema has a type for every column");
  HEDDLE_CHECK(schema->names.empty() || schema->names.size() == columns.size(),
               "either all columns have names or none has");
  rows_ = columns.empty() ? 0 : columns[0].rows();
  for (size_t i = 0; i < columns.size(); ++i)
    HEDDLE_CHECK(columns[i].rows() == rows_ && columns[i].type() == schema->types[i],
                 "columns have the same rows and the types of the schema");
  contents_ = std::make_shared<const Contents>(Contents{std::move(schema), std::move(columns)});
}

const std::shared_ptr<const Schema>& Frame::schema() const {
  static const auto* const kEmpty = new std::shared_ptr<const Schema>(std::make_shared<const Schema>());
  return contents_ == nullptr ? *kEmpty : contents_->schema;
}

Column Frame::column(int64_t column) const { return ColumnOf(column).Rows(begin_, begin_ + rows_); }

Frame Frame::Rows(int64_t begin, int64_t end) const {
  HEDDLE_CHECK(0 <= begin && begin <= end && end <= rows_, "a view lies within its frame");
  Frame view = *this;
  view.begin_ = begin_ + begin;
  view.rows_ = end - begin;
  return view;
}

int64_t Frame::bytes() const {
  int64_t bytes = 0;
  for (int64_t j = 0; j < columns(); ++j) bytes += column(j).bytes();
  return bytes;
}

bool Frame::IsMissing(int64_t row, int64_t column) const { return ColumnOf(column).IsMissing(begin_ + row); }

Scalar Frame::At(int64_t row, int64_t column) const {
  HEDDLE_CHECK(0 <= row && row < rows_ && 0 <= column && column < columns(), "a cell lies within its frame");
  const Column& cells = ColumnOf(column);
  const int64_t i = begin_ + row;
  const bool missing = cells.IsMissing(i);
  switch (cells.storage()) {
    case ColumnStorage::kDoubles: return missing ? Scalar(0.0) : Scalar(cells.doubles()[i]);
    case ColumnStorage::kIntegers: return missing ? Scalar(0) : Scalar(cells.integers()[i]);
    case ColumnStorage::kBooleans: return missing ? Scalar(false) : Scalar(cells.booleans()[i] != 0);
    case ColumnStorage::kTexts: return missing ? Scalar(std::string()) : Scalar(std::string(cells.TextAt(i)));
  }
  HEDDLE_CHECK(false, "cells of every storage are scalars");
}

void Frame::AppendText(int64_t row, int64_t column, std::string* out) const {
  HEDDLE_CHECK(0 <= row && row < rows_ && 0 <= column && column < columns(), "a cell lies within its frame");
  const Column& cells = ColumnOf(column);
  const int64_t i = begin_ + row;
  if (cells.IsMissing(i)) return;
  switch (cells.storage()) {
    case ColumnStorage::kDoubles:
      if (cells.type() == ColumnType::kFloat32)
        AppendSingle(static_cast<float>(cells.doubles()[i]), out);
      else
        AppendDouble(cells.doubles()[i], out);
      return;
    case ColumnStorage::kIntegers: out->append(std::to_string(cells.integers()[i])); return;
    case ColumnStorage::kBooleans: out->append(cells.booleans()[i] != 0 ? "TRUE" : "FALSE"); return;
    case ColumnStorage::kTexts: out->append(cells.TextAt(i)); return;
  }
}

bool Frame::SameCells(const Frame& a, const Frame& b) {
  if (a.shape() != b.shape() || a.schema()->types != b.schema()->types) return false;
  for (int64_t j = 0; j < a.columns(); ++j) {
    const Column left = a.column(j);
    const Column right = b.column(j);
    for (int64_t i = 0; i < a.rows(); ++i)
      if (!SameCell(left, right, i)) return false;
  }
  return true;
}

}  // namespace heddle
