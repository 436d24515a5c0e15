// SPDX-License-Identifier: Apache-2.0
#include "core/values/frame.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "core/memory/block_pool.h"
#include "core/text/double_text.h"
#include "core/text/utf8.h"
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

// What is wrong with cell `row`, which is not missing; nullptr: nothing.
const char* FaultOf(const Column& column, int64_t row) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  switch (column.type()) {
    case ColumnType::kFloat64:
    case ColumnType::kInteger64: return nullptr;
    case ColumnType::kFloat32: {
      const double cell = column.doubles()[row];
      return SameBits(static_cast<float>(cell), cell) ? nullptr : "is no float";
    }
    case ColumnType::kInteger32: {
      const int64_t cell = column.integers()[row];
      return -kMost - 1 <= cell && cell <= kMost ? nullptr : "is no integer of 32 bits";
    }
    case ColumnType::kBoolean: return column.booleans()[row] <= 1 ? nullptr : "is neither 0 nor 1";
    case ColumnType::kString: return IsUtf8(column.TextAt(row)) ? nullptr : "is not UTF-8";
    case ColumnType::kCharacter: {
      const std::string_view text = column.TextAt(row);
      return text.empty() || Utf8Length(text, 0) == text.size() ? nullptr
                                                                : "is more than one character of UTF-8";
    }
  }
  return "has no type";
}

bool IsZeroOrEmpty(const Column& column, int64_t row) {
  switch (column.storage()) {
    case ColumnStorage::kDoubles: return SameBits(column.doubles()[row], 0);
    case ColumnStorage::kIntegers: return column.integers()[row] == 0;
    case ColumnStorage::kBooleans: return column.booleans()[row] == 0;
    case ColumnStorage::kTexts: return column.TextAt(row).empty();
  }
  return false;
}

Status CheckAdopted(const Column& column) {
  const int64_t rows = column.rows();
  const bool is_text = column.storage() == ColumnStorage::kTexts;
  if (rows < 0 || rows > kMostLength) return InvalidArgument("no column has {} rows", rows);
  const void* const cells = column.integers();
  if (cells == nullptr && (rows > 0 || is_text))
    return InvalidArgument("the cells of a column are at no address");
  if (reinterpret_cast<uintptr_t>(cells) % static_cast<uintptr_t>(EntryBytes(column.storage())) != 0)
    return InvalidArgument("the cells of a column are not aligned to their own size");
  if (is_text) {
    const int64_t* const offsets = column.offsets();
    if (offsets[0] < 0) return InvalidArgument("the first offset of texts is negative: {}", offsets[0]);
    for (int64_t i = 0; i < rows; ++i)
      if (offsets[i + 1] < offsets[i])
        return InvalidArgument("offsets of texts fall: {} of row {}, {} of the next", offsets[i], i + 1,
                               offsets[i + 1]);
    if (column.texts() == nullptr && offsets[rows] > offsets[0])
      return InvalidArgument("the texts of a column are at no address");
  }
  for (int64_t i = 0; i < rows; ++i) {
    if (column.MayMiss() && column.missing()[i] > 1)
      return InvalidArgument("the mark of row {} is neither 0 nor 1: {}", i + 1, column.missing()[i]);
    if (column.IsMissing(i)) {
      if (!IsZeroOrEmpty(column, i))
        return InvalidArgument("the missing cell in row {} holds something; 0 or the empty text stands there",
                               i + 1);
    } else if (const char* const fault = FaultOf(column, i); fault != nullptr) {
      return InvalidArgument("the cell in row {} of a column of {} {}", i + 1, Name(column.type()), fault);
    }
  }
  return OkStatus();
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

Result<Column> Column::Adopt(ColumnType type, int64_t rows, const void* cells, const char* texts,
                             const uint8_t* missing, std::function<void()> release) {
  Column column;
  column.type_ = type;
  column.rows_ = rows;
  column.cells_ = const_cast<void*>(cells);
  column.texts_ = const_cast<char*>(texts);
  column.missing_ = const_cast<uint8_t*>(missing);
  HEDDLE_RETURN_IF_ERROR(CheckAdopted(column));
  column.memory_ = Buffer::Adopt(cells, CellBytes(column.storage(), rows), std::move(release));
  return column;
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

Result<Frame> Frame::Of(std::vector<std::string> names, std::vector<Column> columns) {
  if (!names.empty() && names.size() != columns.size())
    return InvalidArgument("a frame has {} columns and {} names", columns.size(), names.size());
  auto schema = std::make_shared<Schema>();
  for (size_t j = 0; j < columns.size(); ++j) {
    if (columns[j].rows() != columns[0].rows())
      return InvalidArgument("column {} of a frame has {} rows, the first has {}", j + 1, columns[j].rows(),
                             columns[0].rows());
    schema->types.push_back(columns[j].type());
  }
  schema->names = std::move(names);
  return Frame(std::move(schema), std::move(columns));
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
